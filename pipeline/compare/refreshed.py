"""What differs between a run and the one that it was refreshed from, by ids alone and one part at a time.

Rows that were taken over have the ids of the run before, in a part of their own for each part before
(`pipeline.compare.taking_over`). So no members are read, and no hashes of all rows are sorted. `Ids` says which of many
ids are among few.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from bicliques.pipeline.compare.both_runs import BothRuns, CompleteRun
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import in_order
from bicliques.pipeline.run.names import part_name
from bicliques.pipeline.run.tables import open_part

#: Leading bits by which most ids are known not to be among them: so many more than their number has, and the most.
_MORE_BITS, _MOST_BITS = 5, 26


def ids_in(part: pq.ParquetFile) -> np.ndarray:
    """The ids of all rows of a part, uint64."""
    ids: np.ndarray = part.read(columns=["id"], use_threads=False)["id"].to_numpy().view(np.uint64)
    return ids


class Ids:
    """Some ids, few of all that are looked up.

    Parameters
    ----------
    ids : ndarray, int64 or uint64
    """

    def __init__(self, ids: np.ndarray):
        self.ids = np.sort(ids.view(np.uint64))
        bits = min(len(ids).bit_length() + _MORE_BITS, _MOST_BITS)
        self._is_near, self._shift = np.zeros(1 << bits, np.bool_), np.uint64(64 - bits)
        self._is_near[self.ids >> self._shift] = True

    def have(self, ids: np.ndarray) -> np.ndarray:
        """Which of the ids are among them."""
        found = self._is_near[ids >> self._shift]
        near = np.flatnonzero(found)
        if len(near):
            at = np.minimum(np.searchsorted(self.ids, ids[near]), len(self.ids) - 1)
            found[near] = self.ids[at] == ids[near]
        return found


class Part(NamedTuple):
    """A part of one of the two runs.

    Parameters
    ----------
    run : int
        0: the old run. 1: the new one.
    number : int
        Of the part in its run.
    ids : ndarray, uint64
        Of all its rows.
    is_only : ndarray, bool
        Which of the rows the other run lacks.
    """

    run: int
    number: int
    ids: np.ndarray
    is_only: np.ndarray


def follows(both: BothRuns) -> bool:
    """Whether the new run was refreshed from the old one as it is now, and has the parts that this gave it."""
    parent = both.new.manifest.parent
    if parent is None or (parent.run, parent.fingerprint) != (both.old.run.identity, str(both.old.found.fingerprint)):
        return False
    rows = [both.new.manifest.parts[now].rows if now is not None else 0 for _, now in _pairs(both)]
    return sum(rows) == parent.count - parent.gone


def compared_parts(both: BothRuns) -> Iterator[Part]:
    """Every part of two runs of which the new one `follows`.

    Raises `IncompleteError` if a part is missing or damaged.
    """
    pairs: list[tuple[int | None, int | None]] = list(_pairs(both))
    taken = {now for _, now in pairs}
    pairs += [(None, k) for k in range(len(both.new.manifest.parts)) if k not in taken]
    for parts in in_order(lambda pair: _compared(both, pair), pairs, count_cores()):
        yield from parts


def _compared(both: BothRuns, numbers: tuple[int | None, int | None]) -> list[Part]:
    ids = [_ids(own, number) for own, number in zip(both, numbers, strict=True)]
    together = np.sort(np.concatenate(ids))  # no run has an id twice
    is_next = np.concatenate([[False], together[1:] == together[:-1], [False]])
    only = Ids(together[~(is_next[1:] | is_next[:-1])])
    return [
        Part(run, number, own, only.have(own))
        for run, (number, own) in enumerate(zip(numbers, ids, strict=True))
        if number is not None
    ]


def _pairs(both: BothRuns) -> Iterator[tuple[int, int | None]]:
    """The numbers of each part before, and of what is left of it: names of the first parts count those before."""
    parts = both.new.manifest.parts
    numbers = {part.name: k for k, part in enumerate(parts)}
    stem = parts[0].name.rpartition("-")[0] if parts else ""
    for k in range(len(both.old.manifest.parts)):
        yield k, numbers.get(part_name(stem, k))


def _ids(compared: CompleteRun, number: int | None) -> np.ndarray:
    if number is None:
        return np.empty(0, np.uint64)
    with open_part(compared.run.folder.bicliques / compared.manifest.parts[number].name) as file:
        return ids_in(file)
