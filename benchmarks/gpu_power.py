r"""Energy of one GPU: idle, and while the bicliques of graphs are counted again and again.

    python -m benchmarks.gpu_power
    python -m benchmarks.gpu_power mine.csv --seconds 20

The protocol is in docs/power.md. First the device idles, without and then with a CUDA context. Then each graph is
counted again and again for ``--seconds``, in one process, after a count that warms up. Joules are differences of NVML's
counter. A table goes to stdout.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import add_data, add_output, chosen, new_parser, output_file, run, write
from benchmarks.facts import commit, nvidia_smi
from benchmarks.runs import prepared_run
from bicliques.kernels import engines
from bicliques.pipeline.slices.power import PowerMeter, Usage, gpu_counter, processor_counter
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import RunOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees

#: Graphs that keep a large device busy.
RECORDED = ("bookcrossing_core", "movielens_100k")


def facts(usage: Usage) -> dict[str, float]:
    """Joules, seconds and watts of a measurement."""
    return {
        "joules": usage.joules,
        "seconds": usage.seconds,
        "mean_watts": usage.mean_watts,
        "peak_watts": usage.peak_watts,
    }


def idle_without_context(seconds: float) -> list[float]:
    """Mean watts of every device while no process of ours uses it, by nvidia-smi, which is asked once per second."""
    watts = []
    for _ in range(max(1, round(seconds))):
        watts.append([float(line) for line in nvidia_smi("power.draw", units=False)])
        time.sleep(1.0)
    mean: list[float] = np.mean(watts, axis=0).tolist()
    return mean


def count_for(source: Path, place: Path, meter: PowerMeter, seconds: float) -> dict[str, Any]:
    """Count a graph again and again for so many seconds. The last count is cut short by the clock."""
    with prepared_run(
        source, RunOptions(source=str(source), search=Search("count"), engine="bitmatrix"), place
    ) as folder:
        graph = MiningGraph.open(folder.graph)
        engine = engines.kind("bitmatrix").make(0)
        work = Subtrees.of_roots(np.arange(graph.n_roots))
        engine.mine(graph, work, Search("count"), Limits(1.0), nowhere)
        found = runs = 0
        began = time.perf_counter()
        with meter.stretch() as measured:
            while (left := seconds - (time.perf_counter() - began)) > 0:
                found += engine.mine(graph, work, Search("count"), Limits(left), nowhere).count
                runs += 1
    usage = measured.result()
    return facts(usage) | {"bicliques": found, "runs": runs, "bicliques_per_joule": found / usage.joules}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("gpu_power", __doc__)
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help=f"(default: random_dense; with --record {RECORDED})")
    parser.add_argument("--seconds", type=float, default=20.0, metavar="S", help="for each graph (default: 20)")
    add_data(parser)
    add_output(parser, "h200_power.json")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    words = parser().parse_args(arguments)
    graphs, output = chosen(words, RECORDED, ["random_dense"]), output_file(words, "gpu_power")
    idle = idle_without_context(min(10.0, words.seconds))
    counter = gpu_counter()
    if isinstance(counter, str):
        raise ResourceError(f"there is nothing to measure: {counter}")
    meter = PowerMeter(counter)
    with meter.stretch() as measured:
        time.sleep(min(10.0, words.seconds))
    usage = measured.result()
    processors = processor_counter()
    result: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "device": counter.name},
        "idle_watts_without_context": idle,
        "idle_with_context": facts(usage),
        "processors": processors if isinstance(processors, str) else "readable",
        "graphs": {},
    }
    print(f"idle: {', '.join(f'{w:.0f} W' for w in idle)} without a context, {usage.mean_watts:.0f} W with one")
    print(f"processors: {result['processors']}")
    print("| graph | bicliques | joules | mean W | peak W | bicliques / J |\n|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as temporary:
        for graph in graphs:
            line = count_for(graph.path, Path(temporary), meter, words.seconds)
            result["graphs"][graph.name] = line
            print(
                f"| {graph.name} | {line['bicliques']:,} | {line['joules']:.0f} | {line['mean_watts']:.0f} "
                f"| {line['peak_watts']:.0f} | {line['bicliques_per_joule']:,.0f} |",
                flush=True,
            )
            write(output, result)
    print(f"numbers: {output}")


if __name__ == "__main__":
    run(main)
