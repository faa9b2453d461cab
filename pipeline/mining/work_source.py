"""A source of work as the scheduler sees it: nodes with weights, which are taken from the front in ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

__all__ = ["Source"]


class Source:
    """The outstanding nodes of one source.

    Parameters
    ----------
    number : int
        Number of the source, as in the ledger.
    weights : ndarray, shape (n,), float64
        Estimated work of every node, whether it is outstanding or not.
    ranges : iterable of (int, int)
        The outstanding nodes, as disjoint ranges from start to stop - 1. Each is of one band.
    band_at : callable
        Node -> its band.
    """

    def __init__(
        self,
        number: int,
        weights: np.ndarray,
        ranges: Iterable[tuple[int, int]],
        band_at: Callable[[int], int] = lambda node: 0,
    ):
        self.number = number
        self._band_at = band_at
        self._until = np.concatenate([np.zeros(1), np.cumsum(weights, dtype=np.float64)])
        self._ranges = sorted(ranges, reverse=True)
        self.n_left = sum(stop - start for start, stop in self._ranges)
        self.weight_left = float(sum(self._weight(start, stop) for start, stop in self._ranges))

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The outstanding nodes, as ranges in order."""
        return self._ranges[::-1]

    @property
    def band(self) -> int:
        """The band of the next node."""
        return self._band_at(self._ranges[-1][0])

    def take(self, weight: float, nodes: int) -> tuple[int, int, float]:
        """Remove nodes from the front of the first outstanding range.

        Parameters
        ----------
        weight : float
            Take nodes until their weights add up to this. The last one may exceed it.
        nodes : int
            Take at most so many nodes, but at least one.

        Returns
        -------
        start, stop : int
            The nodes taken: start to stop - 1.
        weight : float
            Weight of the nodes taken.
        """
        start, end = self._ranges.pop()
        enough = int(np.searchsorted(self._until, self._until[start] + weight, side="left"))
        stop = min(max(enough, start + 1), start + max(nodes, 1), end)
        if stop < end:
            self._ranges.append((stop, end))
        taken = self._weight(start, stop)
        self.n_left -= stop - start
        self.weight_left = max(self.weight_left - taken, 0.0) if self.n_left else 0.0
        return start, stop, taken

    def _weight(self, start: int, stop: int) -> float:
        return float(self._until[stop] - self._until[start])
