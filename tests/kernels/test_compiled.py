"""Numba keeps machine code in a folder named after the sources, and only that of functions that Python calls."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from kernels.cpu.output import mix64
from schemas.bicliques import splitmix64
from tests.house.tree import ROOT, clean_environment

SAY = "from kernels.compiled import jit; print(jit.numba.config.CACHE_DIR)"


def folder_of(root: Path, **environment: str) -> Path:
    command = [sys.executable, "-c", SAY]
    ended = subprocess.run(
        command, cwd=root, env=clean_environment() | environment, capture_output=True, text=True, check=True
    )
    return Path(ended.stdout.strip())


def test_the_folder_of_machine_code_depends_on_place_and_sources(tmp_path: Path) -> None:
    for name in ("kernels", "schemas"):
        shutil.copytree(ROOT / name, tmp_path / name)
    here, there = folder_of(ROOT), folder_of(tmp_path)
    assert here == folder_of(ROOT)
    assert there != here
    with (tmp_path / "kernels/cpu/leaf.py").open("a") as file:
        file.write("# changed\n")
    assert folder_of(tmp_path) not in (here, there)


def test_the_folder_of_machine_code_can_be_chosen(tmp_path: Path) -> None:
    assert folder_of(ROOT, NUMBA_CACHE_DIR=str(tmp_path / "a")).parent == tmp_path / "a"
    assert folder_of(ROOT, XDG_CACHE_HOME=str(tmp_path / "b")).parent == tmp_path / "b" / "bicliques"


MINE_ONCE = """
from kernels import engines
from kernels.cpu.rows import covered
engines.compile_engine("cpu")
print(sorted({type(result.library).__name__ for result in covered.overloads.values()}))
"""


def test_functions_that_python_does_not_call_have_no_machine_code_of_their_own(tmp_path: Path) -> None:
    """To make it for every one of a hundred functions took three times as long as the whole search does."""
    environment = clean_environment() | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", MINE_ONCE]
    first = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert first.stdout.strip() == "['_PartOfACaller']"
    assert {path.name.split("-")[0] for path in tmp_path.rglob("*.nbi")} == {"explore.explore"}
    again = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert again.stdout.strip() == "[]", "what is kept contains all that it calls"


def test_functions_for_compiled_code_cannot_be_called_from_python() -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match="mix64 can be called from compiled code only"):
            mix64(np.uint64(1))
        assert njit(lambda x: mix64(x))(np.uint64(1)) == splitmix64(np.array([1], np.uint64))[0]
