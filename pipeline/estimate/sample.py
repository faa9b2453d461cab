"""Estimates the number of bicliques, the time and the disk of a run from a sample of its roots.

The plan is cut into strata of about equal weight. From each stratum, roots are drawn at random and mined, each
for a bounded time. What these roots give per unit of weight is taken as what the whole stratum gives.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kernels import engines
from pipeline.output.part_writer import PartWriter
from pipeline.prepare.weights import weights_of
from pipeline.run.files import temporary_folder
from pipeline.run.opened import Run
from schemas.search import Limits
from schemas.work import Subtrees

__all__ = ["Estimate", "Guess", "estimate"]

_STRATA, _ROOTS_A_STRATUM = 16, 12


@dataclass(frozen=True)
class Guess:
    """A guess and its range: two standard deviations to either side."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """The estimate of what a run would give and take.

    Parameters
    ----------
    bicliques : Guess
        Number of bicliques.
    bytes : Guess
        Bytes of the Parquet parts.
    seconds : Guess
        Seconds of mining and writing, for one worker.
    sampled, cut : int
        Number of roots that were mined, and how many of them did not finish in their time. The results of the latter
        were scaled up by the share of their work that was done, so the true numbers may lie outside the ranges.
    """

    bicliques: Guess
    bytes: Guess
    seconds: Guess
    sampled: int
    cut: int


@dataclass
class _Sample:
    weight: float
    count: float
    seconds: float
    cut: bool


def estimate(run: Run, budget_s: float = 10.0, seed: int = 0) -> Estimate:
    """Mine a sample of the roots of a run that is planned.

    Parameters
    ----------
    run : Run
        A run with at least one root.
    budget_s : float
        Seconds for the whole sample. A single root gets at most a sixteenth of them.
    seed : int
        Seed of the choice of roots.

    Raises
    ------
    InputError
        If there is no temporary folder to write into.
    ResourceError
        If the temporary folder is full.
    """
    plan, options, graph = run.plan, run.options, run.graph
    engine = engines.kind(options.engine).make(0)
    weights, strata = weights_of(run.job, graph), _strata(plan.weights)
    samples: list[list[_Sample]] = [[] for _ in strata]
    # otherwise the first root would wait for it and use up the budget
    engines.compile_engine(options.engine, options.search)
    started = time.perf_counter()
    with temporary_folder() as temporary:
        writer = PartWriter(temporary, 0, run.tables)
        for stratum, index in _draw(strata, np.random.default_rng(seed)):
            left = budget_s - (time.perf_counter() - started)
            if left <= 0:
                break
            work = Subtrees.of_roots(plan.roots[index : index + 1])
            began = time.perf_counter()
            found = engine.mine(graph, work, options.search, Limits(min(left, budget_s / 16)), writer)
            done = 1.0 - float(weights.of(found.left_over).sum()) / float(plan.weights[index])
            scale = 1.0 / max(done, 0.01)
            seconds = (time.perf_counter() - began) * scale
            cut = len(found.left_over) > 0
            samples[stratum].append(_Sample(float(plan.weights[index]), found.count * scale, seconds, cut))
        parts = writer.close()
    flat = [sample for some in samples for sample in some]
    rows = sum(part.rows for part in parts)
    bytes_a_row = sum(part.bytes for part in parts) / rows if rows else 0.0
    overhead = min((sample.seconds for sample in flat), default=0.0)  # of a call; a slice of many roots pays it once
    bicliques = _total(plan.weights, strata, [[(s.weight, s.count) for s in some] for some in samples])
    times = [[(s.weight, max(s.seconds - overhead, 0.0)) for s in some] for some in samples]
    return Estimate(
        bicliques=bicliques,
        bytes=Guess(bicliques.value * bytes_a_row, bicliques.low * bytes_a_row, bicliques.high * bytes_a_row),
        seconds=_total(plan.weights, strata, times),
        sampled=len(flat),
        cut=sum(sample.cut for sample in flat),
    )


def _strata(weights: np.ndarray) -> list[tuple[int, int]]:
    """Ranges (start, stop) of about equal weight that together are the plan."""
    until = np.cumsum(weights)
    targets = until[-1] * np.arange(1, _STRATA) / _STRATA if len(until) else np.empty(0)
    cuts = [0, *(np.searchsorted(until, targets) + 1).tolist(), len(weights)]
    return [(a, b) for a, b in pairwise(cuts) if b > a]


def _draw(strata: list[tuple[int, int]], generator: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Pairs of a stratum and a position in the plan: one of each stratum, then another one of each, and so on.

    So all strata have about as many roots in the sample, whenever the time for it ends.
    """
    chosen = [generator.permutation(np.arange(a, b))[:_ROOTS_A_STRATUM].tolist() for a, b in strata]
    for k in range(_ROOTS_A_STRATUM):
        for stratum, positions in enumerate(chosen):
            if k < len(positions):
                yield stratum, positions[k]


def _total(weights: np.ndarray, strata: list[tuple[int, int]], samples: list[list[tuple[float, float]]]) -> Guess:
    """Ratio estimate of a total, stratum by stratum. Strata without a sample get the ratio of all samples together.

    Cochran, Sampling Techniques, 1977, chapter 6: the variance of a ratio estimate is that of the residuals.
    """
    everything = [pair for some in samples for pair in some]
    known = sum(value for _, value in everything)
    overall = known / max(sum(weight for weight, _ in everything), 1e-300)
    value = variance = 0.0
    for (a, b), some in zip(strata, samples, strict=True):
        n, size, weight = len(some), b - a, float(weights[a:b].sum())
        ratio = sum(v for _, v in some) / sum(w for w, _ in some) if some else overall
        value += ratio * weight
        residuals = np.array([v - ratio * w for w, v in some])
        spread = float((residuals**2).sum() / (n - 1)) if n > 1 else (ratio * weight / size) ** 2
        variance += 0.0 if n == size else size**2 * (1 - n / size) * spread / max(n, 1)
    margin = 2 * float(np.sqrt(variance))
    return Guess(value, max(value - margin, min(known, value)), value + margin)
