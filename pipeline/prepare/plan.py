"""The third step of a run. It puts the first-level subtrees into dealing order, with heavy ones first."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bicliques.pipeline.prepare.weights import heaviest_first, weights_of
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.run.files import disk_errors, settle
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.plan import ROOTS_FILE, WEIGHTS_FILE
from bicliques.schemas.dtypes import VERTEX


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
    orders = [heaviest_first(weights[band], count_cores()) for band in bands]
    order = _joined(orders)
    ordered = _joined([weights[band][own] for band, own in zip(bands, orders, strict=True)])
    target = folder.fresh(folder.plan)
    with disk_errors(target):
        np.save(target / ROOTS_FILE, order.astype(VERTEX))
        np.save(target / WEIGHTS_FILE, ordered)
        settle(target)
    total, heavy = max(float(ordered.sum()), 1.0), ordered if len(bands) == 1 else np.sort(ordered)[::-1]
    facts = PlanFacts(
        n_roots=len(order),
        heaviest_share=float(heavy[:1].sum()) / total,
        top_share=float(heavy[: -(-len(order) // 100)].sum()) / total,
        seconds=time.perf_counter() - started,
    )
    told = asdict(facts)
    if run.job.in_bands:
        stops = np.cumsum([len(own) for own in orders]).tolist()
        told["bands"] = [list(pair) for pair in zip(bands, stops, strict=True)]
    run.finish("plan", told, folder.own_files(target))
    return told


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])
