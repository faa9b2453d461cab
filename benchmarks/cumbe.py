"""The ablation of the cuMBE paper on one device, and where the time goes.

    python -m benchmarks.cumbe [GRAPH ...] [--data FOLDER] [--json FILE]

CuMBE as this project wrote it, in mode count from the side ``auto`` takes: with everything, without reverse scanning
(noRS), without early stops (noES), and with k-level work stealing for k = 1 (noWS) and 2 instead of 3. One run each,
after one that warms up. The breakdown is the paper's; "others" is launching and waiting.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.facts import DATA, GOLDEN
from benchmarks.timing import PHASES, load, timed
from kernels.cumbe import CumbeEngine
from kernels.gpu.cumbe_memory import CumbeSizes

__all__ = ["ABLATION", "ablation", "breakdown", "published"]

#: Graphs of the ablation.
ABLATION = ("marvel", "youtube", "movielens_ut", "dbpedia_locations")
_USUAL = CumbeSizes()
VARIANTS = {
    "all": _USUAL,
    "noRS": _USUAL._replace(reverse_scan=False),
    "noES": _USUAL._replace(early_stop=False),
    "noWS": _USUAL._replace(steal_levels=1),
    "k = 2": _USUAL._replace(steal_levels=2),
}


def published(name: str, data: Path) -> dict[str, Any]:
    """CuMBE from the side ``auto`` takes."""
    return timed(CumbeEngine(), load(data / f"{name}.parquet", "auto"), "count", 1, GOLDEN[name])


def ablation(name: str, data: Path) -> dict[str, Any]:
    """The same with each of its optimisations switched off."""
    graph = load(data / f"{name}.parquet", "auto")
    return {what: timed(CumbeEngine(sizes=sizes), graph, "count", 1, GOLDEN[name]) for what, sizes in VARIANTS.items()}


def breakdown(recorded: dict[str, Any]) -> list[str]:
    """A table of an ablation: milliseconds of kernel time, in all and by phase, and the busy ratio."""
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


def main() -> None:
    """Measure, print the table, and keep the numbers if asked to."""
    data = DATA
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=ABLATION, help=f"names (default: {' '.join(ABLATION)})")
    parser.add_argument("--data", type=Path, default=data, help=f"(default: {data})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    words = parser.parse_args()
    recorded = {name: {"variants": ablation(name, words.data)} for name in words.graphs}
    print("\n".join(breakdown(recorded)))
    if words.json:
        words.json.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
