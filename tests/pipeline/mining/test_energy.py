"""The manifest has joules, watts and bicliques per joule, or the reason why nothing could be measured."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bicliques.kernels.gpu.cuda import CUDA
from bicliques.pipeline.slices import power
from bicliques.pipeline.slices.power import COUNTERS, energy_facts
from bicliques.schemas.manifest import LedgerEntry
from bicliques.schemas.platform import CORES
from bicliques.schemas.stats import SliceStats
from tests.support.engines import TOY_GPU, fake_gpu
from tests.support.runs import ledger_entry, mined_in_threads, prepared_run, random_edges, session


def entry(number: int, count: int, seconds: float, name: str, **stats: float) -> LedgerEntry:
    return ledger_entry(
        number, (-1, number, number + 1), count=count, seconds=seconds, worker=name, stats=SliceStats(**stats)
    )


class Counter:
    """An energy counter that has ten joules more at every look, and always 12.5 watts."""

    name = "toy"
    total = 0.0

    def joules(self) -> float:
        self.total += 10.0
        return self.total

    def watts(self) -> float:
        return 12.5


def test_gpu_energy_is_summed_per_gpu_and_over_all() -> None:
    entries = [
        entry(0, 100, 2.0, "a:1", joules=800.0, peak_watts=500.0),
        entry(1, 300, 2.0, "a:2", joules=1200.0, peak_watts=700.0),
        entry(2, 999, 9.0, "a:2"),  # a slice whose energy could not be measured
        entry(3, 0, 1.0, "a:1", joules=400.0, peak_watts=450.0),
    ]
    facts = energy_facts(entries, [session(seconds=2.0, processors={"joules": 50.0})], CUDA)
    assert facts["processors"] == {"joules": 50.0, "seconds": 2.0, "mean_watts": 25.0}
    gpus = facts["gpus"]
    assert (gpus["slices"], gpus["joules"], gpus["mean_watts"], gpus["peak_watts"]) == (3, 2400.0, 480.0, 700.0)
    assert gpus["bicliques_per_joule"] == pytest.approx(400 / 2400)
    assert gpus["workers"]["a:2"]["mean_watts"] == 600.0
    assert gpus["workers"]["a:1"]["joules"] == 1200.0
    short = energy_facts([entry(0, 3, 0.01, "a:1", joules=0.5, peak_watts=50.0)], [], CUDA)["gpus"]
    assert (short["bicliques_per_joule"], short["mean_watts"]) == (6.0, 50.0)


def test_energy_that_cannot_be_read_has_a_reason() -> None:
    sessions = [session(seconds=1.0, processors=each) for each in ({"joules": 1.0}, {"not_readable": "no"})]
    facts = energy_facts([entry(0, 1, 1.0, "a:1")], sessions, CUDA)
    assert facts["processors"] == {"not_readable": "no"}
    assert "NVML" in facts["gpus"]["not_readable"]
    assert "gpus" not in energy_facts([], sessions, CORES)
    short = entry(0, 1, 0.01, "a:1", joules=0.0, peak_watts=90.0)
    assert "before NVML's counter moved" in energy_facts([short], sessions, CUDA)["gpus"]["not_readable"]


def test_a_manifest_has_the_joules_of_every_slice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COUNTERS, "toy", Counter)
    monkeypatch.setattr(power, "processor_counter", lambda: "this machine has none")
    with fake_gpu(replace(TOY_GPU, energy_counter="toy")):
        folder = prepared_run(tmp_path, random_edges(90, 60, 0.35, 8))
        mined_in_threads(folder)
    facts = json.loads(folder.manifest_file.read_text())["mining"]["energy"]
    assert facts["processors"] == {"not_readable": "this machine has none"}
    assert facts["gpus"]["slices"] > 1
    assert facts["gpus"]["joules"] >= 10.0 * facts["gpus"]["slices"]
    assert facts["gpus"]["peak_watts"] >= 12.5
    assert facts["gpus"]["bicliques_per_joule"] > 0
