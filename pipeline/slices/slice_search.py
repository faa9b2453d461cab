"""The search of one slice, by several calls of an engine, and what looks at all bicliques that the engine lists.

An onlooker adds up what is known of every vertex, or takes each pair once.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bicliques.schemas.bicliques import Bicliques, Emit, fingerprint
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.jobs import EachPairOnce, EveryVertex, Job, job_of
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.stats import EngineStats
from bicliques.schemas.totals import Found, Total
from bicliques.schemas.vertices import SideTotals
from bicliques.schemas.work import EVERYTHING, Engine, Slice, Subtrees


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
        # here, because most jobs look at nothing
        from bicliques.kernels.compiled.lists import count_members, keep_largest
        from bicliques.kernels.compiled.searching import MEASURES

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


#: Share of the slice's time that all timed roots together may take.
_PROBE_SHARE = 0.1


class _TimedEmit:
    """An `Emit` that adds up how long its calls took."""

    def __init__(self, emit: Emit):
        self._emit, self.on_device = emit, emit.on_device
        self.seconds = 0.0

    def __call__(self, found: Bicliques) -> None:
        began = time.perf_counter()
        self._emit(found)
        self.seconds += time.perf_counter() - began


class SliceSearch:
    """The limits of a slice and the sums over its calls.

    Parameters
    ----------
    limits : Limits
        Limits of all calls together. The time begins when the object is made.
    """

    def __init__(self, engine: Engine, graph: MiningGraph, search: Search, limits: Limits, emit: Emit):
        self.started = time.perf_counter()
        self.engine, self.graph, self.search, self.limits = engine, graph, search, limits
        self._job = job_of(search)
        self._onlooker: Any = None
        if self._job.looks_on:
            self._onlooker = onlooker(self._job, graph, emit)
        self._emit = _TimedEmit(self._onlooker or emit)
        self._sum: Total = job_of(self._job.of_engine).zero
        self._seen_before = 0
        self.stats = EngineStats()
        self._unfinished: list[Subtrees | Slice] = []
        self.timed: list[tuple[int, float]] = []
        self._is_asked_to_stop = False

    def again(self, limits: Limits) -> None:
        """Begin another slice of the same output, with limits of its own. The sums go on."""
        self.started, self.limits, self._unfinished = time.perf_counter(), limits, []
        self._seen_before = self._sum.seen

    @property
    def seen(self) -> int:
        """Bicliques found since the slice began."""
        return self._sum.seen - self._seen_before

    @property
    def bound(self) -> int | None:
        """`schemas.jobs.Job.bound` of what was found so far."""
        return self._job.bound(self._sum)

    def _mine(self, work: Subtrees, seconds: float | None) -> Slice | None:
        """Mine `work` for at most `seconds`. If the slice's limits are reached, return None; all of it is left over."""
        rows = None if self.limits.rows is None else self.limits.rows - self.seen
        if rows == 0 or self._is_asked_to_stop or (seconds is not None and seconds <= 0):
            self._unfinished.append(work)
            return None
        found = self.engine.mine(self.graph, work, self._job.of_engine, Limits(seconds, rows, self._bound), self._emit)
        self._sum += found.total
        self.stats += found.stats
        return found

    @property
    def _bound(self) -> int | None:
        """That of the slice, or of what it has found so far."""
        bounds = (self.limits.bound, self.bound)
        return max((bound for bound in bounds if bound is not None), default=None)

    @property
    def total(self) -> Total:
        """The total of all calls."""
        if self._onlooker is None:
            return self._sum
        total: Total = self._onlooker.total(self._job, self._sum)
        return total

    @property
    def left_over(self) -> list[Subtrees]:
        """The nodes that are still to be explored. See `schemas.work.Slice.left_over`."""
        return [part.left_over if isinstance(part, Slice) else part for part in self._unfinished]

    @property
    def writing(self) -> float:
        """Seconds in which the search waited for the output."""
        return self._emit.seconds

    def stop(self) -> None:
        """End the search as if its time were over. Another thread calls this; see `schemas.work.Engine.stop`."""
        self._is_asked_to_stop = True
        self.engine.stop()

    def _seconds_left(self) -> float | None:
        return None if self.limits.seconds is None else self.limits.seconds - (time.perf_counter() - self.started)

    def all_of(self, work: Subtrees, n_probes: int) -> None:
        """Mine at most `n_probes` roots alone and time them, to compare weights with times. Then mine the rest."""
        n_probes = n_probes if len(work) > n_probes else 0
        probes = np.unique(np.linspace(0, len(work) - 1, n_probes).astype(int)).tolist()
        rest, start = [], 0
        patience = None if self.limits.seconds is None else _PROBE_SHARE * self.limits.seconds
        for k in (k for k in probes if work.todo[k] == EVERYTHING):
            began = time.perf_counter()
            if patience is not None and began - self.started > patience:
                break
            rest.append(work.take(start, k))
            start = k + 1
            found = self._mine(work.take(k, k + 1), patience)
            if found is not None and len(found.left_over) == 0:
                self.timed.append((int(work.path_of(k)[0]), time.perf_counter() - began))
            elif found is not None:
                rest.append(found.left_over)
        found = self._mine(Subtrees.concat([*rest, work.take(start, len(work))]), self._seconds_left())
        if found is not None:
            self._unfinished.append(found)
