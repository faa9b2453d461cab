"""The world that `benchmarks.simulate` simulates: workers with a scheduler, and threads within workers.

The scheduler is the real one, but time is simulated. A slice works through its nodes, heaviest first. The node at which
its time ends comes back in pieces of random size, whose weights are as wrong as those of roots. A worker has a slice or
two in hand and works on one. The driver serves one event at a time.

Threads that share the slices of a worker are a world of their own, with a scheduler of their own, as in
`pipeline.slices.shared_slice`.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from bicliques.pipeline.dealing.schedule import Finish, Policy, Scheduler, Start
from bicliques.pipeline.slices import shared_slice
from bicliques.schemas.manifest import PLAN, Range

#: Seconds that a piece takes a thread beyond its nodes, as measured in docs/lab/scaling.md.
_PIECE_S = 0.0005


@dataclass(frozen=True)
class World:
    """Everything around the scheduler: workers, driver and network.

    Parameters
    ----------
    workers : int
    in_hand : int
        Number of slices that a worker holds. It works on one of them.
    slice_s : float
        Seconds that every slice takes beyond its nodes: starting, reading back, idling while the last warps end. This
        has to be measured.
    commit_s : float
        Seconds that the driver itself needs per event. Entries are flushed to disk by several threads.
    travel_s : float
        Seconds from the driver to a worker, and also back, with the flush.
    pieces : int
        Number of nodes in which a node comes back that the time of a slice cut.
    lost_rate : float
        Share of the slices whose worker dies.
    threads : int
        Threads of a worker that share its slices.
    recall_s : float
        A slice that has run for so long is given back when a worker has nothing to do. By default that never happens.
    """

    workers: int
    in_hand: int = 2
    slice_s: float = 0.02
    commit_s: float = 0.003
    travel_s: float = 0.01
    pieces: int = 200
    lost_rate: float = 0.0
    threads: int = 1
    recall_s: float = math.inf

    @property
    def within(self) -> World:
        """That of the threads of a worker. Nothing travels there."""
        return World(self.threads, 1, _PIECE_S, shared_slice.EVENT_S, 0.0, self.pieces, recall_s=shared_slice.LEAST_S)


@dataclass(frozen=True)
class Outcome:
    """The result of a simulated run.

    Parameters
    ----------
    seconds : float
        Simulated time of the run.
    efficiency : float
        Work of the run divided by the work that all threads of all workers could have done in its time, 0 to 1.
    slices, retries : int
    scheduler_s : float
        Real seconds that the scheduler took.
    driver_busy : float
        Share of the time in which the driver served events, 0 to 1.
    pieces : int
        Pieces that threads worked on. Where a worker has one thread, these are the slices.
    """

    seconds: float
    efficiency: float
    slices: int
    retries: int
    scheduler_s: float
    driver_busy: float
    pieces: int


@dataclass
class Nodes:
    """Nodes of a source: their estimated weights, and the seconds of work that they really take."""

    weights: np.ndarray
    work: np.ndarray


@dataclass
class _Worker:
    free_at: float = 0.0
    in_hand: int = 0


@dataclass(eq=False)
class _Running:
    """A slice that runs, and how it will end. `left` is None if its worker dies."""

    start: Start
    worker: int
    nodes: Nodes
    began: float
    seconds: float
    left: Nodes | None
    is_recalled: bool = False


def simulate(nodes: Nodes, world: World, policy: Policy, seed: int = 0) -> Outcome:
    """Run the scheduler until all work is done, in simulated time."""
    simulation = _Simulation(nodes, world, policy, np.random.default_rng(seed))
    found = simulation.run()
    assert simulation.finish == Finish("complete"), simulation.finish
    assert abs(simulation.done - nodes.work.sum()) < 1e-6 * nodes.work.sum()
    return found


class _Simulation:
    def __init__(
        self,
        nodes: Nodes,
        world: World,
        policy: Policy,
        rng: np.random.Generator,
        until: float = math.inf,
        spread: float | None = None,
    ):
        self.world, self.rng, self.until = world, rng, until
        order = np.argsort(-nodes.weights, kind="stable")
        self.sources = {PLAN: Nodes(nodes.weights[order], nodes.work[order])}
        self.spread = float(np.std(np.log(nodes.work) - np.log(nodes.weights))) if spread is None else spread
        self.done = 0.0
        self.machine = Scheduler(policy, 0, float(nodes.weights.sum()))
        self.workers = [_Worker() for _ in range(world.workers)]
        self.idle = [(0, k) for k in range(world.workers)]  # by slices in hand
        self.running: dict[int, _Running] = {}
        self.ends: list[tuple[float, int, _Running]] = []  # events on their way to the driver
        self.numbers = itertools.count()
        self.finish: Finish | None = None
        self.slices = self.pieces = 0
        self.deciding = 0.0

    def run(self) -> Outcome:
        """Deal until all work is done, or until the time is up and all slices have come back."""
        now = driver_free = driver_busy = 0.0
        self._carry_out(self._begin, now)
        while self.finish is None:
            arrived, _, ended = heapq.heappop(self.ends)
            number = ended.start.slice
            if self.running.get(number) is not ended:
                continue  # it was recalled, and has come back before
            del self.running[number]
            now = max(arrived, driver_free)
            driver_free = now + self.world.commit_s
            driver_busy += self.world.commit_s
            self.workers[ended.worker].in_hand -= 1
            heapq.heappush(self.idle, (self.workers[ended.worker].in_hand, ended.worker))
            if now >= self.until:
                self._carry_out(lambda: self.machine.stop("time_limit"), driver_free)
            self._carry_out(lambda ended=ended: self._end(ended), driver_free)
            self._recall(driver_free)
        capacity = now * self.world.workers * self.world.threads
        pieces = self.slices if self.world.threads == 1 else self.pieces
        return Outcome(
            now, self.done / capacity, self.slices, self.machine.retries, self.deciding, driver_busy / now, pieces
        )

    @property
    def left(self) -> Nodes:
        """What is not done."""
        return self._nodes(self.machine.outstanding)

    def _begin(self) -> list[Start | Finish]:
        plan = self.sources[PLAN]
        self.machine.add_source(PLAN, plan.weights, [(0, len(plan.weights))], is_plan=True)
        return self.machine.set_slots(self.world.workers * self.world.in_hand, self.world.workers)

    def _end(self, ended: _Running) -> list[Start | Finish]:
        number, left = ended.start.slice, ended.left
        if left is None:
            return self.machine.failed(number, "it died")
        self.sources[number] = left
        self.done += float(ended.nodes.work.sum() - left.work.sum())
        return self.machine.returned(number, ended.seconds, 1, left.weights)

    def _recall(self, now: float) -> None:
        """Have the slices that have run for longest given back, one for every four workers that are idle."""
        idle = self.world.workers - self.machine.running
        if self.finish or idle <= 0 or self.machine.is_outstanding or now >= self.until:
            return
        waits = [one for one in self.running.values() if not one.is_recalled]
        asked = len(self.running) - len(waits)
        for one in sorted(waits, key=lambda one: one.began)[: max(-(-idle // 4) - asked, 0)]:
            seconds = max(now + shared_slice.PULSE_S - one.began, self.world.recall_s)
            if seconds < one.seconds:
                self._run(replace(one, is_recalled=True), seconds)

    def _carry_out(self, decide: Callable[[], list[Start | Finish]], now: float) -> None:
        began = time.perf_counter()
        instructions = decide()
        self.deciding += time.perf_counter() - began
        for instruction in instructions:
            if isinstance(instruction, Finish):
                self.finish = instruction
            else:
                self._give(instruction, now)

    def _give(self, start: Start, now: float) -> None:
        self.slices += 1
        while True:  # the worker with the fewest slices in hand; outdated entries are skipped
            in_hand, k = heapq.heappop(self.idle)
            if self.workers[k].in_hand == in_hand < self.world.in_hand:
                break
        worker = self.workers[k]
        worker.in_hand += 1
        if worker.in_hand < self.world.in_hand:
            heapq.heappush(self.idle, (worker.in_hand, k))
        began = max(now + self.world.travel_s, worker.free_at)
        one = _Running(start, k, self._nodes(start.took), began, 0.0, None)
        self._run(one, min(start.seconds, max(self.until - began, 0.0)))

    def _run(self, one: _Running, seconds: float) -> None:
        """Let a slice run for at most `seconds`."""
        work = self._work if self.world.threads == 1 else self._share
        one.seconds, one.left = work(one.nodes, seconds)
        self.workers[one.worker].free_at = one.began + one.seconds
        if self.rng.random() < self.world.lost_rate:
            one.left = None
        self.running[one.start.slice] = one
        heapq.heappush(self.ends, (one.began + one.seconds + self.world.travel_s, next(self.numbers), one))

    def _share(self, nodes: Nodes, seconds: float) -> tuple[float, Nodes]:
        """As `_work`, by several threads, among which the nodes and what a thread leaves over are dealt."""
        policy = Policy(seconds, min(shared_slice.SHORTEST_S, seconds), event_seconds=shared_slice.EVENT_S)
        until = max(seconds - self.world.slice_s, 0.0)
        within = _Simulation(nodes, self.world.within, policy, self.rng, until, self.spread)
        found = within.run()
        self.pieces += found.pieces
        return found.seconds + self.world.slice_s, within.left

    def _work(self, nodes: Nodes, seconds: float) -> tuple[float, Nodes]:
        order = np.argsort(-nodes.weights, kind="stable")
        work, weights = nodes.work[order], nodes.weights[order]
        until = np.cumsum(work)
        budget = max(seconds - self.world.slice_s, 0.1 * seconds)
        if until[-1] <= budget:
            return float(until[-1]) + self.world.slice_s, Nodes(np.empty(0), np.empty(0))
        cut = int(np.searchsorted(until, budget, side="right"))
        rest = float(until[cut]) - budget
        shares = self.rng.dirichlet(np.full(self.world.pieces, 0.5))
        shares = shares[shares > 1e-12] / shares[shares > 1e-12].sum()
        wrong = np.exp(self.rng.normal(0.0, self.spread, len(shares)))
        pieces = Nodes(weights[cut] * rest / work[cut] * shares * wrong, rest * shares)
        left = Nodes(
            np.concatenate([pieces.weights, weights[cut + 1 :]]), np.concatenate([pieces.work, work[cut + 1 :]])
        )
        return budget + self.world.slice_s, left

    def _nodes(self, took: Iterable[Range]) -> Nodes:
        some = [(self.sources[source], start, stop) for source, start, stop in took]
        if not some:
            return Nodes(np.empty(0), np.empty(0))
        weights = [nodes.weights[start:stop] for nodes, start, stop in some]
        return Nodes(np.concatenate(weights), np.concatenate([nodes.work[a:b] for nodes, a, b in some]))


def simulate_apart(nodes: Nodes, world: World, policy: Policy, drivers: int, seed: int = 0) -> tuple[float, float]:
    """Share roots and workers among drivers that know nothing of one another, and let each work to its end.

    Returns
    -------
    (float, float)
        Efficiency if the workers of a driver that is done are idle until the last one is done, and if they went to
        other drivers at once and without any loss. The truth of two levels of dealing is between the two.
    """
    of = np.random.default_rng(seed).integers(drivers, size=len(nodes.work))
    each = replace(world, workers=world.workers // drivers)
    shares = [Nodes(nodes.weights[of == k], nodes.work[of == k]) for k in range(drivers)]
    seconds = [simulate(share, each, policy, seed).seconds for share in shares]
    ideal = float(nodes.work.sum()) / (each.workers * drivers)
    return ideal / max(seconds), ideal / float(np.mean(seconds))
