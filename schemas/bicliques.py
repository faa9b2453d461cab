"""Bicliques in memory, in Parquet, their ids and their fingerprint; how engines hand them out.

The id of a biclique is a hash of the labels of its members. It stays the same when the graph grows. The fingerprint of
a set of bicliques is the sum of their ids modulo 2**64. Neither depends on the order, the engine, the root side or the
number of workers. Two independent enumerations with equal count and equal fingerprint are what this project calls
proof.

An engine hands batches to an `Emit`. A device hands rows out in blocks, the largest rows first. Inside a block, which
becomes a row group, rows keep their order. Neighbours in the search have members in common, and compress better side
by side. Sorted rows took 43 % more bytes (docs/lab/writing.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from bicliques.schemas.dtypes import VERTEX, gathered, offsets_of
from bicliques.schemas.hashes import VertexHashes, hashes_of_ids, mixed

#: Version of the layout and of the fingerprint. A change of either gets a new number. The type of labels is not part of
#: it: that depends on the input.
SCHEMA_VERSION = 3
#: Versions whose runs are read and resumed.
READ_VERSIONS = (2, 3)

#: Ids are signed, because every reader and database has signed integers of 64 bits, and few have unsigned ones.
ID = np.dtype(np.int64)


@dataclass(frozen=True, eq=False)
class Bicliques:
    """A batch of bicliques as flat arrays of dense ids.

    Parameters
    ----------
    left_indptr, right_indptr : ndarray, shape (n + 1,), int64
    left, right : ndarray, int32
        The left members of biclique ``i`` are ``left[left_indptr[i]:left_indptr[i + 1]]``, ascending.
    root : ndarray, shape (n,), int32
        Dense id (on the root side) of the root of the first-level subtree in which the biclique was found.
    ids : ndarray, shape (n,), int64
        The bits of `row_hashes`.
    missing : ndarray, shape (n,), int32, or None
        How many pairs of a left and a right member are no edges. None: every pair is one.
    """

    left_indptr: np.ndarray
    left: np.ndarray
    right_indptr: np.ndarray
    right: np.ndarray
    root: np.ndarray
    ids: np.ndarray
    missing: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.root)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that are there, by name."""
        return {name: array for name, array in vars(self).items() if array is not None}

    @classmethod
    def from_pairs(
        cls,
        pairs: list[tuple[list[int], list[int]]],
        roots: list[int] | None = None,
        ids: np.ndarray | None = None,
    ) -> Bicliques:
        """Make a batch of Python lists of (left ids, right ids), which are sorted here.

        Without `ids` they are those of a graph whose labels are its dense ids.
        """
        left, right = ([sorted(pair[k]) for pair in pairs] for k in (0, 1))
        batch = cls(
            offsets_of([len(members) for members in left]),
            np.array([x for side in left for x in side], dtype=VERTEX),
            offsets_of([len(members) for members in right]),
            np.array([x for side in right for x in side], dtype=VERTEX),
            np.array(roots if roots is not None else [-1] * len(pairs), dtype=VERTEX),
            np.empty(len(pairs), ID),
        )
        if ids is None:
            n_left, n_right = (int(members.max(initial=-1)) + 1 for members in (batch.left, batch.right))
            ids = row_hashes(batch, hashes_of_ids(n_left, n_right)).view(ID)
        batch.ids[:] = ids
        return batch

    @classmethod
    def concat(cls, parts: list[Bicliques]) -> Bicliques:
        """All rows of `parts`, in order."""
        return cls(
            offsets_of(np.concatenate([np.diff(part.left_indptr) for part in parts])),
            np.concatenate([part.left for part in parts]),
            offsets_of(np.concatenate([np.diff(part.right_indptr) for part in parts])),
            np.concatenate([part.right for part in parts]),
            np.concatenate([part.root for part in parts]),
            np.concatenate([part.ids for part in parts]),
            None if parts[0].missing is None else np.concatenate([part.missing for part in parts]),
        )

    def pick(self, which: np.ndarray) -> Bicliques:
        """The rows with these numbers, in that order, in new arrays."""
        left = gathered(self.left, self.left_indptr[which], np.diff(self.left_indptr)[which])
        right = gathered(self.right, self.right_indptr[which], np.diff(self.right_indptr)[which])
        missing = None if self.missing is None else self.missing[which]
        return Bicliques(*left, *right, self.root[which], self.ids[which], missing)

    def once(self, least: int | None) -> Bicliques:
        """The rows that `schemas.search.Search.mirrored` wants: all if it is None."""
        if least is None or not len(self):
            return self
        firsts = (np.minimum.reduceat(ids, at[:-1]) for ids, at in self.sides)
        sizes = np.maximum(*(np.diff(at) for _, at in self.sides))
        return self.pick(np.flatnonzero(np.less(*firsts) & (sizes >= least)))

    @property
    def sides(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """The members of each side with their offsets."""
        return (self.left, self.left_indptr), (self.right, self.right_indptr)

    def rows(self, start: int, stop: int) -> Bicliques:
        """Rows start to stop - 1. They share the members with this batch."""
        left, right = self.left_indptr[start : stop + 1], self.right_indptr[start : stop + 1]
        return Bicliques(
            left - left[0],
            self.left[left[0] : left[-1]],
            right - right[0],
            self.right[right[0] : right[-1]],
            self.root[start:stop],
            self.ids[start:stop],
            None if self.missing is None else self.missing[start:stop],
        )

    def to_pairs(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """One (left, right) of sorted Python tuples per biclique, in this batch's order."""
        return [
            (
                tuple(sorted(self.left[self.left_indptr[i] : self.left_indptr[i + 1]].tolist())),
                tuple(sorted(self.right[self.right_indptr[i] : self.right_indptr[i + 1]].tolist())),
            )
            for i in range(len(self))
        ]


@dataclass(frozen=True)
class Provenance:
    """Where rows come from, for the metadata of their file.

    Parameters
    ----------
    left, right : str
        Names of the sides in the input.
    run : str
        Identity of the run.
    input : str
        Digest of the input.
    """

    left: str = "left"
    right: str = "right"
    run: str = ""
    input: str = ""


#: The provenance of rows of which nothing is known.
UNKNOWN = Provenance()


def biclique_schema(
    left_label: pa.DataType, right_label: pa.DataType, provenance: Provenance = UNKNOWN, *, near: bool = False
) -> pa.Schema:
    """Arrow schema of the output, one row per maximal biclique, for the given label types.

    If pairs may be no edges (`near`), the last column says how many are none. Its metadata has the
    version and the provenance, and is ignored when schemas are compared.
    """
    return pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("left", pa.list_(pa.field("element", left_label, nullable=False)), nullable=False),
            pa.field("right", pa.list_(pa.field("element", right_label, nullable=False)), nullable=False),
            pa.field("n_left", pa.int32(), nullable=False),
            pa.field("n_right", pa.int32(), nullable=False),
            pa.field("root", pa.int32(), nullable=False),
            *([pa.field("missing", pa.int32(), nullable=False)] if near else []),
        ],
        metadata={
            "bicliques.schema": str(SCHEMA_VERSION),
            **{f"bicliques.{name}": value for name, value in vars(provenance).items()},
        },
    )


def fingerprint(batch: Bicliques) -> int:
    """Sum modulo 2**64 of the ids."""
    return int(np.add.reduce(batch.ids.view(np.uint64), dtype=np.uint64))


def row_hashes(batch: Bicliques, known: VertexHashes) -> np.ndarray:
    """One hash per biclique, uint64, from its members: mix(sum of left vertex hashes, sum of right vertex hashes).

    Parameters
    ----------
    batch : Bicliques
        Its `ids` are not looked at.
    known : VertexHashes
        `schemas.hashes.vertex_hashes` of both sides.

    Notes
    -----
    ``mix(a, b) = splitmix64(a ^ splitmix64(b))``. Because hashes are summed, the order inside a list does not matter,
    and the sum over a group of twins is computed once. As signed integers these are the ids.
    """
    return mixed(
        _list_sums(batch.left, batch.left_indptr, known[0]), _list_sums(batch.right, batch.right_indptr, known[1])
    )


def _list_sums(ids: np.ndarray, indptr: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes[ids], dtype=np.uint64)])
    return total[indptr[1:]] - total[indptr[:-1]]


class Emit(Protocol):
    """A receiver of batches of bicliques, one after the other."""

    @property
    def on_device(self) -> bool:
        """Whether it takes a batch as arrays of the engine's device (CuPy), too, and may keep the arrays that it gets.

        An engine should not copy such arrays to the host. The device may still be filling them. So a reader on another
        stream than that of the call must first wait for that stream. Their rows come in blocks (`block_order`);
        those of a batch of host arrays have no order.
        """
        ...

    def __call__(self, batch: Bicliques, /) -> None:
        """Take a batch. Its arrays may change after the call, unless the receiver may keep them."""
        ...


class _Function:
    def __init__(self, function: Callable[[Bicliques], object], on_device: bool) -> None:
        self._function, self.on_device = function, on_device

    def __call__(self, batch: Bicliques, /) -> None:
        self._function(batch)


def emit_to(function: Callable[[Bicliques], object], on_device: bool = False) -> Emit:
    """Make an `Emit` of a function. ``on_device`` says whether it takes arrays of the device, too."""
    return _Function(function, on_device)


#: The receiver for searches that hand out nothing, or whose bicliques are not wanted.
nowhere = emit_to(lambda batch: None)


#: Rows of a block. CuDF makes row groups of whole fragments of 5,000 rows.
BLOCK_ROWS = 520_000


def block_order(keys: Any, n: int) -> Any:
    """The numbers of the rows with the `n` largest keys, int32. Those of a block ascend. No later one has larger keys.

    Parameters
    ----------
    keys : array of unsigned integers
        Of NumPy or CuPy; the result is of the same.

    Examples
    --------
    >>> import numpy as np
    >>> block_order(np.array([0, 7, 3, 9], np.uint32), 3)
    array([1, 2, 3], dtype=int32)
    """
    order = keys.argsort()[len(keys) - n :][::-1].astype(VERTEX)
    for start in range(0, n, BLOCK_ROWS):
        order[start : start + BLOCK_ROWS].sort()
    return order


def cuts_between_blocks(rows: list[int]) -> list[int]:
    """The same ascending cuts, each moved to the beginning of its block, unless one before it is in that block, too."""
    begins = [row - row % BLOCK_ROWS for row in rows]
    return [begin if begin > before else row for begin, (before, row) in zip(begins, pairwise([0, *rows]), strict=True)]
