"""A table of estimates over thresholds: how many bicliques there are, and how long a run would take to find them.

Several views of the same tree give it. A *view* has thresholds of its own, prunes with them, and counts the bicliques
for all thresholds of the table. So each view says something of all larger thresholds, and the view that varies least is
taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bicliques.pipeline.estimate.walk import Grid, Walk

#: What a proposal may give: so many bicliques, in so many seconds.
FEW_BICLIQUES, SHORT_S = 5e6, 60.0


@dataclass(frozen=True)
class Guess:
    """A guess and its range: two standard deviations to either side, on a scale of factors."""

    value: float
    low: float
    high: float

    def __mul__(self, factor: float) -> Guess:
        return Guess(self.value * factor, self.low * factor, self.high * factor)


def guess(value: float, doubt: float) -> Guess:
    """A guess whose relative standard deviation is `doubt`."""
    factor = math.exp(2 * min(doubt, 5.0))
    return Guess(value, value / factor, value * factor)


@dataclass(frozen=True)
class Cell:
    """What a run with two thresholds would give.

    Parameters
    ----------
    min_left, min_right : int
    bicliques : Guess
    seconds : Guess
        Seconds of the search and of writing, for one worker.
    exact : bool
        Whether the bicliques were counted, and not estimated.
    """

    min_left: int
    min_right: int
    bicliques: Guess
    seconds: Guess
    exact: bool


@dataclass(frozen=True, eq=False)
class View:
    """What walks in the tree of two thresholds found.

    Parameters
    ----------
    at : (int, int)
        Positions of the thresholds in the grid.
    walks : list of Walk
        One complete search, or at least two walks.
    exact : bool
        Whether it is a complete search.
    tried : float
        Seconds after which a complete search was not done.
    """

    at: tuple[int, int]
    walks: list[Walk]
    exact: bool
    tried: float = 0.0

    def covers(self, cell: tuple[int, int]) -> bool:
        """Whether it says something of the thresholds at these positions."""
        return self.at[0] <= cell[0] and self.at[1] <= cell[1]

    def count(self, cell: tuple[int, int]) -> float:
        """Estimated number of bicliques of a cell that it covers."""
        return float(np.mean([walk.counts[cell] for walk in self.walks]))

    def doubt(self, cell: tuple[int, int]) -> float:
        """Relative standard deviation of `count`. Infinite if fewer than two walks found such bicliques."""
        return 0.0 if self.exact else _doubt([float(walk.counts[cell]) for walk in self.walks])

    @property
    def seconds(self) -> float:
        """Estimated seconds of a complete search that only counts."""
        return max(float(np.mean([walk.seconds for walk in self.walks])), self.tried)

    @property
    def doubt_of_seconds(self) -> float:
        """Relative standard deviation of `seconds`."""
        return 0.0 if self.exact else _doubt([walk.seconds for walk in self.walks])


def _doubt(values: list[float]) -> float:
    n_found = int(np.count_nonzero(values))
    if n_found < 2:
        return math.inf
    spread = float(np.std(values, ddof=1) / np.mean(values)) / math.sqrt(len(values))
    return spread * (1 + 3 / (n_found - 1))  # few walks tell little of how much they vary


class Table:
    """The table as far as views have been added.

    Parameters
    ----------
    grid : Grid
    """

    def __init__(self, grid: Grid):
        self.grid = grid
        self.views: dict[tuple[int, int], View] = {}
        self._cells = [(i, j) for i in range(len(grid.left)) for j in range(len(grid.right))]

    def add(self, view: View) -> None:
        """Add a view."""
        self.views[view.at] = view

    def best(self, cell: tuple[int, int]) -> View:
        """The view that says most of a cell."""
        return min(self._covering(cell), key=lambda view: (view.doubt(cell), -sum(view.at)))

    def _covering(self, cell: tuple[int, int]) -> Iterable[View]:
        return (view for view in self.views.values() if view.covers(cell))

    def next(self, little: float) -> tuple[int, int] | None:
        """The cell that most needs a view of its own. None if no cell is in more doubt than `little`."""
        open_cells = [cell for cell in self._cells if cell not in self.views and not self.best(cell).exact]
        doubts = {cell: self.best(cell).doubt(cell) for cell in open_cells}
        unknown = [cell for cell, doubt in doubts.items() if math.isinf(doubt)]
        if unknown:  # the smallest thresholds of these are closest to those that are known
            return min(unknown, key=lambda cell: (self.grid.left[cell[0]] * self.grid.right[cell[1]], cell))
        worst = max(open_cells, key=lambda cell: doubts[cell], default=None)
        if worst is not None and doubts[worst] > little:
            return worst
        spread = {cell: high / max(low, 1e-9) for cell in open_cells for low, high in [self._bounds(cell)]}
        widest = max(open_cells, key=lambda cell: spread[cell], default=None)
        return widest if widest is not None and spread[widest] > 4 else None

    def _bounds(self, cell: tuple[int, int]) -> tuple[float, float]:
        """Between which seconds of counting the cell lies: thresholds that are larger never take longer."""
        own = self.views.get(cell)
        if own is not None:
            return own.seconds, own.seconds
        above = min(self._covering(cell), key=lambda view: view.seconds)
        beyond = [view.seconds for view in self.views.values() if cell[0] <= view.at[0] and cell[1] <= view.at[1]]
        # a biclique takes no less time where more is pruned
        share = min(self.best(cell).count(cell) / max(above.count(above.at), 1.0), 1.0)
        return min(max([above.seconds * share, *beyond]), above.seconds), above.seconds

    def cells(self, factor: float = 1.0, writing: float = 0.0) -> tuple[Cell, ...]:
        """All cells, by left and then by right threshold.

        Parameters
        ----------
        factor : float
            Seconds of the run's engine for a second of the engine that counted.
        writing : float
            More seconds that every biclique takes if it is listed.
        """
        made: dict[tuple[int, int], Cell] = {}
        for cell in self._cells:
            view, count = self.best(cell), self.best(cell).count(cell)
            bicliques = guess(count, view.doubt(cell))
            if math.isinf(view.doubt(cell)):  # no more than there are of smaller ones
                smaller = [
                    made[at].bicliques.high for at in ((cell[0] - 1, cell[1]), (cell[0], cell[1] - 1)) if at in made
                ]
                bicliques = Guess(count, 0.0, max(min(smaller, default=count), count))
            low, high = self._bounds(cell)
            own = self.views.get(cell)
            taken = guess(math.sqrt(low * high), 0.0 if own is None else own.doubt_of_seconds)
            more = writing * count
            seconds = Guess(taken.value + more, min(taken.low, low) + more, max(taken.high, high) + more) * factor
            left, right = self.grid.left[cell[0]], self.grid.right[cell[1]]
            made[cell] = Cell(left, right, bicliques, seconds, view.exact)
        return tuple(made.values())


def proposed(cells: Iterable[Cell], workers: int = 1) -> Cell | None:
    """Thresholds that make a large answer small: the most bicliques that are few and found soon. None if all are.

    Equal thresholds are preferred if they give a tenth of that, because nothing is known of the sides.
    """
    every = list(cells)
    fitting = [
        cell for cell in every if 0 < cell.bicliques.value <= FEW_BICLIQUES and cell.seconds.value / workers <= SHORT_S
    ]
    if not every or every[0] in fitting or not fitting:
        return None
    alike = [cell for cell in fitting if cell.min_left == cell.min_right]
    most = max(fitting, key=lambda cell: cell.bicliques.value)
    among_alike = max(alike, key=lambda cell: cell.bicliques.value, default=most)
    return among_alike if 10 * among_alike.bicliques.value >= most.bicliques.value else most
