"""Estimates the number of bicliques, the time and the disk of a run, and how thresholds would change them.

The search tree of the run, and those of larger thresholds, are searched in full if that takes a part of the time that
there is. Otherwise walks look at samples of them (`pipeline.estimate.walk`). The CPU engine does this for every engine.
If the run has another engine, its speed is measured on a few roots.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from bicliques.kernels import engines
from bicliques.pipeline.estimate.table import Cell, Guess, Table, View, guess
from bicliques.pipeline.estimate.walk import Grid, Walk, Walker
from bicliques.pipeline.output.part_writer import PartWriter
from bicliques.pipeline.prepare.build import read_edges, with_thresholds
from bicliques.pipeline.prepare.members import restricted
from bicliques.pipeline.prepare.weights import RootWeights, weights_of
from bicliques.pipeline.run.files import temporary_folder
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.emit import Emit, emit_to, nowhere
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees

#: Thresholds of the table, as far as the graph has them.
_THRESHOLDS = (1, 2, 3, 5, 10, 20, 50)
#: The engine that counts.
_COUNTER = "cpu"
#: Nodes per round of the first walk in a tree, and of the narrowest and the widest walk.
_WIDTH, _NARROWEST, _WIDEST = 32, 8, 1024
#: Walks in a tree for which there should be time.
_WALKS = 12
#: Shares of the time: for the thresholds of the run, for each of the others, and for what is listed or tried.
_OWN, _OTHER, _TRIAL = 0.5, 0.06, 0.1
#: A search that takes less than this share of the time is made in full, even if the time is nearly over.
_EXACT = 0.15
#: Relative standard deviation with which an estimate is good enough.
_LITTLE = 0.15


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
        Share of the work of the search that was done for the estimate, 1 at most.
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
    """What listing takes: bytes per member, and seconds per biclique more than counting."""

    member_bytes: float = 0.0
    seconds: float = 0.0


def estimate(run: Run, budget_s: float = 10.0, seed: int = 0) -> Estimate:
    """Search samples of the tree of a run that is planned.

    Parameters
    ----------
    run : Run
        A run with at least one root.
    budget_s : float
        Seconds for all samples. A little more is used where a walk takes longer.
    seed : int
        Seed of the choice of nodes.

    Raises
    ------
    InputError
        If there is no temporary folder to write into.
    ResourceError
        If the temporary folder is full.
    """
    sampler = _Sampler(run, budget_s, seed)
    own = sampler.look((0, 0), run.graph, _OWN * budget_s)
    sampler.table.add(own)
    listing = sampler.listing() if run.job.rows == "slices" else _Listing()
    factor = 1.0 if run.options.engine == _COUNTER else sampler.factor(own)
    sampler.look_at_others()
    cells = sampler.table.cells(factor, listing.seconds)
    members = float(np.mean([walk.members for walk in own.walks]))
    return Estimate(
        bicliques=cells[0].bicliques,
        bytes=guess(members * listing.member_bytes, own.doubt((0, 0))),
        seconds=cells[0].seconds,
        exact=own.exact,
        share=1.0 if own.exact else min(sum(walk.spent for walk in own.walks) / max(own.seconds, 1e-9), 1.0),
        table=cells,
    )


class _Sampler:
    """Looks at the trees of several thresholds, until the time is over."""

    def __init__(self, run: Run, budget_s: float, seed: int):
        self._run, self._budget_s = run, budget_s
        self._generator = np.random.default_rng(seed)
        self._search = replace(run.options.search, mode="count", sizes=True, largest=None, per_vertex=False)
        self.table = Table(_grid(run))
        engines.compile_engine(_COUNTER, self._search)  # otherwise the first node would wait for it
        self._engine = engines.kind(_COUNTER).make(0)
        self._until = time.perf_counter() + budget_s

    def look(self, at: tuple[int, int], graph: MiningGraph, seconds: float) -> View:
        """A view of the tree of some thresholds, whose graph is given. It takes about so many seconds."""
        began = time.perf_counter()
        if graph.n_roots == 0:
            nothing = np.zeros((len(self.table.grid.left), len(self.table.grid.right)))
            return View(at, [Walk(nothing, 0.0, 0.0, 0.0)], exact=True)
        walker = self._walker(graph, self._with(at))
        whole = walker.whole(0.4 * seconds)
        if isinstance(whole, Walk):
            return View(at, [whole], exact=True)
        first = walker.walk(_WIDTH, 0.1 * seconds, self._generator)
        left = seconds - (time.perf_counter() - began)
        width = int(np.clip(_WIDTH * left / (_WALKS * first.spent), _NARROWEST, _WIDEST))
        walks: list[Walk] = []
        while len(walks) < 2 or time.perf_counter() - began < seconds:
            walks.append(walker.walk(width, left / 4, self._generator))
        found = View(at, walks, exact=False, tried=whole)
        left = max(self._until - time.perf_counter(), _EXACT * self._budget_s)
        if 1.5 * found.seconds < left:
            whole = walker.whole(left)
            if isinstance(whole, Walk):
                return View(at, [whole], exact=True)
            found = replace(found, tried=whole)
        return found

    def _with(self, at: tuple[int, int]) -> Search:
        grid = self.table.grid
        return replace(self._search, min_left=grid.left[at[0]], min_right=grid.right[at[1]])

    def _walker(self, graph: MiningGraph, search: Search) -> Walker:
        return Walker(self._engine, graph, RootWeights(graph), search, self.table.grid)

    def look_at_others(self) -> None:
        """Add views of larger thresholds where the table needs them most."""
        share = _OTHER * self._budget_s
        if self._run.built["seconds"] > share:
            return  # the graphs of other thresholds would take too long
        kept = restricted(self._run, *read_edges(self._run.folder))
        compiled = self._search.has_thresholds
        while time.perf_counter() < self._until and (at := self.table.next(_LITTLE)) is not None:
            if not compiled:
                engines.compile_engine(_COUNTER, self._with(at))
                compiled = True
            search = self._with(at)
            graph = with_thresholds(self._run, kept, search.min_left, search.min_right)
            self.table.add(self.look(at, graph, share))

    def listing(self) -> _Listing:
        """What listing takes: a part of the search that writes what it finds, and then only counts the same again.

        Nodes that are far apart would not do, because a few rows at a time take much longer to write than many.
        """
        members = rows = 0

        def write(batch: Bicliques) -> None:
            nonlocal members, rows
            members += len(batch.left) + len(batch.right)
            rows += len(batch)
            writer(batch)

        began = time.thread_time()
        with temporary_folder() as temporary:
            writer = PartWriter(temporary, 0, self._run.tables)
            self._search_roots(replace(self._search, mode="list"), Limits(_TRIAL * self._budget_s), emit_to(write))
            size = sum(part.bytes for part in writer.close())
        if rows == 0:
            return _Listing()
        listed = time.thread_time()
        self._search_roots(self._search, Limits(rows=rows), nowhere)
        more = (listed - began) - (time.thread_time() - listed)
        return _Listing(size / members, max(more / rows, 0.0))

    def _search_roots(self, search: Search, limits: Limits, emit: Emit) -> None:
        """Search the roots of the run in the order of its plan."""
        self._engine.mine(self._run.graph, Subtrees.of_roots(self._run.plan.roots), search, limits, emit)

    def factor(self, own: View) -> float:
        """Seconds of the engine of the run for a second of the one that counts. It searches roots for a while."""
        run, search = self._run, self._run.job.of_engine
        engines.compile_engine(run.options.engine, search)
        engine = engines.kind(run.options.engine).make(0)
        engine.mine(run.graph, Subtrees.of_roots(run.plan.roots[-1:]), search, Limits(_TRIAL * self._budget_s), nowhere)
        began = time.perf_counter()
        work = Subtrees.of_roots(run.plan.roots)
        found = engine.mine(run.graph, work, search, Limits(_TRIAL * self._budget_s), nowhere)
        taken = time.perf_counter() - began
        all_bicliques = own.count((0, 0))
        if len(found.left_over) == 0 or found.count == 0 or all_bicliques == 0:
            left = float(weights_of(run.job, run.graph).of(found.left_over).sum()) / float(run.plan.weights.sum())
            whole = taken / max(1.0 - left, 1e-6)
        else:
            whole = taken * max(all_bicliques / found.count, 1.0)
        return whole / max(own.seconds, 1e-6)


def _grid(run: Run) -> Grid:
    """The thresholds of the run, and larger ones that some vertex of the graph can reach."""
    search, profile = run.options.search, run.built["profile"]
    degrees = {"left": profile["right"]["max"], "right": profile["left"]["max"]}
    sides = []
    for side in ("left", "right"):
        least, most = getattr(search, f"min_{side}"), getattr(search, f"max_{side}")
        reach = degrees[side] if most is None else min(degrees[side], most)
        sides.append((least, *(value for value in _THRESHOLDS if least < value <= reach)))
    return Grid(*sides)
