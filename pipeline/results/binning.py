"""Puts sizes into bins whose width grows with the size: the same number of bins from each power of two to the next.

Small sizes have a bin each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bicliques.schemas.sizes import SizeCounts

#: Fewest numbers to write at an axis.
_FEWEST_NUMBERS = 3
#: Largest number of bins on a side of the heat map, and of cells that are not empty; and the numbers of bins from one
#: power of two to the next. With one bin, both limits hold for every graph of fewer than 2**41 edges. A side has at
#: most 31 bins, because it has fewer than 2**31 vertices. A biclique in bins i and j, from 0, has at least 2**(i + j)
#: edges, and i + j is less than 41 for 751 pairs.
_MOST_BINS, _MOST_CELLS, _PER_DOUBLING = 64, 800, (8, 4, 2, 1)


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

    def cells(self, n_left: np.ndarray, n_right: np.ndarray) -> np.ndarray:
        """The bin of each pair of sizes, as its position in `count` when this is flat, int64.

        Sizes outside of all bins are taken for those at the end.
        """
        left, right = _bins(self.left, n_left), _bins(self.right, n_right)
        found: np.ndarray = left * self.count.shape[1] + right
        return found


def edges_of_bins(largest: int, per_doubling: int) -> np.ndarray:
    """First sizes of the bins from 1 to `largest`, and the first size beyond them.

    Parameters
    ----------
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
    np.add.at(count, (_bins(left, sizes.n_left), _bins(right, sizes.n_right)), sizes.count)
    return Grid(left, right, count)


def cells_of(sizes: SizeCounts) -> Grid:
    """The bins of the heat map, the finest for which there are not too many. Empty bins at the ends are left out.

    There are at most 64 on a side, and at most 800 cells that are not empty, if the graph has fewer than 2**41 edges.
    """
    for per_doubling in _PER_DOUBLING:
        whole = grid(sizes, per_doubling)
        rows, columns = (np.flatnonzero(whole.count.any(axis=axis)) for axis in (1, 0))
        if not len(rows):
            break
        a, b, c, d = rows[0], rows[-1] + 1, columns[0], columns[-1] + 1
        whole = Grid(whole.left[a : b + 1], whole.right[c : d + 1], whole.count[a:b, c:d])
        if max(whole.count.shape) <= _MOST_BINS and np.count_nonzero(whole.count) <= _MOST_CELLS:
            break
    return whole


def _bins(edges: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.clip(np.searchsorted(edges, sizes, side="right") - 1, 0, len(edges) - 2)
    return found


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
