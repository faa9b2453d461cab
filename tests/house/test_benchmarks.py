"""The benchmark runs, small: a rival's time is taken from its output, and nobody's wrong count passes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.house.tree import ROOT, clean_environment

GRAPH = "debian12_package_tag"
COUNT = json.loads((ROOT / "tests/golden/golden.json").read_text())[GRAPH]["bicliques"]

#: Reads the adjacency list, and says what it is told to say.
RIVAL = "import sys; lines = open(sys.argv[1]).readlines(); assert len(lines) == 30300; print(sys.argv[2], 1.5)"


def benchmark(folder, told: int) -> subprocess.CompletedProcess[str]:
    rival = f"{sys.executable} -c '{RIVAL}' {{file}} {told}"
    command = [sys.executable, "-m", "benchmarks.cpu", GRAPH, "--repeats", "2", "--output", str(folder / "cpu.json")]
    return subprocess.run(
        [*command, "--rival", rival, "--rival-name", "echo"],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.slow
def test_benchmark_records_both_programs(tmp_path):
    result = benchmark(tmp_path, COUNT)
    assert result.returncode == 0, result.stderr
    recorded = json.loads((tmp_path / "cpu.json").read_text())
    entry = recorded["graphs"][GRAPH]
    assert (entry["edges"], entry["bicliques"], entry["rival_s"]) == (112118, COUNT, 1.5)
    assert len(entry["all_s"]["search"]) == 2
    assert 0 < entry["search_s"] < 60
    assert recorded["machine"]["cores"] >= 1
    assert f"| {GRAPH} | 112,118 | {COUNT:,} |" in result.stdout
    wrong = benchmark(tmp_path, COUNT - 1)
    assert wrong.returncode == 1
    assert f"echo counts {COUNT - 1} maximal bicliques" in wrong.stderr


@pytest.mark.parametrize("tables", ["benchmarks.tables", "benchmarks.gpu_tables"])
def test_the_numbers_of_the_pages_are_what_was_recorded(tables):
    subprocess.run([sys.executable, "-m", tables, "--check"], cwd=ROOT, check=True)
