"""A table of estimates over thresholds: how many bicliques there are, and how long a run would take to find them.

Several views of the same tree give it. A *view* has thresholds of its own, prunes with them, and counts the bicliques
for all thresholds of the table. So each view says something of all larger thresholds, and the view that varies least is
taken. In words an estimate is a range with two digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bicliques.pipeline.estimate.walk import Grid, Walk
from bicliques.schemas.errors import as_option, as_options

#: About so many groups are what people read. They should take no longer than this.
FEW, SHORT_S = 500, 60.0
#: A table ends with these thresholds, unless nothing up to them is short and leaves few.
_USUAL = 50
#: With a larger relative standard deviation nothing is said but bounds: ten times as many or a tenth may be true.
_MOST_DOUBT = math.log(10) / 2


@dataclass(frozen=True)
class Guess:
    """A guess and its range: two standard deviations to either side, on a scale of factors.

    Parameters
    ----------
    low : float
        What was counted is never above it.
    high : float or None
        None if nothing is known that it could not exceed. If `value` is `low`, too, it is a bound and no guess.
    """

    value: float
    low: float
    high: float | None

    def __mul__(self, factor: float) -> Guess:
        return Guess(self.value * factor, self.low * factor, None if self.high is None else self.high * factor)

    def __add__(self, other: Guess) -> Guess:
        high = None if self.high is None or other.high is None else self.high + other.high
        return Guess(self.value + other.value, self.low + other.low, high)


def guess(value: float, doubt: float, least: float = 0.0) -> Guess:
    """A guess whose relative standard deviation is `doubt`, of something that is at least `least`."""
    if doubt > _MOST_DOUBT:
        return Guess(max(value, least), least, None)
    factor = math.exp(2 * doubt)
    return Guess(max(value, least), max(value / factor, least), max(value * factor, least))


@dataclass(frozen=True)
class Cell:
    """What a run with two thresholds would give.

    Parameters
    ----------
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
    """What is known of the tree of two thresholds.

    Parameters
    ----------
    at : (int, int)
        Positions of the thresholds in the grid.
    known : Walk
        What was counted before the walks, or without any.
    walks : list of Walk
        What each walk says of the rest.
    exact : bool
        Whether there is no rest.
    least : Walk or None
        What was counted in the end. None if that is `known`.
    """

    at: tuple[int, int]
    known: Walk
    walks: list[Walk]
    exact: bool
    least: Walk | None = None

    def covers(self, cell: tuple[int, int]) -> bool:
        """Whether it says something of the thresholds at these positions."""
        return self.at[0] <= cell[0] and self.at[1] <= cell[1]

    def counted(self, cell: tuple[int, int]) -> float:
        """How many bicliques of a cell that it covers were counted."""
        return float((self.least or self.known).counts[cell])

    def count(self, cell: tuple[int, int]) -> float:
        """Estimated number of bicliques of a cell that it covers, or the number that is counted."""
        return _sum(float(self.known.counts[cell]), [float(walk.counts[cell]) for walk in self.walks])

    @property
    def says(self) -> bool:
        """Whether it says something of all of the tree."""
        return self.exact or bool(self.walks)

    @property
    def members(self) -> float:
        """Estimated number of members of all its bicliques."""
        return _sum(self.known.members, [walk.members for walk in self.walks])

    def doubt(self, cell: tuple[int, int]) -> float:
        """Relative standard deviation of `count`. Infinite if fewer than two walks found such bicliques."""
        if self.exact:
            return 0.0
        return _doubt(float(self.known.counts[cell]), [float(walk.counts[cell]) for walk in self.walks])

    @property
    def seconds(self) -> Guess:
        """Seconds of a complete search that only counts. They are in no less doubt than what it counts."""
        known, walks = self.known.seconds, [walk.seconds for walk in self.walks]
        doubt = 0.0 if self.exact else max(_doubt(known, walks), self.doubt(self.at))
        return guess(_sum(known, walks), doubt, (self.least or self.known).seconds)


def _sum(known: float, walks: list[float]) -> float:
    return known + (sum(walks) / len(walks) if walks else 0.0)


def _doubt(known: float, walks: list[float]) -> float:
    n_found = int(np.count_nonzero(walks))
    if n_found < 2:
        return math.inf
    spread = float(np.std(walks, ddof=1)) / _sum(known, walks) / math.sqrt(len(walks))
    return spread * (1 + 3 / (n_found - 1))  # few walks tell little of how much they vary


class Table:
    """The table as far as views have been added."""

    def __init__(self, grid: Grid):
        self.grid = grid
        self.views: dict[tuple[int, int], View] = {}
        self._cells = [(i, j) for i in range(len(grid.left)) for j in range(len(grid.right))]

    def add(self, view: View) -> None:
        """Add a view, in the place of one of the same thresholds."""
        self.views[view.at] = view

    def best(self, cell: tuple[int, int]) -> View:
        """The view that says most of a cell."""
        return min(self._covering(cell), key=lambda view: (view.doubt(cell), -sum(view.at)))

    def _covering(self, cell: tuple[int, int]) -> Iterable[View]:
        return (view for view in self.views.values() if view.covers(cell))

    def next(self, little: float) -> tuple[int, int] | None:
        """The cell that most needs a view of its own. None if no cell is in more doubt than `little`.

        First it halves the way from what is not counted to what is, along equal thresholds.
        """
        left, right = self.grid.left, self.grid.right
        alike = [(min(i, len(left) - 1), min(i, len(right) - 1)) for i in range(max(len(left), len(right)))]
        counted = [self.best(cell).exact for cell in alike].index(True) if self.best(alike[-1]).exact else len(alike)
        tried = max((i for i in range(counted) if alike[i] in self.views), default=0)
        if counted - tried > 1:
            return alike[(tried + counted) // 2]
        open_cells = [cell for cell in self._cells if cell not in self.views and not self.best(cell).exact]
        doubts = {cell: self.best(cell).doubt(cell) for cell in open_cells}
        unknown = [cell for cell, doubt in doubts.items() if math.isinf(doubt)]
        if unknown:  # the smallest thresholds of these are closest to those that are known
            return min(unknown, key=lambda cell: (left[cell[0]] * right[cell[1]], cell))
        worst = max(open_cells, key=lambda cell: doubts[cell], default=None)
        if worst is not None and doubts[worst] > little:
            return worst
        spread = {
            cell: (each.high or math.inf) / max(each.low, 1e-9) for cell in open_cells for each in [self._seconds(cell)]
        }
        widest = max(open_cells, key=lambda cell: spread[cell], default=None)
        return widest if widest is not None and spread[widest] > 4 else None

    def _bicliques(self, cell: tuple[int, int]) -> Guess:
        best, counted = self.best(cell), max(view.counted(cell) for view in self._covering(cell))
        return guess(best.count(cell), best.doubt(cell), counted)

    def _seconds(self, cell: tuple[int, int]) -> Guess:
        """Seconds of counting. A biclique takes no less time where more is pruned, and all of them no more."""
        if cell in self.views:
            return self.views[cell].seconds
        above = min(self._covering(cell), key=lambda view: (not view.says, view.seconds.value))
        beyond = [view for at, view in self.views.items() if cell[0] <= at[0] and cell[1] <= at[1]]
        low = max((view.seconds.low for view in beyond), default=0.0)
        if not above.says:
            return Guess(low, low, None)
        most, share = above.seconds, min(self.best(cell).count(cell) / max(above.count(above.at), 1.0), 1.0)
        low = min(max(most.value * share, low), most.value)
        return Guess(math.sqrt(low * most.value), min(low, most.low), most.high)

    def cells(self, factor: float = 1.0, writing: float = 0.0) -> tuple[Cell, ...]:
        """The cells, by left and then by right threshold. The largest are left out if others are short and few.

        Parameters
        ----------
        factor : float
            Seconds of the run's engine for a second of the engine that counted.
        writing : float
            More seconds that every biclique takes if it is listed.
        """
        bicliques = self._agreeing({cell: self._bicliques(cell) for cell in self._cells})
        taken = {cell: (self._seconds(cell) + bicliques[cell] * writing) * factor for cell in self._cells}
        seconds, cells = self._agreeing(taken), []
        for i, j in self._cells:
            thresholds = self.grid.left[i], self.grid.right[j]
            exact = any(view.exact for view in self._covering((i, j)))
            cells.append(Cell(*thresholds, bicliques[i, j], seconds[i, j], exact))
        least = max(_USUAL, self.grid.left[0], self.grid.right[0])
        for most in sorted({least, *(t for t in (*self.grid.left, *self.grid.right) if t > least)}):
            shown = tuple(cell for cell in cells if max(cell.min_left, cell.min_right) <= most)
            if any(cell.seconds.value < SHORT_S and cell.bicliques.value <= FEW for cell in shown):
                break
        return shown

    def _agreeing(self, guesses: dict[tuple[int, int], Guess]) -> dict[tuple[int, int], Guess]:
        """The guesses, so that no larger thresholds have more than smaller ones. What is counted stays as it is."""
        low, value = ({cell: getattr(each, name) for cell, each in guesses.items()} for name in ("low", "value"))
        high = {cell: math.inf if each.high is None else each.high for cell, each in guesses.items()}
        for i, j in reversed(self._cells):
            larger = [at for at in ((i + 1, j), (i, j + 1)) if at in low]
            low[i, j] = max([low[i, j], *(low[at] for at in larger)])
        for i, j in self._cells:
            smaller = [at for at in ((i - 1, j), (i, j - 1)) if at in high]
            high[i, j] = max(min([high[i, j], *(high[at] for at in smaller)]), low[i, j])
        for i, j in reversed(self._cells):
            larger = [at for at in ((i + 1, j), (i, j + 1)) if at in value]
            value[i, j] = max([min(max(value[i, j], low[i, j]), high[i, j]), *(value[at] for at in larger)])
        return {
            cell: Guess(value[cell], low[cell], None if math.isinf(high[cell]) else high[cell]) for cell in self._cells
        }


def proposed(cells: Iterable[Cell], workers: int = 1) -> Cell | None:
    """Thresholds that leave about as many bicliques as people read, and soon if any do. None if no others are needed.

    Of those that leave about as many, the most equal thresholds are taken, because nothing is known of the sides.
    """
    first, *others = cells
    if first.bicliques.high is not None and first.bicliques.value <= 2 * FEW:
        return None
    found = [cell for cell in others if cell.bicliques.value > 0 and cell.bicliques.high is not None]
    short = [cell for cell in found if cell.seconds.value / workers <= SHORT_S]

    def far(cell: Cell) -> tuple[int, float]:
        return round(abs(math.log2(cell.bicliques.value / FEW))), abs(math.log(cell.min_left / cell.min_right))

    return min(short or found, key=far, default=None)


Units = tuple[tuple[float, str], ...]
COUNTS: Units = ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"), (0.0, ""))
BYTES: Units = ((1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (0.0, " B"))
TIMES: Units = ((365 * 86400.0, " years"), (86400.0, " d"), (3600.0, " h"), (60.0, " min"), (1.0, " s"))


def threshold_table(cells: Sequence[Cell], workers: int | None) -> str:
    """The table and, if there are many bicliques, thresholds that leave about as many as people read."""
    n = workers or 1
    at = {(cell.min_left, cell.min_right): cell for cell in cells}
    left, right = (sorted({getattr(cell, f"min_{side}") for cell in cells}) for side in ("left", "right"))
    rows = [["left \\ right", *map(str, right)]]
    rows += [[str(a), *(_words(at[a, b], n) for b in right)] for a in left]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "bicliques with at least so many members, and the time to mine them "
        "(~ estimated, >= at least, <= at most, . none):",
        "",
    ]
    lines += ["  ".join(text.rjust(w) for text, w in zip(row, widths, strict=True)) for row in rows]
    cell = proposed(cells, n)
    if cell is not None:
        asked = as_options(as_option("min_left", cell.min_left), as_option("min_right", cell.min_right))
        lines += ["", f"nearest to {FEW} groups: {asked} gives {_words(cell, n, ' in ')}"]
    return "\n".join(lines)


def _words(cell: Cell, workers: int, between: str = " ") -> str:
    """The bicliques and the time of a cell. A time of which nothing is known is left out."""
    count, seconds = cell.bicliques, cell.seconds * (1 / workers)
    if cell.exact:
        counted = f"{count.value:.0f}" if count.value < 1000 else short(count.value, COUNTS)
        return f"{counted}{between}{short(seconds.value, TIMES)}" if count.value else "."
    if count.high is not None and count.value < 0.5:
        most = "" if seconds.high is None else f"{between}<={short(seconds.high, TIMES)}".replace("<=<", "<")
        return f"<={short(count.high, COUNTS)}{most}"
    if count.high is None and count.value <= count.low:
        least = f"{between}>={short(seconds.low, TIMES)}" if seconds.low >= 1.0 else ""
        return f">={short(count.low, COUNTS)}{least}"
    return f"~{short(count.value, COUNTS)}{between}{short(seconds.value, TIMES)}"


def in_range(guess: Guess, units: Units) -> str:
    """A guess with its range, or the bound that is known instead."""
    low, value = short(guess.low, units), short(guess.value, units)
    if guess.high is None:
        return f"at least {low}" if guess.value <= guess.low else f"about {value} (at least {low})"
    high = short(guess.high, units)
    if low != high:
        return f"about {value} ({low} to {high})"
    return value if value.startswith("<") else f"about {value}"


def short(value: float, units: Units) -> str:
    """Two digits and a unit, and <1 of a time below the smallest one."""
    for least, name in units:
        if value >= least:
            number = float(f"{value / (least or 1.0):.2g}")
            return f"{number:.1f}{name}" if number < 10 and least else f"{number:,.0f}{name}"
    return f"<1{units[-1][1]}"
