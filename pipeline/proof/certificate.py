"""What certifies that no biclique is larger than the rows of a run, and the second search that shows it by counting."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bicliques.kernels import engines
from bicliques.pipeline.prepare.bands import reach_of
from bicliques.pipeline.prepare.build import read_edges, with_thresholds
from bicliques.pipeline.prepare.members import restricted
from bicliques.pipeline.run.ledger import Ledger
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.plan import BandOf
from bicliques.pipeline.run.progress import OnProgress, Progress
from bicliques.schemas.bands import Band, BandCertificate, Certificate, corners_of, gap_in
from bicliques.schemas.bicliques import Bicliques, fingerprint
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.manifest import PLAN
from bicliques.schemas.search import MISSING, By, Limits, Search
from bicliques.schemas.totals import Best, keys_of
from bicliques.schemas.work import Subtrees


def certify(run: Run, ledger: Ledger) -> Certificate:
    """The certificate of a run, whose ledger leaves nothing outstanding (`pipeline.proof.wholeness.check_cover`).

    Notes
    -----
    It reads the edges, and takes O(edges) time.
    """
    search, total, graph = run.options.search, ledger.total, run.built
    assert isinstance(total, Best)
    assert search.largest is not None
    told, first_bound = graph["bands"], graph["bound"]
    if first_bound > (total.least or 0):
        raise IncompleteError(
            f"the search began with the bound {first_bound}, which the rows do not reach; start the run again"
        )
    reach = reach_of(restricted(run, *read_edges(run.folder)))
    bands = [Band(one["first"], one["last"], one["min_right"]) for one in told]
    if (reason := gap_in(bands, search, total.least or 0, reach)) is not None:
        raise IncompleteError(f"the bands leave something out: {reason}; start the run again")
    by_band = _by_band(run, ledger)
    for band, one in zip(by_band, told, strict=True):
        if band["taken"] != band["n_roots"] or band["n_roots"] != one["n_roots"]:
            words = f"the band of {band['first']:,} to {band['last']:,} left members"
            raise IncompleteError(
                f"{words} has {one['n_roots']:,} roots, and slices took {band['taken']:,}; resume the run"
            )
    certificate = Certificate(
        measure=search.by,
        top=search.largest,
        rows=total.count,
        first_bound=first_bound,
        most_left=reach.left,
        most_right=reach.right,
        bands=by_band,
    )
    if total.least is not None:
        certificate["key"] = total.least
    return certificate


def _by_band(run: Run, ledger: Ledger) -> list[BandCertificate]:
    plan, band_of = run.plan, BandOf(run.plan, ledger.entries)
    taken, slices, left_over, seen = Counter[int](), Counter[int](), Counter[int](), Counter[int]()
    for entry in ledger.entries.values():
        source, node, _ = entry.took[0]
        band = band_of(source, node)
        slices[band] += 1
        seen[band] += entry.result.total.seen
        left_over[band] += entry.result.n_left_over
        for source, start, stop in entry.took:
            if source == PLAN:
                for first, end in plan.within_bands([(start, stop)]):
                    taken[plan.band_at(first)] += end - first
    found = []
    for band, one in enumerate(run.built["bands"]):
        start, stop = plan.stretch_of(band)
        found.append(
            BandCertificate(
                first=one["first"],
                last=one["last"],
                min_right=one["min_right"],
                root_side=one["root_side"],
                n_roots=stop - start,
                taken=taken[band],
                slices=slices[band],
                left_over=left_over[band],
                seen=seen[band],
            )
        )
    return found


class Counted(NamedTuple):
    """How many corners there are, and in how many all bicliques were counted."""

    corners: int
    done: int


def count_above(run: Run, total: Best, seconds: float, on_progress: OnProgress) -> Counted:
    """Count what is larger than the last row of a run, for at most so many seconds.

    Parameters
    ----------
    total : Best
        The rows of the run. If they are fewer than were asked for, all bicliques are counted.
    on_progress : callable
        Called with a `Progress` after each corner.
    """
    started, search = time.monotonic(), run.options.search
    kept = restricted(run, *read_edges(run.folder))
    corners = corners_of(search, 0 if total.least is None else total.least + 1, reach_of(kept))
    sizes = np.diff(total.rows.left_indptr), np.diff(total.rows.right_indptr)
    hashes, done = total.rows.ids.view(np.uint64), 0
    # from both ends on, because it is the middle that takes long
    for corner in sorted(corners, key=lambda one: min(one.first - corners[0].first, corners[-1].last - one.last)):
        left = seconds - (time.monotonic() - started)
        if left <= 0:
            break
        within = (sizes[0] >= corner.first) & (sizes[0] <= corner.last) & (sizes[1] >= corner.min_right)
        graph = with_thresholds(run, kept, corner.first, corner.min_right)
        wanted = Search(
            "fingerprint",
            min_left=corner.first,
            max_left=corner.last,
            min_right=corner.min_right,
            max_right=search.max_right,
            **{name: getattr(search, name) for name in MISSING},
        )
        work = Subtrees.of_roots(np.arange(graph.roots_to_search))
        larger = _Larger(search.by, total.least, search.mirrored)
        looks = search.near is not None or search.mirrored is not None
        if looks:  # of the right size, and perhaps without so many edges, or there in both directions
            wanted, within = replace(wanted, mode="list"), within & larger.are(total.rows)
        found = engines.kind("cpu").make(0).mine(graph, work, wanted, Limits(left), larger)
        counted = (larger.count, larger.fingerprint) if looks else (found.count, found.fingerprint)
        expected = int(within.sum()), int(np.add.reduce(hashes[within], dtype=np.uint64))
        is_done = len(found.left_over) == 0
        if counted[0] > expected[0] or (is_done and counted != expected):
            raise IncompleteError(_objection(corner, counted[0], expected[0]))
        done += is_done
        on_progress(Progress("prove", done / len(corners), seconds=time.monotonic() - started))
    return Counted(len(corners), done)


class _Larger:
    """An `Emit` that counts rows whose measure is above a number. None: all."""

    on_device = False

    def __init__(self, by: By, above: int | None, mirrored: int | None) -> None:
        self._by, self._above, self._mirrored = by, -1 if above is None else above, mirrored
        self.count = self.fingerprint = 0

    def are(self, rows: Bicliques) -> np.ndarray:
        """Which rows count, as a mask."""
        larger: np.ndarray = keys_of(rows, self._by)[0] > self._above
        return larger

    def __call__(self, batch: Bicliques) -> None:
        rows = batch.pick(np.flatnonzero(self.are(batch))).once(self._mirrored)
        self.count, self.fingerprint = self.count + len(rows), (self.fingerprint + fingerprint(rows)) % 2**64


def _objection(corner: Band, found: int, listed: int) -> str:
    return (
        f"the rows are not the largest: {found:,} bicliques with {corner.first:,} to {corner.last:,} left and at least "
        f"{corner.min_right:,} right members were counted, and {listed:,} rows are there; start the run again"
    )
