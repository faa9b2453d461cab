"""Puts sizes into bins whose width grows with the size: the same number of bins from each power of two to the next.

Small sizes have a bin each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas.sizes import SizeCounts

__all__ = ["Grid", "edges_of_bins", "grid", "round_numbers"]

#: Fewest numbers to write at an axis.
_FEWEST_NUMBERS = 3


@dataclass(frozen=True, eq=False)
class Grid:
    """Counts of bicliques by bins of both sizes.

    Parameters
    ----------
    left, right : ndarray, shape (bins + 1,), int64
        First size of every bin, and then the first size that is beyond the last bin.
    count : ndarray, shape (bins left, bins right), int64
        Number of bicliques in each bin.
    """

    left: np.ndarray
    right: np.ndarray
    count: np.ndarray

    def ends(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """For each side, the first and the last size of the bins that are not empty. (1, 1) if all are empty."""
        if not self.count.any():
            return (1, 1), (1, 1)
        left, right = (
            (int(own[bins.min()]), int(own[bins.max() + 1]) - 1)
            for own, bins in zip((self.left, self.right), np.nonzero(self.count), strict=True)
        )
        return left, right


def edges_of_bins(largest: int, per_doubling: int) -> np.ndarray:
    """First sizes of the bins from 1 to `largest`, and the first size beyond them.

    Parameters
    ----------
    largest : int
    per_doubling : int
        Largest number of bins from one power of two to the next. A power of two.

    Returns
    -------
    ndarray, shape (bins + 1,), int64
    """
    edges = [1]
    while edges[-1] <= largest:
        edges.append(edges[-1] + max(1, (1 << (edges[-1].bit_length() - 1)) // per_doubling))
    return np.array(edges, np.int64)


def grid(sizes: SizeCounts, per_doubling: int = 8) -> Grid:
    """The counts in bins: at most `per_doubling` bins, a power of two, from each power of two to the next."""
    left, right = (edges_of_bins(int(side.max(initial=1)), per_doubling) for side in (sizes.n_left, sizes.n_right))
    count = np.zeros((len(left) - 1, len(right) - 1), np.int64)
    slots = tuple(
        np.searchsorted(edges, side, side="right") - 1 for edges, side in ((left, sizes.n_left), (right, sizes.n_right))
    )
    np.add.at(count, slots, sizes.count)
    return Grid(left, right, count)


def round_numbers(smallest: int, largest: int) -> list[int]:
    """The numbers to write at a logarithmic axis: powers of ten, and numbers between them if there are few."""
    if largest - smallest < 11:
        return list(range(smallest, largest + 1))
    for steps in ((1,), (1, 2, 5)):
        numbers = [step * 10**power for power in range(19) for step in steps]
        numbers = [number for number in numbers if smallest <= number <= largest]
        if len(numbers) >= _FEWEST_NUMBERS:
            return numbers
    apart = next(n for power in range(19) for step in (1, 2, 5) if (largest - smallest) // (n := step * 10**power) < 8)
    return list(range(-(-smallest // apart) * apart, largest + 1, apart))
