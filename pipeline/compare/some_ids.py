"""Ids of rows: those of a part, and which of many are among few."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq

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
