"""Numbers the labels of one side, block after block. Text is hashed and integers are sorted.

Hashing would need up to 200 bytes per integer for a moment, and sorting needs 60. Sorting also takes only two thirds
of the time if most integers are different. A number does not change later.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.schemas.dtypes import MAX_VERTICES, VERTEX
from bicliques.schemas.errors import ResourceError

#: Most bytes of text that all labels of a side may have together, because a label table has offsets of 32 bits.
MAX_TEXT = 2**31 - 1


def refuse_too_many(side: str, n: int, n_bytes: int = 0) -> None:
    """Refuse `n` labels that cannot be numbered, or whose text (`n_bytes` of it) does not fit into a label table.

    Raises
    ------
    ResourceError
    """
    if n > MAX_VERTICES:
        raise ResourceError(
            f"{n} {side} labels are more than the {MAX_VERTICES} that 32-bit ids can number; split the graph"
        )
    if n_bytes > MAX_TEXT:
        raise ResourceError(
            f"the {side} labels have {n_bytes} bytes of text together, and {MAX_TEXT} are the most; shorten them, "
            "or take integers"
        )


class Texts:
    """Labels that are text.

    Parameters
    ----------
    side : str
        "left" or "right", for messages.
    """

    def __init__(self, side: str) -> None:
        self.side = side
        self.known = pa.array([], pa.large_string())

    def __len__(self) -> int:
        return len(self.known)

    @property
    def nbytes(self) -> int:
        """Bytes of the labels."""
        return self.known.nbytes

    def numbers_of(self, blocks: Sequence[pa.Array]) -> list[np.ndarray]:
        """The number of every label of every block, whether it was known before or not. Integers."""
        before = [self.known] if len(self) else []  # Arrow would drop an empty chunk
        merged = pa.chunked_array([*before, *blocks]).dictionary_encode()
        self.known = merged.chunk(0).dictionary
        refuse_too_many(self.side, len(self), pc.sum(pc.binary_length(self.known), min_count=0).as_py())
        return [chunk.indices.to_numpy() for chunk in merged.chunks[len(before) :]]

    def ranked(self) -> tuple[pa.Array, np.ndarray, np.ndarray]:
        """The labels, their positions in sorted order, and the rank of every number."""
        order = pc.array_sort_indices(self.known).to_numpy()
        ranks = np.empty(len(order), VERTEX)
        ranks[order] = np.arange(len(order), dtype=VERTEX)
        return self.known, order, ranks


class Integers:
    """Labels that are integers. Methods are those of `Texts`.

    Parameters
    ----------
    side : str
        "left" or "right", for messages.
    known : ndarray or None
        Sorted labels whose numbers are their positions.
    """

    def __init__(self, side: str, known: np.ndarray | None = None) -> None:
        self.side = side
        self.known = np.empty(0, np.int64) if known is None else known.astype(np.int64)  # sorted
        self.number = np.arange(len(self.known), dtype=VERTEX)  # the number of each

    def __len__(self) -> int:
        return len(self.known)

    @property
    def nbytes(self) -> int:
        """Bytes of the labels."""
        return self.known.nbytes

    def numbers_of(self, blocks: Sequence[pa.Array]) -> list[np.ndarray]:
        """The number of every label of every block, whether it was known before or not. int32."""
        labels = np.concatenate([block.to_numpy() for block in blocks])
        order = np.argsort(labels)
        ordered = labels[order]
        is_first = np.ones(len(labels), np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
        distinct = ordered[is_first]
        numbers = np.empty(len(labels), VERTEX)
        numbers[order] = self._add(distinct)[np.cumsum(is_first) - 1]
        return np.split(numbers, np.cumsum([len(block) for block in blocks])[:-1])

    def ranked(self) -> tuple[pa.Array, np.ndarray, np.ndarray]:
        """See `Texts`."""
        ranks = np.empty(len(self), VERTEX)
        ranks[self.number] = np.arange(len(self), dtype=VERTEX)
        return pa.array(self.known), np.arange(len(self)), ranks

    def _add(self, labels: np.ndarray) -> np.ndarray:
        """Numbers of sorted distinct labels. Labels that are not known yet get new numbers."""
        places = np.searchsorted(self.known, labels)
        is_new = np.ones(len(labels), np.bool_)
        inside = places < len(self)
        is_new[inside] = self.known[places[inside]] != labels[inside]
        n = len(self) + int(is_new.sum())
        refuse_too_many(self.side, n)
        numbers = np.empty(len(labels), VERTEX)
        numbers[~is_new] = self.number[places[~is_new]]
        numbers[is_new] = np.arange(len(self), n, dtype=VERTEX)
        is_old = np.ones(n, np.bool_)
        is_old[places[is_new] + np.arange(n - len(self))] = False
        self.known = _merged(is_old, self.known, labels[is_new])
        self.number = _merged(is_old, self.number, numbers[is_new])
        return numbers


def _merged(is_old: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    merged = np.empty(len(is_old), old.dtype)
    merged[is_old], merged[~is_old] = old, new
    return merged
