"""Chooses the bicliques of the page: the largest, distinct ones among those behind them, and examples of all sizes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from pipeline.proof.selection import Place, rows_at
from pipeline.proof.summary import Summary
from pipeline.results.binning import Grid, cells_of
from pipeline.results.candidates import SizeScore, best_rows
from pipeline.results.distinct import distinct_among
from pipeline.results.parts import Parts
from pipeline.results.report.listed import DISTINCT, Listed, Ranking, listed
from pipeline.results.results import Results
from pipeline.run.opened import Run
from schemas.search import By

__all__ = ["RANKINGS", "chosen"]

#: The measures by which the page lists the largest bicliques, as many as a summary has.
RANKINGS: tuple[By, ...] = ("edges", "balance")
#: If fewer than `_WANTED` of the largest are distinct, `_LOOKED_AT` of them are looked at for more.
_WANTED, _LOOKED_AT = 50, 1024
#: Parts and row groups whose sizes are looked at for examples, and row groups of which examples are read.
_MOST_PARTS, _MOST_GROUPS, _MOST_READ = 64, 64, 16
#: The fewest examples, if there are so many others: so small runs are on the page as a whole. Then the most of a cell.
_EXAMPLES, _MOST_OF_A_CELL = 200, 50


def chosen(run: Run, results: Results, summary: Summary) -> Listed:
    """The largest bicliques by each measure, distinct ones, and examples of all cells of the heat map.

    Raises
    ------
    IncompleteError
        If a part is missing or damaged.

    Notes
    -----
    Reads the row groups that hold one of the largest, the two size columns of at most 64 row groups, and at most 16 of
    these as a whole. If few of the largest are distinct, it reads what `best_rows` has to read for the 1,024 largest.
    """
    parts = Parts(run, results.files)
    rankings = {by: Ranking.of_largest(summary.largest[by]) for by in RANKINGS}
    rows = _Rows(results)
    rows.read(_places(rankings.values()))
    rows.read(examples(parts, cells_of(summary.sizes), list(rankings.values())))
    found = listed(rows.table, rows.places, rankings)
    short = [by for by in RANKINGS if len(rankings[by].ranks) < len(results) and found.n_distinct(by) < _WANTED]
    if not short:
        return found
    for by in short:
        rankings[by] = further(parts, by, rankings[by])
    rows.read(_places(rankings.values()))
    return listed(rows.table, rows.places, rankings)


class _Rows:
    """Rows that are read, each once."""

    def __init__(self, results: Results):
        self._results, self.table = results, results.schema.empty_table()
        self.places: list[Place] = []

    def read(self, places: Iterable[Place]) -> None:
        """Read those rows at these places that are not there yet."""
        there = set(self.places)
        new = [place for place in dict.fromkeys(places) if place not in there]
        self.table = pa.concat_tables([self.table, rows_at(self._results.files, new, self._results.schema)])
        self.places += new


def _places(rankings: Iterable[Ranking]) -> list[Place]:
    return [place for ranking in rankings for place in ranking.places]


def further(parts: Parts, by: By, largest: Ranking) -> Ranking:
    """The largest, and behind them others that are distinct from all better ones."""
    best = best_rows(parts, SizeScore(by), _LOOKED_AT)
    assert best.rows is not None
    kept = distinct_among(best.rows, parts.n_vertices, _WANTED, DISTINCT)
    others = kept[kept >= len(largest.ranks)]
    return Ranking(
        np.concatenate([largest.ranks, best.ranks[others]]),
        np.concatenate([largest.numbers, others + 1]),
        int(kept[-1]) + 1 if len(kept) == _WANTED else max(len(best.ranks), len(largest.ranks)),
    )


def examples(parts: Parts, cells: Grid, rankings: list[Ranking]) -> list[Place]:
    """Rows of every cell of the heat map, beside those that are in a ranking.

    Parameters
    ----------
    parts : Parts
    cells : Grid
    rankings : list of Ranking

    Returns
    -------
    list of Place
        One row of every cell that has none in a ranking, as far as the row groups that are looked at have one. Then
        more of the cells with the fewest, until there are `_EXAMPLES`.
    """
    known = {place for ranking in rankings for place in ranking.places}
    ranked = np.unique(np.concatenate([ranking.ranks[:, [4, 5, 6, 1, 2]] for ranking in rankings]), axis=0)
    listed = np.bincount(cells.cells(ranked[:, 4], ranked[:, 3] // ranked[:, 4]), minlength=cells.count.size)
    missing = (cells.count.ravel() > 0) & (listed == 0)
    there = [(place, own, np.unique(own)) for place in _groups(parts) for own in [cells.cells(*parts.sizes(*place))]]
    found = [np.empty((0, 5), np.int64)]
    while there and len(found) <= _MOST_READ:
        gains = [np.count_nonzero(missing[each]) for _, _, each in there]
        if not max(gains) and sum(map(len, found)) >= _EXAMPLES:
            break
        place, own, each = there.pop(int(np.argmax(gains)))
        missing[each] = False
        found.append(_first_of_cells(place, own, known))
    return _fewest_first(np.concatenate(found), listed, cells.count.ravel())


def _groups(parts: Parts) -> list[tuple[int, int]]:
    """Row groups to look at, as (part, row group): at most `_MOST_GROUPS`, with large rows and with small ones."""
    files = np.unique(np.linspace(0, parts.n_files - 1, min(parts.n_files, _MOST_PARTS)).astype(int)).tolist()
    groups = sorted(parts.groups(files), key=lambda one: (np.prod(one[2] or (0, 0)), one[:2]))
    some = np.unique(np.linspace(0, len(groups) - 1, min(len(groups), _MOST_GROUPS)).astype(int)).tolist()
    return [groups[k][:2] for k in some]


def _first_of_cells(place: tuple[int, int], cells: np.ndarray, known: set[Place]) -> np.ndarray:
    """The first rows of each cell that are not known: part, row group, row, cell, and number in the cell from 0."""
    rows = np.setdiff1d(np.arange(len(cells)), [other[2] for other in known if other[:2] == place])
    rows = rows[np.argsort(cells[rows], kind="stable")]
    own = cells[rows]
    number = np.arange(len(own)) - np.searchsorted(own, own)
    first = number < _MOST_OF_A_CELL
    n = int(first.sum())
    return np.column_stack([np.full((n, 2), place), rows[first], own[first], number[first]])


def _fewest_first(rows: np.ndarray, listed: np.ndarray, counts: np.ndarray) -> list[Place]:
    """A row of each cell of which none is listed, and more of the cells with the fewest until there are `_EXAMPLES`."""
    rows = rows[np.lexsort((rows[:, 4], rows[:, 3]))]
    cell = rows[:, 3]
    number = listed[cell] + np.arange(len(rows)) - np.searchsorted(cell, cell)
    order = np.lexsort((counts[cell], number))
    n = max(_EXAMPLES, int((number == 0).sum()))
    return [(part, group, row) for part, group, row in rows[order[:n], :3].tolist()]
