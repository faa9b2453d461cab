"""The bicliques of the page: which they are, their members as numbers, and which of them repeat a better one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.process.cores import give_back_memory
from bicliques.pipeline.proof.selection import Place, places_of, rows_at
from bicliques.pipeline.proof.summary import LARGEST, Summary
from bicliques.pipeline.results.binning import Grid, cells_of
from bicliques.pipeline.results.candidates import best_rows
from bicliques.pipeline.results.edges import Parts
from bicliques.pipeline.results.results import Results
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.search import By
from bicliques.schemas.sizes import SizeCounts

SIDES = ("left", "right")

#: So many of the largest are listed. If fewer than `WANTED` of them are distinct, so are distinct ones behind them.
TOP, WANTED = 100, 50
#: A biclique is left out at first if a better one has more than this share of its edges.
DISTINCT = 0.8
#: Largest number of members of all rows together. Beyond it the lists are cut, all to the same length. Shares are those
#: of whole lists.
MOST_MEMBERS = 2_000_000


@dataclass(frozen=True, eq=False)
class Listed:
    """The bicliques on the page, each once: those of the rankings, and then the others, both in descending order.

    They are ordered by edges, then by left size, then by id.

    Parameters
    ----------
    rows : Table
        With labels.
    lists : dict of str to ndarray, int64
        For each ranking, the rows in it: the `TOP` largest, and distinct ones behind them.
    numbers : dict of str to ndarray, int64
        For each ranking, which of all bicliques of the run each row in it is, from 1.
    looked_at : dict of str to int
        For each ranking, how many bicliques were looked at for distinct ones, from the largest on.
    repeats : dict of str to ndarray, int64
        For each ranking, and for ``all``, which has all rows in their order: `pipeline.results.report.listed.repeated`.
    labels : dict of str to list of str
        For each side, the labels of its members, ascending: numbers by value, text by letters. Each is there once.
    members : dict of str to list of ndarray, int64
        For each side, the positions of the members of each row in `labels`, ascending. They are cut to `most`.
    common : dict of str to ndarray, shape (rows, rows)
        For each side, `pipeline.results.report.listed.common_members` of whole lists.
    numeric : dict of str to bool
        For each side, whether its labels are numbers.
    scored : int
        Among how many bicliques the most surprising were looked for.
    most : int or None
        The number of members to which each side of a row was cut, because there would be more than `MOST_MEMBERS`.
    """

    rows: pa.Table
    lists: dict[str, np.ndarray]
    numbers: dict[str, np.ndarray]
    looked_at: dict[str, int]
    repeats: dict[str, np.ndarray]
    labels: dict[str, list[str]]
    members: dict[str, list[np.ndarray]]
    common: dict[str, np.ndarray]
    numeric: dict[str, bool]
    most: int | None
    scored: int = 0

    @property
    def ids(self) -> list[int]:
        """The id of each row."""
        ids: list[int] = self.rows["id"].to_pylist()
        return ids

    @property
    def shares(self) -> np.ndarray:
        """`pipeline.results.report.listed.shares_of` all pairs."""
        return shares_of(self.common["left"], self.common["right"])

    @property
    def n_ranked(self) -> int:
        """How many of the rows are in a ranking."""
        return len(np.unique(np.concatenate(list(self.lists.values()))))

    def sizes(self, row: int) -> tuple[int, int]:
        """The number of left and of right members of a row."""
        n_left, n_right = (self.rows[f"n_{side}"][row].as_py() for side in SIDES)
        return n_left, n_right

    def first(self, row: int, side: str, n: int) -> list[str]:
        """The first `n` members of a side of a row."""
        return [self.labels[side][k] for k in self.members[side][row][:n]]


def listed(
    rows: pa.Table, places: Sequence[Place], ranks: Mapping[str, np.ndarray], examples: Sequence[Place]
) -> Listed:
    """Choose from rows, put them in their order, number their members, and find out which repeat a better one.

    Parameters
    ----------
    rows : Table
        Each biclique once.
    places : sequence of Place
        Of each row.
    ranks : dict of str to ndarray
        `pipeline.proof.selection.Largest.best` by measure. The places are among `places`.
    examples : sequence of Place
        Among `places`. These rows are listed whether or not they are in a ranking.
    """
    columns = {side: rows[side].combine_chunks() for side in SIDES}
    numbered = {side: _numbered(column) for side, column in columns.items()}
    row_of = {place: row for row, place in enumerate(places)}
    ranked = {by: np.array([row_of[place] for place in places_of(own)], np.int64) for by, own in ranks.items()}
    members = [members for _, members in numbered.values()]
    shown = {by: _shown([[own[row] for row in order] for own in members]) for by, order in ranked.items()}
    is_ranked, is_listed = np.zeros((2, len(rows)), bool)
    for by, (numbers, _) in shown.items():
        is_ranked[ranked[by][numbers - 1]] = True
    is_listed[[row_of[place] for place in examples]] = True
    n_left, n_right, ids = (rows[name].to_numpy().astype(np.int64) for name in ("n_left", "n_right", "id"))
    order = np.lexsort((ids, n_left, n_left * n_right, is_ranked))[::-1]
    order = order[(is_ranked | is_listed)[order]]
    position = np.zeros(len(rows), np.int64)
    position[order] = np.arange(len(order))
    lists: dict[str, np.ndarray] = {by: position[ranked[by][numbers - 1]] for by, (numbers, _) in shown.items()}
    whole = {side: [own[row] for row in order] for side, (_, own) in numbered.items()}
    common = {side: common_members(own) for side, own in whole.items()}
    shares = shares_of(common["left"], common["right"])
    lengths = np.array([len(own) for side in SIDES for own in whole[side]], np.int64)
    most, longest = _fair(lengths), int(lengths.max(initial=0))
    used = {side: _used(len(labels), [own[:most] for own in whole[side]]) for side, (labels, _) in numbered.items()}
    return Listed(
        rows.take(order),
        lists,
        {by: numbers for by, (numbers, _) in shown.items()},
        {by: looked_at for by, (_, looked_at) in shown.items()},
        {by: repeated(shares, own, DISTINCT) for by, own in (*lists.items(), ("all", np.arange(len(order))))},
        {
            side: labels.take(pa.array(used[side][0])).cast(pa.string()).to_pylist()
            for side, (labels, _) in numbered.items()
        },
        {side: own for side, (_, own) in used.items()},
        common,
        {side: pa.types.is_integer(column.type.value_type) for side, column in columns.items()},
        most if most < longest else None,
    )


def _shown(members: Sequence[Sequence[np.ndarray]]) -> tuple[np.ndarray, int]:
    """Which of a ranking are listed, as numbers from 1, and how many were looked at for distinct ones.

    `members` has the members of all rows of the ranking, for each side.
    """
    n = len(members[0])
    first = np.arange(1, min(n, TOP) + 1)
    for looked_at in (len(first), n):  # most rankings have enough in the first, and to compare all would take long
        left, right = (common_members(own[:looked_at]) for own in members)
        distinct = np.flatnonzero(repeated(shares_of(left, right), np.arange(looked_at), DISTINCT) < 0) + 1
        if len(distinct) >= WANTED:
            break
    wanted = distinct[:WANTED]
    if looked_at > len(first) and len(wanted) == WANTED:
        looked_at = int(wanted[-1])
    return np.concatenate([first, wanted[wanted > TOP]]), looked_at


def only_used(labels: list[str], rows: Sequence[np.ndarray]) -> tuple[list[str], list[np.ndarray]]:
    """The labels that are in a row, in their order, and each row's positions in them."""
    used, rows = _used(len(labels), rows)
    return [labels[k] for k in used.tolist()], rows


def _used(n: int, rows: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Those of the numbers below `n` that are in a row, ascending, and each row as positions among them."""
    is_used = np.zeros(n, bool)
    for row in rows:
        is_used[row] = True
    position = np.cumsum(is_used) - 1
    return np.flatnonzero(is_used), [position[row] for row in rows]


def _fair(lengths: np.ndarray) -> int:
    """The largest length to which all lists can be cut so that they have `MOST_MEMBERS` members or fewer."""
    low, high = 1, max(int(lengths.max(initial=1)), 1)
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(lengths, middle).sum()) <= MOST_MEMBERS:
            low = middle
        else:
            high = middle - 1
    return low


def _numbered(column: pa.ListArray) -> tuple[pa.Array, list[np.ndarray]]:
    """The labels of the members of all rows, ascending, and each row's positions in them, ascending.

    Memory: 8 bytes per member.
    """
    encoded = pc.dictionary_encode(column.flatten())
    order = pc.array_sort_indices(encoded.dictionary)
    rank = np.argsort(order.to_numpy()).astype(np.int32)
    rows = np.split(rank[encoded.indices.to_numpy()], np.cumsum(column.value_lengths().to_numpy())[:-1])
    for own in rows:
        own.sort()
    return encoded.dictionary.take(order), rows[: len(column)]


def common_members(rows: Sequence[np.ndarray]) -> np.ndarray:
    """The number of members that each pair of rows has in common.

    Parameters
    ----------
    rows : sequence of ndarray, int
        The members of each row, as numbers from 0. No row has a member twice.

    Returns
    -------
    ndarray, shape (rows, rows), float64
        Whole numbers. The diagonal has the length of each row.

    Notes
    -----
    Members that are in the same rows count together, because there are mostly few such groups. A group is known by the
    sum of a 64-bit hash per row; two groups have the same sum with a probability of 2**-64. Each group adds its size to
    all pairs of its rows.
    """
    n, top = len(rows), max((int(own.max(initial=-1)) for own in rows), default=-1)
    of_row = np.frombuffer(b"".join(blake2b(b"%d" % k, digest_size=8).digest() for k in range(n)), np.uint64)
    signature = np.zeros(top + 1, np.uint64)
    for own, hashed in zip(rows, of_row, strict=True):
        signature[own] += hashed
    groups, first, group, size = np.unique(signature, return_index=True, return_inverse=True, return_counts=True)
    is_first = np.zeros(len(signature), bool)
    is_first[first] = True
    chosen = [own[is_first[own]] for own in rows]  # one member of each group says which rows the group is in
    row = np.repeat(np.arange(n), list(map(len, chosen)))
    group = group[np.concatenate([np.zeros(0, np.int64), *chosen])]
    order = np.argsort(group, kind="stable")
    rows_of, at = row[order], np.searchsorted(group[order], np.arange(len(groups)))
    upto = np.empty(len(group), np.int64)  # by row and group, how many rows of the group there are up to this one
    upto[order] = np.arange(1, len(order) + 1) - at[group[order]]
    begins, common = np.searchsorted(row, np.arange(n + 1)), np.zeros((n, n))
    for k in range(n):
        own, lengths = group[begins[k] : begins[k + 1]], upto[begins[k] : begins[k + 1]]
        places = np.arange(lengths.sum()) + np.repeat(at[own] - (np.cumsum(lengths) - lengths), lengths)
        common[k, : k + 1] = common[: k + 1, k] = np.bincount(rows_of[places], np.repeat(size[own], lengths), k + 1)
    return common


def shares_of(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The share of the edges of each biclique that each other one has, too.

    Parameters
    ----------
    left, right : ndarray, shape (rows, rows)
        `common_members` of both sides.

    Returns
    -------
    ndarray, shape (rows, rows), float64
        ``[i, j]`` is the number of edges that `i` and `j` have in common, divided by the number of edges of `i`.
    """
    both = left * right
    shares: np.ndarray = both / np.maximum(np.diag(both), 1.0)[:, None]
    return shares


def repeated(shares: np.ndarray, order: np.ndarray, most: float) -> np.ndarray:
    """Which bicliques mostly repeat a better one.

    Parameters
    ----------
    shares : ndarray, shape (rows, rows)
        `shares_of`.
    order : ndarray, int
        The bicliques to look at, the best first.
    most : float
        A biclique repeats a better one if it shares more than this with it. It is compared with those better ones that
        repeat no other.

    Returns
    -------
    ndarray, shape of `order`, int64
        For each biclique in `order`, the one with which it shares most, if it repeats that one. Otherwise -1.
    """
    found, kept = np.full(len(order), -1, np.int64), np.zeros(len(order), np.int64)
    n = 0
    for k, i in enumerate(order):
        own = shares[i, kept[:n]]
        if n and own.max() > most:
            found[k] = kept[own.argmax()]
        else:
            kept[n] = i
            n += 1
    return found


#: The measures by which the page lists the largest bicliques of the summary.
RANKINGS: tuple[By, ...] = ("edges", "balance")
#: What scoring for surprise may take, in units of one pair (4 ns on a core): for all, for each biclique and for each
#: member. It is about a tenth of what mining takes, which grows with both. A biclique takes `_SCORED` and its pairs.
MAY_TAKE, _SCORED = (10_000_000, 40, 3), 100
#: Threads that score. They take less memory than a writer does, with which the driver's bound is made.
_MOST_THREADS = 4
#: Members of those behind the largest, all together, that are read to find distinct ones.
MOST_BEHIND = 500_000
#: Parts and row groups whose sizes are looked at for examples, and row groups of which examples are read.
_MOST_PARTS, _MOST_GROUPS, _MOST_READ = 64, 64, 16
#: The fewest examples, if there are so many others: so small runs are on the page as a whole. Then the most of a cell.
_EXAMPLES, _MOST_OF_A_CELL = 200, 200


def chosen(run: Run, results: Results, summary: Summary, degrees: Sequence[np.ndarray]) -> Listed:
    """The largest bicliques by each measure, distinct ones behind them, and examples of all cells of the heat map.

    `degrees` are those of both sides of the input. Raises `IncompleteError` if a part is missing or damaged.

    Notes
    -----
    Reads the row groups that hold one of the largest of the summary, the two size columns of at most 64 row groups, and
    at most 16 of these as a whole; and for the most surprising ones row groups in which these may be, all or a sample.
    """
    ranks: dict[str, np.ndarray] = {by: _not_too_long(summary.largest[by]) for by in RANKINGS}
    parts, scored = Sampled(run, results.files, summary.sizes), 0
    if run.options.search.near is None and run.options.search.largest is None:  # surprise is about edges, and about all
        from bicliques.pipeline.results.surprise import Surprise  # only here, because it imports compiled code

        give_back_memory()
        pairs = zip(degrees, (summary.left, summary.right), strict=True)
        score = Surprise(run, [np.where(total > 0, own, 0) for own, total in pairs])
        best, scored = best_rows(parts, score, LARGEST, hold=False, threads=_MOST_THREADS), parts.n_rows
        ranks = {"surprise": _not_too_long(best.ranks), **ranks}
    others = examples(Parts(run, results.files), cells_of(summary.sizes), [own[:TOP] for own in ranks.values()])
    places = list(dict.fromkeys([*(place for own in ranks.values() for place in places_of(own)), *others]))
    return replace(listed(rows_at(results.files, places, results.schema), places, ranks, others), scored=scored)


class Sampled(Parts):
    """Parts of which some row groups are read, evenly chosen, if to score all would take longer than it may.

    Attributes
    ----------
    n_rows : int
        Rows in the row groups that were chosen last.
    """

    at_once = 1 << 15  # a driver that has searched has little memory left

    def __init__(self, run: Run, files: Sequence[Path], sizes: SizeCounts):
        super().__init__(run, files)
        left, right, count = (own.astype(float) for own in (sizes.n_left, sizes.n_right, sizes.count))
        rows, members, pairs = count.sum(), ((left + right) * count).sum(), (left * right * count).sum()
        self._share = np.dot(MAY_TAKE, (1, rows, members)) / max(pairs + _SCORED * rows, 1)
        self._total, self.n_rows = sizes.total, 0

    def groups(self, parts: Iterable[int] | None = None) -> list[tuple[int, int, tuple[int, int] | None]]:
        """As of `Parts`."""
        found, self.n_rows = super().groups(parts), self._total
        wanted = max(1, int(self._share * len(found)))
        if wanted < len(found):
            found = [found[k] for k in np.linspace(0, len(found) - 1, wanted).astype(int).tolist()]
            self.n_rows = sum(len(self.sizes(*place[:2])[0]) for place in found)
        return found


def _not_too_long(best: np.ndarray) -> np.ndarray:
    """The `TOP` largest, and as many behind them as have `MOST_BEHIND` members together."""
    edges, left = best[TOP:, 1], best[TOP:, 2]
    return best[: TOP + int(np.searchsorted(np.cumsum(left + edges // left), MOST_BEHIND, side="right"))]


def examples(parts: Parts, cells: Grid, rankings: list[np.ndarray]) -> list[Place]:
    """Rows of every cell of the heat map, beside those that are in a ranking.

    Parameters
    ----------
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
