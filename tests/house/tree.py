"""The repository as the house tests see it: its root, its packages, the files that belong to it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Highest layer first; each may import those after it.
LAYERS = ("flows", "pipeline", "kernels", "schemas")
#: The versions of Python that the project is for. Tests run with the first.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def tracked() -> list[Path]:
    """Files of the repository, new ones included, relative to its root; skips where there is no checkout."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("the list of files needs git and a checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted({Path(name) for name in listed.split("\0") if (ROOT / name).is_file()})


def text_of(path: Path) -> str:
    """Content of a file of the repository, or nothing if it is not text."""
    data = (ROOT / path).read_bytes()
    return "" if b"\0" in data else data.decode("utf-8", errors="ignore")


def clean_environment(**more: str) -> dict[str, str]:
    """This process's environment without the variables that would change which code is imported."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    return kept | more
