"""Looks at all bicliques that an engine lists: adds up what is known of every vertex, or takes each pair once."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.lists import count_members, keep_largest
from bicliques.kernels.compiled.measures import MEASURES
from bicliques.schemas.bicliques import Bicliques, fingerprint
from bicliques.schemas.emit import Emit
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.jobs import EachPairOnce, EveryVertex, Job
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.totals import Found, Total
from bicliques.schemas.vertices import SideTotals


class Onlooker:
    """An `Emit` that hands bicliques on, and knows of every vertex their number and the largest of them.

    Parameters
    ----------
    emit : Emit or None
        None: the bicliques are not wanted.

    Attributes
    ----------
    left, right : SideTotals
    """

    on_device = False

    def __init__(self, graph: MiningGraph, emit: Emit | None) -> None:
        self._emit = emit
        self.left, self.right = SideTotals.none(graph.n_left), SideTotals.none(graph.n_right)

    def __call__(self, batch: Bicliques) -> None:
        """Look at a batch."""
        sides = (batch.left, batch.left_indptr, self.left), (batch.right, batch.right_indptr, self.right)
        for ids, _, totals in sides:
            if count_members(ids, totals.count) >= 0:
                raise ValueError("an engine has listed a vertex that the graph does not have")
        sizes = np.diff(batch.left_indptr), np.diff(batch.right_indptr)
        for ids, indptr, totals in sides:
            for by, kept in totals.largest.items():
                code = MEASURES[by, False]
                keep_largest(
                    code, ids, indptr, sizes, batch.ids.view(np.uint64), (kept.n_left, kept.n_right), kept.hash
                )
        if self._emit is not None:
            self._emit(batch)

    def total(self, job: EveryVertex, found: Found) -> Total:
        """The total of a slice, of which an engine has found so much."""
        return job.total_of(found, self.left, self.right)


class Half:
    """An `Emit` that hands on one of each two bicliques of a double cover (`schemas.jobs.EachPairOnce`).

    Parameters
    ----------
    emit : Emit or None
        None: the bicliques are not wanted.
    least : int
        See `schemas.search.Search.mirrored`.
    """

    on_device = False

    def __init__(self, emit: Emit | None, least: int) -> None:
        self._emit, self._least = emit, least
        self._found = Found(0, 0, SizeCounts.empty())

    def __call__(self, batch: Bicliques) -> None:
        """Look at a batch."""
        rows = batch.once(self._least)
        sizes = SizeCounts.of(np.diff(rows.left_indptr), np.diff(rows.right_indptr))
        self._found += Found(len(rows), fingerprint(rows), sizes)
        if self._emit is not None and len(rows):
            self._emit(rows)

    def total(self, job: EachPairOnce, found: Found) -> Total:
        """The total of a slice. An engine has found both directions of it."""
        return job.total_of(self._found)


def onlooker(job: Job, graph: MiningGraph, emit: Emit) -> Onlooker | Half:
    """What looks at the bicliques of a slice before `emit` gets them, if it does."""
    wanted = emit if job.rows == "slices" else None
    least = job.search.mirrored
    return Onlooker(graph, wanted) if least is None else Half(wanted, least)
