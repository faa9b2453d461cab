"""The scheduler deals work to simulated workers, which may fail. It keeps limits, and a decision is cheap."""

import heapq
import itertools
import math
import sys
import tracemalloc
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.pipeline.dealing.schedule import Finish, Policy, Scheduler, Source, Start
from bicliques.schemas.facts import Outcome
from bicliques.schemas.manifest import PLAN
from tests.support.examples import examples


@dataclass
class Simulation:
    """Workers that do known amounts of work, slice by slice, and may fail.

    A node is a list of units, and a unit is one row and `unit_s` seconds of work. Units that a slice does not reach are
    left over, in nodes of seven units at most.
    """

    nodes: list[list[int]]
    slots: int
    policy: Policy
    unit_s: float = 0.01
    failure_rate: float = 0.0
    seed: int = 0
    weights: np.ndarray | None = None
    done: list[int] = field(default_factory=list)
    now: float = 0.0
    busy: float = 0.0

    def run(self) -> Finish:
        rng = np.random.default_rng(self.seed)
        sources = {PLAN: self.nodes}
        weights = np.array([len(n) for n in self.nodes], float) if self.weights is None else self.weights
        machine = Scheduler(self.policy, 0, float(weights.sum()))
        machine.add_source(PLAN, weights, [(0, len(self.nodes))], is_plan=True)
        running: list[tuple[float, int, Start, list[int], list[list[int]], float]] = []
        taken: dict[int, set[int]] = {}
        self.starts = self.most_promised = 0
        finish: Finish | None = None

        def carry_out(instructions: list[Start | Finish]) -> None:
            nonlocal finish
            for instruction in instructions:
                assert finish is None, "an instruction after the end"
                if isinstance(instruction, Finish):
                    finish = instruction
                    continue
                self.starts += 1
                work = [unit for s, a, b in instruction.took for node in sources[s][a:b] for unit in node]
                if instruction.attempt == 0:
                    for s, a, b in instruction.took:
                        mine = set(range(a, b))
                        assert not mine & taken.setdefault(s, set()), "a node was dealt twice"
                        taken[s] |= mine
                reach = max(1, int(instruction.seconds / self.unit_s))
                if instruction.rows is not None:
                    reach = min(reach, instruction.rows)
                did, rest = work[:reach], work[reach:]
                nodes = [rest[k : k + 7] for k in range(0, len(rest), 7)]
                seconds = max(len(did) * self.unit_s, 1e-3)
                entry = (self.now + seconds, instruction.slice, instruction, did, nodes, seconds)
                heapq.heappush(running, entry)
                assert len(running) <= self.slots
                promised = sum(e[2].rows or 0 for e in running)
                self.most_promised = max(self.most_promised, promised + len(self.done))

        carry_out(machine.set_slots(self.slots))
        while finish is None:
            assert running, "nothing runs, and the run is not over"
            self.now, number, _, did, nodes, seconds = heapq.heappop(running)
            if rng.random() < self.failure_rate:
                carry_out(machine.failed(number, "it was unlucky"))
                continue
            self.done += did
            self.busy += seconds
            sources[number] = nodes
            self.machine = machine
            carry_out(machine.returned(number, seconds, len(did), np.array([len(n) for n in nodes], float)))
        self.left = len(running)
        return finish


def graph_like(n: int, seed: int) -> list[list[int]]:
    """Nodes with very unequal work. Heavy nodes come first, and units are numbered through."""
    sizes = np.sort((np.random.default_rng(seed).pareto(1.0, n) * 3).astype(int) + 1)[::-1]
    starts = np.concatenate([[0], np.cumsum(np.minimum(sizes, 5000))])
    return [list(range(a, b)) for a, b in itertools.pairwise(starts)]


@settings(max_examples=examples(60), deadline=None)
@given(
    n=st.integers(0, 60),
    slots=st.integers(1, 9),
    seed=st.integers(0, 10**6),
    failures=st.sampled_from([0.0, 0.05, 0.3]),
    slice_s=st.sampled_from([0.01, 0.2, 10.0]),
)
def test_every_unit_is_done_once_whatever_fails(n: int, slots: int, seed: int, failures: float, slice_s: float) -> None:
    nodes = graph_like(n, seed)
    policy = Policy(max_seconds=slice_s, min_seconds=min(0.1, slice_s), attempts=1000)
    simulation = Simulation(nodes, slots, policy, failure_rate=failures, seed=seed)
    assert simulation.run() == Finish("complete")
    assert sorted(simulation.done) == list(range(sum(map(len, nodes))))
    assert simulation.left == 0


@settings(max_examples=examples(60), deadline=None)
@given(
    slots=st.integers(1, 9),
    seed=st.integers(0, 10**6),
    most=st.integers(1, 4000),
    failures=st.sampled_from([0.0, 0.2]),
)
def test_the_row_limit_is_never_exceeded(slots: int, seed: int, most: int, failures: float) -> None:
    nodes = graph_like(50, seed)
    total = sum(map(len, nodes))
    simulation = Simulation(nodes, slots, Policy(max_results=most, attempts=1000), failure_rate=failures, seed=seed)
    outcome = simulation.run().outcome
    assert simulation.most_promised <= most
    assert len(simulation.done) == len(set(simulation.done)) == min(most, total)
    assert outcome == ("max_results" if most < total else "complete")


def test_a_limit_of_no_rows_is_reached_at_once() -> None:
    machine = Scheduler(Policy(max_results=0), 0, 1.0)
    machine.add_source(PLAN, np.ones(1), [(0, 1)], is_plan=True)
    assert machine.set_slots(2) == [Finish("max_results")]


def test_a_run_without_work_is_complete() -> None:
    assert Scheduler(Policy(), 0, 0.0).set_slots(1) == [Finish("complete")]
    assert Scheduler(Policy(), 0, 0.0).share == 1.0


def test_heavy_roots_are_dealt_first_and_left_overs_before_the_plan() -> None:
    machine = Scheduler(Policy(), 0, 12.0)
    machine.add_source(PLAN, np.array([8.0, 2.0, 1.0, 1.0]), [(0, 4)], is_plan=True)
    first, second = machine.set_slots(2)
    assert first.took == ((PLAN, 0, 1),)
    assert second.took[0][:2] == (PLAN, 1)
    (third,) = machine.returned(0, 1.0, 5, np.array([3.0, 1.0]))
    assert third.took[0] == (0, 0, 1)
    assert third.slice == 2


def test_a_single_worker_gets_all_work() -> None:
    """A GPU would wait for what is not dealt until one of its two slices is written."""
    machine = Scheduler(Policy(max_results=10_000), 0, 64.0)
    machine.add_source(PLAN, np.ones(64), [(0, 64)], is_plan=True)
    first, second = machine.set_slots(2, workers=1)
    assert (first.took, second.took) == (((PLAN, 0, 32),), ((PLAN, 32, 64),))
    assert (first.rows, second.rows) == (5000, 5000)
    assert not machine.is_outstanding
    (third,) = machine.returned(0, 1e-6, 5, np.ones(4))  # this slice was so fast that its rate says nothing
    assert third.took == ((0, 0, 4),)
    assert not machine.is_outstanding


def test_only_a_single_worker_begins_with_long_slices() -> None:
    """The rest of a slice comes back when its result is written, and until then there may be nothing else to do."""
    policy = Policy(min_seconds=0.25, max_seconds=10.0)
    for workers, seconds in ((1, 1.0), (2, 0.25)):
        machine = Scheduler(policy, 0, 64.0)
        machine.add_source(PLAN, np.ones(64), [(0, 64)], is_plan=True)
        assert {start.seconds for start in machine.set_slots(2 * workers, workers)} == {seconds}


def test_a_slice_that_keeps_failing_fails_the_run_and_is_named() -> None:
    machine = Scheduler(Policy(attempts=3), 7, 1.0)
    machine.add_source(PLAN, np.ones(2), [(0, 2)], is_plan=True)
    machine.set_slots(1)
    for attempt in (1, 2):
        (again,) = machine.failed(7, "boom")
        assert (again.slice, again.attempt) == (7, attempt)
    (finish,) = machine.failed(7, "boom")
    assert finish.outcome == "failed"
    assert finish.reason == "slice 7 failed 3 times, the last time because: boom"
    assert machine.retries == 2


def test_a_stop_waits_for_the_slices_that_are_running() -> None:
    machine = Scheduler(Policy(), 0, 10.0)
    machine.add_source(PLAN, np.ones(10), [(0, 10)], is_plan=True)
    started = machine.set_slots(2)
    assert len(started) == 2
    assert machine.stop("interrupted") == []
    assert machine.returned(0, 1.0, 1, np.ones(1)) == []
    assert machine.returned(1, 1.0, 1, np.empty(0)) == [Finish("interrupted")]


def test_a_run_goes_on_after_it_lost_all_slots() -> None:
    machine = Scheduler(Policy(), 0, 2.0)
    machine.add_source(PLAN, np.ones(2), [(0, 2)], is_plan=True)
    assert machine.set_slots(0) == []
    assert len(machine.set_slots(1)) == 1


def test_the_time_that_is_left_is_that_of_all_workers_or_of_one_if_none_is_there() -> None:
    machine = Scheduler(Policy(), 0, 1000.0)
    machine.add_source(PLAN, np.ones(1000), [(0, 1000)], is_plan=True)
    machine.set_slots(8, workers=4)
    assert machine.seconds_left == math.inf, "nothing is known of the rate yet"
    machine.returned(0, 1.0, 0, np.empty(0))
    with_four = machine.seconds_left
    assert 0 < with_four < math.inf
    assert machine.set_slots(0) == []
    assert machine.seconds_left == pytest.approx(4 * with_four)


def test_only_outstanding_ranges_are_dealt() -> None:
    machine = Scheduler(Policy(), 5, 10.0)
    machine.add_source(PLAN, np.ones(10), [(2, 4), (8, 10)], is_plan=True)
    machine.add_source(3, np.ones(5), [(4, 5)], is_plan=False)
    (start,) = machine.set_slots(1)
    assert start.took == ((3, 4, 5), (PLAN, 2, 4), (PLAN, 8, 10))
    assert start.slice == 5
    assert machine.is_open(3)
    assert machine.returned(5, 0.1, 0, np.empty(0)) == [Finish("complete")]
    assert not machine.is_open(3)


def test_left_overs_are_divided_only_when_slots_would_be_idle() -> None:
    machine = Scheduler(Policy(), 0, 100.0)
    machine.add_source(PLAN, np.array([100.0]), [(0, 1)], is_plan=True)
    machine.set_slots(8)
    assert machine.pieces_wanted() == 16
    machine.add_source(9, np.ones(50), [(0, 50)], is_plan=False)
    assert machine.pieces_wanted() == 0


def test_all_workers_end_at_about_the_same_time() -> None:
    nodes = graph_like(3000, 3)
    simulation = Simulation(nodes, 32, Policy(max_seconds=10.0))
    assert simulation.run() == Finish("complete")
    assert simulation.busy / (simulation.now * 32) > 0.95


def test_wrong_weights_do_not_make_all_slices_tiny() -> None:
    nodes = [list(range(k * 1000, (k + 1) * 1000)) for k in range(200)]
    weights = np.ones(200)
    weights[:10] = 1e6  # so nearly all of the work is in roots that are thought to be light
    simulation = Simulation(nodes, 4, Policy(max_seconds=10.0), weights=weights)
    assert simulation.run() == Finish("complete")
    assert simulation.starts < 1000  # 2000 seconds of work
    assert simulation.busy / (simulation.now * 4) > 0.9


@pytest.mark.parametrize("slots", [1, 1000])
def test_a_decision_costs_a_few_calls_whatever_the_number_of_roots(slots: int) -> None:
    """No decision loops over all roots, or makes an array with an entry per root."""
    n = 300_000
    machine = Scheduler(Policy(), 0, float(n))
    machine.add_source(PLAN, np.linspace(2.0, 0.1, n), [(0, n)], is_plan=True)
    running = deque(start.slice for start in machine.set_slots(slots))
    events, calls = 0, itertools.count()
    tracemalloc.start()
    sys.setprofile(lambda *_: next(calls))
    try:
        while running and events < 2000:
            left = np.ones(3) if events % 2 else np.empty(0)
            answer = machine.returned(running.popleft(), 0.01, 1, left)
            running += [start.slice for start in answer if isinstance(start, Start)]
            events += 1
    finally:
        sys.setprofile(None)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert events > 0
    assert next(calls) < 500 * events
    assert peak < n * 8 / 4, "memory grew by more than a quarter of an array with an entry per root"


@pytest.mark.parametrize("outcome", ["interrupted", "time_limit"])
def test_a_slice_that_fails_for_good_after_a_stop_is_reported(outcome: Outcome) -> None:
    """Otherwise the run would end as if it had only been stopped, and each resume would meet the same failure."""
    machine = Scheduler(Policy(attempts=2), 0, 2.0)
    machine.add_source(PLAN, np.ones(2), [(0, 2)], is_plan=True)
    first, second = (start.slice for start in machine.set_slots(2) if isinstance(start, Start))
    [again] = machine.failed(first, "it was unlucky")
    assert isinstance(again, Start)
    assert machine.stop(outcome) == []
    assert machine.failed(first, "the disk is full") == []
    [end] = machine.returned(second, 1.0, 0, np.empty(0))
    assert isinstance(end, Finish)
    assert (end.outcome, end.reason) == (
        "failed",
        f"slice {first} failed 2 times, the last time because: the disk is full",
    )


@pytest.mark.parametrize(("outcome", "end"), [("time_limit", "complete"), ("interrupted", "interrupted")])
def test_only_a_time_limit_in_the_last_slices_completes_the_run(outcome: Outcome, end: Outcome) -> None:
    machine = Scheduler(Policy(), 0, 2.0)
    machine.add_source(PLAN, np.ones(2), [(0, 2)], is_plan=True)
    [start] = machine.set_slots(1)
    assert isinstance(start, Start)
    assert machine.stop(outcome) == []
    assert machine.returned(start.slice, 1.0, 7, np.empty(0)) == [Finish(end)]


def test_a_time_limit_that_leaves_work_is_reported() -> None:
    machine = Scheduler(Policy(), 0, 2.0)
    machine.add_source(PLAN, np.ones(2), [(0, 2)], is_plan=True)
    [start] = machine.set_slots(1)
    assert isinstance(start, Start)
    assert machine.stop("time_limit") == []
    assert machine.returned(start.slice, 1.0, 7, np.ones(1)) == [Finish("time_limit")]


def test_a_stop_after_a_failure_does_not_hide_it() -> None:
    machine = Scheduler(Policy(attempts=1), 0, 2.0)
    machine.add_source(PLAN, np.ones(2), [(0, 2)], is_plan=True)
    first, second = (start.slice for start in machine.set_slots(2) if isinstance(start, Start))
    assert machine.failed(first, "the disk is full") == []
    assert machine.stop("interrupted") == []
    [end] = machine.returned(second, 1.0, 0, np.empty(0))
    assert isinstance(end, Finish)
    assert end.outcome == "failed"


def test_the_heaviest_left_over_comes_first() -> None:
    machine = Scheduler(Policy(), 7, 10.0)
    machine.add_source(5, np.ones(1), [(0, 1)], is_plan=False)
    machine.add_source(6, np.full(1, 9.0), [(0, 1)], is_plan=False)
    first = machine.set_slots(1)[0]
    assert isinstance(first, Start)
    assert first.took[0] == (6, 0, 1)


def test_a_left_over_weighs_no_more_than_its_slice() -> None:
    """Nodes and roots are weighed by different rules, so otherwise the share that is done could fall."""
    machine = Scheduler(Policy(max_nodes=1), 0, 10.0)
    machine.add_source(PLAN, np.full(2, 5.0), [(0, 2)], is_plan=True)
    machine.set_slots(1)
    machine.returned(0, 1.0, 0, np.empty(0))
    assert machine.share == pytest.approx(0.5)
    machine.returned(1, 1.0, 0, np.full(3, 100.0))
    assert machine.share == pytest.approx(0.5)


def test_left_overs_are_divided_once_all_nodes_are_dealt() -> None:
    machine = Scheduler(Policy(), 0, 8.0)
    machine.add_source(PLAN, np.ones(8), [(0, 8)], is_plan=True)
    assert machine.pieces_wanted() == 0
    assert len(machine.set_slots(8)) == 8
    assert machine.pieces_wanted() == 16


def test_a_slice_that_failed_is_outstanding_while_there_are_no_workers() -> None:
    machine = Scheduler(Policy(), 0, 1.0)
    machine.add_source(PLAN, np.ones(1), [(0, 1)], is_plan=True)
    machine.set_slots(1)
    machine.set_slots(0)
    assert machine.failed(0, "its worker is gone") == []
    (again,) = machine.set_slots(1)
    assert isinstance(again, Start)
    assert (again.slice, again.attempt) == (0, 1)


def test_the_share_that_is_done_grows_from_nothing_to_all() -> None:
    machine = Scheduler(Policy(), 0, 10.0)
    machine.add_source(PLAN, np.ones(10), [(0, 10)], is_plan=True)
    machine.set_slots(1)
    assert machine.share == 0.0
    machine.returned(0, 1.0, 0, np.full(10, 0.5))
    assert machine.share == pytest.approx(0.5)
    machine.returned(1, 1.0, 0, np.empty(0))
    assert machine.share == 1.0


@settings(max_examples=examples(100), deadline=None)
@given(
    weights=st.lists(st.floats(0, 1e6), min_size=1, max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=6),
    takes=st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 9)), min_size=60, max_size=60),
)
def test_a_source_gives_every_outstanding_node_once(
    weights: list[float], cuts: list[int], takes: list[tuple[float, int]]
) -> None:
    n = len(weights)
    edges = sorted({min(c, n) for c in cuts} | {0, n})
    ranges = [(a, b) for a, b in itertools.pairwise(edges) if b > a][::2]
    source = Source(0, np.array(weights), ranges)
    given_out: list[int] = []
    for weight, nodes in takes:
        if not source.n_left:
            break
        start, stop, _ = source.take(weight, nodes)
        assert 1 <= stop - start <= max(nodes, 1)
        given_out += range(start, stop)
    assert source.n_left == 0
    assert source.weight_left == 0.0
    assert given_out == [k for a, b in ranges for k in range(a, b)]
