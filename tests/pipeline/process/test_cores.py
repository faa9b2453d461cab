"""The number of cores: what the system schedules, and the quota of a container."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.process.cores import count_cores

CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("said", "cores"),
    [
        ("100000 100000\n", 1),
        ("50000 100000\n", 1),
        (f"{10 * CORES}00000 100000\n", CORES),
        ("max 100000\n", CORES),
        ("", CORES),
        ("100000 0\n", CORES),
    ],
)
def test_a_quota_of_processor_time_counts_as_whole_cores(tmp_path: Path, said: str, cores: int) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(said)
    assert count_cores(file) == cores


def test_without_a_quota_all_scheduled_cores_count(tmp_path: Path) -> None:
    assert count_cores(tmp_path / "missing") == CORES


def test_one_and_a_half_cores_of_quota_are_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))
    file = tmp_path / "cpu.max"
    file.write_text("150000 100000\n")
    assert count_cores(file) == 2
