"""Counts of graphs that we know of no published program to have found, each found by more than one search.

    bicliques mine NAME.parquet -o GPU --count-only --engine bitmatrix
    bicliques mine NAME.parquet -o CPU --count-only --engine cpu
    python -m benchmarks.counts GPU CPU --machine "2 cores" --record
    python -m benchmarks.counts --table

A run is a folder, or its manifest. Runs of the same input are one graph. Their counts and fingerprints must agree with
each other and with what is recorded. Each is added with its engine, root side, seconds of mining, and joules of GPUs
where they were measured. A run that is recorded already takes the place of its former entry.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import add_output, add_table, new_parser, numbers, output_file, prints_table, run, write
from benchmarks.facts import FOLDER, commit
from bicliques.schemas.errors import InputError, ResourceError

RESULT = FOLDER / "counts.json"


def added(recorded: dict[str, Any], manifest: dict[str, Any], machine: str, of_commit: str) -> dict[str, Any]:
    """The numbers with those of one more run.

    Parameters
    ----------
    recorded : dict
        By name of the graph: edges, bicliques, fingerprint, digest of the input, and its runs.
    manifest : dict
        ``manifest.json`` of a complete run.
    machine, of_commit : str
        Where, and by which commit, it was made.

    Raises
    ------
    InputError
        If the run does not count every biclique, or if another graph of the same name is recorded.
    ResourceError
        If its count or fingerprint is not that of another run of the same input.
    """
    options, of_input, mining = manifest["options"], manifest["input"], manifest["mining"]
    search, name = options["search"], Path(re.sub(r" \([\d,]+ files?\)$", "", of_input["source"])).stem
    bounds = ("max_left", "max_right", "largest", "containing_left", "containing_right")
    if (search["min_left"], search["min_right"]) != (1, 1) or any(search[bound] for bound in bounds):
        raise InputError(f"the run of {name} does not count every biclique; mine it without thresholds")
    entry = recorded.get(name) or {
        "edges": of_input["n_edges"],
        "bicliques": manifest["count"],
        "fingerprint": manifest["fingerprint"],
        "digest": of_input["digest"],
        "runs": [],
    }
    if entry["digest"] != of_input["digest"]:
        raise InputError(f"{name} is another graph than the recorded one of that name; rename its file")
    for what, found in (("bicliques", manifest["count"]), ("fingerprint", manifest["fingerprint"])):
        if entry[what] != found:
            raise ResourceError(f"{what} of {name}: {options['engine']} found {found}, and recorded is {entry[what]}")
    gpus = mining["energy"].get("gpus", {})
    one = {
        "run": manifest["run"]["run"],
        "engine": options["engine"],
        "root_side": manifest["graph"]["root_side"],
        "machine": machine,
        "workers": mining["sessions"][-1]["workers"],
        "commit": of_commit,
        "date": manifest["created"],
        "seconds": sum(session["seconds"] for session in mining["sessions"]),
        "sittings": len(mining["sessions"]),
        "joules": gpus.get("joules"),
    }
    runs = [*(each for each in entry["runs"] if each["run"] != one["run"]), one]
    return recorded | {name: entry | {"runs": runs}}


def table(recorded: dict[str, Any]) -> list[str]:
    """A Markdown table, a line per run. The number of a graph stands at its first run."""
    lines = ["| graph | edges | maximal bicliques | fingerprint | found by | on | mining, s | joules |"]
    lines.append("|---|--:|--:|--:|---|---|--:|--:|")
    for name, entry in sorted(recorded.items(), key=lambda item: item[1]["bicliques"]):
        first = f"{name} | {entry['edges']:,} | {entry['bicliques']:,} | {entry['fingerprint']}"
        for k, one in enumerate(entry["runs"]):
            by = f"`{one['engine']}`, {one['root_side']} roots"
            where = f"{one['machine']}, {one['workers']}, commit {one['commit']}, {one['date']:.10}"
            joules = "" if one["joules"] is None else f"{one['joules']:,.0f}"
            lines.append(f"| {'| | |' if k else first} | {by} | {where} | {one['seconds']:,.1f} | {joules} |")
    return lines


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("counts", __doc__)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="folder or manifest of a complete run")
    parser.add_argument("--machine", default="", metavar="TEXT", help="machine on which the runs were made")
    add_output(parser, RESULT.name)
    add_table(parser, RESULT, "add nothing")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Add runs to the numbers, or print them."""
    words = parser().parse_args(arguments)
    if prints_table(words, table):
        return
    if not words.runs or not words.machine:
        raise InputError("name the runs, and their machine with --machine TEXT")
    output = output_file(words, "counts")
    recorded: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {}
    for path in words.runs:
        manifest = numbers(path / "manifest.json" if path.is_dir() else path)
        recorded = added(recorded, manifest, words.machine, commit())
    write(output, recorded)
    print("\n".join(table(recorded)))
    print(f"numbers: {output}")


if __name__ == "__main__":
    run(main)
