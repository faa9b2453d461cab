"""A platform, what engines run on, is a record. Another platform needs no change of the pipeline."""

from dataclasses import replace

import pytest

import bicliques as bq
from bicliques.kernels import engines
from bicliques.pipeline.slices.power import COUNTERS
from bicliques.pipeline.workers.opening import LOCAL_WORKERS, LocalWorkers, expected_capacity
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.pipeline.workers.thread_pool import Capacity, InThreads
from bicliques.schemas.errors import InputError
from bicliques.schemas.platform import CORES
from tests.support.engines import TOY_GPU, registered, toy_kind
from tests.support.runs import answer, random_edges, write_edges

EDGES = random_edges(60, 40, 0.35, 8)


class Counter:
    """An energy counter that has ten joules more at every look."""

    name = "toy"
    total = 0.0

    def joules(self) -> float:
        self.total += 10.0
        return self.total

    def watts(self) -> None:
        return None


def test_every_platform_of_an_engine_has_workers() -> None:
    assert {kind.platform.name for kind in engines.kinds()} <= LOCAL_WORKERS.keys()


def test_another_platform_needs_a_record_workers_and_a_counter_only(tmp_path, monkeypatch):
    toy = replace(TOY_GPU, name="toy", devices="toys", slices_in_hand=3, energy_counter="another toy's counter")
    asked: list[WorkerOptions] = []

    def check(options: WorkerOptions) -> None:
        asked.append(options)
        if options.spill:
            raise InputError("toys do not spill")

    workers = LocalWorkers(check, lambda options: InThreads(toy.slices_in_hand, share_engine=True), "toy worker")
    monkeypatch.setitem(LOCAL_WORKERS, toy.name, workers)
    monkeypatch.setitem(COUNTERS, "another toy's counter", Counter)
    source = write_edges(tmp_path / "g.parquet", EDGES)
    with registered(replace(toy_kind(toy), name="chess")):
        results = bq.mine(source, tmp_path / "out", engine="chess", slice_seconds=0.01, progress=False, report=False)
        with pytest.raises(InputError, match="toys do not spill"):
            bq.mine(source, tmp_path / "other", engine="chess", spill=True, progress=False, report=False)
    assert (len(results), results.manifest.fingerprint) == answer(EDGES)
    assert results.manifest.mining["energy"]["toys"]["joules"] > 0
    assert asked[0].workers is None


@pytest.mark.parametrize("workers", [None, 0, 3])
def test_workers_that_a_run_would_have_are_those_that_are_asked_for(workers: int | None) -> None:
    expected = None if workers is None else Capacity(workers, workers)
    assert expected_capacity(WorkerOptions(workers=workers), CORES) == expected
