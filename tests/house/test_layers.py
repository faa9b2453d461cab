"""``flows > pipeline > kernels > schemas``, and import-linter sees to it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import LAYERS, ROOT, clean_environment

LINTER = Path(sys.executable).parent / "lint-imports"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(LINTER), "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    return subprocess.run(
        command,
        cwd=folder,
        env=clean_environment(PYTHONPATH=str(folder)),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_layers_hold():
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("schemas/graph.py", "import kernels.reference.engine", "layers point down"),
        ("kernels/reference/engine.py", "import pipeline.prepare.plan", "layers point down"),
        ("pipeline/prepare/plan.py", "import flows", "layers point down"),
        ("schemas/graph.py", "import numba", "schemas know no tool"),
        ("kernels/reference/engine.py", "import dask", "kernels are arrays in, arrays out"),
        ("pipeline/prepare/plan.py", "import prefect", "the pipeline runs without Prefect"),
        ("flows/__init__.py", "import cupy", "flows only orchestrate"),
    ],
)
def test_an_import_that_points_up_is_refused(tmp_path, module, line, broken):
    for layer in LAYERS:
        shutil.copytree(ROOT / layer, tmp_path / layer, ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / module).open("a") as file:
        file.write(f"\n{line}\n")
    result = lint(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{broken} BROKEN" in result.stdout
