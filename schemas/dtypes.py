"""Integer types of the project, and lists of such numbers one behind the other.

Ids have 32 bits, so a graph may have at most 2**31 - 1 vertices per side. Offsets and counts have 64 bits, so a graph
may have as many edges as fit into memory, and no count wraps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

VERTEX = np.dtype(np.int32)
OFFSET = np.dtype(np.int64)
COUNT = np.dtype(np.int64)
WORD = np.dtype(np.uint64)

MAX_VERTICES = 2**31 - 1


def offsets_of(lengths: np.ndarray | Sequence[int]) -> np.ndarray:
    """Where lists of these lengths begin, one behind the other, and where the last one ends."""
    return np.concatenate([np.zeros(1, OFFSET), np.cumsum(lengths, dtype=OFFSET)])


def gathered(values: np.ndarray, at: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offsets, and the lists ``values[at[i]:at[i] + lengths[i]]`` one behind the other."""
    offsets = offsets_of(lengths)
    return offsets, values[np.repeat(at - offsets[:-1], lengths) + np.arange(offsets[-1])]
