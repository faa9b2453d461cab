"""The number of cores: what the system schedules, and the quota of a container."""

import os
from pathlib import Path

import pytest

from bicliques.pipeline.process.cores import count_cores

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
    (tmp_path / "cpu.max").write_text(said)
    assert count_cores(tmp_path) == cores


@pytest.mark.parametrize(
    ("quota", "period", "cores"),
    [("100000", "100000", 1), ("50000", "100000", 1), (f"{10 * CORES}00000", "100000", CORES), ("-1", "100000", CORES)],
)
def test_a_quota_of_cgroup_v1_is_two_files(tmp_path: Path, quota: str, period: str, cores: int) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text(f"{period}\n")
    assert count_cores(tmp_path) == cores


def test_without_a_quota_all_scheduled_cores_count(tmp_path: Path) -> None:
    assert count_cores(tmp_path / "missing") == CORES


def test_one_and_a_half_cores_of_quota_are_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert count_cores(tmp_path) == 2
