"""`CpuEngine`: the compiled search behind the slice contract, and what a paused search leaves over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bicliques.kernels.compiled.jit import Entry
from bicliques.kernels.cpu.constants import FINISHED, FULL, GROW
from bicliques.kernels.cpu.leaves import LeafCounter
from bicliques.kernels.cpu.near_workspace import Near, allocate_near, grown, near_pieces
from bicliques.kernels.cpu.workspace import (
    USUAL,
    Graph,
    Hub,
    Output,
    Pieces,
    Sieve,
    Sizes,
    Word,
    addresses,
    allocate,
    allocate_output,
    graph_arrays,
    pieces_of,
    reset,
    reset_output,
    set_capacities,
)
from bicliques.kernels.graph.ranges import in_lists
from bicliques.kernels.reference.pivot import held_bounds
from bicliques.schemas.bicliques import Bicliques, Emit
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.jobs import Job, job_of
from bicliques.schemas.leaves import CLIQUES, bounds_of
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.stats import EngineStats
from bicliques.schemas.totals import Found
from bicliques.schemas.work import Piece, Slice, Subtrees, first_nodes


def left_over(word: Word, hub: Hub, sieve: Sieve) -> Subtrees:
    """What the open problems still have to explore and to emit."""
    return Subtrees.of_pieces([*_word_pieces(word), *_hub_pieces(hub), *_sieve_pieces(sieve)])


def drain_aside(out: Output) -> Subtrees:
    """The pieces that were put aside so far. The buffer is empty afterwards."""
    pieces: list[Piece] = []
    at, end = 0, int(out.state[0]["n_aside"])
    while at < end:
        first = at + 1
        n_path = int(out.aside[at])
        n_candidates = int(out.aside[first + n_path])
        after = first + n_path + 1
        at = after + n_candidates + 1
        path, candidates = out.aside[first : first + n_path], out.aside[after : after + n_candidates]
        pieces.append((path.copy(), candidates.copy(), n_candidates, bool(out.aside[at - 1])))
    out.state[0]["n_aside"] = 0
    return Subtrees.of_pieces(pieces)


def _word_pieces(word: Word) -> list[Piece]:
    state = word.state[0]
    rows, masks = word.row[: state["n_rows"]], word.mask[: state["n_rows"]]
    nothing = np.empty(0, VERTEX)

    def closure(t: np.uint64) -> np.ndarray:
        return np.concatenate([word.full[: state["n_full"]], rows[masks & t == t]])

    pieces: list[Piece] = [(closure(t), nothing, 0, True) for t in word.found[state["delivered"] : state["n_found"]]]
    for frame, t in zip(word.frame[: state["depth"]], word.frame_mask, strict=False):
        first = frame["q0"] + frame["n_q"]
        named = [rows[masks & t == c] for c in word.stack[first + frame["next"] : first + frame["n_c"]]]
        todo = sum(len(rows_of_c) for rows_of_c in named[: frame["end"] - frame["next"]])
        if todo:
            pieces.append((closure(t), np.concatenate(named), todo, False))
    return pieces


def _hub_pieces(hub: Hub) -> list[Piece]:
    state = hub.state[0]
    rows, closed_at = hub.row[: state["n_rows"]], hub.closed_at[: state["n_rows"]]
    pieces: list[Piece] = []
    for depth, frame in enumerate(hub.frame[: state["depth"]], start=1):
        path = np.concatenate([hub.full[: state["n_full"]], rows[(closed_at > 0) & (closed_at <= depth)]])
        candidates = rows[hub.list[frame["list0"] + frame["next"] : frame["list0"] + frame["n_list"]]]
        todo, fresh = int(frame["end"] - frame["next"]), bool(depth == 1 and state["fresh"])
        if todo or fresh:
            pieces.append((path, candidates, todo, fresh))
    return pieces


def _sieve_pieces(sieve: Sieve) -> list[Piece]:
    state = sieve.state[0]
    pieces: list[Piece] = []
    for depth, frame in enumerate(sieve.frame[: state["depth"]], start=1):
        candidates = sieve.row[frame["list0"] + frame["next"] : frame["list0"] + frame["n_rows"]]
        todo, fresh = int(frame["end"] - frame["next"]), bool(depth == 1 and state["fresh"])
        if todo or fresh:
            pieces.append((sieve.closed[: frame["n_closed"]].copy(), candidates.copy(), todo, fresh))
    return pieces


#: The compiled search, without and with thresholds. Its modules are imported only to compile it.
EXPLORE = Entry("bicliques.kernels.cpu.explore", "explore")
EXPLORE_WITH_THRESHOLDS = Entry("bicliques.kernels.cpu.explore", "explore_with_thresholds")
#: The search for near-bicliques.
EXPLORE_NEAR = Entry("bicliques.kernels.cpu.near_search", "explore_near")
#: How long the compiled search runs between two looks at the clock, in seconds.
_PULSE_S = 0.005


class CpuEngine:
    """Bit-matrix enumeration on one core. It releases the GIL. Every thread needs an engine of its own.

    Parameters
    ----------
    sizes : Sizes
        Sizes of the workspace; `kernels.cpu.workspace.allocate` says how much memory it needs at most.

    Notes
    -----
    The first call in a new environment compiles for some ten seconds. The machine code is kept on disk.
    Slices of the same graph and search share one workspace.
    """

    name = "cpu"

    def __init__(self, sizes: Sizes | None = None) -> None:
        self._sizes = sizes or Sizes()
        self._graph: MiningGraph | None = None
        self._search: Search | None = None
        self._memory: tuple[Any, ...] | None = None  # `Graph`, `Output`, and the arrays of what is open
        self._leaves: LeafCounter | None = None
        self._is_asked_to_stop = False

    def mine(self, graph: MiningGraph, subtrees: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        """See `schemas.work.Engine`."""
        if search.pq is not None:
            result = self._counter(graph, search.pq).slice(subtrees, limits, lambda: self._is_asked_to_stop)
            self._is_asked_to_stop = False
            return result
        if self._memory is None or graph is not self._graph or search != self._search:
            self._memory = None
            if search.near is None:
                *problems, out = allocate(graph, search, self._sizes)
            else:
                problems = [allocate_near(graph, search, self._sizes.near)]
                out = allocate_output(graph, search, self._sizes)
            self._memory = (graph_arrays(graph), out, *problems)
            self._graph, self._search = graph, search
        job = job_of(search)
        state = self._memory[1].state[0]
        # of the nodes that thresholds leave
        wants_all = search.largest is None and not (search.has_filters or search.marked or search.near is not None)
        state["plain"] = wants_all and search.mode == "count" and not search.sizes and limits.rows is None
        take = job.taker(emit, limits)
        kind = _Run if search.near is None else _NearRun
        run = kind(graph, self._memory, first_nodes(graph, subtrees), limits, take, job, lambda: self._is_asked_to_stop)
        run.steps = self._sizes.steps
        try:
            result = run.slice()
        finally:
            self._is_asked_to_stop = False
        self._memory = (run.graph, run.out, *run.problems)
        return result

    def _counter(self, graph: MiningGraph, pq: str) -> LeafCounter:
        most, one, own = held_bounds(graph, bounds_of(pq)), pq == CLIQUES, self._leaves
        if own is None or graph is not own.graph or (most, one) != (own.most, own.one):
            self._leaves = own = LeafCounter(graph, most, one)
        return own

    def stop(self) -> None:
        """See `schemas.work.Engine`."""
        self._is_asked_to_stop = True


class _Run:
    """One slice."""

    def __init__(
        self,
        source: MiningGraph,
        memory: tuple[Any, ...],
        subtrees: Subtrees,
        limits: Limits,
        take: Emit,
        job: Job,
        is_asked_to_stop: Callable[[], bool],
    ) -> None:
        self.started = time.perf_counter()
        self.source = source
        self.graph: Graph = memory[0]
        self.out: Output = memory[1]
        self.problems = memory[2:]
        self.limits, self.take, self.job, self.is_asked_to_stop = limits, take, job, is_asked_to_stop
        self.waiting = [subtrees]
        self.odd = SizeCounts.empty()
        self.steps = 0
        self.state = self.out.state[0]
        self._forget()
        self.state["rows_left"] = -1 if limits.rows is None else limits.rows
        self.state["bound"] = limits.bound or 0

    def slice(self) -> Slice:
        pieces = self._next_pieces()
        graph = addresses(self.graph)
        pulse = self.steps
        while True:
            self.state["steps"] = pulse
            began = time.perf_counter()
            status = self._explore(graph, pieces)
            ended = time.perf_counter()
            self.waiting.append(drain_aside(self.out))
            if status == FULL:
                if self.state["rows_left"] == 0:
                    break
                self._drain_rows()
                self._drain_odd_sizes()
            elif status == FINISHED:
                if not any(map(len, self.waiting)):
                    break
                pieces = self._next_pieces()
            elif status == GROW:
                self._grow()
            elif self.state["measure"] and self.state["n_better"] >= self.state["hand_out"]:
                self._drain_rows()
            else:
                if self.state["measure"]:
                    self._drain_rows()
                pulse = int(np.clip(pulse * _PULSE_S / max(ended - began, 1e-6), 100, 1 << 30))
            late = self.limits.seconds is not None and ended - self.started > self.limits.seconds
            late |= self.is_asked_to_stop()
            has_grown = status == GROW or (status == FULL and self.state["count"] == 0)  # and perhaps nothing is done
            if late and not has_grown:
                break
        self._drain_rows()
        return self._result(pieces)

    def _forget(self) -> None:
        """Have nothing open, and nothing found."""
        word, hub, sieve = self.problems
        reset(word, hub, sieve, self.out)

    def _explore(self, graph: np.ndarray, pieces: Pieces) -> int:
        """Search until the compiled code has something to say."""
        word, hub, sieve = self.problems
        search, more = EXPLORE, []
        if self.state["sieving"]:
            search, more = EXPLORE_WITH_THRESHOLDS, [addresses(sieve)]
        problems = addresses(word), addresses(hub)
        return search(graph, addresses(pieces), len(pieces.todo), *problems, addresses(self.out), *more)

    def _grow(self) -> None:
        """Have more memory for what is open."""
        raise AssertionError("only the search for near-bicliques asks for memory")

    def _left_over(self) -> Subtrees:
        """What is open."""
        return left_over(*self.problems)

    def _next_pieces(self) -> Pieces:
        listed, ranged = in_lists(self.source, Subtrees.concat(self.waiting))
        pieces = pieces_of(listed)
        self.waiting = [ranged]
        self.state["item"] = 0
        return pieces

    def _drain_rows(self) -> None:
        """Hand the buffered bicliques out, and grow a buffer that is too short for a single biclique."""
        state, out = self.state, self.out
        n = int(state["n_rows"])
        if n:
            left, right = int(state["n_left"]), int(state["n_right"])
            self.take(
                Bicliques(
                    out.left_indptr[: n + 1],
                    out.left[:left],
                    out.right_indptr[: n + 1],
                    out.right[:right],
                    out.root[:n],
                    out.ids[:n],
                    out.missing[:n] if len(out.missing) else None,
                )
            )
            state["n_rows"] = state["n_left"] = state["n_right"] = state["n_better"] = 0
            state["bound"] = max(int(state["bound"]), self.job.bound_of(self.take) or 0)
        self.out = _grown(out, int(state["need_left"]), int(state["need_right"]))
        set_capacities(self.out)

    def _drain_odd_sizes(self) -> None:
        n = int(self.state["n_odd"])
        if n:
            base, root = self.out.odd[: 2 * n].reshape(n, 2).T
            self.odd = SizeCounts.merge([self.odd, self._by_side(base, root, None)])
            self.state["n_odd"] = 0

    def _by_side(self, base: np.ndarray, root: np.ndarray, count: np.ndarray | None) -> SizeCounts:
        return SizeCounts.of(*((root, base) if self.state["root_is_left"] else (base, root)), count)

    def _sizes(self) -> SizeCounts | None:
        if not self.state["sizing"]:
            return None
        self._drain_odd_sizes()
        there = np.flatnonzero(self.out.usual)
        usual = self._by_side(there // USUAL, there % USUAL, self.out.usual[there])
        return SizeCounts.merge([usual, self.odd])

    def _result(self, pieces: Pieces) -> Slice:
        untouched = Subtrees.of_lists(*pieces[:5], pieces.fresh.astype(np.bool_)).take(
            int(self.state["item"]), len(pieces.todo)
        )
        rest = Subtrees.concat([self._left_over(), *self.waiting, untouched])
        found = Found(int(self.state["count"]), int(self.state["fingerprint"]), self._sizes())
        return Slice(self.job.total(found, self.take), rest, EngineStats(seconds=time.perf_counter() - self.started))


class _NearRun(_Run):
    """One slice of a search for near-bicliques."""

    problems: tuple[Near]

    def _forget(self) -> None:
        state = self.problems[0].state[0]
        state["depth"] = state["pending"] = 0
        reset_output(self.out)

    def _explore(self, graph: np.ndarray, pieces: Pieces) -> int:
        near, out = addresses(self.problems[0]), addresses(self.out)
        return EXPLORE_NEAR(graph, addresses(pieces), len(pieces.todo), near, out)

    def _grow(self) -> None:
        self.problems = (grown(self.problems[0]),)

    def _left_over(self) -> Subtrees:
        return Subtrees.of_pieces(near_pieces(self.problems[0], self.source.n_roots))


def _grown(out: Output, need_left: int, need_right: int) -> Output:
    if need_left > len(out.left):
        out = out._replace(left=np.empty(2 * need_left, VERTEX))
    if need_right > len(out.right):
        out = out._replace(right=np.empty(2 * need_right, VERTEX))
    return out
