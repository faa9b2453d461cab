"""What a run in a store costs beside one on a disk: requests, bytes, processor seconds, and seconds by the clock.

    python -m benchmarks.store debian12_package_tag debian12_package_depends
    python -m benchmarks.store --table

Each graph is mined by the same command with OUT on a disk and in a bucket of a server on the same machine, in turns:
once so that all bicliques are listed, and once so that they are only counted (``--count-only``). The server is that of
the tests (moto), which keeps objects in memory. It works in another process than the commands, so its processor seconds
are not among theirs, but it takes time of the same cores. A command has a working folder of its own each time, and
starts as on a machine that has nothing of the run. Numbers are medians of ``--repeats``.

A graph is a file in any format that `bicliques formats` lists, or the name of one that ships or lies in --data.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import pytest

from benchmarks.command import (
    add_data,
    add_output,
    add_repeats,
    add_table,
    begun,
    chosen,
    new_parser,
    output_file,
    prints_table,
    run,
    write,
)
from benchmarks.commands import kind_of_machine
from benchmarks.facts import FOLDER, ROOT, Graph
from bicliques.kernels.compiled.jit import code_folder
from bicliques.pipeline.run.progress import size
from bicliques.schemas.errors import ResourceError
from tests.support.bucket import Bucket, bucket_of_moto

RESULT = FOLDER / "store.json"
#: What is done -> the options of `bicliques mine`.
_ASKED = {"list": (), "count": ("--count-only",)}
#: How a request is called in HTTP, by the word of the server of the tests. A listing is a GET, too.
_VERBS = {"get": "GET", "head": "HEAD", "list": "LIST", "put": "PUT", "part": "PUT", "delete": "DELETE"}


def measured(graph: Graph, repeats: int, bucket: Bucket, place: Path) -> dict[str, Any]:
    """Mine a graph on the disk and in the bucket.

    Returns
    -------
    dict
        For "list" and "count" the numbers of a run in a "folder" and in a "store".

    Raises
    ------
    ResourceError
        If a command fails, or two of them find another number.
    """
    found: dict[str, Any] = {}
    for what, options in _ASKED.items():
        seen: dict[str, list[dict[str, Any]]] = {"folder": [], "store": []}
        for number in range(repeats + 1):  # the first one compiles what is not kept, and does not count
            for where, entries in seen.items():
                name = f"{graph.name}-{what}-{number}"
                out = str(place / name) if where == "folder" else bucket.url(name)
                bucket.well()
                entry = _mined([str(graph.path), "-o", out, *options], place / f"cache-{name}-{where}")
                entry["requests"] = dict(Counter(_VERBS.get(asked.what, "POST") for asked in bucket.asked))
                entry["bytes"] = {"sent": bucket.received, "received": bucket.sent}
                entries.append(entry)
        if len({entry["count"] for entries in seen.values() for entry in entries}) > 1:
            raise ResourceError(f"runs of {graph.path} found different numbers of bicliques; verify them")
        found[what] = {where: _median(entries[1:]) for where, entries in seen.items()}
    return found


def _mined(words: list[str], cache: Path) -> dict[str, Any]:
    """What a command took that mines on two threads, or as many as there are cores, in one process."""
    variables = os.environ | {"XDG_CACHE_HOME": str(cache), "NUMBA_CACHE_DIR": str(code_folder().parent)}
    command = [sys.executable, "-m", "bicliques", "mine", *words, "--workers", "0", "--no-report", "--quiet", "--json"]
    used, began = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    seconds, now = time.perf_counter() - began, getrusage(RUSAGE_CHILDREN)
    if done.returncode:
        raise ResourceError(f"bicliques mine {' '.join(words)} ended with {done.returncode}: {done.stderr[-500:]}")
    said = json.loads(done.stdout)
    return {
        "count": said["count"],
        "slices": said["mining"]["slices"],
        "parts": len(said["parts"]),
        "seconds": seconds,
        "cpu_seconds": now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime,
        "steps": said["seconds"],
    }


def _median(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The entry with the median of the processor seconds, with the medians of both times."""
    chosen = sorted(entries, key=lambda entry: entry["cpu_seconds"])[len(entries) // 2]
    return chosen | {name: statistics.median(entry[name] for entry in entries) for name in ("seconds", "cpu_seconds")}


def table(recorded: dict[str, Any]) -> list[str]:
    """A Markdown table, a line per machine, graph and kind of run: OUT on the disk beside OUT in the store."""
    heads = "machine | graph | run | bicliques | slices | PUT | GET | HEAD | LIST | other | sent | received"
    lines = [f"| {heads} | processor s, disk | store | seconds, disk | store |", "|---|---|---|" + "--:|" * 13]
    for kind, result in recorded.items():
        for graph, entry in result["graphs"].items():
            lines += [f"| {kind} | {graph} | {what} | {_cells(both)} |" for what, both in entry.items()]
    return lines


def _cells(both: dict[str, Any]) -> str:
    disk, store = both["folder"], both["store"]
    asked = Counter(store["requests"])
    verbs = ("PUT", "GET", "HEAD", "LIST")
    cells = [f"{store['count']:,}", f"{store['slices']:,}", *(f"{asked[verb]:,}" for verb in verbs)]
    cells.append(f"{asked.total() - sum(asked[verb] for verb in verbs):,}")
    cells += [size(store["bytes"][way]) for way in ("sent", "received")]
    cells += [f"{run[name]:.2f}" for name in ("cpu_seconds", "seconds") for run in (disk, store)]
    return " | ".join(cells)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("store", __doc__)
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help="(default: those that ship)")
    add_repeats(parser, 3)
    add_data(parser)
    add_output(parser, RESULT.name)
    add_table(parser, RESULT)
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the file after each graph."""
    words = parser().parse_args(arguments)
    if prints_table(words, table):
        return
    output, kind = output_file(words, "store"), kind_of_machine("cpu")
    graphs = chosen(words, ())
    recorded, result = begun(words, output, kind, {"engine": "cpu", "repeats": words.repeats})
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch, bucket_of_moto(patch) as bucket:
        for graph in graphs:
            result["graphs"][graph.name] = measured(graph, words.repeats, bucket, Path(place))
            for what, both in result["graphs"][graph.name].items():
                print(f"{graph.name}, {what}: {_cells(both)}", flush=True)
            write(output, recorded | {kind: result})
    print(f"numbers: {output}")


if __name__ == "__main__":
    run(main)
