"""The third step of a run. It puts the first-level subtrees into dealing order, with heavy ones first."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pipeline.prepare.weights import weights_of
from pipeline.run.files import disk_errors, settle
from pipeline.run.folder import RunFolder, how_to_resume
from schemas.dtypes import VERTEX
from schemas.errors import IncompleteError
from schemas.graph import MiningGraph
from schemas.jobs import job_of

__all__ = ["Plan", "PlanFacts", "plan"]


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


@dataclass(frozen=True, eq=False)
class Plan:
    """Roots in dealing order.

    Parameters
    ----------
    roots : ndarray, shape (n_roots,), int32
        Ranks, by descending weight.
    weights : ndarray, shape (n_roots,), float64
        Estimated work of each, in the same order. The unit has no meaning.
    """

    roots: np.ndarray
    weights: np.ndarray

    @classmethod
    def open(cls, folder: RunFolder) -> Plan:
        """Read the files that `plan` wrote.

        Raises
        ------
        IncompleteError
            A file is missing or damaged.
        """
        try:
            return cls(np.load(folder.plan / "roots.npy"), np.load(folder.plan / "weights.npy"))
        except (EOFError, MemoryError, OSError, ValueError) as error:
            remedy = f"mend it with: {how_to_resume(folder.path)}"
            raise IncompleteError(f"the plan in {folder.plan} cannot be read ({error}); {remedy}") from error


def plan(folder: RunFolder) -> dict[str, Any]:
    """Weigh every root and store the dealing order. Returns `PlanFacts` as a dictionary."""
    started = time.perf_counter()
    folder.need("build")
    weights = weights_of(job_of(folder.options().search), MiningGraph.open(folder.graph)).by_rank
    order = np.argsort(-weights, kind="stable")
    ordered = weights[order]
    target = folder.fresh(folder.plan)
    with disk_errors(target):
        np.save(target / "roots.npy", order.astype(VERTEX))
        np.save(target / "weights.npy", ordered)
        settle(target)
    total = max(float(ordered.sum()), 1.0)
    facts = PlanFacts(
        n_roots=len(order),
        heaviest_share=float(ordered[:1].sum()) / total,
        top_share=float(ordered[: -(-len(order) // 100)].sum()) / total,
        seconds=time.perf_counter() - started,
    )
    folder.finish("plan", asdict(facts), folder.own_files(target))
    return asdict(facts)
