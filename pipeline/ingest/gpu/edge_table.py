"""Makes the sorted unique edge table of raw labels on a device. Larger tables are made a chunk at a time.

The result is that of `normalise.EdgeTable`, which hashes where this module sorts. Edges that fit on the device stay
there. If there are more, each chunk of edges becomes sorted 64-bit words in main memory. In the end ranges of words are
gathered from all chunks, one range at a time, and sorted together. Both take 8 bytes of main memory per edge.

The code here works on arrays of NumPy and of CuPy. `pipeline.ingest.gpu.arrays` handles strings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bicliques.pipeline.ingest.gpu.arrays import Arrays
from bicliques.pipeline.ingest.table.normalise import SLICE, Labels, digest_of
from bicliques.pipeline.ingest.table.numbering import refuse_too_many
from bicliques.pipeline.run.names import EDGES_FILE

#: Device memory per edge of a chunk, in bytes, for labels, codes, words, and sorting.
_EDGE_BYTES = 160
#: Bytes of text of a side that are numbered at a time, per edge of a chunk. Numbering takes some 14 bytes of the device
#: per byte of text (docs/lab/large.md), and the labels that are known already need room, too.
_TEXT_OF_AN_EDGE = 10
#: Most bytes of text of a side that are numbered at a time, because a column of libcudf has offsets of 32 bits, or of
#: 64 if that is turned on. Larger batches of the input are numbered alone.
TEXT_BYTES = 2**31 - 1
#: Edges that are written at a time.
PIECE = 1 << 24
#: Words of each chunk that are sampled to choose the ranges.
_SAMPLE = 4096


def edges_of_a_chunk(arrays: Arrays) -> int:
    """As many edges as fit into the free memory of a device, with the batch of the input that makes it full."""
    return max(arrays.free_bytes() // _EDGE_BYTES * 4 // 5, SLICE)


class _Side:
    """The labels of one side. Their numbers follow the order of their first chunk, and are sorted within it."""

    def __init__(self, name: str, arrays: Arrays, integer: pa.DataType):
        self.name, self.arrays, self.integer = name, arrays, integer
        self.known: Any = None

    def number(self, labels: Any) -> Any:
        """Numbers of the labels of a chunk, int64. A number does not change later."""
        xp, arrays = self.arrays.xp, self.arrays
        keys, codes = arrays.unique(labels)
        if self.known is None:
            self.known = keys
        else:
            n, before = arrays.rows(self.known), self.known
            both, places = arrays.unique(arrays.concat([before, keys]))
            number = xp.full(arrays.rows(both), -1, dtype=np.int64)
            number[places[:n]] = xp.arange(n)
            new = xp.flatnonzero(number[places[n:]] < 0)
            number[places[n:][new]] = xp.arange(n, n + len(new))
            self.known = arrays.concat([before, arrays.take(keys, new)])
            codes = number[places[n:]][codes]
        is_text = not isinstance(self.known, xp.ndarray)
        refuse_too_many(self.name, arrays.rows(self.known), int(arrays.lengths(self.known).sum()) if is_text else 0)
        return codes.astype(np.int64)

    def finish(self) -> tuple[Labels, Any]:
        """The sorted labels, in main memory, and the rank of every number, int64."""
        keys, ranks = self.arrays.unique(self.known)
        self.known = None
        labels = Labels(self.arrays.to_arrow(keys), None, self.integer)
        return labels, ranks.astype(np.int64)


class DeviceEdgeTable:
    """An edge table with the methods of `normalise.EdgeTable`.

    Parameters
    ----------
    integers : (DataType, DataType)
        See `pipeline.ingest.readers.base.EdgeStream`.
    capacity : int
        Edges of a chunk; see `edges_of_a_chunk`.
    """

    def __init__(self, arrays: Arrays, integers: tuple[pa.DataType, pa.DataType], capacity: int):
        self.arrays = arrays
        self.n_rows = self.n_chunks = 0
        self.capacity = capacity
        self.most_text = min(TEXT_BYTES, _TEXT_OF_AN_EDGE * capacity)
        self._left, self._right = _Side("left", arrays, integers[0]), _Side("right", arrays, integers[1])
        self._waiting: list[tuple[Any, Any]] = []
        self._waiting_bytes = np.zeros(2, np.int64)  # of text, left and right
        self._numbered: list[Any] = []  # words of the chunk that is not full yet
        self._n_in_chunk = 0
        self._chunks: list[Any] = []  # words, of numbers at first, and of ranks and sorted in the end

    @property
    def is_chunked(self) -> bool:
        """Whether the edges were too many for the device at once."""
        return self.n_chunks > 1

    def add(self, left: Any, right: Any) -> None:
        """Append edges: two columns of labels, on the device."""
        n_bytes = np.array([self._text_bytes(column) for column in (left, right)])
        if (self._waiting_bytes + n_bytes > self.most_text).any():
            self._number()
        self._waiting.append((left, right))
        self._waiting_bytes += n_bytes
        n = self.arrays.rows(left)
        self._n_in_chunk += n
        self.n_rows += n
        if self._n_in_chunk >= self.capacity:
            self._settle()

    def finish(self) -> tuple[Labels, Labels, int]:
        """Sort. Returns the labels of both sides and the number of duplicates. Called once, with at least one edge."""
        self._settle()
        left, left_ranks = self._left.finish()
        right, right_ranks = self._right.finish()
        xp = self.arrays.xp
        for k, words in enumerate(self._chunks):
            words = self.arrays.on_device(words)
            ranked = xp.sort((left_ranks[words >> 32] << 32) | right_ranks[words & 0xFFFFFFFF])
            distinct = self._distinct(ranked)
            self._chunks[k] = self.arrays.on_host(distinct) if self.is_chunked else distinct
        if self.is_chunked:
            self._chunks = self._merged()
        return left, right, self.n_rows - sum(map(len, self._chunks))

    @property
    def on_device(self) -> Any | None:
        """All distinct words in order, on the device. None if they were too many for it at once."""
        return None if self.is_chunked else self._chunks[0]

    def unique(self) -> Iterator[Any]:
        """The distinct words in order, on the device, at most `PIECE` at a time. The left id is in the upper half."""
        for words in self._chunks:
            for start in range(0, len(words), PIECE):
                yield self.arrays.on_device(words[start : start + PIECE])

    def write(self, folder: Path) -> None:
        """Write the sorted unique edges below the folder of a run, as one file."""
        self.arrays.write_edges(folder / EDGES_FILE, self.unique())

    def digest(self, left: Labels, right: Labels) -> str:
        """See `pipeline.ingest.table.normalise.EdgeTable.digest`."""
        return digest_of(left, right, map(self.arrays.on_host, self.unique()))

    def _text_bytes(self, labels: Any) -> int:
        is_text = not isinstance(labels, self.arrays.xp.ndarray)
        return int(self.arrays.lengths(labels).sum()) if is_text else 0

    def _number(self) -> None:
        """Make words of the labels that wait."""
        if not self._waiting:
            return
        lefts, rights = map(list, zip(*self._waiting, strict=True))
        self._waiting, self._waiting_bytes[:] = [], 0
        left = self._left.number(self.arrays.concat(lefts)) << 32
        del lefts  # their memory is needed
        self._numbered.append(left | self._right.number(self.arrays.concat(rights)))

    def _settle(self) -> None:
        """End a chunk."""
        self._number()
        if not self._numbered:
            return
        words = self.arrays.concat(self._numbered)
        self._numbered, self._n_in_chunk = [], 0
        if len(self._chunks) == 1:
            self._chunks[0] = self.arrays.on_host(self._chunks[0])  # another chunk will follow
        self.n_chunks += 1
        self._chunks.append(words if not self._chunks else self.arrays.on_host(words))

    def _distinct(self, words: Any) -> Any:
        """Sorted words without repetitions."""
        new = self.arrays.xp.ones(len(words), dtype=bool)
        new[1:] = words[1:] != words[:-1]
        return words[new]

    def _merged(self) -> list[Any]:
        """All chunks as one sequence of sorted ranges without repetitions, each of which fits on the device."""
        n_ranges = -(-sum(map(len, self._chunks)) // self.capacity)
        sample = np.concatenate([words[:: max(1, len(words) // _SAMPLE)] for words in self._chunks])
        borders = np.sort(sample)[np.arange(1, n_ranges) * len(sample) // n_ranges]
        cuts = [[0, *np.searchsorted(words, borders).tolist(), len(words)] for words in self._chunks]
        ranges = []
        for k in range(n_ranges):
            pieces = [words[cut[k] : cut[k + 1]] for words, cut in zip(self._chunks, cuts, strict=True)]
            together = self.arrays.on_device(np.concatenate(pieces))
            ranges.append(self.arrays.on_host(self._distinct(self.arrays.xp.sort(together))))
        return ranges
