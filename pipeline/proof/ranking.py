"""Spearman's rank correlation."""

from __future__ import annotations

import numpy as np

__all__ = ["rank_correlation"]


def rank_correlation(pairs: list[tuple[float, float]]) -> float | None:
    """Correlation of the ranks, ties sharing their mean rank; None for fewer than three pairs or no spread."""
    if len(pairs) < 3:
        return None
    first, second = (_ranks(np.array(column)) for column in zip(*pairs, strict=True))
    if first.std() == 0 or second.std() == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, slot, counts = np.unique(values, return_inverse=True, return_counts=True)
    until = np.cumsum(counts)
    ranks: np.ndarray = (until - (counts - 1) / 2)[slot]
    return ranks
