"""Runs for benchmarks: a graph made ready in a folder that goes away, and shares of one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from pipeline import steps
from pipeline.folder import RunFolder
from pipeline.plan import Plan
from schemas.options import RunLimits, RunOptions

__all__ = ["keep_share", "prepared_run"]


@contextmanager
def prepared_run(source: Path, options: RunOptions | None = None, place: Path | None = None) -> Iterator[RunFolder]:
    """A run of `source` up to its plan, in a folder below `place`; gone after the block."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=place) as temporary:
        path = Path(temporary) / "run"
        steps.start(source, path, options or RunOptions(str(source)), RunLimits(), False)
        steps.prepare(path, False)
        yield RunFolder(path)


def keep_share(folder: RunFolder, share: float, seed: int = 0) -> int:
    """Leave that share of the roots in the plan of a run, drawn at random; how many they are.

    What is then mined is a well-defined set: the bicliques whose first root is among them. It has a count and a
    fingerprint like any other, whatever mines it, and ledger and proof work as ever.
    """
    plan = Plan.open(folder)
    n = max(1, round(share * len(plan.roots)))
    kept = np.sort(np.random.default_rng(seed).permutation(len(plan.roots))[:n])
    np.save(folder.plan / "roots.npy", plan.roots[kept])
    np.save(folder.plan / "weights.npy", plan.weights[kept])
    folder.finish("plan", folder.need("plan") | {"n_roots": n}, folder.plan.iterdir())
    return n
