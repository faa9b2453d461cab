r"""Energy on one GPU: idle, and while bicliques of known graphs are counted over and over.

    python -m benchmarks.gpu_power --graphs bookcrossing_core movielens_100k --seconds 20

The protocol is in docs/power.md: first the device idles, without and then with a CUDA context; then each graph is
counted again and again for ``--seconds``, in one process, kernels warm. Joules are differences of NVML's counter.
``benchmarks/h200_power.json`` (``--output``) gets everything; a table goes to stdout.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.facts import DATA, ROOT, commit
from benchmarks.gpu_scaling import source_of
from benchmarks.runs import prepared_run
from pipeline import engines
from pipeline.power import PowerMeter, Usage, gpu_counter, processor_counter
from schemas.graph import MiningGraph
from schemas.options import RunOptions
from schemas.work import Limits, Search, Subtrees

RESULT = ROOT / "benchmarks" / "h200_power.json"


def facts(usage: Usage) -> dict[str, float]:
    """Joules, seconds and watts."""
    return {
        "joules": usage.joules,
        "seconds": usage.seconds,
        "mean_watts": usage.mean_watts,
        "peak_watts": usage.peak_watts,
    }


def idle_without_context(seconds: float) -> list[float]:
    """Watts of every device while no process of ours uses one, once a second, by nvidia-smi."""
    watts = []
    for _ in range(max(1, round(seconds))):
        command = ["nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        watts.append([float(line) for line in said.split()])
        time.sleep(1.0)
    mean: list[float] = np.mean(watts, axis=0).tolist()
    return mean


def count_for(source: Path, place: Path, meter: PowerMeter, seconds: float) -> dict[str, Any]:
    """Count a graph again and again; a count that would take longer is cut by the clock."""
    with prepared_run(source, RunOptions(str(source), Search("count"), engine="bitmatrix"), place) as folder:
        graph = MiningGraph.open(folder.graph)
        engine = engines.kind("bitmatrix").make(0)
        work = Subtrees.of_roots(np.arange(graph.n_roots))
        engine.mine(graph, work, Search("count"), Limits(1.0), lambda _: None)
        found = runs = 0
        began = time.perf_counter()
        with meter.stretch() as measured:
            while (left := seconds - (time.perf_counter() - began)) > 0:
                found += engine.mine(graph, work, Search("count"), Limits(left), lambda _: None).count
                runs += 1
    usage = measured.result()
    return facts(usage) | {"bicliques": found, "runs": runs, "bicliques_per_joule": found / usage.joules}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=["bookcrossing_core", "movielens_100k"])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--output", type=Path, default=RESULT)
    arguments = parser.parse_args()
    idle = idle_without_context(min(10.0, arguments.seconds))
    counter = gpu_counter()
    if isinstance(counter, str):
        raise SystemExit(f"there is nothing to measure: {counter}")
    meter = PowerMeter(counter)
    with meter.stretch() as measured:
        time.sleep(min(10.0, arguments.seconds))
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
        for name in arguments.graphs:
            line = count_for(
                source_of(name, arguments.data, Path(temporary)), Path(temporary), meter, arguments.seconds
            )
            result["graphs"][name] = line
            print(
                f"| {name} | {line['bicliques']:,} | {line['joules']:.0f} | {line['mean_watts']:.0f} "
                f"| {line['peak_watts']:.0f} | {line['bicliques_per_joule']:,.0f} |",
                flush=True,
            )
            arguments.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
