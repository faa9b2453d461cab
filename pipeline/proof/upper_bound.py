"""Proves by counting that no biclique is larger than the rows of a run: a second search, which knows no bound.

The sizes whose measure is more than that of the last row are cut into corners (`schemas.bands.corners_of`). In each,
the engine that enumerates all bicliques counts and hashes those that are there. These must be the rows of that corner.
The engine prunes by thresholds only, as for any other run. So this search shares with the first one neither the bound,
nor the bands, nor the ledger. It may take as long as the first one, or longer, so it ends after a given time.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from bicliques.kernels import engines
from bicliques.pipeline.prepare.bands import reach_of
from bicliques.pipeline.prepare.build import read_edges, with_thresholds
from bicliques.pipeline.prepare.members import restricted
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import OnProgress, Progress
from bicliques.schemas.bands import Band, corners_of
from bicliques.schemas.emit import nowhere
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.totals import Best
from bicliques.schemas.work import Subtrees


class Counted(NamedTuple):
    """How many corners there are, and in how many all bicliques were counted."""

    corners: int
    done: int


def count_above(run: Run, total: Best, seconds: float, on_progress: OnProgress) -> Counted:
    """Count what is larger than the last row of a run, for at most so many seconds.

    Parameters
    ----------
    run : Run
    total : Best
        The rows of the run. If they are fewer than were asked for, all bicliques are counted.
    seconds : float
    on_progress : callable
        Called with a `Progress` after each corner.

    Raises
    ------
    IncompleteError
        If a corner holds other bicliques than the rows of the run.
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
        )
        work = Subtrees.of_roots(np.arange(graph.n_roots))
        found = engines.kind("cpu").make(0).mine(graph, work, wanted, Limits(left), nowhere)
        expected = int(within.sum()), int(np.add.reduce(hashes[within], dtype=np.uint64))
        is_done = len(found.left_over) == 0
        if found.count > expected[0] or (is_done and (found.count, found.fingerprint) != expected):
            raise IncompleteError(_objection(corner, found.count, expected[0]))
        done += is_done
        on_progress(Progress("prove", done / len(corners), seconds=time.monotonic() - started))
    return Counted(len(corners), done)


def _objection(corner: Band, found: int, listed: int) -> str:
    return (
        f"the rows are not the largest: {found:,} bicliques with {corner.first:,} to {corner.last:,} left and at least "
        f"{corner.min_right:,} right members were counted, and {listed:,} rows are there; start the run again"
    )
