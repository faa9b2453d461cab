"""Checks the results of a complete run again, from its files alone, in bounded memory.

The answer says what is proven and what is not: see `Verification`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bicliques.kernels.compiled.holes import count_missing
from bicliques.kernels.graph.csr import from_sorted_pairs, transpose
from bicliques.pipeline.prepare.build import read_edges
from bicliques.pipeline.prepare.members import find_members
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import in_order
from bicliques.pipeline.proof import vertices
from bicliques.pipeline.proof.certificate import certify, count_above
from bicliques.pipeline.proof.equal_rows import Repeats, refuse_equal_rows
from bicliques.pipeline.proof.read_back import PIECE_BYTES, check_ids, in_pieces, read_part
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.proof.wholeness import check_cover
from bicliques.pipeline.run.names import MANIFEST_FILE, store_url
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import OnProgress, Progress, number, to_callback
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.run.tables import open_part
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.dtypes import gathered
from bicliques.schemas.errors import IncompleteError, InputError, as_option
from bicliques.schemas.facts import BEFORE_MINING
from bicliques.schemas.manifest import Manifest
from bicliques.schemas.search import Near
from bicliques.schemas.totals import Best, Total
from bicliques.schemas.values import seconds, sizes_of, whole

if TYPE_CHECKING:
    from bicliques.pipeline.proof.completeness import Drawn

#: About how many neighbours are gathered at a time, to bound memory.
_CHUNK = 1 << 20


class Adjacency:
    """The edges of the input in both directions.

    Parameters
    ----------
    left, right : ndarray, shape (n_edges,), int32
        The dense ids of both ends of every edge, sorted by (left, right), without duplicates.
    n_left, n_right : int
        Numbers of vertices.
    """

    def __init__(self, left: np.ndarray, right: np.ndarray, n_left: int, n_right: int):
        self._of_left = from_sorted_pairs(left, right, n_left)
        self._of_right = transpose(*self._of_left, n_right)

    def missing(self, rows: Bicliques) -> tuple[np.ndarray, np.ndarray]:
        """How many pairs of each row are no edges, and the most that a left and a right member of it are in.

        Returns
        -------
        ndarray, shape (rows,), int64, and ndarray, shape (rows, 2), int64
        """
        found, most = np.empty(len(rows), np.int64), np.empty(2 * len(rows), np.int64)
        self._look(rows, found, most, np.empty(0, np.int32))
        return found, most.reshape(-1, 2)

    def holes(self, rows: Bicliques) -> tuple[np.ndarray, np.ndarray]:
        """The left and the right ends of all missing pairs of rows that say how many they have, row by row, int32."""
        assert rows.missing is not None
        found, most = np.empty(len(rows), np.int64), np.empty(2 * len(rows), np.int64)
        ends = np.empty(2 * int(rows.missing.sum()), np.int32)
        self._look(rows, found, most, ends)
        if (found != rows.missing).any():
            raise IncompleteError("a row states another number of missing pairs than the input has; verify the run")
        return ends[::2], ends[1::2]

    def _look(self, rows: Bicliques, found: np.ndarray, most: np.ndarray, ends: np.ndarray) -> None:
        joined = np.empty(len(self._of_right[0]) - 1, np.int64)
        count_missing(rows.sides, *self._of_left, found, most, joined, ends)

    def objection(self, left: np.ndarray, right: np.ndarray, near: Near | None = None) -> str | None:
        """Why (left, right) is not a maximal biclique, or near-biclique, as a clause. None if it is one.

        Parameters
        ----------
        left, right : ndarray, int32
            Dense ids of the members.
        near : Near or None
            How many pairs may be no edges. Whether no more are is not looked at: see `missing`.
        """
        if near is not None:
            return self._near_objection(left, right, near)
        for members, others, csr, other_size, side in (
            (left, right, self._of_left, len(self._of_right[0]) - 1, "right"),
            (right, left, self._of_right, len(self._of_left[0]) - 1, "left"),
        ):
            if len(np.unique(members)) != len(members):
                return "repeats a member"
            common = _common_neighbours(csr, members, other_size)
            if not np.isin(others, common).all():
                return "is not a biclique: an edge is missing"
            if len(common) > len(others):
                more = number(len(common) - len(others), f"{side} vertex", f"{side} vertices")
                return f"is not maximal: {more} can be added"
        return None

    def _near_objection(self, left: np.ndarray, right: np.ndarray, near: Near) -> str | None:
        n_left, n_right = len(self._of_left[0]) - 1, len(self._of_right[0]) - 1
        missed_by_right = len(left) - _neighbours_among(self._of_left, left, n_right)
        missed_by_left = len(right) - _neighbours_among(self._of_right, right, n_left)
        for members, missed, others, missed_by_others, csr, k, k_others, side in (
            (right, missed_by_right, left, missed_by_left, self._of_left, near.right, near.left, "right"),
            (left, missed_by_left, right, missed_by_right, self._of_right, near.left, near.right, "left"),
        ):
            if near.pairs is not None:
                fits = missed <= near.pairs - int(missed[members].sum())
            else:
                full = others[missed_by_others[others] == k_others]  # they may not miss another one
                fits = (missed <= k) & (_neighbours_among(csr, full, len(missed)) == len(full))
            fits[members] = False
            if fits.any():
                more = number(int(fits.sum()), f"{side} vertex", f"{side} vertices")
                return f"is not maximal: {more} can be added"
        return None


def _common_neighbours(csr: tuple[np.ndarray, np.ndarray], members: np.ndarray, n_other: int) -> np.ndarray:
    """The vertices that are adjacent to all of `members`, ascending."""
    return np.flatnonzero(_neighbours_among(csr, members, n_other) == len(members))


def _neighbours_among(csr: tuple[np.ndarray, np.ndarray], members: np.ndarray, n_other: int) -> np.ndarray:
    """How many of `members` each vertex of the other side is adjacent to, int64."""
    indptr, indices = csr
    counts = np.zeros(n_other, np.int64)
    starts, degrees = indptr[members], indptr[members + 1] - indptr[members]
    batch_of = np.cumsum(degrees) // _CHUNK
    for batch in np.unique(batch_of):
        chosen = batch_of == batch
        counts += np.bincount(gathered(indices, starts[chosen], degrees[chosen])[1], minlength=n_other)
    return counts


#: Seconds in which it is counted that nothing is larger.
BOUND_TIME_S = 60.0
#: Most threads that read. 64 of them took longer than 32, and more memory (docs/lab/large.md).
_MOST_THREADS = 32
#: Pieces that each thread reads of a large run, and most bytes of one. The thread that takes what was read cannot keep
#: up with many small ones.
_PIECES, _MOST_PIECE_BYTES = 64, 1 << 25


@dataclass(frozen=True)
class Verification:
    """The result of `verify_run`.

    Parameters
    ----------
    count : int
        Number of rows read.
    fingerprint : int
        Fingerprint of these rows, 64 bits.
    sampled : int
        Number of rows that were compared with the input.
    proven, sampled_only, not_proven : tuple of str
        Statements that hold for all rows, statements that hold for the sample, and statements that the files cannot
        prove.
    seconds : float
        Time that the checks took.
    """

    count: int
    fingerprint: int
    sampled: int
    proven: tuple[str, ...]
    sampled_only: tuple[str, ...]
    not_proven: tuple[str, ...]
    seconds: float


def verify_run(
    path: Path,
    sample: int = 1000,
    seed: int = 0,
    progress: OnProgress | bool | None = None,
    bound_time: float = BOUND_TIME_S,
    complete: tuple[int, int] | None = None,
) -> Verification:
    """Read all parts again and check them.

    Raises `ResourceError` if the temporary folder is full.

    Parameters
    ----------
    path : Path
        Folder of a complete run.
    sample : int
        Number of rows to compare with the input, and of bicliques to draw. They are chosen at random.
    seed : int
        Seed of that choice.
    progress : callable, bool or None
        See `pipeline.run.progress.to_callback`.
    bound_time : float
        Most seconds for `pipeline.proof.certificate`, if the run found the largest.
    complete : (int, int) or None
        Draw bicliques of so many members, too, and look for rows that are missing (`pipeline.proof.completeness`).

    Notes
    -----
    Memory: the edges in both directions (16 bytes per edge), 8 bytes per vertex, and for each of at most 32 threads
    some 200 MB and 16 bytes per vertex.
    Disk: 8 bytes per row for temporary files.
    """
    sample, seed = whole(sample, "the number of rows to compare", 0), whole(seed, "the seed", 0)
    bound_time = seconds(bound_time, "the time for the bound", or_0=True)
    complete = None if complete is None else sizes_of(complete, "the size of what is drawn")
    url = store_url(path)
    if url is not None:
        from bicliques.pipeline.run.bucket import copy_for_check  # here, because most runs are kept in folders

        with copy_for_check(url) as folder:
            return verify_run(folder, sample, seed, progress, bound_time, complete)
    started = time.perf_counter()
    run = Run.with_holes(path)
    search, manifest = run.options.search, run.folder.manifest()
    if manifest is None:
        raise IncompleteError(f"{path} is not complete; continue with: {how_to_resume(path, run.ended())}")
    if run.job.rows == "none":
        raise InputError(f"{path} was mined with {as_option('count_only', True)}: it holds no bicliques to verify")
    damage = run.folder.damage(manifest)
    if damage:
        raise IncompleteError(f"{damage}; mend it with: {how_to_resume(path)}")
    run.folder.check(*BEFORE_MINING)
    ledger = run.ledger()
    check_cover(ledger)
    bound = None
    if run.is_in_bands:
        withdraw = f"delete {path / MANIFEST_FILE}, and prove the run again with: {how_to_resume(path)}"
        if certify(run, ledger) != manifest.certificate or ledger.total.fingerprint != manifest.fingerprint:
            raise IncompleteError(f"the certificate of {path} is not that of its ledger; {withdraw}")
        bound = ledger.total
    on_progress = to_callback(progress)
    drawn = None
    if complete is not None:
        from bicliques.pipeline.proof.completeness import draw  # only where it is asked for, because it imports engines

        exact = run.exact("what is drawn is looked for in rows of which every pair is an edge")
        drawn = draw(exact, read_edges(run.folder), complete, whole(sample, "the number to draw", 1), seed, on_progress)
    reading = _Reading(run, manifest, sample, seed, on_progress)
    reading.run(drawn)
    certain, uncertain = _of_the_largest(run, bound, bound_time, on_progress)
    files = number(len(manifest.parts), "part is the file", "parts are the files")
    looked_at_all = len(reading.wanted) == reading.rows
    rows = "every row" if looked_at_all else f"{number(len(reading.wanted), 'row')} chosen at random (seed {seed})"
    outside = "rows outside the sample were not compared with the input"
    if search.near:
        outside = "that no vertex can be added to a row was not tested outside the sample"
    return Verification(
        count=reading.rows,
        fingerprint=reading.fingerprint,
        sampled=len(reading.wanted),
        proven=(
            f"the {files} that the manifest names, with its schema version",
            f"their {number(reading.rows, 'row has', 'rows have')} the count and the fingerprint that "
            + (
                "the engine reported while mining"
                if (parent := manifest.parent) is None
                else f"follow from those of {parent.folder} and of what changed since"
            ),
            "no two rows are equal: their 64-bit hashes differ, or the rows were compared in full",
            "every row has the sizes and the id it states, within the limits of the run, and its members ascend",
            *(("every row contains the members that were asked for",) if search.is_containing else ()),
            *(("every row misses as many pairs as it states, and no more than were allowed",) if search.near else ()),
            "the summary, if there is one, counts these rows",
            *(("the tables of vertices count the rows with each vertex",) if search.per_vertex else ()),
            "the ledger accounts for every first-level subtree and every left-over exactly once",
            *certain,
        ),
        sampled_only=(
            f"in {rows}, "
            f"{'' if search.near else 'every pair is an edge of the input, and '}no vertex of the input can be added",
            *((drawn.words(search, seed),) if drawn else ()),
        ),
        not_proven=(
            *(() if looked_at_all else (outside,)),
            *uncertain,
            "that no biclique is missing cannot be seen from the rows: mine again with another engine, order or root "
            "side, and compare count and fingerprint",
        ),
        seconds=time.perf_counter() - started,
    )


def _of_the_largest(
    run: Run, total: Total | None, seconds: float, on_progress: OnProgress
) -> tuple[list[str], list[str]]:
    """What is certain of the rows of a run that found the largest, and what is not. Nothing for another run.

    `total` is None for another run, and for one of an earlier version, which has no bands.
    """
    if total is None:
        return [], ["that no other biclique is larger rests on the ledger alone"] if run.job.in_bands else []
    assert isinstance(total, Best)
    by, key = run.options.search.by, total.least
    what = f"whose measure ({by}) is more than {key:,}" if key is not None else "of the sizes that were asked for"
    certain = [
        f"by arithmetic: the bands of the certificate hold every biclique {what} or the same, and each was searched to "
        "the end"
        if key is not None
        else "by arithmetic: the bands of the certificate hold every biclique, and each was searched to the end"
    ]
    counted = count_above(run, total, seconds, on_progress)
    words = f"by counting, without a bound: there is no biclique {what} beside the rows"
    if counted.done == counted.corners:
        return [*certain, words], []
    part = f"{counted.done:,} of {counted.corners:,} ranges of sizes were counted in {seconds:g} seconds"
    return certain, [f"{words}; {part}, and for the others this rests on the ledger"]


class _Piece(NamedTuple):
    """Some row groups of a part: start to stop - 1."""

    part: int
    path: Path
    groups: tuple[int, int]
    first_row: int  # of the run


class _Reading:
    """One pass over all rows, on many cores, and what it adds up."""

    def __init__(self, run: Run, manifest: Manifest, sample: int, seed: int, on_progress: OnProgress):
        self.opened, self.folder, self.manifest, self.on_progress = run, run.folder, manifest, on_progress
        self.adjacency = Adjacency(*read_edges(run.folder), run.input["n_left"], run.input["n_right"])
        generator = np.random.default_rng(seed)
        self.wanted = np.sort(generator.choice(manifest.count, min(sample, manifest.count), replace=False))
        self.members = find_members(run)
        self.rows = self.fingerprint = 0
        self.held = [(0, 0)] * len(manifest.parts)  # rows and fingerprint of each part
        of_all = sum(part.bytes for part in manifest.parts)
        self._threads = min(count_cores(), _MOST_THREADS)
        self._piece_bytes = min(max(of_all // (_PIECES * self._threads), PIECE_BYTES), _MOST_PIECE_BYTES)
        self._own, self._sums = threading.local(), list[Summary]()

    def run(self, drawn: Drawn | None = None) -> None:
        """Read all rows and check them. Raises an `IncompleteError` at the first check that fails."""
        self.wanted_hashes = np.empty(0, np.uint64) if drawn is None else drawn.found[0]
        self.seen = np.zeros(len(self.wanted_hashes), np.bool_)
        with Repeats(self.manifest.count) as repeats:
            self._read_all(repeats)
            self._check_totals()
            refuse_equal_rows(self.opened, self.manifest.parts, repeats.found())
        if drawn is not None:
            drawn.refuse_missing(self.opened.path, self.seen)
        self._check_summary(Summary.of(self._sums, *map(len, self.opened.hashes)))

    def _read_all(self, repeats: Repeats) -> None:
        started = time.monotonic()
        for part, hashes in in_order(self._read, self._pieces(), self._threads):
            repeats.add(hashes)
            at = np.searchsorted(hashes, self.wanted_hashes)
            self.seen |= hashes[np.minimum(at, len(hashes) - 1)] == self.wanted_hashes
            own = int(np.add.reduce(hashes, dtype=np.uint64))
            self.held[part] = self.held[part][0] + len(hashes), (self.held[part][1] + own) % 2**64
            self.fingerprint = (self.fingerprint + own) % 2**64
            self.rows += len(hashes)
            seconds = time.monotonic() - started
            share = self.rows / max(self.manifest.count, 1)
            self.on_progress(Progress("prove", min(share, 1.0), self.rows, self.rows / max(seconds, 1e-3)))

    def _pieces(self) -> Iterator[_Piece]:
        row = 0
        for k, part in enumerate(self.manifest.parts):
            path = self.folder.bicliques / part.name
            with open_part(path) as file:
                rows = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            for groups in in_pieces(part, len(rows), self._piece_bytes):
                yield _Piece(k, path, groups, row + sum(rows[: groups[0]]))
            row += sum(rows)

    def _sum(self) -> Summary:
        """The sum of this thread. To add up one per piece would keep the caller busy while other threads wait."""
        if not hasattr(self._own, "sum"):
            self._own.sum = Summary(*map(len, self.opened.hashes))
            self._sums.append(self._own.sum)
        found: Summary = self._own.sum
        return found

    def _read(self, piece: _Piece) -> tuple[int, np.ndarray]:
        """The number of the part, and the hashes of the rows, ascending."""
        total, row = self._sum(), piece.first_row
        hashes = []
        for group, batch in enumerate(read_part(piece.path, self.opened.tables, piece.groups), piece.groups[0]):
            hashes.append(total.add(batch, self.opened.hashes, piece.part, group))
            check_ids(piece.path, group, batch.ids, hashes[-1])
            self._check_sizes(piece.path, batch)
            self._check_members(piece.path, batch)
            self._check_missing(piece.path, batch)
            self._check_sample(piece.path, batch, row)
            row += len(batch)
        return piece.part, np.sort(np.concatenate([np.empty(0, np.uint64), *hashes]))

    def _check_sizes(self, path: Path, batch: Bicliques) -> None:
        search = self.opened.options.search
        for side, indptr in (("left", batch.left_indptr), ("right", batch.right_indptr)):
            sizes = np.diff(indptr)
            smallest, largest = getattr(search, f"min_{side}"), getattr(search, f"max_{side}")
            if sizes.min() < smallest or (largest is not None and sizes.max() > largest):
                raise IncompleteError(f"{path} has a row whose {side} side is outside the limits of the run")
        if len(batch.once(search.mirrored)) < len(batch):
            raise IncompleteError(f"{path} has a row that is too small, or whose least member is on the right")

    def _check_members(self, path: Path, batch: Bicliques) -> None:
        for side, given in zip(("left", "right"), self.members, strict=True):
            if len(given):
                members, indptr = getattr(batch, side), getattr(batch, f"{side}_indptr")
                there = np.add.reduceat(np.isin(members, given), indptr[:-1], dtype=np.int64)
                if there.min() < len(given):
                    raise IncompleteError(f"{path} has a row whose {side} side lacks a member that was asked for")

    def _check_missing(self, path: Path, batch: Bicliques) -> None:
        near = self.opened.options.search.near
        if (batch.missing is None) != (near is None):
            words = "lacks the column missing, which" if near else "has the column missing, which no row of"
            raise IncompleteError(f"{path} {words} its run has; delete the file and resume the run")
        if near is None or batch.missing is None:
            return
        found, most = self.adjacency.missing(batch)
        wrong = np.flatnonzero(found != batch.missing)
        if len(wrong):
            row = int(wrong[0])
            raise IncompleteError(
                f"{path} has a row that states {batch.missing[row]} missing pairs, and the input has {found[row]}; "
                "delete the file and resume the run"
            )
        within = found <= near.pairs if near.pairs is not None else (most <= (near.left, near.right)).all(axis=1)
        if not within.all():
            row = int(np.argmin(within))
            raise IncompleteError(
                f"{path} has a row with {found[row]} missing pairs, {most[row, 0]} of a left and {most[row, 1]} of "
                "a right member, which is more than its run allows; delete the file and resume the run"
            )

    def _check_sample(self, path: Path, batch: Bicliques, first_row: int) -> None:
        first, last = np.searchsorted(self.wanted, [first_row, first_row + len(batch)])
        for row in (self.wanted[first:last] - first_row).tolist():
            left = batch.left[batch.left_indptr[row] : batch.left_indptr[row + 1]]
            right = batch.right[batch.right_indptr[row] : batch.right_indptr[row + 1]]
            reason = self.adjacency.objection(left, right, self.opened.options.search.near)
            if reason:
                raise IncompleteError(
                    f"{path} has a row with {len(left)} left and {len(right)} right members that {reason}"
                )

    def _check_totals(self) -> None:
        found, said = (self.rows, self.fingerprint), (self.manifest.count, self.manifest.fingerprint)
        if found != said:
            raise IncompleteError(
                f"the parts hold {found[0]} rows with fingerprint {found[1]}, but the manifest says {said[0]} and "
                f"{said[1]}"
            )
        for part, (rows, total) in zip(self.manifest.parts, self.held, strict=True):
            if (rows, str(total)) != (part.rows, part.fingerprint or str(total)):
                raise IncompleteError(
                    f"{self.folder.bicliques / part.name} has {rows} rows with fingerprint {total}, but the manifest "
                    f"says {part.rows} and {part.fingerprint or total}"
                )

    def _check_summary(self, own: Summary) -> None:
        if self.folder.summary.exists() and Summary.read(self.folder) != own:
            remedy = f"delete it, and make it anew with: {how_to_resume(self.folder.path)}"
            raise IncompleteError(f"{self.folder.summary} is not of these rows; {remedy}")
        if self.opened.options.search.per_vertex:
            vertices.check(self.opened, own)
