"""The measured tables of multi-gpu.md, operations.md, output.md and power.md in docs/, from JSON in ``benchmarks/``.

    python -m benchmarks.gpu_tables --write
    python -m benchmarks.gpu_tables --check

The first line puts the tables between the marks in the pages. The second line exits with 1 if a page has other numbers.
A table whose numbers have not been recorded says so.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import sizing, store
from benchmarks.command import new_parser, run
from benchmarks.facts import FOLDER, ROOT

PAGES = tuple(ROOT / "docs" / name for name in ("multi-gpu.md", "operations.md", "output.md", "power.md"))

#: Rows of the table of layouts.
_LAYOUTS = (
    *("none, plain", "none, dictionary", "snappy, dictionary", "zstd 1, plain", "zstd 1, dictionary"),
    *("zstd 3, dictionary", "zstd 9, dictionary", "zstd 3, dictionary, 256 Ki members"),
    *("zstd 3, dictionary, 8 Mi members", "zstd 3, dictionary, members sorted"),
    *("zstd 3, dictionary, rows by size", "zstd 3, dictionary, rows by root", "zstd, delta"),
)


def layouts(recorded: dict[str, Any]) -> list[str]:
    """The table of layouts: bytes per biclique with labels in the lists, and members encoded per second and thread."""
    rows = [row for row in recorded["results"] if row["ids"] == "labels"]
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    lines = [f"| layout | {' | '.join(graphs)} | million members per second |", "|---|" + "--:|" * (len(graphs) + 1)]
    for name in _LAYOUTS:
        of = {row["graph"]: row for row in rows if row["layout"] == name}
        sizes = [f"{of[graph]['bytes_a_biclique']:.1f}" if graph in of else "-" for graph in graphs]
        speed = sum(row["encode_members_a_s"] for row in of.values()) / len(of) / 1e6
        lines.append(f"| {name} | {' | '.join(sizes)} | {speed:.0f} |")
    return lines


def simulated(recorded: list[dict[str, Any]]) -> list[str]:
    """The table of simulated runs: smallest and largest efficiency of the recorded graphs, by work per worker."""
    workers = sorted({row["workers"] for row in recorded})
    lines = [f"| work per worker | {' | '.join(f'{n:,}' for n in workers)} |", "|---|" + "--:|" * len(workers)]
    for minutes in sorted({row["minutes"] for row in recorded}):
        cells = []
        for n in workers:
            found = [row["efficiency"] for row in recorded if (row["workers"], row["minutes"]) == (n, minutes)]
            cells.append(f"{min(found):.2f}-{max(found):.2f}")
        lines.append(f"| {60 * minutes:.0f} s | {' | '.join(cells)} |")
    return lines


def scaling(recorded: dict[str, Any]) -> list[str]:
    """The table of the speed-ups of several GPUs."""
    lines = [
        "| graph | share of its edges | bicliques | GPUs | seconds | speed-up | busy |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, entry in recorded["graphs"].items():
        for one in entry["runs"]:
            lines.append(
                f"| {name} | {entry['share']:.4g} | {one['bicliques']:,} | {one['devices']} | {one['seconds']:.1f} "
                f"| {one['speed_up']:.2f} | {one['busy_ratio']:.2f} |"
            )
    return lines


def writing(recorded: dict[str, Any]) -> list[str]:
    """The table that compares listing with counting."""
    lines = [
        "| graph | bicliques | bytes each | counting | listing, written by | listing / counting | disk alone | proof |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, entry in recorded["graphs"].items():
        count = entry["median"]["count"]["seconds"]
        for who in ("cpu", "gpu"):
            if (line := entry["median"].get(who)) is None:
                continue
            lines.append(
                f"| {name} | {line['bicliques']:,} | {line['bytes_a_biclique']:.1f} | {count:.2f} s "
                f"| {line['seconds']:.2f} s, {who} | {line['seconds'] / count:.1f} "
                f"| {line['bytes'] / line['disk_bytes_a_s']:.2f} s | {line.get('prove_s', 0.0):.1f} s |"
            )
    return lines


def ingesting(recorded: dict[str, Any]) -> list[str]:
    """The table that compares reading on a GPU with the CPU and with cuDF alone."""
    lines = [
        "| file | edges | cuDF reads | ingest, GPU | ingest, CPU | build, GPU | build, CPU |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, entry in recorded["files"].items():
        cells = [
            f"{entry[way][key]:.2f} s" if way in entry else "-"
            for way, key in (("cudf", "seconds"), *((w, k) for k in ("ingest_s", "build_s") for w in ("gpu", "cpu")))
        ]
        lines.append(f"| {name} | {entry['edges']:,} | {' | '.join(cells)} |")
    return lines


def power(recorded: dict[str, Any]) -> list[str]:
    """The table of watts and of bicliques per joule."""
    lines = ["| what | mean watts | peak watts | bicliques per joule |", "|---|--:|--:|--:|"]
    idle = ", ".join(f"{watts:.0f}" for watts in recorded["idle_watts_without_context"])
    lines.append(f"| idle, no CUDA context | {idle} | | |")
    with_context = recorded["idle_with_context"]
    lines.append(f"| idle, with a context | {with_context['mean_watts']:.0f} | {with_context['peak_watts']:.0f} | |")
    for name, line in recorded["graphs"].items():
        cells = (f"{line['mean_watts']:.0f}", f"{line['peak_watts']:.0f}", f"{line['bicliques_per_joule']:,.0f}")
        lines.append(f"| counting {name} | {' | '.join(cells)} |")
    return lines


#: Name of a table in the pages -> the file of its numbers, and the function that makes the table.
TABLES: dict[str, tuple[str, Callable[[Any], list[str]]]] = {
    "layout": ("layout.json", layouts),
    "simulated": ("simulated.json", simulated),
    "scaling": ("h200_scaling.json", scaling),
    "writing": ("h200_write.json", writing),
    "ingest": ("h200_ingest.json", ingesting),
    "power": ("h200_power.json", power),
    "sizing": ("sizing.json", sizing.table),
    "store": ("store.json", store.table),
}


def filled(text: str) -> str:
    """The text of a page, with every table made from the numbers that are recorded now."""

    def table(match: re.Match[str]) -> str:
        name, make = TABLES[match[1]]
        lines = make(json.loads((FOLDER / name).read_text())) if (FOLDER / name).exists() else ["Not recorded yet."]
        return f"<!-- table: {match[1]} -->\n" + "\n".join(lines) + "\n<!-- end of table -->"

    return re.sub(r"(?s)<!-- table: (\w+) -->\n.*?<!-- end of table -->", table, text)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("gpu_tables", __doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="put the recorded numbers into the pages")
    what.add_argument("--check", action="store_true", help="exit with 1 if a page has other numbers")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pages, or compare them."""
    words = parser().parse_args(arguments)
    for page in PAGES:
        text = page.read_text()
        if words.write:
            page.write_text(filled(text))
        elif text != filled(text):
            name = page.relative_to(ROOT)
            raise SystemExit(f"{name} has other numbers than benchmarks/: run python -m benchmarks.gpu_tables --write")


if __name__ == "__main__":
    run(main)
