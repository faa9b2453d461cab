"""The third step of a run. It puts the first-level subtrees into dealing order, with heavy ones first."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pipeline.prepare.weights import heaviest_first, weights_of
from pipeline.process.cores import count_cores
from pipeline.run.files import disk_errors, settle
from pipeline.run.opened import Run
from pipeline.run.plan import ROOTS_FILE, WEIGHTS_FILE
from schemas.dtypes import VERTEX

__all__ = ["PlanFacts", "plan"]


@dataclass(frozen=True)
class PlanFacts:
    """How the work is distributed over the roots.

    Parameters
    ----------
    n_roots : int
    heaviest_share, top_share : float
        Share of the estimated work in the heaviest root, and in the heaviest hundredth of all roots.
    seconds : float
        Wall time of the step.
    """

    n_roots: int
    heaviest_share: float
    top_share: float
    seconds: float


def plan(run: Run) -> dict[str, Any]:
    """Weigh every root and store the dealing order. Returns `PlanFacts` as a dictionary."""
    started = time.perf_counter()
    _ = run.built  # raises if the graph is not built
    weights, folder = weights_of(run.job, run.graph).by_rank, run.folder
    order = heaviest_first(weights, count_cores())
    ordered = weights[order]
    target = folder.fresh(folder.plan)
    with disk_errors(target):
        np.save(target / ROOTS_FILE, order.astype(VERTEX))
        np.save(target / WEIGHTS_FILE, ordered)
        settle(target)
    total = max(float(ordered.sum()), 1.0)
    facts = PlanFacts(
        n_roots=len(order),
        heaviest_share=float(ordered[:1].sum()) / total,
        top_share=float(ordered[: -(-len(order) // 100)].sum()) / total,
        seconds=time.perf_counter() - started,
    )
    run.finish("plan", asdict(facts), folder.own_files(target))
    return asdict(facts)
