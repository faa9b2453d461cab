"""Selects rows: the largest bicliques, or some at random. The order in which a run wrote its rows does not matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import in_order
from bicliques.pipeline.run.tables import open_part
from bicliques.schemas.errors import InputError
from bicliques.schemas.hashes import splitmix64
from bicliques.schemas.search import MEASURES, By
from bicliques.schemas.sizes import SizeCounts, SizedRows
from bicliques.schemas.totals import measured

#: The place of a row: number of the file, of the row group in it, and of the row in that, all from 0.
Place = tuple[int, int, int]

#: If at most so many rows per wanted row may be among the largest, all of them are looked at, and sizes are not ranked.
_FEW = 100
#: Most threads that read row groups.
_MOST_THREADS = 16
#: Rows that are read together where only a few of a row group are wanted.
BATCH = 1 << 13


class Largest:
    """Finds the `n` largest of all bicliques whose sizes are added.

    Raises `InputError` if `by` is another word.

    Parameters
    ----------
    by : "edges", "vertices", "balance", "left" or "right"
        The measure. Ties go to the larger number of edges, then to the larger left side, then to the larger hash.

    Attributes
    ----------
    best : ndarray, shape (at most n, 7), int64
        The largest bicliques, the largest first. Columns: measure, edges, left size, hash (its 64 bits as a signed
        number), file, row group, row.
    """

    def __init__(self, n: int, by: By):
        if by not in MEASURES:
            raise InputError(f"bicliques are ranked by {', '.join(MEASURES)}, not by {by!r}")
        self._n, self._by = n, by
        self.best = np.empty((0, 7), np.int64)

    def add(self, sized: SizedRows, hashes: Callable[[], np.ndarray], file: int, group: int) -> None:
        """Add the rows of a row group; see `add_rows`."""
        add_rows([self], sized, hashes, file, group)

    def add_chosen(
        self,
        left: np.ndarray,
        right: np.ndarray,
        least: tuple[int, ...],
        hashes: Callable[[], np.ndarray],
        file: int,
        group: int,
        numbers: np.ndarray,
    ) -> None:
        """Add those rows of a row group that may be among the largest. `numbers` has the number of each in the group.

        The other parameters are as of `add_rows`. Rows that rank lower than `least` are left out.
        """
        rows = np.flatnonzero(_reach(left, right, self._by, least))
        if len(rows) == 0:
            return
        left, right = left[rows].astype(np.int64), right[rows].astype(np.int64)
        key, edges = measured(left, right, self._by), left * right
        hashed = hashes()[numbers[rows]].view(np.int64)
        is_tie = (key == least[0]) & (edges == least[1]) & (left == least[2])
        ties = np.flatnonzero(is_tie)
        if len(ties) > self._n:
            ties = ties[np.argpartition(hashed[ties], len(ties) - self._n)[len(ties) - self._n :]]
        chosen = np.concatenate([np.flatnonzero(~is_tie), ties])
        place = (np.full(len(chosen), file), np.full(len(chosen), group), numbers[rows[chosen]])
        self.merge(np.column_stack([key[chosen], edges[chosen], left[chosen], hashed[chosen], *place]))

    def least(self, sizes: SizeCounts) -> tuple[int, ...]:
        """The rank that a row needs at least, in a row group of these sizes: a measure, edges and a left size."""
        if len(self.best) < self._n:
            return _least(sizes, self._by, self._n)
        last: tuple[int, ...] = tuple(self.best[-1, :3].tolist())
        # ranking the sizes would take longer than looking at a few rows too many
        if int(sizes.count[self.reach(sizes, last)].sum()) <= _FEW * self._n:
            return last
        return max(_least(sizes, self._by, self._n), last)

    def reach(self, sizes: SizeCounts, least: tuple[int, ...]) -> np.ndarray:
        """Which sizes rank at least as high as `least`, as a mask."""
        return _reach(sizes.n_left, sizes.n_right, self._by, least)

    def merge(self, best: np.ndarray) -> None:
        """Add the rows of `Largest.best` that another object has found in other row groups."""
        both = np.concatenate([self.best, best])
        self.best = both[np.lexsort(both.T[::-1])[::-1][: self._n]]

    def renumber(self, files: np.ndarray) -> None:
        """Give file ``k`` the number ``files[k]``."""
        best = self.best.copy()
        best[:, 4] = files[best[:, 4]]
        self.best = best[np.lexsort(best.T[::-1])[::-1]]

    def places(self) -> list[Place]:
        """The places of the rows found, the largest first."""
        return places_of(self.best)


def add_rows(
    rankings: Sequence[Largest],
    sized: SizedRows,
    hashes: Callable[[], np.ndarray],
    file: int,
    group: int,
) -> None:
    """Add the rows of a row group to several rankings. Sizes are few and rows are many, so sizes are ranked first.

    Parameters
    ----------
    sized : SizedRows
        The sizes of the rows.
    hashes : callable
        () -> hash of each row, uint64. It is called only if a row is large enough.
    file, group : int
        Numbers of the file and of the row group, from 0.
    """
    sizes = sized.counts
    least = [ranking.least(sizes) for ranking in rankings]
    wanted = [ranking.reach(sizes, rank) for ranking, rank in zip(rankings, least, strict=True)]
    rows = sized.of(sizes.pick(np.logical_or.reduce(wanted)))
    left, right = sized.n_left[rows], sized.n_right[rows]
    for ranking, rank in zip(rankings, least, strict=True):
        ranking.add_chosen(left, right, rank, hashes, file, group, rows)


def places_of(best: np.ndarray) -> list[Place]:
    """The places of rows of `Largest.best`."""
    return [(int(file), int(group), int(row)) for file, group, row in best[:, 4:]]


def largest(files: Sequence[Path], n: int, by: By) -> list[Place]:
    """The places of the `n` largest bicliques, the largest first; see `Largest`.

    The two size columns are read twice. The ids of row groups that may hold one of the largest are read, too. Raises
    `InputError` if `by` is no measure, and `IncompleteError` if a file is missing or damaged.
    """
    found, total = Largest(n, by), SizeCounts.empty()
    for _, _, left, right in _sizes(files):
        total = SizeCounts.merge([total, SizeCounts.of(left, right)])
    least = _least(total, by, n)
    for k, group, left, right in _sizes(files):
        if _reach(left, right, by, least).any():
            found.add(SizedRows(left, right), partial(_ids, files[k], group), k, group)
    return found.places()


def _sizes(files: Sequence[Path]) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """For every row group: number of the file, number of the row group, and left and right sizes of its rows, int64."""
    for k, file in enumerate(files):
        with open_part(file) as part:
            for group in range(part.num_row_groups):
                sizes = part.read_row_group(group, columns=["n_left", "n_right"])
                left, right = (column.to_numpy().astype(np.int64) for column in sizes.columns)
                yield k, group, left, right


def sampled(files: Sequence[Path], n: int, seed: int) -> list[Place]:
    """The places of `n` rows that are chosen at random, or of all rows if there are fewer.

    The chosen rows are those whose id, mixed with the seed, is smallest, in that order. So the choice does not depend
    on the places of the rows, and a smaller sample is the beginning of a larger one. All ids are read. Raises
    `IncompleteError` if a file is missing or damaged.
    """
    salt = splitmix64(np.array([seed], np.uint64))

    def smallest(place: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        mixed = splitmix64(_ids(files[place[0]], place[1]) ^ salt)
        rows = np.argpartition(mixed, n - 1)[:n] if n < len(mixed) else np.arange(len(mixed))
        return mixed[rows], np.column_stack([np.full(len(rows), place[0]), np.full(len(rows), place[1]), rows])

    best, where = np.empty(0, np.uint64), np.empty((0, 3), np.int64)
    with ThreadPoolExecutor(min(_MOST_THREADS, count_cores())) as threads:
        for mixed, places in threads.map(smallest, _groups(files)):
            best, where = np.concatenate([best, mixed]), np.concatenate([where, places])
            order = np.argsort(best, kind="stable")[:n]
            best, where = best[order], where[order]
    return [(int(file), int(group), int(row)) for file, group, row in where]


def place_of_id(files: Sequence[Path], id: int) -> Place | None:
    """The place of the first row with an id. None if there is none.

    Ids have no order, so the column of ids is read, in a few threads with one row group each, until the row is found.
    Raises `IncompleteError` if a file is missing or damaged.
    """

    def look(place: tuple[int, int]) -> Place | None:
        rows = np.flatnonzero(_ids(files[place[0]], place[1]) == np.uint64(id % 2**64))
        return (*place, int(rows[0])) if len(rows) else None

    found = in_order(look, _groups(files), min(_MOST_THREADS, count_cores()))
    return next((place for place in found if place is not None), None)


def _ids(file: Path, group: int) -> np.ndarray:
    """The ids of the rows of a row group, as hashes: uint64."""
    with open_part(file) as part:
        ids: np.ndarray = part.read_row_group(group, columns=["id"], use_threads=False)["id"].to_numpy()
    return ids.view(np.uint64)


def _groups(files: Sequence[Path]) -> list[tuple[int, int]]:
    """Every row group, as (number of the file, number of the row group)."""
    found = []
    for k, file in enumerate(files):
        with open_part(file) as part:
            found += [(k, group) for group in range(part.num_row_groups)]
    return found


def _reach(left: np.ndarray, right: np.ndarray, by: By, least: tuple[int, ...]) -> np.ndarray:
    """Which sizes rank at least as high as `least`: a measure, a number of edges and a left size."""
    left, right = left.astype(np.int64, copy=False), right.astype(np.int64, copy=False)
    keys, edges = measured(left, right, by), left * right
    on_edges = (edges > least[1]) | ((edges == least[1]) & (left >= least[2]))
    found: np.ndarray = (keys > least[0]) | ((keys == least[0]) & on_edges)
    return found


def _least(sizes: SizeCounts, by: By, n: int) -> tuple[int, ...]:
    """Measure, edges and left size of the n-th largest biclique. Zeros if there are fewer."""
    left, right = sizes.n_left.astype(np.int64), sizes.n_right.astype(np.int64)
    ranks = np.column_stack([measured(left, right, by), left * right, left])
    order = np.lexsort(ranks.T[::-1])[::-1]
    at = int(np.searchsorted(np.cumsum(sizes.count[order]), n))
    return tuple(ranks[order[at]].tolist()) if at < len(order) else (0, 0, 0)


def rows_at(files: Sequence[Path], places: list[Place], schema: pa.Schema) -> pa.Table:
    """The rows at `places`, in that order. Every row group is read once, up to the last row wanted of it.

    Raises `IncompleteError` if a file is missing or damaged.
    """
    if not places:
        return schema.empty_table()
    order = sorted(range(len(places)), key=lambda i: places[i])
    groups: dict[tuple[int, int], list[int]] = {}
    for i in order:
        groups.setdefault(places[i][:2], []).append(places[i][2])

    lists = [field for field in schema if pa.types.is_list(field.type)]
    # as dictionaries, as Parquet stores text, because most rows are not taken, and their text need not be made
    texts = [f"{field.name}.list.element" for field in lists if pa.types.is_string(field.type.value_type)]

    def read(place: tuple[int, int]) -> pa.Table:
        with open_part(files[place[0]], read_dictionary=texts) as part:
            # in batches, because the lists of a whole row group take tens of megabytes
            batches = part.iter_batches(BATCH, row_groups=[place[1]], use_threads=False)
            return pa.Table.from_batches(_taken(batches, np.array(groups[place]))).cast(schema)

    with ThreadPoolExecutor(min(_MOST_THREADS, count_cores())) as threads:
        found = list(threads.map(read, groups))
    return pa.concat_tables(found).take(np.argsort(order))


def _taken(batches: Iterator[pa.RecordBatch], rows: np.ndarray) -> list[pa.RecordBatch]:
    """These rows of all batches together. `rows` ascend, and may repeat."""
    found, begin = [], 0
    for batch in batches:
        own = rows[(rows >= begin) & (rows < begin + len(batch))]
        if len(own):
            found.append(batch.take(pa.array(own - begin)))
        begin += len(batch)
        if begin > rows[-1]:
            return found
    raise IndexError(f"row {rows[-1]} is beyond the {begin} rows of the row group")
