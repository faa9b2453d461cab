r"""Reading a large edge list on a GPU, compared with our reader on the CPU, and with cuDF, which only parses the file.

    python -m benchmarks.gpu_ingest --edges 100000000 --place /fast/disk

The list is generated: two integers per line with a blank between them. Some left vertices have thousands of edges, and
a few edges are there twice. Each way runs in a process of its own, after the file is in the page cache. On the GPU the
best of three reads counts, after one of the same file that warms up. The CPU reads once. ``tables`` is the time from
the file to the written tables. ``ingest`` includes the digest of the file. ``build`` is the step after it.
Our readers on the GPU and on the CPU must give the same tables.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from benchmarks.command import add_output, new_parser, output_file, run, write
from benchmarks.facts import ROOT, commit, machine, nvidia_smi
from bicliques.pipeline.api import steps
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import LEFT_LABELS_FILE, RIGHT_LABELS_FILE
from bicliques.schemas.options import CallOptions, RunLimits, RunOptions

#: How often a process reads a file on the GPU. The first read warms up.
_READS = 4


def generate(path: Path, n: int, as_text: bool) -> None:
    """Write `n` edges, as Parquet unless `as_text`. Left labels are text if the name of the file has "text" in it."""
    rng = np.random.default_rng(1)
    done = 0
    writer: Any = None
    while done < n:
        size = min(n - done, 10_000_000)
        left = (rng.pareto(1.2, size) * 40_000).astype(np.int64) % 20_000_000 + 1
        right = (rng.pareto(1.5, size) * 10_000).astype(np.int64) % 2_000_000 + 1
        columns: Any = {"left": pa.array(left), "right": pa.array(right)}
        if "text" in path.stem:
            columns["left"] = pa.array(np.char.add("user_", left.astype(str)))
        table = pa.table(columns)
        if as_text:
            options = pa_csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
            writer = writer or pa_csv.CSVWriter(path, table.schema, write_options=options)
        else:
            writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write(table)
        done += size
    writer.close()


def plain_cudf(path: Path) -> dict[str, Any]:
    """Seconds of cuDF's reader alone, the best of three reads after one that warms up."""
    import cudf

    times = []
    for _ in range(_READS):
        began = time.perf_counter()
        if path.suffix == ".parquet":
            frame = cudf.read_parquet(path)
        else:
            frame = cudf.read_csv(path, sep=" ", header=None, names=["left", "right"])
        rows = len(frame)
        times.append(time.perf_counter() - began)
        del frame
    return {"seconds": min(times[1:]), "all_s": times, "rows": rows}


def ours(path: Path, place: Path, on: str) -> dict[str, Any]:
    """Seconds of the steps ``ingest`` and ``build``. On a GPU, ingest is done as often as cuDF reads."""
    options, folder, runs = RunOptions(source=str(path)), RunFolder(place / on), []
    for _ in range(_READS if on == "gpu" else 1):
        shutil.rmtree(folder.path, ignore_errors=True)
        began = time.perf_counter()
        steps.start(path, folder.path, options, RunLimits(), False, CallOptions(ingest_on=on))  # type: ignore[arg-type]
        runs.append({"with_run_folder_s": time.perf_counter() - began, **folder.need("ingest")})
    best = min(runs[1:] or runs, key=lambda run: run["seconds"])
    built = steps.build(folder.path, False)
    return {
        "tables_s": best["tables_seconds"],
        "ingest_s": best["seconds"],
        "with_run_folder_s": best["with_run_folder_s"],
        "all_s": [run["seconds"] for run in runs],
        "build_s": built["seconds"],
        "read_on": best["read_on"],
        "built_on": built["built_on"],
        "edges": best["n_edges"],
        "duplicates": best["duplicates"],
        "n_left": best["n_left"],
        "n_right": best["n_right"],
    }


def same_tables(one: Path, other: Path) -> dict[str, bool]:
    """Whether two runs have the same labels, byte for byte, and the same edges.

    Edges are compared as tables, because row groups and encoding depend on the writer.
    """
    a, b = (pa.concat_tables(map(pq.read_table, RunFolder(folder).edge_files())) for folder in (one, other))
    labels = (LEFT_LABELS_FILE, RIGHT_LABELS_FILE)
    return {
        "labels": all((one / file).read_bytes() == (other / file).read_bytes() for file in labels),
        "edges": a.equals(b) and a.schema.equals(b.schema),
    }


def apart(what: str, path: Path, place: Path) -> dict[str, Any]:
    """Measure one way to read, in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.gpu_ingest",
        "--only",
        what,
        "--file",
        str(path),
        "--place",
        str(place),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if ended.returncode:
        raise SystemExit(f"{what}: {ended.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def measure(path: Path, place: Path, ways: Sequence[str]) -> dict[str, Any]:
    """Measure all ways to read one file, and compare them."""
    entry: dict[str, Any] = {"bytes": path.stat().st_size}
    for way in ways:
        entry[way] = apart(way, path, place)
        print(path.name, way, json.dumps(entry[way]), flush=True)
    if {"gpu", "cpu"} <= set(ways):
        entry["same"] = same_tables(place / "gpu", place / "cpu")
        print(path.name, "same", entry["same"], flush=True)
    if {"gpu", "cudf"} <= set(ways):
        entry["tables_over_plain_read"] = entry["gpu"]["tables_s"] / entry["cudf"]["seconds"]
        entry["ingest_over_plain_read"] = entry["gpu"]["ingest_s"] / entry["cudf"]["seconds"]
        print(
            path.name,
            f"tables take {entry['tables_over_plain_read']:.2f} times as long as cuDF's reader,",
            f"with the digest {entry['ingest_over_plain_read']:.2f} times",
            flush=True,
        )
    return entry


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("gpu_ingest", __doc__)
    parser.add_argument("--edges", type=int, default=100_000_000, metavar="N", help="edges per file (default: 10^8)")
    parser.add_argument("--kinds", nargs="+", default=["integers.el", "integers.parquet"], help="also text.parquet")
    parser.add_argument("--place", type=Path, help="where files are put (default: the temporary folder)")
    parser.add_argument("--ways", nargs="+", choices=("cudf", "gpu", "cpu"), default=["cudf", "gpu", "cpu"])
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    add_output(parser, "h200_ingest.json")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate, measure, compare, print and write."""
    words = parser().parse_args(arguments)
    if words.only:
        print(json.dumps(plain_cudf(words.file) if words.only == "cudf" else ours(words.file, words.place, words.only)))
        return
    if set(words.ways) != {"cpu"}:
        nvidia_smi("name")
    output = output_file(words, "gpu_ingest")
    result: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "files": {},
    }
    with tempfile.TemporaryDirectory(dir=words.place) as temporary:
        for kind in words.kinds:
            path = Path(temporary) / kind
            generate(path, words.edges, path.suffix != ".parquet")
            path.read_bytes()  # into the page cache
            place = Path(temporary) / kind.replace(".", "-")
            place.mkdir()
            result["files"][kind] = {"edges": words.edges} | measure(path, place, words.ways)
            write(output, result)
    print(f"numbers: {output}")
    wrong = [kind for kind, entry in result["files"].items() if not all(entry.get("same", {"": True}).values())]
    if wrong:
        raise SystemExit(f"the tables differ: {', '.join(wrong)}")


if __name__ == "__main__":
    run(main)
