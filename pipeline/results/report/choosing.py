"""Chooses the bicliques of the page: the largest, distinct ones among those behind them, and examples of all sizes."""

from __future__ import annotations

import numpy as np

from bicliques.pipeline.proof.selection import Place, places_of, rows_at
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.results.binning import Grid, cells_of
from bicliques.pipeline.results.parts import Parts
from bicliques.pipeline.results.report.listed import TOP, Listed, listed
from bicliques.pipeline.results.results import Results
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.search import By

#: The measures by which the page lists the largest bicliques of the summary.
RANKINGS: tuple[By, ...] = ("edges", "balance")
#: Members of those behind the largest, all together, that are read to find distinct ones.
MOST_BEHIND = 500_000
#: Parts and row groups whose sizes are looked at for examples, and row groups of which examples are read.
_MOST_PARTS, _MOST_GROUPS, _MOST_READ = 64, 64, 16
#: The fewest examples, if there are so many others: so small runs are on the page as a whole. Then the most of a cell.
_EXAMPLES, _MOST_OF_A_CELL = 200, 200


def chosen(run: Run, results: Results, summary: Summary) -> Listed:
    """The largest bicliques by each measure, distinct ones behind them, and examples of all cells of the heat map.

    Raises
    ------
    IncompleteError
        If a part is missing or damaged.

    Notes
    -----
    Reads the row groups that hold one of the largest of the summary, the two size columns of at most 64 row groups, and
    at most 16 of these as a whole.
    """
    ranks = {by: _not_too_long(summary.largest[by]) for by in RANKINGS}
    others = examples(Parts(run, results.files), cells_of(summary.sizes), [own[:TOP] for own in ranks.values()])
    places = list(dict.fromkeys([*(place for own in ranks.values() for place in places_of(own)), *others]))
    return listed(rows_at(results.files, places, results.schema), places, ranks, others)


def _not_too_long(best: np.ndarray) -> np.ndarray:
    """The `TOP` largest, and as many behind them as have `MOST_BEHIND` members together."""
    edges, left = best[TOP:, 1], best[TOP:, 2]
    return best[: TOP + int(np.searchsorted(np.cumsum(left + edges // left), MOST_BEHIND, side="right"))]


def examples(parts: Parts, cells: Grid, rankings: list[np.ndarray]) -> list[Place]:
    """Rows of every cell of the heat map, beside those that are in a ranking.

    Parameters
    ----------
    parts : Parts
    cells : Grid
    rankings : list of ndarray, shape (n, 7)
        As `pipeline.proof.selection.Largest.best`.

    Returns
    -------
    list of Place
        One row of every cell that has none in a ranking, as far as the row groups that are looked at have one. Then
        more of the cells with the fewest, until there are `_EXAMPLES`.
    """
    ranked = np.unique(np.concatenate(rankings)[:, 1:], axis=0)  # each row once, whatever its measure is
    known = {place for ranking in rankings for place in places_of(ranking)}
    there_already = np.bincount(cells.cells(ranked[:, 1], ranked[:, 0] // ranked[:, 1]), minlength=cells.count.size)
    missing = (cells.count.ravel() > 0) & (there_already == 0)
    there = []
    for place in _groups(parts):
        # NumPy sorts numbers of 16 bits by their digits, three times as fast
        own = cells.cells(*parts.sizes(*place)).astype(np.uint16)
        there.append((place, own, np.flatnonzero(np.bincount(own))))
    found = [np.empty((0, 5), np.int64)]
    while there and len(found) <= _MOST_READ:
        gains = [np.count_nonzero(missing[each]) for _, _, each in there]
        if not max(gains) and sum(map(len, found)) >= _EXAMPLES:
            break
        place, own, each = there.pop(int(np.argmax(gains)))
        missing[each] = False
        found.append(_first_of_cells(place, own, known))
    return _fewest_first(np.concatenate(found), there_already, cells.count.ravel())


def _groups(parts: Parts) -> list[tuple[int, int]]:
    """Row groups to look at, as (part, row group): at most `_MOST_GROUPS`, with large rows and with small ones."""
    files = np.unique(np.linspace(0, parts.n_files - 1, min(parts.n_files, _MOST_PARTS)).astype(int)).tolist()
    groups = sorted(parts.groups(files), key=lambda one: (np.prod(one[2] or (0, 0)), one[:2]))
    some = np.unique(np.linspace(0, len(groups) - 1, min(len(groups), _MOST_GROUPS)).astype(int)).tolist()
    return [groups[k][:2] for k in some]


def _first_of_cells(place: tuple[int, int], cells: np.ndarray, known: set[Place]) -> np.ndarray:
    """The first rows of each cell that are not known: part, row group, row, cell, and number in the cell from 0."""
    is_new = np.ones(len(cells), bool)
    is_new[[other[2] for other in known if other[:2] == place]] = False
    rows = np.flatnonzero(is_new)
    rows = rows[np.argsort(cells[rows], kind="stable")]
    own = cells[rows]
    number = np.arange(len(own)) - np.searchsorted(own, np.arange(int(own.max(initial=0)) + 1))[own]
    first = number < _MOST_OF_A_CELL
    n = int(first.sum())
    return np.column_stack([np.full((n, 2), place), rows[first], own[first], number[first]])


def _fewest_first(rows: np.ndarray, there_already: np.ndarray, counts: np.ndarray) -> list[Place]:
    """A row of each cell of which none is listed, and more of the cells with the fewest until there are `_EXAMPLES`."""
    rows = rows[np.lexsort((rows[:, 4], rows[:, 3]))]
    cell = rows[:, 3]
    number = there_already[cell] + np.arange(len(rows)) - np.searchsorted(cell, cell)
    order = np.lexsort((counts[cell], number))
    n = max(_EXAMPLES, int((number == 0).sum()))
    return [(part, group, row) for part, group, row in rows[order[:n], :3].tolist()]
