"""Estimates of a dry run: near the truth, exact where a search takes little time, for every engine, with a table."""

import math
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bicliques as bq
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.pipeline.estimate.sample import Estimate, _Sampler, estimate
from bicliques.pipeline.estimate.table import Cell, Guess, Table, View, guess, proposed
from bicliques.pipeline.estimate.walk import Grid, Walk, Walker
from bicliques.pipeline.output.part_writer import PartWriter
from bicliques.schemas.bicliques import Bicliques, Emit
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.work import Slice, Subtrees
from tests.support.engines import kind_of, registered
from tests.support.runs import OWN, QUIET, planned, random_edges, write_edges
from tests.support.work_clock import Work


def sizes_of(edges: np.ndarray, tmp_path: Path) -> SizeCounts:
    counted = bq.count(write_edges(tmp_path / "truth.parquet", edges), sizes=True, engine="cpu", **OWN)
    assert counted.sizes is not None
    return counted.sizes


def at_least(sizes: SizeCounts, cell: Cell) -> int:
    return sizes.pick((sizes.n_left >= cell.min_left) & (sizes.n_right >= cell.min_right)).total


def never_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_Sampler, "_count", lambda self, walker, seconds: None)


def test_a_small_search_is_counted(tmp_path):
    edges = random_edges(60, 40, 0.3, 1)
    sizes, found = sizes_of(edges, tmp_path), estimate(planned(tmp_path, edges), budget_s=1000.0)
    assert (found.exact, found.share) == (True, 1.0)
    assert found.bicliques == Guess(sizes.total, sizes.total, sizes.total)
    assert {(cell.min_left, cell.min_right) for cell in found.table} >= {(1, 1), (2, 5), (10, 1)}
    for cell in found.table:
        assert cell.exact
        assert cell.bicliques.value == at_least(sizes, cell)
        assert cell.seconds.low <= cell.seconds.value <= cell.seconds.high <= found.table[0].seconds.high * (1 + 1e-9)


def test_samples_come_near_the_truth(tmp_path, monkeypatch):
    edges = random_edges(200, 120, 0.2, 9)
    sizes = sizes_of(edges, tmp_path)
    never_counted(monkeypatch)
    run = planned(tmp_path, edges)
    Work(monkeypatch)
    found = estimate(run, budget_s=3.0)
    monkeypatch.undo()
    assert not found.exact
    near = [at_least(sizes, cell) / 3 <= cell.bicliques.value <= 3 * at_least(sizes, cell) for cell in found.table]
    assert sum(near) >= 0.9 * len(near)
    assert found.bicliques.low <= sizes.total <= found.bicliques.high
    results = bq.resume(run.path, **QUIET)
    assert 0.4 * results.manifest.bytes < found.bytes.value < 2.5 * results.manifest.bytes


@pytest.mark.parametrize("is_counted", [True, False])
@pytest.mark.parametrize(
    "asked",
    [{"missing_pairs": 2, "min_left": 3, "min_right": 4}, {"missing_each": 1, "min_left": 3, "min_right": 4}],
    ids=["pairs", "each"],
)
@pytest.mark.first(2)
def test_near_bicliques_are_counted_or_come_near_the_truth(asked, is_counted, tmp_path, monkeypatch):
    edges = random_edges(60, 40, 0.25, 9)
    source = write_edges(tmp_path / "truth.parquet", edges)
    sizes = bq.count(source, sizes=True, engine="cpu", **asked, **OWN).sizes
    run = planned(tmp_path, edges, **asked)
    if not is_counted:
        never_counted(monkeypatch)
        Work(monkeypatch)
    found = estimate(run, budget_s=1000.0 if is_counted else 3.0)
    monkeypatch.undo()
    assert found.exact is is_counted
    cells = [(at_least(sizes, cell), cell.bicliques) for cell in found.table]
    if is_counted:
        assert all(guess == Guess(true, true, true) for true, guess in cells)
    else:
        assert found.bicliques.low <= sizes.total <= found.bicliques.high
        assert sizes.total / 3 <= found.bicliques.value <= 3 * sizes.total
    results = bq.resume(run.path, **QUIET)
    assert 0.4 * results.manifest.bytes < found.bytes.value < 2.5 * results.manifest.bytes


def test_rows_are_written_in_batches_as_long_as_those_of_a_run(tmp_path, monkeypatch):
    """A few rows at a time would take much longer, and need other bytes, than many."""
    batches = []
    write = PartWriter.__call__

    def noted(self: PartWriter, batch: Bicliques):
        batches.append(len(batch))
        write(self, batch)

    monkeypatch.setattr(PartWriter, "__call__", noted)
    run = planned(tmp_path, random_edges(200, 120, 0.2, 9))
    found = estimate(run, budget_s=1000.0)
    assert batches[0] == 1, "what one row takes is not counted for each"
    assert sum(batches[1:]) == found.bicliques.value
    assert len(batches) < 10
    results = bq.resume(run.path, **QUIET)
    assert found.bytes.value == pytest.approx(results.manifest.bytes, rel=0.02)


def test_the_time_of_the_search_is_no_part_of_the_time_of_writing(tmp_path, monkeypatch):
    run, now, mine = planned(tmp_path, random_edges(20, 10, 0.3, 9)), [0.0], CpuEngine.mine

    def slow(self: CpuEngine, *arguments) -> Slice:
        found = mine(self, *arguments)
        now[0] += found.count
        return found

    monkeypatch.setattr(CpuEngine, "mine", slow)
    monkeypatch.setattr("bicliques.pipeline.estimate.sample.time.thread_time", lambda: now[0])
    assert _Sampler(run, 1000.0, 0, lambda progress: None, threading.Event()).listing().seconds == 0


def test_a_sample_of_a_large_search_ends(tmp_path, monkeypatch):
    run = planned(tmp_path, random_edges(500, 80, 0.4, 7), mode="fingerprint")
    Work(monkeypatch)
    found = estimate(run, budget_s=1.0)
    assert not found.exact  # of 39 million bicliques
    assert 1e7 < found.bicliques.value < 1.5e8
    assert 0 < found.share < 1
    assert found.bytes.value == 0


def test_the_thresholds_of_a_run_are_the_least_of_its_table(tmp_path):
    edges = random_edges(60, 40, 0.3, 1)
    sizes = sizes_of(edges, tmp_path)
    found = estimate(planned(tmp_path, edges, min_left=4, min_right=2, max_right=6), budget_s=100.0)
    first = found.table[0]
    assert (first.min_left, first.min_right) == (4, 2)
    assert max(cell.min_right for cell in found.table) <= 6
    expected = sizes.pick((sizes.n_left >= 4) & (sizes.n_right >= 2) & (sizes.n_right <= 6)).total
    assert found.bicliques.value == first.bicliques.value == expected


def test_thresholds_under_which_there_is_next_to_nothing(tmp_path, monkeypatch):
    """A planted biclique that no sample of all is likely to see: with larger thresholds it is counted."""
    edges = random_edges(300, 150, 0.08, 3)
    planted = np.array([(u, v) for u in range(60) for v in range(25)], np.int32)
    edges = np.unique(np.concatenate([edges, planted]), axis=0)
    sizes, run = sizes_of(edges, tmp_path), planned(tmp_path, edges)
    count, tried = _Sampler._count, []

    def not_of_all(self: _Sampler, walker: Walker, seconds: float):
        tried.append(walker)
        if walker is not tried[0]:
            count(self, walker, 1e9)

    monkeypatch.setattr(_Sampler, "_count", not_of_all)
    monkeypatch.setattr(_Sampler, "_left", lambda self, times=1.0: 1e9)
    found = estimate(run, budget_s=2.0)
    large = [cell for cell in found.table if cell.min_left >= 20 and cell.min_right >= 10]
    assert large
    assert sum(at_least(sizes, cell) for cell in large) > 0
    assert all(cell.exact and cell.bicliques.value == at_least(sizes, cell) for cell in large)


class Slow:
    """An engine that takes half a minute to begin, and much longer than the one that counts, by a clock of its own."""

    name = "bitmatrix"

    def __init__(self, clock: list[float], rows: int | None):
        self._engine, self._clock, self._rows, self._begin_s = CpuEngine(), clock, rows, 30.0

    def mine(self, graph: MiningGraph, work: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        found = self._engine.mine(graph, work, search, Limits(rows=self._rows), emit)
        self._clock[0] += 0.5 * found.count + self._begin_s
        self._begin_s = 0.0
        return found

    def stop(self):
        self._engine.stop()


@pytest.mark.parametrize("rows", [None, 40])
def test_the_time_is_that_of_the_engine_of_the_run(rows, tmp_path, monkeypatch):
    """The counting engine takes no time by this clock, and the engine of the run half a second per biclique."""
    edges, clock = random_edges(40, 30, 0.3, 4), [0.0]
    run = planned(tmp_path, edges, engine="bitmatrix", mode="count")
    monkeypatch.setattr("bicliques.pipeline.estimate.sample.time.perf_counter", lambda: clock[0])
    with registered(kind_of("bitmatrix", lambda _: Slow(clock, rows))):
        found = estimate(run, budget_s=1000.0)
    assert found.seconds.value == pytest.approx(0.5 * sizes_of(edges, tmp_path).total)


def test_the_first_use_of_an_engine_is_not_part_of_the_sample(tmp_path, monkeypatch):
    """It compiles, or loads machine code, which would look like a node that takes half a minute."""
    used, now = [], [0.0]
    mine_at_once = CpuEngine.mine

    def mine(self: CpuEngine, *arguments) -> Slice:
        now[0] += 0.0 if used else 60.0
        used.append(self)
        return mine_at_once(self, *arguments)

    run = planned(tmp_path, random_edges(20, 10, 0.3, 9))
    monkeypatch.setattr(CpuEngine, "mine", mine)
    monkeypatch.setattr("bicliques.pipeline.estimate.walk.time.thread_time", lambda: now[0])
    monkeypatch.setattr("bicliques.pipeline.estimate.sample.time.perf_counter", lambda: now[0])
    found = estimate(run, budget_s=30.0)
    assert found.exact
    assert found.seconds.high < 1


class Known(CpuEngine):
    """The CPU engine, which takes a second for each call and a thousandth for each biclique, by a clock of its own."""

    def __init__(self, clock: list[float]):
        super().__init__()
        self._clock = clock

    def mine(self, *arguments) -> Slice:
        found = super().mine(*arguments)
        self._clock[0] += 1.0 + found.count / 1000
        return found


def test_an_estimate_leaves_out_the_fixed_cost_of_a_call(tmp_path, monkeypatch):
    edges, now = random_edges(60, 40, 0.3, 1), [0.0]
    run = planned(tmp_path, edges, mode="count")
    never_counted(monkeypatch)
    monkeypatch.setattr("bicliques.pipeline.estimate.walk.time.thread_time", lambda: now[0])
    with registered(kind_of("cpu", lambda _: Known(now))):
        found = estimate(run, budget_s=2.0)
    assert found.seconds.value == pytest.approx(found.bicliques.value / 1000, rel=0.25)


def walk(value: float, seconds: float | None = None) -> Walk:
    counts = np.array([[value, value / 10], [value / 10, 0.0]])
    return Walk(counts, 1.0, value / 100 if seconds is None else seconds)


NOTHING = Walk(np.zeros((2, 2)), 0.0, 0.0)


def walked(at: tuple[int, int], *values: float, known: Walk = NOTHING, least: Walk | None = None) -> View:
    return View(at, known, [walk(value) for value in values], exact=False, least=least)


def cells_of(table: Table) -> dict[tuple[int, int], Cell]:
    return {(cell.min_left, cell.min_right): cell for cell in table.cells()}


def test_the_view_that_varies_least_is_taken_and_doubt_asks_for_more():
    table = Table(Grid((1, 5), (1, 5)))
    table.add(walked((0, 0), 100.0, 300.0))
    assert table.best((0, 1)).count((0, 1)) == 20.0
    assert table.next(0.15) == (1, 1), "no walk has found such bicliques"
    table.add(View((1, 1), Walk(np.array([[0, 0], [0, 7.0]]), 1.0, 0.01), [], exact=True))
    cells = cells_of(table)
    assert (cells[5, 5].exact, cells[5, 5].bicliques.value) == (True, 7.0)
    assert not cells[1, 5].exact
    assert table.next(0.15) in {(0, 1), (1, 0)}
    assert table.next(1e9) in {(0, 1), (1, 0)}, "their times are hardly known"
    for at in ((0, 1), (1, 0)):
        table.add(walked(at, 100.0, 101.0))
    assert table.next(0.15) is None


def test_equal_thresholds_are_halved_until_one_can_be_counted():
    """The first view is of all, and the next ones halve what is between it and the smallest that is counted."""
    table, tried = Table(Grid((1, 2, 3, 5, 10, 20, 50, 100), (1, 2, 3, 5, 10, 20))), []
    nothing = Walk(np.zeros((8, 6)), 0.0, 1.0)
    table.add(View((0, 0), nothing, [], exact=False))
    for _ in range(3):
        at = table.next(0.15)
        tried.append(at)
        table.add(View(at, nothing, [], exact=at[0] >= 5))
    assert tried == [(4, 4), (6, 5), (5, 5)]


def test_what_nobody_has_seen_may_be_as_much_as_there_is_of_smaller_ones():
    table = Table(Grid((1, 5), (1, 5)))
    table.add(walked((0, 0), 200.0, 210.0, 205.0, 207.0))
    cells = cells_of(table)
    assert cells[5, 5].bicliques.value == cells[5, 5].bicliques.low == 0
    assert cells[5, 5].bicliques.high == min(cells[1, 5].bicliques.high, cells[5, 1].bicliques.high) > 20


def test_what_was_counted_is_a_bound_where_no_walk_has_ended():
    table = Table(Grid((1, 5), (1, 5)))
    counted = Walk(np.array([[30.0, 4.0], [5.0, 2.0]]), 1.0, 2.5)
    table.add(View((0, 0), counted, [], exact=False))
    cells = cells_of(table)
    assert cells[1, 1].bicliques == Guess(30.0, 30.0, None)
    assert cells[1, 1].seconds == Guess(2.5, 2.5, None)
    assert cells[5, 5].bicliques == Guess(2.0, 2.0, None)
    assert cells[5, 5].seconds == Guess(0.0, 0.0, None), "nothing is known of it"
    table.add(walked((0, 0), 100.0, 102.0, 101.0, known=counted))
    assert table.views[0, 0].count((0, 0)) == 131.0
    assert cells_of(table)[1, 1].bicliques.low >= 30.0
    more = Walk(np.array([[500.0, 4.0], [5.0, 2.0]]), 1.0, 9.5)
    table.add(walked((0, 0), 100.0, 102.0, 101.0, known=counted, least=more))
    assert cells_of(table)[1, 1].bicliques == Guess(500.0, 500.0, 500.0)
    assert cells_of(table)[1, 1].seconds.low == 9.5


def test_a_time_is_in_no_less_doubt_than_what_is_counted():
    counts = [Walk(np.array([[n]]), 1.0, seconds) for n, seconds in ((1.0, 10.0), (1e6, 10.1), (3.0, 10.2))]
    view = View((0, 0), Walk(np.zeros((1, 1)), 0.0, 3.0), counts, exact=False)
    table = Table(Grid((1,), (1,)))
    table.add(view)
    (only,) = table.cells()
    assert (only.bicliques.high, only.seconds.high) == (None, None)
    assert only.seconds == Guess(pytest.approx(13.1), 3.0, None)


def test_larger_thresholds_never_have_more_than_smaller_ones():
    table = Table(Grid((1, 5), (1, 5)))
    table.add(walked((0, 0), 100.0, 104.0, 102.0, 101.0))
    table.add(walked((0, 1), 3000.0, 3004.0, 3001.0, 3002.0))  # there are 300 for (0, 1) it says, and more than for all
    cells = cells_of(table)
    for one in cells.values():
        for other in cells.values():
            if one.min_left <= other.min_left and one.min_right <= other.min_right:
                for a, b in ((one.bicliques, other.bicliques), (one.seconds, other.seconds)):
                    assert a.low >= b.low
                    assert a.value >= b.value
                    assert a.high is None or (b.high is not None and a.high >= b.high)
        assert one.bicliques.low <= one.bicliques.value
        assert one.bicliques.high is None or one.bicliques.value <= one.bicliques.high


def test_times_lie_between_those_of_larger_and_of_smaller_thresholds():
    table = Table(Grid((1, 2, 3), (1,)))
    counts = np.array([[100.0], [50.0], [10.0]])
    table.add(View((0, 0), Walk(counts, 1.0, 64.0), [], exact=True))
    table.add(View((2, 0), Walk(counts, 1.0, 4.0), [], exact=True))
    first, between, last = table.cells(factor=2.0, writing=0.5)
    assert (first.seconds.value, last.seconds.value) == (2 * (64 + 50), 2 * (4 + 5))
    assert between.seconds == Guess(2 * (math.sqrt(32 * 64) + 25), 2 * (32 + 25), 2 * (64 + 25))


@pytest.mark.parametrize(
    ("seconds", "count", "last"), [(1.0, 100.0, 50), (1e4, 100.0, 200), (1e9, 100.0, 500), (1.0, 1e6, 200)]
)
def test_a_table_goes_on_until_something_is_short_and_few(seconds, count, last):
    """Each threshold that is twice as large leaves a hundredth of the bicliques and of the time."""
    thresholds = (1, 10, 50, 100, 200, 500)
    table, shares = Table(Grid(thresholds, (1,))), np.array([1.0, 1.0, 1.0, 1e-2, 1e-4, 1e-6])
    for i, share in enumerate(shares.tolist()):
        table.add(View((i, 0), Walk(count * shares[:, None], 1.0, seconds * share), [], exact=True))
    assert table.cells()[-1].min_left == last


def cell(left: int, right: int, count: float, seconds: float) -> Cell:
    return Cell(left, right, guess(count, 0.1), guess(seconds, 0.1), exact=False)


def test_thresholds_that_leave_about_500_groups_are_proposed():
    first, many = cell(1, 1, 1e9, 5000.0), cell(2, 2, 4e4, 20.0)
    near, nearer, unequal, few = (
        cell(5, 5, 700.0, 9.0),
        cell(10, 5, 450.0, 9.0),
        cell(1, 50, 500.0, 9.0),
        cell(9, 9, 20, 1.0),
    )
    assert proposed([cell(1, 1, 900.0, 5000.0), near]) is None, "that many are read anyway"
    assert proposed([first, many, few]) == few
    assert proposed([first, many, near, few]) == near
    assert proposed([first, unequal, nearer]) == nearer, "about as many, and thresholds that are about equal"
    assert proposed([first, cell(5, 5, 0.0, 1.0)]) is None
    slow = replace(nearer, seconds=guess(90.0, 0.1))
    assert proposed([first, slow, few]) == few
    assert proposed([first, slow, few], workers=2) == slow
    assert proposed([first, slow]) == slow
    unknown = Cell(1, 1, Guess(3.0, 3.0, None), Guess(3.0, 3.0, None), exact=False)
    assert proposed([unknown, few]) == few
    assert proposed([first, replace(unknown, min_left=2), few]) == few


def test_a_guess_has_a_range_of_factors():
    assert guess(10.0, 0.0) == Guess(10.0, 10.0, 10.0)
    wide = guess(10.0, math.log(2) / 2)
    assert (wide.low, wide.high) == (pytest.approx(5.0), pytest.approx(20.0))
    assert wide * 2 == Guess(20.0, wide.low * 2, wide.high * 2)
    assert guess(10.0, math.log(2) / 2, least=8.0) == Guess(10.0, 8.0, wide.high)
    assert guess(10.0, 3.0, least=8.0) == Guess(10.0, 8.0, None), "a range of a factor of 400 says nothing"


def test_json_has_the_table(tmp_path):
    source = write_edges(tmp_path / "g.parquet", random_edges(60, 40, 0.3, 1))
    dry = bq.dry_run(source, sample_time=1, progress=False)
    assert isinstance(dry.estimate, Estimate)
    told = dry.to_json()["estimate"]
    assert told["exact"] is True
    assert told["table"][0] == {
        "min_left": 1,
        "min_right": 1,
        "bicliques": told["bicliques"],
        "seconds": told["seconds"],
        "exact": True,
    }
