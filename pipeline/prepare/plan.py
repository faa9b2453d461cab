"""The third step of a run. It puts the first-level subtrees into dealing order, with heavy ones first."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pipeline.prepare.weights import weights_of
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
    """Weigh every root and store the dealing order.

    Returns
    -------
    dict
        `PlanFacts`, and for a run in bands the ``bands`` of `pipeline.run.plan.Plan`.
    """
    started = time.perf_counter()
    _ = run.built  # raises if the graph is not built
    folder = run.folder
    weights = [weights_of(run.job, graph).by_rank for _, graph in run.bands]
    # light bands first: what they find is a bound for the heavy ones
    bands = sorted(range(len(weights)), key=lambda band: float(weights[band].sum()))
    orders = [np.argsort(-weights[band], kind="stable") for band in bands]
    order = np.concatenate([np.empty(0, np.int64), *orders])
    ordered = np.concatenate([np.empty(0), *(weights[band][own] for band, own in zip(bands, orders, strict=True))])
    target = folder.fresh(folder.plan)
    with disk_errors(target):
        np.save(target / ROOTS_FILE, order.astype(VERTEX))
        np.save(target / WEIGHTS_FILE, ordered)
        settle(target)
    total = max(float(ordered.sum()), 1.0)
    facts = PlanFacts(
        n_roots=len(order),
        heaviest_share=float(ordered.max(initial=0.0)) / total,
        top_share=float(np.sort(ordered)[::-1][: -(-len(order) // 100)].sum()) / total,
        seconds=time.perf_counter() - started,
    )
    told = asdict(facts)
    if run.job.in_bands:
        stops = np.cumsum([len(own) for own in orders]).tolist()
        told["bands"] = [list(pair) for pair in zip(bands, stops, strict=True)]
    run.finish("plan", told, folder.own_files(target))
    return told
