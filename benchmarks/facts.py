"""What all benchmarks share: where the project is, graphs and what is known of them, which commit on which machine."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from schemas.errors import InputError, ResourceError

__all__ = ["DATA", "FOLDER", "GOLDEN", "ROOT", "Graph", "commit", "find", "machine", "nvidia_smi", "shipped"]

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks"
#: Where the known graphs are that do not ship.
DATA = Path(os.environ.get("BICLIQUES_DATA", ROOT.parent / "shared" / "data"))
#: Where those are that ship.
SHIPPED = (ROOT / "examples", ROOT / "tests" / "data" / "graphs")
#: Maximal bicliques of the known graphs.
GOLDEN: dict[str, int] = {
    name: entry["bicliques"] for name, entry in json.loads((ROOT / "tests/golden/golden.json").read_text()).items()
}


class Graph(NamedTuple):
    """A graph to measure; `known` is how many maximal bicliques it has, None when nobody has said so."""

    name: str
    path: Path
    known: int | None


def find(word: str, data: Path = DATA) -> Graph:
    """A graph by its file, or by its name: NAME.parquet in `data` or among those that ship.

    Raises
    ------
    InputError
        If it is neither.
    """
    folders = (data, *SHIPPED)
    path = Path(word).expanduser()
    if not path.is_file():
        places = [folder / f"{word}.parquet" for folder in folders]
        path = next((place for place in places if place.is_file()), path)
    if not path.is_file():
        where = ", ".join(str(folder) for folder in folders)
        raise InputError(f"{word} is no file, and there is no {word}.parquet in {where}; name a file, or --data FOLDER")
    of_ours = path.absolute().parent in [folder.absolute() for folder in folders]
    return Graph(path.stem, path, GOLDEN.get(path.stem) if of_ours else None)


def shipped() -> list[str]:
    """Names of the graphs that ship."""
    return sorted(path.stem for folder in SHIPPED for path in folder.glob("*.parquet"))


def commit() -> str:
    """The commit measured, with a + when files differ from it; $BICLIQUES_COMMIT where there is no repository."""
    if "BICLIQUES_COMMIT" in os.environ:
        return os.environ["BICLIQUES_COMMIT"]
    git = ["git", "-C", str(ROOT)]
    try:
        head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def machine() -> dict[str, Any]:
    """What a time depends on, besides the devices."""
    return {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}


def nvidia_smi(query: str, units: bool = True) -> list[str]:
    """What the tool of the driver says of every GPU, a line each.

    Raises
    ------
    ResourceError
        If there is no such tool, or no GPU that it can ask.
    """
    tool = shutil.which("nvidia-smi")
    if tool is None:
        raise ResourceError("this benchmark measures an NVIDIA GPU, and nvidia-smi is not installed here")
    command = [tool, f"--query-gpu={query}", f"--format=csv,noheader{'' if units else ',nounits'}"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    if said.returncode:
        reason = " ".join((said.stdout + said.stderr).split()) or f"exit code {said.returncode}"
        raise ResourceError(f"this benchmark measures an NVIDIA GPU, and nvidia-smi says: {reason}")
    return said.stdout.splitlines()
