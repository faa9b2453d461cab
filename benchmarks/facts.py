"""What all benchmarks share: the folders of the project, the graphs and their known counts, the commit, the machine."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from bicliques.schemas.errors import InputError, ResourceError

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks"
#: Folder of the known graphs that do not ship.
DATA = Path(os.environ.get("BICLIQUES_DATA", ROOT.parent / "shared" / "data"))
#: Folders of the graphs that ship.
SHIPPED = (ROOT / "examples", ROOT / "tests" / "data" / "graphs")
#: Number of maximal bicliques of each known graph.
GOLDEN: dict[str, int] = {
    name: entry["bicliques"] for name, entry in json.loads((ROOT / "tests/golden/golden.json").read_text()).items()
}


class Graph(NamedTuple):
    """A graph to measure. `known` is its number of maximal bicliques, or None if that is not known."""

    name: str
    path: Path
    known: int | None


def find(word: str, data: Path = DATA) -> Graph:
    """A graph by its file, or by its name: NAME.parquet in `data` or among the graphs that ship.

    Raises
    ------
    InputError
        If `word` is neither.
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


#: What git calls all files but those with the numbers of benchmarks.
_NUMBERS = f":(exclude){FOLDER.name}/*.json"


def commit() -> str:
    """The commit that is measured, with a + if files differ from it, other than the numbers of an earlier benchmark.

    $BICLIQUES_COMMIT replaces it where it is set.
    """
    if "BICLIQUES_COMMIT" in os.environ:
        return os.environ["BICLIQUES_COMMIT"]
    git = ["git", "-C", str(ROOT)]
    try:
        head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run(
            [*git, "status", "--porcelain", "-uno", "--", ".", _NUMBERS], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def machine() -> dict[str, Any]:
    """What a time depends on, besides the devices: cores, system and version of Python."""
    return {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}


def nvidia_smi(query: str, units: bool = True) -> list[str]:
    """The answer of nvidia-smi to a query, one line per GPU.

    Raises
    ------
    ResourceError
        If nvidia-smi is not installed, or finds no GPU.
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
