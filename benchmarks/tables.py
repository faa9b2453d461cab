"""Makes docs/benchmarks.md from the recorded numbers.

    python -m benchmarks.tables --write
    python -m benchmarks.tables --check

The first line writes the page. The second line only checks whether the page has the recorded numbers. No number in the
page is typed by hand: all come from the JSON files beside this module.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks import commands, counts, cpu
from benchmarks.command import new_parser, run
from benchmarks.cumbe import breakdown
from benchmarks.facts import FOLDER, ROOT

PAGE = ROOT / "docs" / "benchmarks.md"


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean of positive numbers."""
    return math.exp(statistics.fmean(math.log(value) for value in values))


def taken(entry: dict[str, Any]) -> dict[str, Any]:
    """The times from the root side that ``auto`` takes. The other side was run once, so its time is no median."""
    side: dict[str, Any] = entry["count"][entry["auto_side"]]
    return side


def against_rivals(recorded: dict[str, Any], rivals: dict[str, Any]) -> list[str]:
    """The table that compares mode count with published programs, and modes fingerprint and list with mode count."""
    heads = ("graph", "bicliques", "ours, ms", "best / ours", "GMBE / ours", "cuMBE / ours", "busy")
    lines = [f"| {' | '.join(heads)} | fingerprint / count | list / count |", "|---|" + "--:|" * 8]
    columns: list[list[float]] = []
    for name, entry in sorted(recorded["graphs"].items(), key=lambda item: item[1]["bicliques"]):
        one, rival = taken(entry), rivals[name]
        seconds = one["kernel_s"]
        ratios = [rival[who] / seconds for who in ("best_s", "gmbe_s", "cumbe_s")]
        costs = [entry[mode]["kernel_s"] / seconds for mode in ("fingerprint", "list")]
        columns.append([*ratios, *costs])
        cells = [f"{ratio:.1f}" for ratio in ratios] + [f"{one['busy_ratio']:.2f}"] + [f"{cost:.2f}" for cost in costs]
        lines.append(f"| {name} | {entry['bicliques']:,} | {1e3 * seconds:.3g} | {' | '.join(cells)} |")
    means = [geometric_mean(column) for column in zip(*columns, strict=True)]
    cells = [f"{mean:.1f}" for mean in means[:3]] + [""] + [f"{mean:.2f}" for mean in means[3:]]
    return [*lines, f"| geometric mean | | | {' | '.join(cells)} |"]


def other_engines(recorded: dict[str, Any], rivals: dict[str, Any]) -> list[str]:
    """The table of the engine `cumbe`, compared with the authors' program, and of the CPU engine on all cores."""
    cores = next(iter(recorded["cpu"].values()))["cores"]
    lines = [
        f"| graph | `bitmatrix`, s | `cumbe`, s | authors' cuMBE / `cumbe` | `cpu` on {cores} cores, s |",
        "|---|--:|--:|--:|--:|",
    ]
    ratios = []
    for name, entry in sorted(recorded["graphs"].items(), key=lambda item: item[1]["bicliques"]):
        cumbe = recorded["cumbe"][name]["kernel_s"]
        ratios.append(rivals[name]["cumbe_s"] / cumbe)
        times = (
            f"{taken(entry)['kernel_s']:.3g} | {cumbe:.3g} | {ratios[-1]:.1f} | {recorded['cpu'][name]['seconds']:.3g}"
        )
        lines.append(f"| {name} | {times} |")
    return [*lines, f"| geometric mean | | | {geometric_mean(ratios):.1f} | |"]


def rates(recorded: dict[str, Any]) -> list[str]:
    """The table of how far a limited time gets."""
    lines = ["| graph | bicliques found | complete | kernel, s | per second | busy | list / count |"]
    lines.append("|---|--:|---|--:|--:|--:|--:|")
    for name, one in recorded["hard"].items():
        done = "yes" if one["complete"] else "no"
        cells = f"{one['kernel_s']:.2f} | {one['bicliques_per_s'] / 1e6:,.0f} million | {one['busy_ratio']:.2f}"
        listing = f"{one['list_kernel_s'] / one['kernel_s']:.2f}" if "list_kernel_s" in one else ""
        lines.append(f"| {name} | {one['bicliques']:,} | {done} | {cells} | {listing} |")
    return lines


def origin(recorded: dict[str, Any], section: str) -> str:
    """Machine, commit and day of a section. If its entries come from several runs, also the graphs of each run."""
    by_run: dict[str, list[str]] = {}
    for name, entry in recorded[section].items():
        run = recorded["runs"][entry["run"]]
        machine = run["machine"]
        place = f"{machine['device']}, {machine['cores']} cores, commit {run['commit']}, {run['date']:.10}"
        by_run.setdefault(place, []).append(name)
    if len(by_run) == 1:
        return next(iter(by_run))
    return "; ".join(f"{place} ({', '.join(names)})" for place, names in by_run.items())


PROSE = """\
# Benchmarks

`python -m benchmarks.tables --write` writes this page from the JSON files in `benchmarks/`; no number is typed.

## Whole commands

A person waits for the whole process, from a text file to the answer. The numbers are seconds by the wall clock,
medians of {commands_repeats} after one run that warms up, all commands and the other program in turns
(`python -m benchmarks.commands`). The steps are those of the median run, as the command itself tells them. *report* is
the page of `mine`, *end* is the end of the process after its answer, and *rest* is what no step explains. The other
programs are timed in the same way, from their better side of the graph; they only count.

{commands}

## One GPU

The numbers are kernel times of mode count, medians of {repeats} after one that warms up, from the root side that `auto`
takes. Every count is the known one. *best* is the smallest time of the other programs (`benchmarks/rivals.json`).

Measured on: {graphs_runs}.

{what}

*fingerprint / count* is the kernel that also hashes, *list / count* the kernel that also writes every biclique to
device memory. Both are medians, like the count.

{against_rivals}

Counting handles all base sides of a small node in one step; hashing and listing handle each of them. Small graphs
leave the device idle half of the time, because they end before the work has spread.

## The other engines

`cumbe` is the published algorithm as this project wrote it, one run after one that warms up, from the side `auto`
takes. The CPU engine ran in one process per core; its time includes dealing the work.

`cumbe` was measured on: {cumbe_runs}.

`cpu` was measured on: {cpu_runs}.

{other_engines}

The next table repeats the ablation of the paper (`python -m benchmarks.cumbe`): the kernel time in milliseconds, and
what it goes to. noRS is without reverse scanning, noES without early stops, noWS without work stealing, which otherwise
has 3 levels. One reverse scan serves the maximality check and the expansion; its time stands with the check. *Others*
is waiting.

Measured on: {ablation_runs}.

{ablation}

## Graphs whose end is far away

The table shows how far one slice of a few seconds gets in mode count. For graphs that are complete it shows what the
kernels of mode list take beside it, if that was measured. GMBE finishes neither movielens_100k nor steam_purchase in
30 s.

Measured on: {hard_runs}.

{rates}

## Counts that are new

We know of no published program that has counted the maximal bicliques of these graphs. Each number was found by several
complete searches, by different engines or from different root sides, whose counts and fingerprints agree
(`python -m benchmarks.counts`). record_shape is generated: a graph of the size of the largest whose count is
published (as far as we know), with 80 planted groups; record_shape_x4 has four times as many vertices, edges and groups
([how](lab/large.md)).

{counts}

## Closed item sets on one core

LCM 5 of Takeaki Uno lists the closed item sets of transactions, with at least so many transactions and items. They are
the maximal bicliques of transactions and items. Both programs only count (LCM writes no sets), in turns on one core,
which other programs used, too. Seconds are those of the processor, medians of {patterns_repeats}: of LCM those of the
whole program, of ours from the sorted edge list on. Behind @ are the fewest members on the left and on the right.
one_hot is a seeded table (`python -m benchmarks.one_hot one_hot.parquet`).

Measured on: {patterns_on}.

{patterns}

## Measure it yourself

`python -m benchmarks.cpu` counts the graphs that ship, or the files that you name, with the CPU engine, and in turns
with another program: `python -m benchmarks.cpu mine.csv --rival AdaMBE=bin/MBE_ALL`. It knows how to call AdaMBE,
ParAdaMBE, ooMBEA, MBET, LCM, GMBE and cuMBE, and what their output looks like. (The first five were tried with their
authors' code; for the last two it was taken from their sources.) `--help` says how to name any other program.
`python -m benchmarks.gpu` does the same as this page on your device. Numbers go to a new file in the current folder.
"""


def _whole_commands(kind: str, result: dict[str, Any]) -> str:
    where = f"Commit {result['commit']}, {result['date']:.10}, a machine with {result['machine']['cores']} cores"
    return f"### {kind}\n\n{where}, engine `{result['options']['engine']}`.\n\n{commands.table(result)}"


def page() -> str:
    """The whole page."""
    recorded = json.loads((FOLDER / "h200.json").read_text())
    known = json.loads((FOLDER / "rivals.json").read_text())
    whole = json.loads(commands.RESULT.read_text())
    patterns = json.loads((FOLDER / "lcm.json").read_text())
    on = patterns["machine"]
    tables = {
        "against_rivals": against_rivals(recorded, known["graphs"]),
        "other_engines": other_engines(recorded, known["graphs"]),
        "ablation": breakdown(recorded["ablation"]),
        "rates": rates(recorded),
        "counts": counts.table(json.loads(counts.RESULT.read_text())),
        "patterns": [cpu.table(patterns)],
    }
    words = {name: "\n".join(lines) for name, lines in tables.items()}
    words |= {f"{section}_runs": origin(recorded, section) for section in recorded if section != "runs"}
    repeats = recorded["runs"][next(iter(recorded["graphs"].values()))["run"]]["options"]["repeats"]
    words |= {
        "commands": "\n\n".join(_whole_commands(kind, result) for kind, result in whole.items()),
    }
    return PROSE.format(
        what=textwrap.fill(known["what"], 120),
        repeats=repeats,
        patterns_repeats=patterns["options"]["repeats"],
        patterns_on=f"{on['cpu']}, load {on['load_before']:.0f}, commit {patterns['commit']}, {patterns['date']:.10}",
        commands_repeats=min(result["options"]["repeats"] for result in whole.values()),
        **words,
    )


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("tables", __doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="put the recorded numbers into the page")
    what.add_argument("--check", action="store_true", help="exit with 1 if the page has other numbers")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page, or check whether it has the recorded numbers."""
    words, text = parser().parse_args(arguments), page()
    if words.write:
        PAGE.write_text(text)
    elif PAGE.read_text() != text:
        raise SystemExit("docs/benchmarks.md is not what the files say; run python -m benchmarks.tables --write")


if __name__ == "__main__":
    run(main)
