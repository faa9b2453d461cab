"""Simulates up to 1,000 workers, to measure how well the scheduler uses them.

    python -m benchmarks.simulate run
    python -m benchmarks.simulate roots mine.csv --output roots.json
    python -m benchmarks.simulate run --roots roots.json

    python -m benchmarks.simulate run --workers 1000 --drivers 16 --event-ms 2.5

The first line simulates with the roots that are recorded in benchmarks/. The second line records the roots of other
graphs, and the third simulates with those. The fourth line shares roots and workers among 16 drivers, at random.

The scheduler is the real one (`pipeline.mining.schedule`), but time is simulated. A node of the plan is a recorded
root, drawn with replacement. Its weight is the estimate of `pipeline.prepare.weights`, and its work is the time that it
took. A slice works through its nodes, heaviest first. The node at which its time ends comes back in pieces of random
size, whose weights are as wrong as those of roots. A worker has two slices in hand and works on one. The driver serves
one event at a time.
"""

from __future__ import annotations

import argparse
import heapq
import json
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import add_data, add_output, chosen, new_parser, numbers, output_file, run, write
from benchmarks.facts import FOLDER
from benchmarks.runs import prepared_run
from kernels.cpu.engine import CpuEngine
from pipeline.mining.instructions import Finish, Policy, Start
from pipeline.mining.schedule import Scheduler
from pipeline.prepare.weights import RootWeights
from schemas.emit import nowhere
from schemas.graph import MiningGraph
from schemas.manifest import PLAN
from schemas.search import Limits, Search
from schemas.work import Subtrees

RECORDED = FOLDER / "recorded_roots.json"
#: Largest number of roots recorded per graph.
_MOST_ROOTS = 3000


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
    """

    workers: int
    in_hand: int = 2
    slice_s: float = 0.02
    commit_s: float = 0.003
    travel_s: float = 0.01
    pieces: int = 200
    lost_rate: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """The result of a simulated run.

    Parameters
    ----------
    seconds : float
        Simulated time of the run.
    efficiency : float
        Work of the run divided by the work that all workers could have done in its time, 0 to 1.
    slices, retries : int
    scheduler_s : float
        Real seconds that the scheduler took.
    driver_busy : float
        Share of the time in which the driver served events, 0 to 1.
    """

    seconds: float
    efficiency: float
    slices: int
    retries: int
    scheduler_s: float
    driver_busy: float


@dataclass
class Nodes:
    """Nodes of a source: their estimated weights, and the seconds of work that they really take."""

    weights: np.ndarray
    work: np.ndarray


@dataclass
class _Worker:
    waiting: deque[tuple[Start, Nodes]] = field(default_factory=deque)
    free_at: float = 0.0
    in_hand: int = 0


def simulate(nodes: Nodes, world: World, policy: Policy, seed: int = 0) -> Outcome:
    """Run the scheduler until all work is done, in simulated time."""
    return _Simulation(nodes, world, policy, seed).run()


class _Simulation:
    def __init__(self, nodes: Nodes, world: World, policy: Policy, seed: int):
        self.world, self.rng = world, np.random.default_rng(seed)
        order = np.argsort(-nodes.weights, kind="stable")
        self.sources = {PLAN: Nodes(nodes.weights[order], nodes.work[order])}
        self.spread = float(np.std(np.log(nodes.work) - np.log(nodes.weights)))
        self.total = float(nodes.work.sum())
        self.done = self.busy = 0.0
        self.machine = Scheduler(policy, 0, float(nodes.weights.sum()))
        self.workers = [_Worker() for _ in range(world.workers)]
        self.idle = [(0, k) for k in range(world.workers)]  # by slices in hand
        self.ends: list[tuple[float, int, int, float, Nodes | None]] = []  # events on their way to the driver
        self.finish: Finish | None = None
        self.slices = 0
        self.deciding = 0.0

    def run(self) -> Outcome:
        now = driver_free = driver_busy = 0.0
        n = len(self.sources[PLAN].weights)
        self._carry_out(lambda: self._add(n), now)
        while self.finish is None:
            arrived, number, worker, seconds, left = heapq.heappop(self.ends)
            now = max(arrived, driver_free)
            driver_free = now + self.world.commit_s
            driver_busy += self.world.commit_s
            self.workers[worker].in_hand -= 1
            heapq.heappush(self.idle, (self.workers[worker].in_hand, worker))
            if left is None:
                self._carry_out(lambda n=number: self.machine.failed(n, "it died"), driver_free)
                continue
            self.sources[number] = left
            self._carry_out(lambda n=number, s=seconds, w=left.weights: self.machine.returned(n, s, 1, w), driver_free)
        assert self.finish == Finish("complete"), self.finish
        assert abs(self.done - self.total) < 1e-6 * self.total
        capacity = now * self.world.workers
        return Outcome(now, self.total / capacity, self.slices, self.machine.retries, self.deciding, driver_busy / now)

    def _add(self, n: int) -> list[Start | Finish]:
        self.machine.add_source(PLAN, self.sources[PLAN].weights, [(0, n)], is_plan=True)
        return self.machine.set_slots(self.world.workers * self.world.in_hand, self.world.workers)

    def _carry_out(self, decide: Any, now: float) -> None:
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
        taken = [(self.sources[s], a, b) for s, a, b in start.took]
        nodes = Nodes(
            np.concatenate([s.weights[a:b] for s, a, b in taken]), np.concatenate([s.work[a:b] for s, a, b in taken])
        )
        began = max(now + self.world.travel_s, worker.free_at)
        seconds, left = self._work(nodes, start.seconds)
        worker.free_at = began + seconds
        if self.rng.random() < self.world.lost_rate:
            left = None
        else:
            self.done += float(nodes.work.sum() - left.work.sum())
        heapq.heappush(self.ends, (worker.free_at + self.world.travel_s, start.slice, k, seconds, left))

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


def draw(recorded: dict[str, Any], n_roots: int, total_s: float, seed: int) -> Nodes:
    """`n_roots` recorded roots, drawn with replacement. Their work is scaled to `total_s` seconds of one worker."""
    rng = np.random.default_rng(seed)
    weights, seconds = np.array(recorded["weight"]), np.array(recorded["seconds"])
    chosen = rng.choice(len(weights), n_roots, p=np.array(recorded["share"]) / sum(recorded["share"]))
    work = np.maximum(seconds[chosen], 1e-7)
    return Nodes(weights[chosen], work * total_s / work.sum())


def record(path: Path) -> dict[str, Any]:
    """Weight and time of the roots of a graph, which the CPU engine mines one after the other.

    If there are too many roots, a sample is mined: a third of it are the heaviest roots, and the rest is drawn at
    random. ``share`` is the number of roots of the graph that each root of the sample stands for.
    """
    with prepared_run(path) as folder:
        graph = MiningGraph.open(folder.graph)
    weights = RootWeights(graph).by_rank
    order = np.argsort(-weights, kind="stable")
    top = order[: _MOST_ROOTS // 3]
    others = order[_MOST_ROOTS // 3 :]
    drawn = np.random.default_rng(0).permutation(others)[: _MOST_ROOTS - len(top)]
    engine, search = CpuEngine(), Search("count")
    seconds = []
    for root in (order[-1], *top, *drawn):  # the first call is not counted
        began = time.perf_counter()
        engine.mine(graph, Subtrees.of_roots(np.array([root])), search, Limits(), nowhere)
        seconds.append(time.perf_counter() - began)
    overhead = min(seconds)  # of a call; a slice of many roots pays it once
    share = np.concatenate([np.ones(len(top)), np.full(len(drawn), len(others) / max(len(drawn), 1))])
    roots = np.concatenate([top, drawn])
    return {
        "roots": graph.n_roots,
        "weight": [float(f"{w:.4g}") for w in weights[roots]],
        "seconds": [float(f"{s - overhead:.3g}") for s in seconds[1:]],
        "share": [round(float(s), 2) for s in share],
    }


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("simulate", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("roots", help="record weight and time of the roots of graphs")
    recording.add_argument("graphs", nargs="+", metavar="GRAPH")
    add_data(recording)
    add_output(recording, RECORDED.name)
    running = commands.add_parser("run", help="simulate, and print a Markdown table")
    running.add_argument("--roots", type=Path, default=RECORDED, metavar="FILE", help="(default: the recorded ones)")
    running.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 64, 256, 1000])
    running.add_argument("--minutes", type=float, nargs="+", default=[0.5, 10.0], help="minutes of work per worker")
    running.add_argument("--slice-seconds", type=float, default=10.0)
    running.add_argument("--event-ms", type=float, default=3.0, help="what an event takes a driver, in milliseconds")
    running.add_argument("--drivers", type=int, default=1, help="drivers that share workers and roots")
    add_output(running, "simulated.json")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Record, or simulate and print a Markdown table."""
    words = parser().parse_args(arguments)
    output = output_file(words, f"simulate-{words.command}")
    if words.command == "roots":
        output.write_text(json.dumps({graph.name: record(graph.path) for graph in chosen(words, ())}) + "\n")
    else:
        write(output, _table(words))
    print(f"numbers: {output}")


def _table(words: argparse.Namespace) -> list[dict[str, Any]]:
    lines = []
    print(
        "| graph | workers | work / worker | time | efficiency | slices | driver busy |\n|---|--:|--:|--:|--:|--:|--:|"
    )
    for name, recorded in numbers(words.roots).items():
        for minutes in words.minutes:
            for workers in words.workers:
                seconds = 60 * minutes * workers
                nodes = draw(recorded, max(recorded["roots"], 20 * workers), seconds, 1)
                world = World(workers, commit_s=words.event_ms / 1e3)
                policy = Policy(words.slice_seconds, event_seconds=world.commit_s)
                if words.drivers > 1:
                    least, most = simulate_apart(nodes, world, policy, words.drivers)
                    lines.append({"graph": name, "workers": workers, "minutes": minutes, "least": least, "most": most})
                    print(f"| {name} | {workers:,} | {60 * minutes:.0f} s | | {least:.3f}-{most:.3f} | | |", flush=True)
                    continue
                found = simulate(nodes, world, policy)
                lines.append({"graph": name, "workers": workers, "minutes": minutes} | vars(found))
                print(
                    f"| {name} | {workers:,} | {60 * minutes:.0f} s | {found.seconds:.1f} s | {found.efficiency:.3f} "
                    f"| {found.slices:,} | {found.driver_busy:.2f} |",
                    flush=True,
                )
    return lines


if __name__ == "__main__":
    run(main)
