"""Runs that are published in tests, and whether what lies in a place is all of one, or says that it is not."""

import json
from collections.abc import Callable
from pathlib import Path

from blake3 import blake3

import bicliques as bq
from tests.support.runs import random_edges, write_edges

EDGES = random_edges(24, 16, 0.4, 3)
#: Names beside the rows that a run with a page and with numbers of its vertices has.
BESIDE = [
    "edges/edges.parquet",
    "labels/left.parquet",
    "labels/right.parquet",
    "summary/largest.parquet",
    "summary/left.parquet",
    "summary/right.parquet",
    "summary/sizes.parquet",
]
MADE = ("_SUCCESS", "_published.json")


def run_in_parts(path: Path, less: int = 0, report: bool = False) -> Path:
    """A complete run with three parts or more, of a graph that has so many edges less."""
    source = write_edges(path.with_suffix(".parquet"), EDGES[: len(EDGES) - less], strings=True)
    bq.mine(source, path, workers=0, progress=False, max_results=60)
    bq.resume(path, workers=0, progress=False, max_results=140)
    bq.resume(path, workers=0, progress=False, max_results=None, report=report)
    assert len(list((path / "bicliques").iterdir())) >= 3
    return path


def contents(run: Path) -> dict[str, bytes]:
    """What a reader finds where the run is published, but for the two files that publishing makes."""
    parts = sorted(f"bicliques/{file.name}" for file in (run / "bicliques").iterdir())
    names = [*parts, *BESIDE, "manifest.json"]
    names += ["report.html"] if (run / "report.html").exists() else []
    return {name: (run / name).read_bytes() for name in names}


def check_complete(there: dict[str, bytes], run: Path, others: dict[str, bytes] | None = None) -> None:
    """The place has all of the run, its record is right, and what others have put there is as it was."""
    expected, others = contents(run), others or {}
    assert there.keys() == expected.keys() | set(MADE) | others.keys()
    assert {name: there[name] for name in expected} == expected
    assert {name: there[name] for name in others} == others
    assert there["_SUCCESS"] == b""
    listing = json.loads(there["_published.json"])
    assert listing["unchecked"] == []
    assert {name: (file["bytes"], file["blake3"]) for name, file in listing["files"].items()} == {
        name: (len(data), blake3(data).hexdigest()) for name, data in expected.items()
    }


def check_honest(there: dict[str, bytes], *runs: Path) -> None:
    """Where a place says that it is complete, it is: also while it is changed from one run to another."""
    rows = {name for name in there if name.startswith("bicliques/") and name.endswith(".parquet")}
    if "manifest.json" in there:
        parts = {f"bicliques/{part['name']}" for part in json.loads(there["manifest.json"])["parts"]}
        assert rows == parts, "a manifest lies beside other rows than its own"
    if "_SUCCESS" in there:
        whole = [run for run in runs if contents(run).items() <= there.items()]
        assert len(whole) == 1, "it says that it is complete"
        assert rows == {name for name in contents(whole[0]) if name.startswith("bicliques/")}


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its name with slashes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def nth(number: int, fault: str, matches: Callable[[object], bool]) -> Callable[[object], str | None]:
    """A fault for one request: that which is the n-th of those that match, from 1."""
    seen = 0

    def choose(asked: object) -> str | None:
        nonlocal seen
        seen += matches(asked)
        return fault if matches(asked) and seen == number else None

    return choose
