"""What is known of every vertex of one side: in how many bicliques it is, and the largest of them by two measures.

Such numbers can be added in any order and grouping. Counts are summed, and of two largest bicliques the larger one
stays. Their order is total: by measure, by number of edges, by left size, and by hash, as in `schemas.totals.Best`.
"""

from __future__ import annotations

import base64
from typing import Self

import numpy as np
import pyarrow as pa

from bicliques.schemas.dtypes import COUNT, MAX_VERTICES, VERTEX
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.search import By

#: The measures by which each vertex has a largest biclique.
LARGEST_BY: tuple[By, ...] = ("edges", "balance")
_COLUMNS = (("n_left", VERTEX), ("n_right", VERTEX), ("hash", np.uint64))


class LargestOfEach:
    """The largest biclique of each vertex by one measure.

    Parameters
    ----------
    by : By
        One of `LARGEST_BY`.
    n_left, n_right : ndarray, shape (n,), int32
        Sizes of the largest biclique, by dense id. 0 where there is none.
    hash : ndarray, shape (n,), uint64
        Its hash (`schemas.bicliques.row_hashes`), which names it in a set of bicliques. 0 where there is none.
    """

    def __init__(self, by: By, n_left: np.ndarray, n_right: np.ndarray, hash: np.ndarray) -> None:
        self.by, self.n_left, self.n_right, self.hash = by, n_left, n_right, hash

    @classmethod
    def none(cls, by: By, n: int) -> Self:
        """None of `n` vertices has a biclique."""
        return cls(by, *(np.zeros(n, dtype) for _, dtype in _COLUMNS))

    def merge(self, other: LargestOfEach) -> None:
        """The same for the largest bicliques of other slices. `other` has at most as many vertices."""
        self._put(np.flatnonzero(other.n_left), *(getattr(other, name)[other.n_left > 0] for name, _ in _COLUMNS))

    def _put(self, ids: np.ndarray, n_left: np.ndarray, n_right: np.ndarray, hash: np.ndarray) -> None:
        """Offer one biclique to each of some vertices."""
        mine = (self.n_left[ids], self.n_right[ids], self.hash[ids])
        larger = np.zeros(len(ids), np.bool_)
        equal = np.ones(len(ids), np.bool_)
        pairs = zip(_keys(self.by, n_left, n_right, hash)[::-1], _keys(self.by, *mine)[::-1], strict=True)
        for new, old in pairs:
            larger |= equal & (new > old)
            equal &= new == old
        ids = ids[larger]
        self.n_left[ids], self.n_right[ids], self.hash[ids] = n_left[larger], n_right[larger], hash[larger]

    def padded(self, n: int) -> Self:
        """A copy for at least `n` vertices."""
        n = max(n, len(self.hash))
        return type(self)(self.by, *(_padded(getattr(self, name), n) for name, _ in _COLUMNS))


class SideTotals:
    """What is known of the vertices of one side. Vertices behind the last one are in no biclique.

    Parameters
    ----------
    count : ndarray, shape (n,), int64
        Number of bicliques with each vertex, by dense id.
    largest : dict of str to LargestOfEach
        By measure.
    """

    def __init__(self, count: np.ndarray, largest: dict[By, LargestOfEach]) -> None:
        self.count, self.largest = count, largest

    @classmethod
    def none(cls, n: int = 0) -> Self:
        """No biclique has been seen."""
        return cls(np.zeros(n, COUNT), {by: LargestOfEach.none(by, n) for by in LARGEST_BY})

    def padded(self, n: int) -> Self:
        """A copy for at least `n` vertices."""
        return type(self)(
            _padded(self.count, max(n, len(self.count))), {by: own.padded(n) for by, own in self.largest.items()}
        )

    def __add__(self, other: SideTotals) -> Self:
        sums = self.padded(len(other.count))
        sums.count[: len(other.count)] += other.count
        for by, own in sums.largest.items():
            own.merge(other.largest[by])
        return sums

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SideTotals):
            return NotImplemented
        n = max(len(self.count), len(other.count))
        mine, theirs = self.padded(n)._columns(), other.padded(n)._columns()
        return all(np.array_equal(mine[name], theirs[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]

    def _columns(self) -> dict[str, np.ndarray]:
        largest = {f"{by}_{name}": getattr(own, name) for by, own in self.largest.items() for name, _ in _COLUMNS}
        return {"count": self.count} | largest

    def pack(self) -> str:
        """The vertices that are in a biclique, as an Arrow stream, compressed, in base 64."""
        seen = np.flatnonzero(self.count)
        batch = pa.record_batch({"id": seen} | {name: column[seen] for name, column in self._columns().items()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_batch(batch)
        return base64.b64encode(sink.getvalue().to_pybytes()).decode()

    @classmethod
    def unpack(cls, packed: str) -> Self:
        """Inverse of `pack`.

        Raises
        ------
        IncompleteError
            `packed` is damaged.
        """
        try:
            table = pa.ipc.open_stream(base64.b64decode(packed, validate=True)).read_all()
            seen = table["id"].to_numpy()
            columns = {name: table[name].to_numpy() for name in cls.none()._columns()}
        except (pa.ArrowException, KeyError, MemoryError, OSError, TypeError, ValueError) as error:
            raise IncompleteError(f"its numbers of vertices cannot be read: {error}") from error
        fits = len(seen) == 0 or 0 <= seen[0] <= seen[-1] <= MAX_VERTICES
        if not fits or (np.diff(seen) <= 0).any() or (columns["count"] <= 0).any():
            raise IncompleteError("its numbers of vertices are damaged: they are not of vertices in ascending order")
        side = cls.none(int(seen[-1]) + 1 if len(seen) else 0)
        for name, column in side._columns().items():
            column[seen] = columns[name]
        return side


def _padded(values: np.ndarray, n: int) -> np.ndarray:
    return np.concatenate([values, np.zeros(n - len(values), values.dtype)])


def _keys(by: By, n_left: np.ndarray, n_right: np.ndarray, hash: np.ndarray) -> tuple[np.ndarray, ...]:
    """What bicliques are ordered by, the most important key last, as `numpy.lexsort` has it."""
    left, right = n_left.astype(np.int64), n_right.astype(np.int64)
    edges = left * right
    return hash.view(np.int64), left, edges, edges if by == "edges" else np.minimum(left, right)
