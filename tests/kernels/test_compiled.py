"""Numba keeps machine code in a folder whose name depends on the sources, so old code is never used."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

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
