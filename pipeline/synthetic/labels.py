"""Labels of vertices: integers, or text of 20 bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pipeline.synthetic.streams import Relabelling, key_of
from pipeline.synthetic.wanted import Wanted
from schemas.search import Side

__all__ = ["label_array", "relabellings"]

_BYTES = 20
#: Labels that are written together.
_PIECE = 1 << 16


def relabellings(graph: Wanted) -> tuple[Relabelling, Relabelling]:
    """From vertices, which are numbered by degree, to the numbers in their labels."""
    left, right = (
        Relabelling(n, key_of(graph.seed, "labels", side))
        for side, n in (("left", graph.n_left), ("right", graph.n_right))
    )
    return left, right


def label_array(numbers: np.ndarray, graph: Wanted, side: Side) -> pa.Array:
    """The labels with some numbers (int32): int32, or text such as ``left-000000000000007``."""
    if graph.labels == "integers":
        return pa.array(numbers.astype(np.int32, copy=False))
    text = np.empty((len(numbers), _BYTES), np.uint8)
    start = f"{side}-".encode()
    text[:, : len(start)] = np.frombuffer(start, np.uint8)
    for begin in range(0, len(numbers), _PIECE):
        rest = numbers[begin : begin + _PIECE].astype(np.int64)
        for column in range(_BYTES - 1, len(start) - 1, -1):
            text[begin : begin + _PIECE, column] = rest % 10 + ord("0")
            rest //= 10
    offsets = np.arange(len(numbers) + 1, dtype=np.int64) * _BYTES
    return pa.LargeStringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(text))
