"""A dry run ends before twice its sample time, whatever the graph is like. The clock of these tests counts work."""

import signal

import numpy as np
import pytest

import bicliques as bq
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.pipeline.estimate import sample
from bicliques.pipeline.estimate.sample import _Sampler, estimate
from bicliques.pipeline.process.interrupts import Interrupted
from bicliques.pipeline.run.progress import Progress, line
from bicliques.schemas.work import Slice
from tests.support.examples import examples
from tests.support.runs import planned, random_edges, write_edges
from tests.support.work_clock import Work

SAMPLE_S = 0.4


def with_hubs(rng: np.random.Generator) -> np.ndarray:
    """Left vertices that draw right ones by Zipf's law, as texts draw words. So some are joined to most of the left."""
    n_left, n_right, mean = int(rng.integers(2_000, 12_000)), int(rng.integers(300, 6_000)), rng.uniform(3, 12)
    chance = 1 / np.arange(1, n_right + 1) ** rng.uniform(0.8, 1.2)
    left = np.repeat(np.arange(n_left), rng.poisson(mean, n_left) + 1)
    right = rng.choice(n_right, len(left), p=chance / chance.sum())
    return np.unique(np.column_stack([left, right]).astype(np.int32), axis=0)


def edges_of(seed: int) -> np.ndarray:
    """A graph with hubs, or for every third number a dense one that has far too many bicliques."""
    rng = np.random.default_rng(seed)
    if seed % 3:
        return with_hubs(rng)
    return random_edges(int(rng.integers(20, 600)), int(rng.integers(20, 150)), rng.uniform(0.05, 0.8), seed)


@pytest.mark.parametrize("seed", range(examples(18)))
@pytest.mark.first(3)
def test_a_dry_run_ends_before_twice_its_sample_time(seed, tmp_path, monkeypatch):
    edges = edges_of(seed)
    runs = []
    for a, b in ((1, 1), (10, 3)):
        (folder := tmp_path / f"{a} x {b}").mkdir()
        runs.append(planned(folder, edges, min_left=a, min_right=b))
    work = Work(monkeypatch)
    for run in runs:
        if run.planned["n_roots"] == 0:
            continue
        began = work.now
        found = estimate(run, SAMPLE_S)
        assert work.now - began < 2 * SAMPLE_S
        first = found.table[0]
        assert found.exact == first.exact
        assert found.exact or found.seconds.low > 0, "something was counted"
        for cell in found.table:
            count, seconds = cell.bicliques, cell.seconds
            assert 0 <= count.low <= count.value <= first.bicliques.value
            assert 0 <= seconds.low <= seconds.value <= max(first.seconds.value, seconds.low)
            assert count.high is None or count.value <= count.high


def test_small_graphs_give_exact_numbers_at_once(tmp_path, monkeypatch):
    run = planned(tmp_path, random_edges(60, 40, 0.3, 1))
    work = Work(monkeypatch)
    found = estimate(run, SAMPLE_S)
    assert found.exact
    assert all(cell.exact for cell in found.table)
    assert work.now < SAMPLE_S


def test_a_walk_that_cannot_end_leaves_a_bound(tmp_path, monkeypatch):
    """No walk comes to its end, because each node of it takes a tenth of the sample time."""
    run = planned(tmp_path, random_edges(300, 80, 0.4, 7), mode="count")
    monkeypatch.setattr("bicliques.pipeline.estimate.walk._LEAST", 64)
    work = Work(monkeypatch)
    counted = CpuEngine.mine

    def slow(*arguments) -> Slice:
        work.now += 0.1 * SAMPLE_S
        return counted(*arguments)

    monkeypatch.setattr(CpuEngine, "mine", lambda *arguments: slow(*arguments))
    found = estimate(run, SAMPLE_S)
    assert work.now < 2 * SAMPLE_S
    first = found.table[0].bicliques
    assert first.high is None
    assert first.value == first.low > 0
    assert found.seconds.high is None


def test_no_graph_is_built_that_may_not_be_done_in_time(tmp_path, monkeypatch):
    run = planned(tmp_path, random_edges(300, 80, 0.4, 7), mode="count")
    run.built["seconds"] = SAMPLE_S
    work, built = Work(monkeypatch), []
    monkeypatch.setattr(sample, "with_thresholds", lambda *arguments: built.append(arguments))
    assert not estimate(run, SAMPLE_S).exact
    assert not built
    assert work.now < 2 * SAMPLE_S


def test_progress_says_how_much_of_the_time_is_over(tmp_path, monkeypatch):
    run = planned(tmp_path, random_edges(300, 80, 0.4, 7))
    work, told = Work(monkeypatch), []
    estimate(run, SAMPLE_S, on_progress=told.append)
    assert len(told) > 3
    assert {(one.step, one.of_seconds) for one in told} == {("sample", SAMPLE_S)}
    seconds = [one.seconds for one in told]
    assert seconds == sorted(seconds)
    assert seconds[-1] == pytest.approx(work.now, abs=0.01)
    assert [one.share for one in told] == [0.0] * (len(told) - 1) + [1.0]
    assert line(Progress("sample", seconds=3.2, of_seconds=10.0)) == "sampling, 3 of 10 s"


def test_ctrl_c_shows_the_table_so_far(tmp_path, monkeypatch):
    source = write_edges(tmp_path / "g.parquet", random_edges(300, 80, 0.4, 7))
    tell, pressed = _Sampler.tell, []

    def press(self: _Sampler, share: float = 0.0):
        tell(self, share)
        if not pressed:
            pressed.append(signal.raise_signal(signal.SIGINT))

    monkeypatch.setattr(_Sampler, "tell", press)
    with pytest.raises(Interrupted) as caught:
        bq.dry_run(source, sample_time=1e6, progress=False)
    dry = caught.value.so_far
    assert pressed
    first = dry.estimate.table[0].bicliques
    assert (first.value, first.high) == (first.low, None)
    assert first.value > 0
    assert dry.to_json()["estimate"]["table"][0]["bicliques"]["high"] is None
