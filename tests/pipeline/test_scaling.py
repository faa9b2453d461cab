"""Two workers do the work of two."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scaling import measure, random_graph, speed_up
from pipeline import engines


@pytest.mark.slow
def test_two_workers_are_almost_twice_as_fast_as_one(tmp_path: Path) -> None:
    """By processor time, as whatever else the machine does would spoil the clock; benchmarks/scaling.py has both."""
    engines.compile_engine("cpu")
    best = 0.0
    for attempt in range(4):  # neighbours on the same processor slow two workers down, seldom several times
        folder = tmp_path / str(attempt)
        folder.mkdir()
        alone, both = (measure(random_graph(500), workers, folder) for workers in (1, 2))
        assert (alone["count"], alone["fingerprint"]) == (both["count"], both["fingerprint"])
        assert sum(alone["processor_s"]) > 2, "too short to say anything"
        best = max(best, speed_up(alone, both))
        if best > 1.6:
            break
    assert best > 1.6  # 1.57 to 1.81 on a quiet machine of two cores, which share its memory
    assert both["busy_ratio"] > 0.75
