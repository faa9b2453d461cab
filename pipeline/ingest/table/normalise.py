"""Makes dense ids, sorted unique edges and label tables of raw labels. It needs memory for labels and 8 bytes per edge.

Ids are positions in sorted label order (`schemas.edges`). Other labels than integers of 31 bits are numbered in the
order in which they come, block by block. After the last block, the ranks replace the numbers. An edge is a pair of
32-bit ids in one 64-bit word, and is sorted as an integer.

Integers that fit into 32 bits stand in the table themselves until all are known. So nothing is numbered while the input
is read, and in the end one pass finds the distinct labels and another one replaces them by their ranks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, starmap
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bicliques.kernels.graph.threads import sort
from bicliques.pipeline.ingest.readers.opening import Digest
from bicliques.pipeline.ingest.table.numbering import Integers, TextParts, Texts, refuse_too_many
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import MOST_THREADS, in_order
from bicliques.pipeline.run.files import create
from bicliques.pipeline.run.names import edges_file
from bicliques.schemas.dtypes import MAX_VERTICES, VERTEX
from bicliques.schemas.edges import EDGES, bytes_of, label_schema

#: Entries that a thread takes at a time.
PIECE = 1 << 18
#: Integers below this are always looked up in a table.
SMALL = 1 << 22
#: Bytes per distinct label that a table of ranks may take.
RANK_BYTES = 40


Result = TypeVar("Result")


def rank_by_value(column: np.ndarray, threads: int) -> np.ndarray:
    """Replace integers from 0 by their positions among the distinct ones. Returns these, sorted, of type int32."""
    known = distinct(column, threads)
    most = int(known[-1]) if len(known) else 0
    if most < max(SMALL, RANK_BYTES // VERTEX.itemsize * len(known)):
        ranks = np.empty(most + 1, VERTEX)
        ranks[known] = np.arange(len(known), dtype=VERTEX)
        replace(column, ranks, threads)
        return known

    def search(piece: np.ndarray) -> None:
        piece[:] = np.searchsorted(known, piece)

    _on_pieces(search, column, threads)
    return known


def replace(column: np.ndarray, by: np.ndarray, threads: int) -> None:
    """Replace every entry ``k`` of `column` by ``by[k]``."""

    def look_up(piece: np.ndarray) -> None:
        piece[:] = by[piece]

    _on_pieces(look_up, column, threads)


def distinct(column: np.ndarray, threads: int) -> np.ndarray:
    """The distinct integers of a column, sorted. It takes at most a byte per entry, or 24 per distinct integer.

    Parameters
    ----------
    column : ndarray of int32
        Integers from 0.
    """
    most = max(_on_pieces(lambda piece: int(piece.max()), column, threads), default=-1)
    if most < max(SMALL, len(column)):
        is_there = np.zeros(most + 1, np.bool_)

        def mark(piece: np.ndarray) -> None:
            is_there[piece] = True  # threads may write the same byte, but all of them write the same

        _on_pieces(mark, column, threads)
        return np.flatnonzero(is_there).astype(VERTEX)
    known, waiting, n_waiting = np.empty(0, VERTEX), [], 0
    for part in in_order(np.unique, _pieces(column), threads):
        waiting.append(part)
        n_waiting += len(part)
        if n_waiting > max(SMALL, len(known)):
            known, waiting, n_waiting = np.unique(np.concatenate([known, *waiting])), [], 0
    return np.unique(np.concatenate([known, *waiting]))


def _on_pieces(work: Callable[[np.ndarray], Result], column: np.ndarray, threads: int) -> list[Result]:
    return list(in_order(work, _pieces(column), threads))


def _pieces(column: np.ndarray) -> Iterator[np.ndarray]:
    return (column[start : start + PIECE] for start in range(0, len(column), PIECE))


#: Edges or labels that are handled at a time, and rows of a Parquet row group.
SLICE = 1 << 20
#: A file of edges has so many rows before duplicates are dropped, or more if there would be too many files.
FILE_ROWS, _MOST_FILES = 1 << 21, 128
#: Slices of text labels that wait. All known text is hashed again when some is numbered, so this is rarely done.
TEXT_SLICES = 4
#: Text labels from which on several threads number those of a side, if there are more threads than sides.
MANY_TEXTS = 1 << 18
#: Bytes of long labels that are handled at a time.
SLICE_BYTES = 1 << 26

#: Column of the pairs that is the high half of their 64-bit word. The left side is there, so that it sorts first.
_LEFT = 1 if sys.byteorder == "little" else 0
_RIGHT = 1 - _LEFT


class _Side:
    """The labels of one side, numbered in the order in which they come.

    Integers are their own numbers until the first one comes that does not fit into 32 bits with a sign.

    The labels of a block are first numbered within the block, or are labels of their own if most of them are different.
    Blocks wait until they have as many labels, or bytes of labels, as are known already. Then all are numbered
    together. So every label is looked up a constant number of times per block that it occurs in, whatever the number of
    blocks.
    """

    def __init__(self, name: str, column: int, integer: pa.DataType, threads: int):
        self.name = name
        self.column = column
        self.integer = integer
        self.threads = threads
        self.by_value: bool | None = None
        self.known: Texts | TextParts | Integers | None = None
        self.waiting: list[tuple[int, int, pa.Array]] = []
        self.n_waiting = self.waiting_bytes = 0

    def encode(self, labels: pa.Array, pairs: np.ndarray, start: int) -> np.ndarray:
        """Numbers of `labels`, or within their block. Their edges go to the rows of `pairs` from `start`."""
        if self.by_value is None:
            self.by_value = pa.types.is_integer(labels.type)
        if self.by_value:
            values: np.ndarray = labels.to_numpy()
            if values.max() <= MAX_VERTICES:
                return values
            self.by_value = False
            self.known = Integers(self.name, rank_by_value(pairs[:start, self.column], self.threads))
        if pa.types.is_integer(labels.type):
            labels = labels.dictionary_encode()
        is_encoded = pa.types.is_dictionary(labels.type)
        own = labels.dictionary if is_encoded else labels  # every text is a label of its own until it is numbered
        self.waiting.append((start, start + len(labels), own))
        self.n_waiting += len(own)
        self.waiting_bytes += own.nbytes
        numbers: np.ndarray = labels.indices.to_numpy() if is_encoded else np.arange(len(labels), dtype=VERTEX)
        return numbers

    def is_due(self) -> bool:
        """Whether the waiting blocks are to be numbered now."""
        known, n_bytes = (0, 0) if self.known is None else (len(self.known), self.known.nbytes)
        few = SLICE if isinstance(self.known, Integers) else TEXT_SLICES * SLICE
        return self.n_waiting > max(few, known) or self.waiting_bytes > max(SLICE_BYTES, n_bytes)

    def settle(self, pairs: np.ndarray) -> Texts | TextParts | Integers:
        """Replace the numbers within blocks, in `pairs`, by numbers of all labels known."""
        blocks = [labels for _, _, labels in self.waiting]
        if self.known is None:
            self.known = self._numbering(blocks[0].type)
        numbers_of_blocks = self.known.numbers_of(blocks) if blocks else []
        for (start, stop, _), numbers in zip(self.waiting, numbers_of_blocks, strict=True):
            codes = pairs[start:stop, self.column]
            pairs[start:stop, self.column] = numbers[codes]
        self.waiting, self.n_waiting, self.waiting_bytes = [], 0, 0
        return self.known

    def _numbering(self, kind: pa.DataType) -> Texts | TextParts | Integers:
        if pa.types.is_integer(kind):
            return Integers(self.name)
        threads = self.threads // 2  # the other side has the other half
        return TextParts(self.name, threads) if threads > 1 and self.n_waiting >= MANY_TEXTS else Texts(self.name)

    def rank(self, pairs: np.ndarray) -> Labels:
        """Replace the numbers in `pairs` by positions in sorted label order."""
        column = pairs[:, self.column]
        if self.by_value:
            known = rank_by_value(column, self.threads)
            refuse_too_many(self.name, len(known))
            return Labels(pa.array(known.astype(np.int64)), None, self.integer)
        values, order, ranks = self.settle(pairs).ranked()
        self.known = None
        replace(column, ranks, self.threads)
        return Labels(values, order, self.integer)


class Labels:
    """The distinct labels of one side.

    Parameters
    ----------
    values : Array
        int64 or large_string, in any order.
    order : ndarray or None
        Positions in `values` in sorted order. None if they are sorted.
    integer : DataType
        Type in the table if they are integers: int64, or int32 if all fit.
    """

    def __init__(self, values: pa.Array, order: np.ndarray | None, integer: pa.DataType):
        self.values = values
        self.order = order
        self.type = integer if pa.types.is_integer(values.type) else pa.string()

    def __len__(self) -> int:
        return len(self.values)

    def slices(self) -> Iterator[pa.Array]:
        """The labels in sorted order."""
        return starmap(self._slice, pairwise(self._cuts()))

    def _slice(self, start: int, stop: int) -> pa.Array:
        values = self.values[start:stop] if self.order is None else self.values.take(pa.array(self.order[start:stop]))
        return pc.cast(values, self.type)

    def _cuts(self) -> list[int]:
        """Positions where slices begin and end. Each slice has at most `SLICE` labels and about `SLICE_BYTES`."""
        if self.type != pa.string():
            return [*range(0, len(self), SLICE), len(self)]
        lengths = pc.binary_length(self.values).to_numpy()
        until = np.cumsum(lengths if self.order is None else lengths[self.order])
        cuts = [0]
        while cuts[-1] < len(self):
            start = cuts[-1]
            before = until[start - 1] if start else 0
            stop = int(np.searchsorted(until, before + SLICE_BYTES, side="right"))
            cuts.append(min(max(stop, start + 1), start + SLICE))
        return cuts

    def write(self, path: Path, threads: int = 1) -> None:
        """Write the label table."""
        schema = label_schema(self.type)

        def batch_of(cut: tuple[int, int]) -> pa.RecordBatch:
            return pa.RecordBatch.from_arrays([self._slice(*cut)], schema=schema)

        cuts = list(pairwise(self._cuts()))
        with create(path) as file, pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=False) as writer:
            for batch in in_order(batch_of, cuts, min(threads, len(cuts))):
                writer.write_batch(batch)


class EdgeTable:
    """Makes the sorted unique table of raw batches of edges.

    Parameters
    ----------
    integers : (DataType, DataType)
        See `pipeline.ingest.readers.base.EdgeStream`.
    threads : int or None
        Threads that number and sort. None takes one per core.

    Notes
    -----
    Edges need 8 bytes each, and at most an eighth more while the table grows or integers are ranked. While labels are
    numbered, an integer needs up to 60 bytes. Text needs three times its bytes, and up to 130 bytes more per label.
    From `MANY_TEXTS` labels on, half of the threads number the text of each side (`TextParts`), if that is more than
    one; then it is 200 bytes per label.
    """

    def __init__(self, integers: tuple[pa.DataType, pa.DataType], threads: int | None = None) -> None:
        self.n_rows = 0
        self.threads = threads or min(count_cores(), MOST_THREADS)
        self._pairs = np.empty((SLICE, 2), dtype=VERTEX)
        self._left = _Side("left", _LEFT, integers[0], self.threads)
        self._right = _Side("right", _RIGHT, integers[1], self.threads)

    def add(self, batch: pa.RecordBatch) -> None:
        """Append the edges of `batch`, columns left and right."""
        start, stop = self.n_rows, self.n_rows + len(batch)
        if stop > len(self._pairs):
            # realloc moves a large block by its page table, without a copy
            self._pairs.resize((max(stop, len(self._pairs) + len(self._pairs) // 8), 2), refcheck=False)
        self.n_rows = stop
        for side, labels in ((self._left, batch["left"]), (self._right, batch["right"])):
            self._pairs[start:stop, side.column] = side.encode(labels, self._pairs, start)
        due = [side for side in (self._left, self._right) if side.is_due()]
        if len(due) == 2 and self.threads > 1:
            with ThreadPoolExecutor(2) as pool:  # the error of the left side is the first one
                list(pool.map(_Side.settle, due, [self._pairs] * 2))
            return
        for side in due:
            side.settle(self._pairs)

    def finish(self) -> tuple[Labels, Labels, int]:
        """Sort. Returns the labels of both sides and the number of duplicates. Called once, with at least one edge."""
        self._pairs.resize((self.n_rows, 2), refcheck=False)
        with ThreadPoolExecutor(min(self.threads, 2)) as pool:
            left, right = pool.map(_Side.rank, (self._left, self._right), [self._pairs] * 2)
        words = self._words()
        sort(words, self.threads)

        def repeated(start: int) -> int:
            after = words[start : start + SLICE]
            return int(np.count_nonzero(after == words[start - 1 : start - 1 + len(after)]))

        return left, right, sum(in_order(repeated, range(1, self.n_rows, SLICE), self.threads))

    def double(self, left: Labels, right: Labels) -> tuple[Labels, int]:
        """Make the double cover: every edge in both directions, between two sides with the labels of both.

        It is called after `finish`, with the labels of that, of one kind. An edge from a vertex to itself is left out,
        and so is a vertex without others.

        Returns
        -------
        Labels, int
            The labels of both sides, and the number of edges that were left out.
        """
        words = np.concatenate(list(self.unique()))
        sides = [
            side.values if side.order is None else side.values.take(pa.array(side.order)) for side in (left, right)
        ]
        known = pa.concat_arrays(sides).unique()
        known = known.take(pc.array_sort_indices(known))
        ranks = [pc.index_in(labels, known).to_numpy() for labels in sides]
        ends = np.stack([ranks[0][words >> 32], ranks[1][words & 0xFFFFFFFF]])
        ends = ends[:, ends[0] != ends[1]]
        used, ends = np.unique(ends, return_inverse=True)
        refuse_too_many("different", len(used))
        one, other = ends.reshape(2, -1)
        n_loops, words = len(words) - len(one), np.unique(np.concatenate([one << 32 | other, other << 32 | one]))
        self.n_rows, self._pairs = len(words), words.view(VERTEX).reshape(-1, 2)
        integer = pa.int32() if left.type == right.type == pa.int32() else pa.int64()
        return Labels(known.take(pa.array(used)), None, integer), n_loops

    def write(self, folder: Path) -> None:
        """Write the sorted unique edges below the folder of a run, each file on a thread."""
        rows = max(FILE_ROWS, -(-self.n_rows // (_MOST_FILES * SLICE)) * SLICE)

        def write(first: int) -> None:
            path = folder / edges_file(first // rows)
            with (
                create(path) as file,
                pq.ParquetWriter(file, EDGES, compression="zstd", use_dictionary=False) as writer,
            ):
                for start in range(first, min(first + rows, self.n_rows), SLICE):
                    pairs = self._distinct(start).view(VERTEX).reshape(-1, 2)
                    columns = [pa.array(pairs[:, column]) for column in (_LEFT, _RIGHT)]
                    writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=EDGES))

        firsts = range(0, self.n_rows, rows)
        for _ in in_order(write, firsts, min(self.threads, len(firsts))):
            pass

    def digest(self, left: Labels, right: Labels) -> str:
        """BLAKE3 (hex) of the labels and the edges. It does not depend on their source."""
        return digest_of(left, right, self.unique())

    def _words(self) -> np.ndarray:
        return self._pairs.view(np.int64).reshape(-1)

    def unique(self) -> Iterator[np.ndarray]:
        """The distinct words, in order, a slice at a time."""
        return in_order(self._distinct, range(0, self.n_rows, SLICE), min(self.threads, 2))

    def _distinct(self, start: int) -> np.ndarray:
        """The words of the slice from `start` that are not the same as the word before."""
        words = self._words()
        part = words[start : start + SLICE]
        new = np.empty(len(part), dtype=np.bool_)
        new[0] = start == 0 or words[start - 1] != part[0]
        np.not_equal(part[1:], part[:-1], out=new[1:])
        return part if new.all() else part[new]


def digest_of(left: Labels, right: Labels, words: Iterable[np.ndarray]) -> str:
    """BLAKE3 (hex) of labels and sorted unique words (left id in the upper half, int64), in slices of any size."""
    digest = Digest()
    for labels in (left, right):
        is_text = labels.type == pa.string()
        digest.update(f"{labels.type if is_text else 'int64'} {len(labels)} ".encode())  # of any width
        if is_text:
            # All lengths, then all text. So different labels cannot give the same bytes, and slices do not matter.
            for part in labels.slices():
                digest.update(pc.binary_length(part).to_numpy().astype("<i4").tobytes())
            for part in labels.slices():
                text, ends = bytes_of(part)
                digest.update(text[ends[0] : ends[-1]].data)
        else:
            for part in labels.slices():
                digest.update(part.to_numpy().astype("<i8").tobytes())
    for part in words:
        digest.update(part.astype("<i8").tobytes())
    return digest.hexdigest()
