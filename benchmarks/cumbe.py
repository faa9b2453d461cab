"""The ablation of the cuMBE paper on one device, and where the time goes.

    python -m benchmarks.cumbe
    python -m benchmarks.cumbe marvel mine.csv --output FILE

It measures the engine `cumbe` of this project, in mode count from the root side that ``auto`` takes: with everything,
without reverse scanning (noRS), without early stops (noES), and with k-level work stealing for k = 1 (noWS) and 2
instead of 3. Each is run once, after a run that warms up. The phases are those of the paper; "others" is launching and
waiting.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import add_data, new_parser, output_file, run, write
from benchmarks.facts import Graph, find, shipped
from benchmarks.timing import PHASES, load, timed
from bicliques.kernels.cumbe.engine import CumbeEngine
from bicliques.kernels.cumbe.memory import CumbeSizes

#: Graphs of the recorded ablation.
ABLATION = ("marvel", "youtube", "movielens_ut", "dbpedia_locations")
_USUAL = CumbeSizes()
VARIANTS = {
    "all": _USUAL,
    "noRS": _USUAL._replace(reverse_scan=False),
    "noES": _USUAL._replace(early_stop=False),
    "noWS": _USUAL._replace(steal_levels=1),
    "k = 2": _USUAL._replace(steal_levels=2),
}


def published(graph: Graph) -> dict[str, Any]:
    """Times of the engine `cumbe` with all optimisations, from the root side that ``auto`` takes."""
    return timed(CumbeEngine(), load(graph.path, "auto"), "count", 1, graph.known)


def ablation(graph: Graph) -> dict[str, Any]:
    """Times of the engine `cumbe`, by variant: with all optimisations, and with each of them switched off."""
    loaded = load(graph.path, "auto")
    return {what: timed(CumbeEngine(sizes=sizes), loaded, "count", 1, graph.known) for what, sizes in VARIANTS.items()}


def breakdown(recorded: dict[str, Any]) -> list[str]:
    """A Markdown table of an ablation: milliseconds of kernel time, in all and by phase, and the busy ratio."""
    first = next(iter(next(iter(recorded.values()))["variants"].values()))
    phases = [phase for phase in PHASES if phase in first.get("phases_s", {})]
    heads = [phase.replace("_", " ") for phase in phases]
    lines = [
        f"| {' | '.join(['graph', 'variant', 'all, ms', *heads, 'busy'])} |",
        "|---|---|" + "--:|" * (len(heads) + 2),
    ]
    for name, entry in recorded.items():
        for what, one in entry["variants"].items():
            times = [one["kernel_s"], *(one["phases_s"][phase] for phase in phases)]
            cells = " | ".join(f"{1e3 * seconds:.3g}" for seconds in times)
            lines.append(f"| {name} | {what} | {cells} | {one['busy_ratio']:.2f} |")
    return lines


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("cumbe", __doc__)
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help="files or names (default: those that ship)")
    add_data(parser)
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the numbers here (default: nowhere)")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, and keep the numbers if asked to."""
    words = parser().parse_args(arguments)
    graphs = [find(word, words.data) for word in words.graphs or shipped()]
    output = output_file(words, "cumbe") if words.output else None
    recorded = {graph.name: {"variants": ablation(graph)} for graph in graphs}
    print("\n".join(breakdown(recorded)))
    if output:
        write(output, recorded)


if __name__ == "__main__":
    run(main)
