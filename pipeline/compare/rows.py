"""The rows of both runs, read twice: hashes of all, then the members of some; and how many rows each vertex was in.

`write_rows` writes rows into one Parquet file of the layout of parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bicliques.kernels.compiled.lists import count_members, sum_lists
from bicliques.pipeline.compare.both_runs import BothRuns, CompleteRun
from bicliques.pipeline.output import stretch
from bicliques.pipeline.output.part_writer import LAYOUT, part_schema, to_batch
from bicliques.pipeline.output.stretch import LabelRoom, Stretch, row_groups
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import in_order
from bicliques.pipeline.proof.coded_groups import CodedGroups
from bicliques.pipeline.proof.read_back import in_pieces, read_part
from bicliques.pipeline.run.files import whole_file
from bicliques.pipeline.run.labels import Tables
from bicliques.pipeline.run.resuming import VERIFY
from bicliques.pipeline.run.tables import open_part
from bicliques.schemas.bicliques import Bicliques, Provenance, fingerprint
from bicliques.schemas.difference import Counted
from bicliques.schemas.dtypes import COUNT
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.hashes import VertexHashes, mixed, splitmix64
from bicliques.schemas.search import Side

#: Constants of the sides. They have nothing to do with those of `schemas.hashes`, so neither have the hashes.
_LEFT, _RIGHT = np.uint64(0x6F6E6365206D6F72), np.uint64(0x746865206F746865)


def second_hashes(left: np.ndarray, right: np.ndarray) -> VertexHashes:
    """Hashes of vertices beside those of which ids are made, from numbers (int64) that both runs have in common."""
    return splitmix64(left.view(np.uint64) ^ _LEFT), splitmix64(right.view(np.uint64) ^ _RIGHT)


class Piece(NamedTuple):
    """Some row groups of a part.

    Parameters
    ----------
    groups : (int, int)
        Row groups start to stop - 1.
    first : int
        Number of the first row among those of the run.
    rows : tuple of int
        Rows of each row group.
    """

    path: Path
    groups: tuple[int, int]
    first: int
    rows: tuple[int, ...]


def pieces_of(compared: CompleteRun) -> Iterator[Piece]:
    """All rows of a run, in pieces for threads.

    Raises `IncompleteError` if a part is missing or damaged.
    """
    first = 0
    for part in compared.manifest.parts:
        path = compared.run.folder.bicliques / part.name
        with open_part(path) as file:
            rows = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        for start, stop in in_pieces(part, len(rows)):
            yield Piece(path, (start, stop), first, tuple(rows[start:stop]))
            first += sum(rows[start:stop])


def hashed(compared: CompleteRun, hashes: VertexHashes, piece: Piece) -> tuple[np.ndarray, np.ndarray]:
    """The ids of the rows of a piece, and the hashes of their members, both uint64.

    Raises `IncompleteError` if the part is missing or damaged.
    """
    ids, found = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    path, tables = piece.path, compared.tables
    list(read_part(path, tables, (0, 0)))  # checks the schema, which `CodedGroups` does not
    with open_part(path) as file, CodedGroups(path, file.metadata, tables, hashes) as coded:
        for group in range(*piece.groups):
            summed = coded.read(group)
            if summed is not None:
                ids.append(
                    file.read_row_group(group, columns=["id"], use_threads=False)["id"].to_numpy().view(np.uint64)
                )
                found.append(summed.hashes)
                continue
            (batch,) = read_part(path, tables, (group, group + 1))
            ids.append(batch.ids.view(np.uint64))
            found.append(mixed(*_sums(path, batch, hashes)))
    return np.concatenate(ids), np.concatenate(found)


def _sums(path: Path, batch: Bicliques, hashes: VertexHashes) -> Iterator[np.ndarray]:
    for members, indptr, known in zip(
        (batch.left, batch.right), (batch.left_indptr, batch.right_indptr), hashes, strict=True
    ):
        sums = np.empty(len(batch), np.uint64)
        if (at := sum_lists(members, indptr, known, np.zeros(len(known), COUNT), sums)) >= 0:
            raise IncompleteError(f"{path} has a row with the id {members[at]}, which no vertex has")
        yield sums


class Marks:
    """Marks rows of a run, with a bit for each."""

    def __init__(self, rows: int):
        self._bits = np.zeros(-(-rows // 8), np.uint8)

    def add(self, rows: np.ndarray) -> None:
        """Mark the rows with these numbers."""
        np.bitwise_or.at(self._bits, rows >> 3, np.left_shift(1, rows & 7).astype(np.uint8))

    def of(self, first: int, n: int) -> np.ndarray:
        """Whether each of `n` rows is marked, from row `first` on."""
        own = np.unpackbits(self._bits[first >> 3 : (first + n + 7) >> 3], bitorder="little")
        return own[first & 7 : (first & 7) + n].view(bool)


class Picked:
    """The marked rows of a run, which are read as often as it is iterated over.

    Attributes
    ----------
    members : (ndarray, ndarray) of int64
        In how many of the rows that were read each vertex is, by dense id of the run.
    """

    def __init__(self, compared: CompleteRun, pieces: list[Piece], marks: Marks):
        self._compared, self._pieces, self._marks = compared, pieces, marks
        self.members = tuple(np.zeros(len(labels), COUNT) for labels in compared.labels)

    def __iter__(self) -> Iterator[Bicliques]:
        for batch in in_order(partial(_read, self._compared), self._groups(), count_cores()):
            for members, total in zip((batch.left, batch.right), self.members, strict=True):
                count_members(members, total)
            yield batch

    def _groups(self) -> Iterator[tuple[Path, int, np.ndarray]]:
        """The row groups that hold a marked row, and the numbers of such rows in them."""
        for piece in self._pieces:
            first = piece.first
            for group, rows in zip(range(*piece.groups), piece.rows, strict=True):
                chosen = np.flatnonzero(self._marks.of(first, rows))
                if len(chosen):
                    yield piece.path, group, chosen
                first += rows


def _read(compared: CompleteRun, wanted: tuple[Path, int, np.ndarray]) -> Bicliques:
    path, group, rows = wanted
    (batch,) = read_part(path, compared.tables, (group, group + 1))
    return batch.pick(rows)


@dataclass(frozen=True, eq=False)
class CommonNumbers:
    """Numbers of the vertices of one side. Vertices with equal labels have the same number in both runs.

    Parameters
    ----------
    labels : Array
        The label of every number.
    old, new : ndarray of int64
        The number of every dense id of each run.
    """

    labels: pa.Array
    old: np.ndarray
    new: np.ndarray


def common_numbers(both: BothRuns) -> tuple[CommonNumbers, CommonNumbers]:
    """Number the vertices of the left and of the right side. It takes some 30 bytes per vertex."""
    left, right = (numbered(was, now) for was, now in zip(both.old.labels, both.new.labels, strict=True))
    return left, right


def numbered(was: pa.Array, now: pa.Array) -> CommonNumbers:
    """Number the vertices of a side. Labels ascend in both runs, and so do the numbers."""
    found = _places(was, now)
    missing = np.flatnonzero(found < 0)
    labels = pa.concat_arrays([now, was.take(pa.array(missing))])
    if len(missing) == 0:
        return CommonNumbers(labels, found, np.arange(len(now), dtype=np.int64))
    order = pc.array_sort_indices(labels).to_numpy()
    number = np.empty(len(labels), np.int64)
    number[order] = np.arange(len(labels))
    found[missing] = len(now) + np.arange(len(missing))
    return CommonNumbers(labels.take(pa.array(order)), number[found], number[: len(now)])


def _places(values: pa.Array, among: pa.Array) -> np.ndarray:
    """Positions of labels among other labels, which ascend if they are integers. -1 for those that are not there."""
    if not pa.types.is_integer(among.type):
        return pc.fill_null(pc.index_in(values, value_set=among), -1).to_numpy().astype(np.int64)
    wanted, known = values.to_numpy(), among.to_numpy()
    if len(known) == 0:
        return np.full(len(wanted), -1, np.int64)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[at] == wanted, at, -1)


def vertex_table(
    side: Side,
    numbers: CommonNumbers,
    were: np.ndarray | None,
    are: np.ndarray | None,
    gone: np.ndarray,
    new: np.ndarray,
) -> pa.Table:
    """The vertices of a side that are in a biclique that is gone or new, sorted by label.

    Parameters
    ----------
    side : "left" or "right"
    were, are : ndarray of int64, or None
        By dense id of the old and of the new run: in how many bicliques the vertex is, as its summary says. None if no
        run says that. If one does, the other follows. If none does, both columns are null.
    gone, new : ndarray of int64
        By dense id of the old and of the new run: in how many bicliques that are gone, or new, the vertex is.

    Returns
    -------
    Table
        Columns ``label``, ``before``, ``after``, ``gone`` and ``new``.
    """
    columns = {}
    for name, own, counts in (
        ("before", numbers.old, were),
        ("after", numbers.new, are),
        ("gone", numbers.old, gone),
        ("new", numbers.new, new),
    ):
        columns[name] = np.zeros(len(numbers.labels), COUNT)
        columns[name][own] = 0 if counts is None else counts
    more = columns["new"] - columns["gone"]
    if were is None and are is not None:
        columns["before"] = columns["after"] - more
    elif are is None:
        columns["after"] = columns["before"] + more
    known = were is not None or are is not None
    is_wrong = (columns["before"] + more != columns["after"]) | (columns["before"] < 0) | (columns["after"] < 0)
    wrong = np.flatnonzero(is_wrong & known)
    if len(wrong):
        at = int(wrong[0])
        told = ", ".join(f"{name} {int(column[at])}" for name, column in columns.items())
        raise IncompleteError(
            f"the {side} vertex {numbers.labels[at].as_py()!r} is not in as many bicliques as the rows say ({told}); "
            f"find the run that is damaged with: {VERIFY}"
        )
    changed = np.flatnonzero(columns["gone"] + columns["new"])
    labels = numbers.labels.take(pa.array(changed))
    order = pc.array_sort_indices(labels)
    rows = changed[order.to_numpy()]
    found = {name: pa.array(column[rows]) for name, column in columns.items()}
    if not known:
        found |= dict.fromkeys(("before", "after"), pa.nulls(len(rows), pa.int64()))
    return pa.table({"label": labels.take(order), **found})


def write_rows(
    target: Path, batches: Iterable[Bicliques], tables: Tables, provenance: Provenance, near: bool = False
) -> Counted:
    """Write all rows to a file, in stretches that are sorted by size.

    Raises `ResourceError` if the disk is full. Then there is no file.

    Parameters
    ----------
    provenance : Provenance
        For the metadata of the file.
    near : bool
        Whether pairs of the rows may be no edges.

    Returns
    -------
    Counted
        What was written.
    """
    room = LabelRoom(tables)
    rows = total = 0
    with whole_file(target) as file, part_file(file, part_schema(tables, provenance, near=near)) as writer:
        for group in _groups(batches, room):
            table = pa.Table.from_batches([to_batch(group, tables)])
            writer.write_table(table, row_group_size=2 * stretch.GROUP_ROWS)
            rows, total = rows + len(group), (total + fingerprint(group)) % 2**64
    return Counted(rows, total)


@contextmanager
def part_file(file: Any, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """A writer of Parquet in the layout of parts. `file` is closed by the caller, also after an error."""
    order = pq.SortingColumn.from_ordering(schema, [("n_left", "descending"), ("n_right", "descending")])
    writer = pq.ParquetWriter(file, schema, sorting_columns=order, **LAYOUT)
    try:
        yield writer
        writer.close()
    finally:
        writer.is_open = False  # after an error it would try to write the end of the file


def _groups(batches: Iterable[Bicliques], room: LabelRoom) -> Iterable[Bicliques]:
    waiting = Stretch()
    for batch in batches:
        for piece in stretch.pieces_of(batch, stretch.STRETCH_MEMBERS):
            waiting.add(piece)
            if waiting.is_full:
                yield from row_groups(waiting.take(), room)
    if len(waiting):
        yield from row_groups(waiting.take(), room)
