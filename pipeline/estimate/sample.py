"""Estimates the number of bicliques, the time and the disk of a run, and how thresholds would change them.

The search tree of the run, and those of larger thresholds, are counted as far as a part of the time allows. Walks look
at samples of the rest (`pipeline.estimate.walk`). The CPU engine does this for every engine. If the run has another
engine, its speed is measured on a few roots. All of it ends before twice the sample time: an engine looks at the clock
every few milliseconds, a walk looks before each node, and no graph is built that may not be done in time.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace

import numpy as np

from bicliques.kernels import engines
from bicliques.pipeline.estimate.table import Cell, Guess, Table, View
from bicliques.pipeline.estimate.walk import Grid, Walk, Walker
from bicliques.pipeline.output.part_writer import PartWriter
from bicliques.pipeline.prepare.build import read_edges, with_thresholds
from bicliques.pipeline.prepare.members import restricted
from bicliques.pipeline.prepare.weights import weights_of
from bicliques.pipeline.run.files import temporary_folder
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import OnProgress, Progress
from bicliques.schemas.bands import Reach
from bicliques.schemas.bicliques import Bicliques, Emit, emit_to, nowhere
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Slice, Subtrees

#: Thresholds of the table, as far as the graph has them.
_THRESHOLDS = (1, 2, 3, 5, *(digit * 10**k for k in range(1, 9) for digit in (1, 2, 5)))
#: The engine that counts.
_COUNTER = "cpu"
#: Shares of the time: counting and walks with the thresholds of the run, both with others, and what is listed or tried.
_COUNT, _WALK, _OTHER, _TRIAL = 0.15, 0.35, 0.06, 0.05
#: Walks in a tree for which there should be time.
_WALKS = 4
#: After this many times the sample time, nothing is begun or gone on with.
_MOST = 1.6
#: What can be counted until this many times the sample time is counted.
_WHOLE = 1.3
#: Most seconds between two looks at Ctrl-C.
_LOOK_S = 0.5
#: Relative standard deviation with which an estimate is good enough.
_LITTLE = 0.15
#: Seconds per edge that building takes on cores, if the graph of the run was built elsewhere.
_BUILD_S = 1e-6


@dataclass(frozen=True)
class Estimate:
    """The estimate of what a run would give and take.

    Parameters
    ----------
    bicliques : Guess
        Number of bicliques.
    bytes : Guess
        Bytes of the Parquet parts. 0 if nothing is listed.
    seconds : Guess
        Seconds of the search and of writing, for one worker.
    exact : bool
        Whether the bicliques were counted, and not estimated.
    share : float
        Share of the search that was made and counted, by the time it takes.
    table : tuple of Cell
        The same for larger thresholds. The first cell has the thresholds of the run.
    """

    bicliques: Guess
    bytes: Guess
    seconds: Guess
    exact: bool
    share: float
    table: tuple[Cell, ...]


@dataclass(frozen=True)
class _Listing:
    """What listing takes per member: bytes, and seconds more than counting. Rows of hubs have thousands of members."""

    bytes: float = 0.0
    seconds: float = 0.0


def estimate(
    run: Run,
    budget_s: float = 10.0,
    seed: int = 0,
    on_progress: OnProgress = lambda progress: None,
    stop: threading.Event | None = None,
) -> Estimate:
    """Search samples of the tree of a run that is planned.

    Raises `InputError` if there is no temporary folder to write into, and `ResourceError` if the temporary folder is
    full.

    Parameters
    ----------
    run : Run
        A run with at least one root.
    budget_s : float
        Seconds for all samples. It never takes twice as long: then what is known is the answer.
    seed : int
        Seed of the choice of nodes.
    on_progress : callable
    stop : Event or None
        When it is set, what is known is the answer. Ctrl-C in the main thread sets it.
    """
    sampler = _Sampler(run, budget_s, seed, on_progress, stop or threading.Event())
    own = sampler.look((0, 0), run.graph, _COUNT * budget_s, _WALK * budget_s)
    listing = sampler.listing() if run.job.rows == "slices" else _Listing()
    factor = 1.0 if run.options.engine == _COUNTER else sampler.factor(own)
    if not own.exact:
        sampler.look_at_others()
    members = own.members / max(own.count((0, 0)), 1.0)  # of a biclique
    cells = sampler.table.cells(factor, members * listing.seconds)
    sampler.tell(1.0)
    return Estimate(
        bicliques=cells[0].bicliques,
        bytes=cells[0].bicliques * (members * listing.bytes),
        seconds=cells[0].seconds,
        exact=own.exact,
        share=1.0 if own.exact else min(own.known.seconds / max(own.seconds.value, 1e-9), 1.0),
        table=cells,
    )


class _Sampler:
    """Looks at the trees of several thresholds, until the time is over."""

    def __init__(self, run: Run, budget_s: float, seed: int, on_progress: OnProgress, stop: threading.Event):
        self._run, self._budget_s, self._on_progress, self._stop = run, budget_s, on_progress, stop
        self._generator = np.random.default_rng(seed)
        self._search = replace(run.options.search, mode="count", sizes=True, largest=None, per_vertex=False)
        self.table = Table(_grid(run))
        on_cores = run.built.get("built_on") != "gpu"
        self._build_s = run.built["seconds"] if on_cores else _BUILD_S * run.built["merged_edges"]
        engines.compile_engine(_COUNTER, self._search)  # otherwise the first node would wait for it
        self._engine = engines.kind(_COUNTER).make(0)
        self._began = time.perf_counter()

    def _left(self, times: float = 1.0) -> float:
        """Seconds until so many times the sample time. 0 if they are over, or it was stopped."""
        left = times * self._budget_s - (time.perf_counter() - self._began)
        return 0.0 if self._stop.is_set() else max(left, 0.0)

    def _is_over(self) -> bool:
        return self._left(_MOST) == 0

    def tell(self, share: float = 0.0) -> None:
        """Say how much of the time is over."""
        seconds = time.perf_counter() - self._began
        self._on_progress(Progress("sample", share, seconds=seconds, of_seconds=self._budget_s))

    def look(self, at: tuple[int, int], graph: MiningGraph, count_s: float, walk_s: float) -> View:
        """Count the tree of some thresholds, whose graph is given, and walk through what is left of it."""
        walker = Walker(self._engine, graph, self._with(at), self.table.grid)
        self._count(walker, count_s)
        walks: list[Walk] = []
        view = View(at, walker.known, walks, exact=not len(walker.rest))
        self.table.add(view)
        if view.exact:
            return view
        until = time.perf_counter() + walk_s
        while len(walks) < 2 or time.perf_counter() < until:
            walk = walker.walk(walk_s / _WALKS, self._generator, self._is_over)
            if walk is None:
                return view
            walks.append(walk)
            self.tell()
        left = self._left(_WHOLE)
        if 1.5 * (view.seconds.value - view.known.seconds) < left:
            self._count(walker, left)
            exact = not len(walker.rest)
            view = View(at, walker.known, [], exact) if exact else replace(view, least=walker.known)
            self.table.add(view)
        return view

    def _count(self, walker: Walker, seconds: float) -> None:
        until = time.perf_counter() + seconds
        while len(walker.rest) and (left := min(until - time.perf_counter(), self._left(_MOST), _LOOK_S)) > 0:
            walker.count(left)
            self.tell()

    def _with(self, at: tuple[int, int]) -> Search:
        grid = self.table.grid
        return replace(self._search, min_left=grid.left[at[0]], min_right=grid.right[at[1]])

    def look_at_others(self) -> None:
        """Add views of larger thresholds where the table needs them most, while there is time to build their graphs."""
        kept, compiled = None, self._search.has_thresholds
        while self._left() and self._build_s < self._left(_WHOLE) and (at := self.table.next(_LITTLE)) is not None:
            search, began = self._with(at), time.perf_counter()
            if kept is None:
                kept = restricted(self._run, *read_edges(self._run.folder))
            if not compiled:
                engines.compile_engine(_COUNTER, search)
                compiled = True
            graph = with_thresholds(self._run, kept, search.min_left, search.min_right)
            self._build_s = max(self._build_s, time.perf_counter() - began)
            self.look(at, graph, 0.6 * _OTHER * self._budget_s, 0.4 * _OTHER * self._budget_s)

    def listing(self) -> _Listing:
        """What listing takes: a part of the search is listed and written, and counted, as far as the same row.

        Nodes that are far apart would not do, because a few rows at a time take much longer to write than many. Neither
        would a part that ends at no row, because it may have searched for long without finding any.
        """
        rows = 0 if self._is_over() else self._search_roots(self._search, self._trial(), nowhere).count
        if rows < 2:
            return _Listing()
        one, (seconds, members, size) = self._listed(1), self._listed(rows)
        return _Listing(size / members, max(seconds - one[0], 0.0) / max(members - one[1], 1))

    def _listed(self, rows: int) -> tuple[float, int, int]:
        """Seconds that so many rows take more if they are listed, their members, and the bytes of their part."""
        members = 0

        def write(batch: Bicliques) -> None:
            nonlocal members
            members += len(batch.left) + len(batch.right)
            writer(batch)

        limits, began = replace(self._trial(2.0), rows=rows), time.thread_time()
        with temporary_folder() as temporary:
            writer = PartWriter(temporary, 0, self._run.tables)
            found = self._search_roots(replace(self._search, mode="list"), limits, emit_to(write))
            size = sum(part.bytes for part in writer.close())
        listed = time.thread_time()
        self._search_roots(self._search, replace(limits, rows=found.count), nowhere)
        return (listed - began) - (time.thread_time() - listed), members, size

    def _trial(self, times: float = 1.0) -> Limits:
        return Limits(min(times * _TRIAL * self._budget_s, self._left(_MOST)))

    def _search_roots(self, search: Search, limits: Limits, emit: Emit) -> Slice:
        """Search the roots of the run in the order of its plan."""
        return self._engine.mine(self._run.graph, Subtrees.of_roots(self._run.plan.roots), search, limits, emit)

    def factor(self, own: View) -> float:
        """Seconds of the engine of the run for a second of the one that counts. It searches roots for a while."""
        run, search = self._run, self._run.job.of_engine
        engines.compile_engine(run.options.engine, search)
        engine = engines.kind(run.options.engine).make(0)
        engine.mine(run.graph, Subtrees.of_roots(run.plan.roots[-1:]), search, self._trial(), nowhere)
        began = time.perf_counter()
        work = Subtrees.of_roots(run.plan.roots)
        found = engine.mine(run.graph, work, search, self._trial(), nowhere)
        taken = time.perf_counter() - began
        all_bicliques = own.count((0, 0))
        if len(found.left_over) == 0 or found.count == 0 or all_bicliques == 0:
            left = float(weights_of(run.job, run.graph).of(found.left_over).sum()) / float(run.plan.weights.sum())
            whole = taken / max(1.0 - left, 1e-6)
        else:
            whole = taken * max(all_bicliques / found.count, 1.0)
        return whole / max(own.seconds.value, 1e-6)


def _grid(run: Run) -> Grid:
    """The thresholds of the run, and larger ones that some vertex of the graph can reach."""
    search, profile = run.options.search, run.built["profile"]
    reach = Reach(profile["right"]["max"], profile["left"]["max"]).within(search)
    sides = []
    for least, most in ((search.min_left, reach.left), (search.min_right, reach.right)):
        sides.append((least, *(value for value in _THRESHOLDS if least < value <= most)))
    return Grid(*sides)
