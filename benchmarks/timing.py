"""Loads graphs and times engines for the GPU benchmarks."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runs import read
from bicliques.kernels.cumbe import memory
from bicliques.kernels.graph.prepare import prepare
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Mode, Search
from bicliques.schemas.work import Engine, Subtrees

#: The phases in the paper of cuMBE. Engines that do not measure a phase leave it out.
PHASES = (*(phase for phase in memory.PHASES if phase != "idling"), "others")


def load(path: Path, side: str) -> MiningGraph:
    """A graph as engines get it, from a file in any format, with the roots on `side`."""
    return prepare(*read(path), BuildOptions(root_side=side))[0]  # type: ignore[arg-type]


def timed(engine: Engine, graph: MiningGraph, mode: Mode, repeats: int, known: int | None) -> dict[str, Any]:
    """Times of one engine on one graph in one mode: medians of `repeats` runs after one that warms up.

    Raises
    ------
    ResourceError
        If a count is not the known one, or, where none is known, not the same in every run.
    """
    roots = Subtrees.of_roots(np.arange(graph.n_roots))
    runs = []
    for _ in range(repeats + 1):
        found = engine.mine(graph, roots, Search(mode), Limits(), nowhere)
        known = found.count if known is None else known
        if found.count != known:
            raise ResourceError(f"{engine.name} counts {found.count:,} bicliques in mode {mode}, not {known:,}")
        runs.append(found.stats)
    runs = runs[1:]
    kernel = [run.kernel_s for run in runs]
    phases = {name: runs[-1].phases[name] for name in PHASES if name in runs[-1].phases}
    return {
        "kernel_s": statistics.median(kernel),
        "wall_s": statistics.median(run.seconds for run in runs),
        "busy_ratio": statistics.median(run.busy_ratio for run in runs),
        "all_kernel_s": kernel,
        **({"phases_s": phases} if phases else {}),
    }
