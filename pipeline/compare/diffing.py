"""The call `diff` of the Python API, and of the command so named."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.pipeline import __version__
from bicliques.pipeline.compare.both_runs import BothRuns, CompleteRun, open_both
from bicliques.pipeline.compare.difference import (
    GONE_FILE,
    NEW_FILE,
    RECORD_FILE,
    VERTEX_FILES,
    Difference,
    is_of_difference,
    remove_difference,
)
from bicliques.pipeline.compare.refreshed import compared_parts, follows
from bicliques.pipeline.compare.rows import (
    CommonNumbers,
    Marks,
    Picked,
    Piece,
    common_numbers,
    hashed,
    pieces_of,
    second_hashes,
    vertex_table,
    write_rows,
)
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import in_order
from bicliques.pipeline.proof.equal_rows import Buckets
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.run.files import PathLike, temporary_folder, whole_file, write_json
from bicliques.pipeline.run.names import CHANGES, refuse_url
from bicliques.pipeline.run.outside import fill_folder, names_in, refuse_inside_run, refuse_strangers
from bicliques.pipeline.run.progress import OnProgress, Progress, number, to_callback
from bicliques.pipeline.run.resuming import VERIFY
from bicliques.schemas.bicliques import SCHEMA_VERSION
from bicliques.schemas.difference import Counted, Record
from bicliques.schemas.dtypes import offsets_of
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.hashes import VertexHashes
from bicliques.schemas.search import Side
from bicliques.schemas.values import as_path

PROVEN = (
    "the rows of both runs have the count and the fingerprint of their manifests",
    "old - gone + new has the count and the fingerprint of the new run",
    "for every vertex, the bicliques that it was in, less those that are gone, and those that are new, are the ones "
    "that it is in",
)


def diff(old: PathLike, new: PathLike, output: PathLike, *, progress: OnProgress | bool | None = None) -> Difference:
    """Find what changed between two complete runs; see `bicliques.diff`, which calls this.

    Notes
    -----
    Two bicliques are the same if the ids and a second 64-bit hash of their members are equal; docs/design.md says how
    likely an error is. If the new run was refreshed from the old one, ids are enough, as they were for that. Memory:
    some 0.7 GB, a bit per row, and some 100 bytes per vertex. The temporary folder ($TMPDIR) needs 24 bytes per row of
    both runs.
    """
    started = time.perf_counter()
    both = open_both(as_path(old, "the old run"), as_path(new, "the new run"))
    place = as_path(output, "the output folder")
    refuse_place(place, both.new.run.folder.path)
    with fill_folder(place, remove_difference), temporary_folder() as temporary:
        comparison = _Comparison(both, temporary, to_callback(progress))
        marked = comparison.mark()
        vertices = comparison.write(place, marked)
        write_json(place / RECORD_FILE, comparison.record(marked, vertices, started).to_json())
    return Difference(place)


def refuse_place(place: Path, new: Path | None = None) -> None:
    """Refuse a folder that has a comparison or anything else, or lies in a run, but for the new run's own one."""
    refuse_url(place)
    if new is None or place.resolve() != (new / CHANGES).resolve():
        refuse_inside_run(place)
    there = names_in(place)
    if RECORD_FILE in there:
        raise InputError(f"the output folder {place} holds a comparison already; name another one, or delete it")
    refuse_strangers(place, there, is_of_difference)


@dataclass(frozen=True, eq=False)
class _Marked:
    """The rows that only one run has."""

    picked: Picked
    expected: Counted


class _Comparison:
    """The passes over the rows of both runs."""

    def __init__(self, both: BothRuns, temporary: Path, on_progress: OnProgress):
        self._both, self._temporary, self._on_progress = both, temporary, on_progress
        self._numbers: tuple[CommonNumbers, CommonNumbers] = common_numbers(both)
        self._summaries = [Summary.read(own.run.folder) for own in both]
        self._pieces = [list(pieces_of(own)) for own in both]
        self._rows = [own.found.count for own in both]
        self._started = time.monotonic()

    def mark(self) -> tuple[_Marked, _Marked]:
        """Find the rows that only the old run has, and those that only the new run has."""
        marks, counts, sums = [Marks(n) for n in self._rows], [0, 0], [0, 0]
        for k, rows, ids in self._of_parts() if follows(self._both) else self._of_buckets():
            marks[k].add(rows)
            counts[k] += len(rows)
            sums[k] = (sums[k] + ids) % 2**64
        gone, new = (
            _Marked(Picked(own, self._pieces[k], marks[k]), Counted(counts[k], sums[k]))
            for k, own in enumerate(self._both)
        )
        return gone, new

    def _of_buckets(self) -> Iterator[tuple[int, np.ndarray, int]]:
        """Rows that only one run has: which run, their numbers, and the sum of their ids."""
        partition = Partition(self._temporary, sum(self._rows))
        self._divide(partition)
        for changed in partition.changed():
            for k, own in enumerate(changed):
                yield k, own.rows, own.fingerprint

    def _of_parts(self) -> Iterator[tuple[int, np.ndarray, int]]:
        """The same, of a run that was refreshed from the other."""
        rows, sums = [0, 0], [0, 0]
        firsts = [offsets_of([part.rows for part in own.manifest.parts]) for own in self._both]
        for part in compared_parts(self._both):
            k = part.run
            rows[k] += len(part.ids)
            sums[k] = (sums[k] + int(part.ids.sum())) % 2**64
            yield k, firsts[k][part.number] + np.flatnonzero(part.is_only), int(part.ids[part.is_only].sum())
            self._tell(0.9, sum(rows), sum(self._rows))
        self._refuse_others(rows, sums)

    def _divide(self, partition: Partition) -> None:
        """Read hashes of all rows into the partition."""
        left, right = self._numbers
        hashes = [second_hashes(left.old, right.old), second_hashes(left.new, right.new)]
        work = partial(_read, self._both, hashes, partition.n_buckets)
        rows, sums = [0, 0], [0, 0]
        pieces = ((k, piece) for k in (0, 1) for piece in self._pieces[k])
        for k, ids, divided in in_order(work, pieces, count_cores()):
            partition.add(divided)
            rows[k] += len(divided.records)
            sums[k] = (sums[k] + ids) % 2**64
            self._tell(0.9, sum(rows), sum(self._rows))
        self._refuse_others(rows, sums)

    def _refuse_others(self, rows: list[int], sums: list[int]) -> None:
        """Refuse rows that are not those of the manifests."""
        for own, n, total in zip(self._both, rows, sums, strict=True):
            if Counted(n, total) != own.found:
                raise IncompleteError(
                    f"the parts of {own.path} hold {n} rows with fingerprint {total}, but its manifest says "
                    f"{own.found.count} and {own.found.fingerprint}; find the damage with: {VERIFY}"
                )

    def write(self, place: Path, marked: tuple[_Marked, _Marked]) -> tuple[int, int]:
        """Write rows and vertices, and prove them. Returns how many left and right vertices were written."""
        for own, name, found in zip(self._both, (GONE_FILE, NEW_FILE), marked, strict=True):
            near = own.run.options.search.near is not None
            written = write_rows(place / name, found.picked, own.labels, own.provenance, near)
            if written != found.expected:
                raise IncompleteError(
                    f"{own.path} gave {number(written.count, 'row')} where it gave {found.expected.count:,} before, so "
                    "it has changed meanwhile; compare again"
                )
        self._prove(*(found.expected for found in marked))
        found_vertices = []
        sides: tuple[Side, Side] = ("left", "right")
        for k, side in enumerate(sides):
            were, are = (getattr(summary, side) for summary in self._summaries)
            gone, new = (found.picked.members[k] for found in marked)
            table = vertex_table(side, self._numbers[k], were, are, gone, new)
            write_table(place / VERTEX_FILES[side], table)
            found_vertices.append(len(table))
        self._tell(1.0, sum(self._rows), sum(self._rows))
        return found_vertices[0], found_vertices[1]

    def _prove(self, gone: Counted, new: Counted) -> None:
        """Refuse a comparison that does not lead from the old run to the new one."""
        was, now = self._both.old.found, self._both.new.found
        count = was.count - gone.count + new.count
        total = (was.fingerprint - gone.fingerprint + new.fingerprint) % 2**64
        if Counted(count, total) != now:
            raise IncompleteError(
                f"old - gone + new is {count} rows with fingerprint {total}, but {self._both.new.path} has "
                f"{now.count} and {now.fingerprint}; find out which run is damaged, with: {VERIFY}"
            )

    def record(self, marked: tuple[_Marked, _Marked], vertices: tuple[int, int], started: float) -> Record:
        """What is known of the comparison."""
        gone, new = (found.expected for found in marked)
        return Record(
            schema_version=SCHEMA_VERSION,
            version=__version__,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            old_run=self._both.old.record(),
            new_run=self._both.new.record(),
            gone=gone,
            new=new,
            unchanged=self._both.old.found.count - gone.count,
            vertices_left=vertices[0],
            vertices_right=vertices[1],
            notes=self._both.notes,
            proven=PROVEN,
            seconds=time.perf_counter() - started,
        )

    def _tell(self, until: float, rows: int, of: int) -> None:
        seconds = time.monotonic() - self._started
        share = until * rows / max(of, 1)
        self._on_progress(Progress("compare", share, rows, rows / max(seconds, 1e-3), seconds=seconds))


def _read(
    both: BothRuns, hashes: list[VertexHashes], n_buckets: int, of: tuple[int, Piece]
) -> tuple[int, int, Divided]:
    """Which run a piece is of, the sum of its ids modulo 2**64, and its rows."""
    k, piece = of
    compared: CompleteRun = (both.old, both.new)[k]
    ids, found = hashed(compared, hashes[k], piece)
    return k, int(ids.sum()) % 2**64, divide(ids, found, piece.first, k == 1, n_buckets)


def write_table(target: Path, table: pa.Table) -> None:
    """Write a table of vertices."""
    with whole_file(target) as file:
        pq.write_table(table, file, compression="zstd", write_page_checksum=True)


#: Three words of 64 bits: the id of the row, the hash of its members, its number and the run that it is of.
BYTES_PER_ROW = 24
#: Rows of a bucket, which is sorted in memory, and most buckets.
_BUCKET, _MOST_BUCKETS = 1 << 21, 1 << 16
#: Most threads that compare buckets.
_MOST_THREADS = 4
#: The bit of the third word that says that the row is of the new run.
_NEW = np.uint64(1 << 63)


class Divided(NamedTuple):
    """Rows in the order of their buckets.

    Parameters
    ----------
    records : ndarray, shape (rows, 3), uint64
    ends : ndarray of int64
        Where each bucket ends.
    """

    records: np.ndarray
    ends: np.ndarray


class Changed(NamedTuple):
    """Rows that only one of the runs has.

    Parameters
    ----------
    rows : ndarray of int64
        Their numbers in that run.
    fingerprint : int
        Sum of their ids modulo 2**64.
    """

    rows: np.ndarray
    fingerprint: int


def divide(ids: np.ndarray, hashes: np.ndarray, first: int, is_new: bool, n_buckets: int) -> Divided:
    """Divide rows among buckets.

    Parameters
    ----------
    ids : ndarray of uint64
        The ids of the rows.
    hashes : ndarray of uint64
        Hashes of their members that have nothing to do with the ids.
    first : int
        Number of the first row; the others follow.
    is_new : bool
        Whether they are of the new run.
    n_buckets : int
        A power of two, at most 2**16.
    """
    records = np.empty((len(ids), 3), np.uint64)
    records[:, 0], records[:, 1] = ids, hashes
    records[:, 2] = np.arange(first, first + len(ids), dtype=np.uint64) | (_NEW if is_new else np.uint64(0))
    if n_buckets == 1:
        return Divided(records, np.array([len(ids)]))
    bucket = (hashes >> np.uint64(64 - n_buckets.bit_length() + 1)).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")  # NumPy sorts 16 bits by their digits
    return Divided(records[order], np.cumsum(np.bincount(bucket, minlength=n_buckets)))


class Partition:
    """Takes the rows of both runs, and says which of them only one run has.

    Two rows are the same when their ids and the hashes of their members are equal, 128 bits together. Raises
    `ResourceError` from all methods, if the temporary folder is full.

    Parameters
    ----------
    folder : Path
        A temporary folder.
    rows : int
        Number of rows of both runs together.

    Notes
    -----
    It writes `BYTES_PER_ROW` per row. Memory: some 150 MB per thread.
    """

    def __init__(self, folder: Path, rows: int):
        n = min(1 << (max(-(-rows // _BUCKET), 1) - 1).bit_length(), _MOST_BUCKETS)
        self._buckets = Buckets(folder, n, BYTES_PER_ROW * rows)

    @property
    def n_buckets(self) -> int:
        """How many buckets `divide` has to make."""
        return self._buckets.n

    def add(self, rows: Divided) -> None:
        """Add rows that were divided among `n_buckets` buckets."""
        self._buckets.add(rows.records, rows.ends.tolist())

    def changed(self) -> Iterator[tuple[Changed, Changed]]:
        """The rows that only the old run has, and those that only the new run has, bucket by bucket.

        Raises `IncompleteError` if a run has a row twice.
        """
        return self._buckets.each(_compared, _MOST_THREADS)


def _compared(words: np.ndarray) -> tuple[Changed, Changed]:
    ids, hashes, rows = np.ascontiguousarray(words.reshape(-1, 3).T)
    order = np.argsort(hashes)
    if _parted(ids[order], hashes[order]):
        order = np.lexsort((ids, hashes))
    ids, hashes, rows = ids[order], hashes[order], rows[order]
    is_new = rows >= _NEW
    same = (hashes[1:] == hashes[:-1]) & (ids[1:] == ids[:-1])
    twice = same & (is_new[1:] == is_new[:-1])
    twice[1:] |= same[1:] & same[:-1]  # of three equal rows two are of one run
    if twice.any():
        raise IncompleteError(
            f"the row with id {ids[int(np.argmax(twice))].astype(np.int64)} is in one of the runs twice; find out in "
            f"which, with: {VERIFY}"
        )
    alone = np.ones(len(rows), bool)
    alone[1:] &= ~same
    alone[:-1] &= ~same
    gone, new = alone & ~is_new, alone & is_new
    return _chosen(ids, rows, gone), _chosen(ids, rows & ~_NEW, new)


def _parted(ids: np.ndarray, hashes: np.ndarray) -> bool:
    """Whether there are rows with equal hashes and other ids, which have to be sorted by these, too."""
    return bool(((hashes[1:] == hashes[:-1]) & (ids[1:] != ids[:-1])).any())


def _chosen(ids: np.ndarray, rows: np.ndarray, which: np.ndarray) -> Changed:
    return Changed(rows[which].astype(np.int64), int(np.add.reduce(ids[which], dtype=np.uint64)))
