"""Spearman's rank correlation."""

from __future__ import annotations

import numpy as np

__all__ = ["rank_correlation"]


def rank_correlation(pairs: list[tuple[float, float]]) -> float | None:
    """Spearman's correlation of the two numbers of each pair. Equal numbers share their mean rank.

    None if there are fewer than three pairs, or all numbers of a column are equal.
    """
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
