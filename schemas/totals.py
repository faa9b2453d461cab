"""Totals, which are the sums of slices. The job of a run says which kind of total it has (`schemas.jobs`).

Totals can be added in any order and grouping, and the sum is exact. So a scheduler may deal work in any way, a run may
be resumed, and the total without a dropped ledger entry is the sum of the other entries.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa

from bicliques.schemas.bicliques import ID, Bicliques, fingerprint
from bicliques.schemas.dtypes import OFFSET, VERTEX
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.search import MEASURES, By, measure
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.vertices import SideTotals


class Total(Protocol):
    """The sum of slices."""

    @property
    def count(self) -> int:
        """Rows of the result."""
        ...

    @property
    def seen(self) -> int:
        """Bicliques that the engines found, whether they are rows of the result or not."""
        ...

    @property
    def fingerprint(self) -> int | None:
        """The fingerprint of the rows (`schemas.bicliques.fingerprint`). None when they were not hashed."""
        ...

    @property
    def sizes(self) -> SizeCounts | None:
        """The number of rows of each size. None when that was not counted."""
        ...

    def __add__(self, other: Self) -> Self: ...

    def to_json(self) -> dict[str, Any]:
        """The fields of a ledger entry."""
        ...

    def outline(self) -> Found:
        """The total of one slice without the parts that need much memory. Its `Found.count` is `seen`."""
        ...


@dataclass(frozen=True)
class Found:
    """How many bicliques were found, and their fingerprint: the total of the job that finds all of them.

    Parameters
    ----------
    fingerprint : int or None
        Sum modulo 2**64 (`schemas.bicliques.fingerprint`). None when it was not computed.
    sizes : SizeCounts or None
        The same bicliques by size. None when they were not counted by size.
    """

    count: int = 0
    fingerprint: int | None = None
    sizes: SizeCounts | None = None

    @property
    def seen(self) -> int:
        """The count, because all bicliques that were found are rows."""
        return self.count

    def __add__(self, other: Found) -> Found:
        prints, sizes = (self.fingerprint, other.fingerprint), (self.sizes, other.sizes)
        return Found(
            self.count + other.count,
            None if prints[0] is None or prints[1] is None else (prints[0] + prints[1]) % 2**64,
            None if sizes[0] is None or sizes[1] is None else SizeCounts.merge([sizes[0], sizes[1]]),
        )

    def to_json(self) -> dict[str, Any]:
        """The fields of a ledger entry. A fingerprint is text: many JSON readers lose digits of 64-bit numbers."""
        return {
            "count": self.count,
            "fingerprint": None if self.fingerprint is None else str(self.fingerprint),
            "sizes": None if self.sizes is None else self.sizes.to_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Found:
        """Inverse of `to_json`.

        Raises
        ------
        IncompleteError
            The sizes are damaged, or do not add up to the number of bicliques.
        TypeError, ValueError, KeyError
            A field is missing or has another type.
        """
        sizes = None if data.get("sizes") is None else SizeCounts.from_json(data["sizes"])
        found = cls(_count(data["count"]), fingerprint_from(data["fingerprint"]), sizes)
        if sizes is not None and sizes.total != found.count:
            raise IncompleteError(f"it found {found.count} bicliques, and {sizes.total} by size")
        return found

    def outline(self) -> Found:
        """The same without the sizes."""
        return Found(self.count, self.fingerprint)


@dataclass(frozen=True)
class PerVertex:
    """What was found, and what is known of every vertex: in how many bicliques it is, and the largest of them.

    Parameters
    ----------
    found : Found
        All bicliques.
    """

    found: Found
    left: SideTotals
    right: SideTotals

    @property
    def count(self) -> int:
        """The count of `found`."""
        return self.found.count

    @property
    def seen(self) -> int:
        """The count, because all bicliques that were found are counted."""
        return self.found.count

    @property
    def fingerprint(self) -> int | None:
        """The fingerprint of `found`."""
        return self.found.fingerprint

    @property
    def sizes(self) -> SizeCounts | None:
        """The sizes of `found`."""
        return self.found.sizes

    def __add__(self, other: PerVertex) -> PerVertex:
        return PerVertex(self.found + other.found, self.left + other.left, self.right + other.right)

    def to_json(self) -> dict[str, Any]:
        """The fields of a ledger entry. What is known of the vertices is an Arrow stream per side."""
        return self.found.to_json() | {"vertices": {"left": self.left.pack(), "right": self.right.pack()}}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> PerVertex:
        """Inverse of `to_json`.

        Raises
        ------
        IncompleteError
            The numbers of the vertices are damaged, or there are more of them than bicliques.
        TypeError, ValueError, KeyError
            A field is missing or has another type.
        """
        found = Found.from_json(data)
        sides = [SideTotals.unpack(data["vertices"][side]) for side in ("left", "right")]
        most = max(int(side.count.max(initial=0)) for side in sides)
        if most > found.count:
            raise IncompleteError(f"it found {found.count} bicliques, and {most} with the same vertex")
        return cls(found, *sides)

    def outline(self) -> Found:
        """The number and the fingerprint."""
        return self.found.outline()


@dataclass(frozen=True, eq=False)
class Best:
    """The `k` largest of all bicliques that were seen, with the largest first.

    The order is total: by `keys_of`, then by the id. So the result does not depend on how the work was divided.

    Parameters
    ----------
    rows : Bicliques
        At most `k` bicliques, in that order.
    """

    k: int
    by: By
    seen: int
    rows: Bicliques

    @property
    def count(self) -> int:
        """Number of rows: `k`, or fewer if there are fewer bicliques."""
        return len(self.rows)

    @property
    def fingerprint(self) -> int:
        """Of the rows."""
        return fingerprint(self.rows)

    @property
    def sizes(self) -> SizeCounts:
        """Of the rows."""
        return SizeCounts.of(np.diff(self.rows.left_indptr), np.diff(self.rows.right_indptr))

    @property
    def least(self) -> int | None:
        """The first key of the last row, once there are `k` rows. A biclique with less is no row. None before that."""
        return int(keys_of(self.rows, self.by)[0, -1]) if len(self.rows) == self.k else None

    @property
    def most(self) -> int | None:
        """The first key of the first row. None if there are no rows."""
        return int(keys_of(self.rows, self.by)[0, 0]) if len(self.rows) else None

    @classmethod
    def of(cls, k: int, by: By, found: Bicliques, least: int | None = None) -> Best:
        """The largest of a batch, without those whose key is less than `least`. The batch's arrays may change later."""
        large = found if least is None else found.pick(np.flatnonzero(keys_of(found, by)[0] >= least))
        order = np.lexsort((large.ids, *keys_of(large, by)[::-1]))[::-1][:k]
        return cls(k, by, len(found), large.pick(order))

    def __add__(self, other: Best) -> Best:
        if (self.k, self.by) != (other.k, other.by):
            raise ValueError(f"the {self.k} largest by {self.by} and the {other.k} by {other.by} have no sum")
        best = Best.of(self.k, self.by, Bicliques.concat([self.rows, other.rows]))
        return Best(self.k, self.by, self.seen + other.seen, best.rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Best):
            return NotImplemented
        mine, theirs = (total.rows.ids.tolist() for total in (self, other))
        return (self.k, self.by, self.seen, mine) == (other.k, other.by, other.seen, theirs)

    __hash__ = None  # type: ignore[assignment]

    def to_json(self) -> dict[str, Any]:
        """The fields of a ledger entry. The rows are an Arrow stream."""
        lists = (pa.LargeListArray.from_arrays(self.rows.left_indptr, self.rows.left), self.rows.right_indptr)
        batch = pa.record_batch(
            {
                "left": lists[0],
                "right": pa.LargeListArray.from_arrays(lists[1], self.rows.right),
                "root": pa.array(self.rows.root),
                "id": pa.array(self.rows.ids),
                **({} if self.rows.missing is None else {"missing": pa.array(self.rows.missing)}),
            }
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_batch(batch)
        packed = base64.b64encode(sink.getvalue().to_pybytes()).decode()
        return {"count": self.count, "fingerprint": str(self.fingerprint), "seen": self.seen, "rows": packed}

    @classmethod
    def from_json(cls, data: dict[str, Any], k: int, by: By) -> Best:
        """Inverse of `to_json`.

        Raises
        ------
        IncompleteError
            The rows are damaged, or do not have the fingerprint of the entry.
        TypeError, ValueError, KeyError
            A field is missing or has another type.
        """
        try:
            table = pa.ipc.open_stream(base64.b64decode(data["rows"], validate=True)).read_all().combine_chunks()
            left, right = (table[name].combine_chunks() for name in ("left", "right"))
        except (pa.ArrowException, MemoryError, OSError) as error:
            raise IncompleteError(f"its rows cannot be read: {error}") from error
        rows = Bicliques(
            left.offsets.to_numpy().astype(OFFSET),
            left.values.to_numpy().astype(VERTEX),
            right.offsets.to_numpy().astype(OFFSET),
            right.values.to_numpy().astype(VERTEX),
            table["root"].to_numpy().astype(VERTEX),
            table["id"].to_numpy().astype(ID),
            table["missing"].to_numpy().astype(VERTEX) if "missing" in table.column_names else None,
        )
        found = cls(k, by, _count(data["seen"]), rows)
        if (found.count, found.fingerprint) != (data["count"], fingerprint_from(data["fingerprint"])):
            raise IncompleteError(f"its rows are not the {data['count']} with fingerprint {data['fingerprint']}")
        return found

    def outline(self) -> Found:
        """The number of bicliques seen."""
        return Found(self.seen)


def keys_of(rows: Bicliques, by: By) -> np.ndarray:
    """The keys that rows are ranked by, the first key first. Rows with equal keys are ranked by their id.

    Parameters
    ----------
    by : By
        The first key: `schemas.search.measure`. The second key is the number of edges, and the third the size of the
        left side. Pairs that are no edges do not count as edges.

    Returns
    -------
    ndarray, shape (3, n), int64

    Raises
    ------
    InputError
        `by` is something else.
    """
    if by not in MEASURES:
        raise InputError(f"bicliques are ranked by {', '.join(MEASURES)}, not by {by!r}")
    left, right = (np.diff(indptr).astype(np.int64) for indptr in (rows.left_indptr, rows.right_indptr))
    edges = left * right if rows.missing is None else left * right - rows.missing
    return np.stack([edges if by == "edges" else measured(left, right, by), edges, left])


def measured(left: np.ndarray, right: np.ndarray, by: By) -> np.ndarray:
    """The measure (`schemas.search`) of each pair of sizes, int64."""
    return np.minimum(left, right) if by == "balance" else np.broadcast_to(measure(by, left, right), left.shape)


def fingerprint_from(text: object) -> int | None:
    """A fingerprint from JSON, in which it is a decimal string."""
    if text is not None and not isinstance(text, str):
        raise TypeError(f"the fingerprint is {text!r:.40}, not a decimal string")
    return None if text is None else int(text)


def _count(number: object) -> int:
    if type(number) is not int or number < 0:
        raise TypeError(f"count is {number!r:.40}, not a whole number")
    return number
