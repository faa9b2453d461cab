"""Two workers share the work of one. `benchmarks/scaling.py` measures their speed."""

from pathlib import Path

import pytest

from benchmarks.scaling import measure, random_graph
from bicliques.kernels import engines


@pytest.mark.exhaustive
def test_two_workers_find_what_one_finds(tmp_path: Path) -> None:
    engines.compile_engine("cpu")
    engines.compile_proof()
    alone, both = (measure(random_graph(150), workers, tmp_path) for workers in (1, 2))
    assert (alone["count"], alone["fingerprint"]) == (both["count"], both["fingerprint"])
    assert [len(run["processor_s"]) for run in (alone, both)] == [1, 2]
    assert both["slices"] > 1
