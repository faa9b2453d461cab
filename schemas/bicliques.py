"""Bicliques in memory, in Parquet, and their fingerprint.

The fingerprint of a set of bicliques is the sum modulo 2**64 of one hash per biclique, over dense ids. It does
not depend on the order, the engine, the root side or the number of workers. Two independent enumerations with
equal count and equal fingerprint are what this project calls proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.dtypes import OFFSET, VERTEX

__all__ = [
    "LEFT_SALT",
    "RIGHT_SALT",
    "SCHEMA_VERSION",
    "Bicliques",
    "biclique_schema",
    "fingerprint",
    "hashes_of_rows",
    "row_hashes",
    "splitmix64",
    "vertex_hashes",
]

#: Version of the Parquet layout and of the fingerprint. A change of either gets a new number. The type of labels is not
#: part of it: that depends on the input.
SCHEMA_VERSION = 1

#: Constants of the sides, because of which vertex 5 on the left and vertex 5 on the right have different hashes.
LEFT_SALT = np.uint64(0x6C65667400000000)  # "left"
RIGHT_SALT = np.uint64(0x7269676874000000)  # "right"


@dataclass(frozen=True, eq=False)
class Bicliques:
    """A batch of bicliques as flat arrays of dense ids.

    Parameters
    ----------
    left_indptr, right_indptr : ndarray, shape (n + 1,), int64
    left, right : ndarray, int32
        The left members of biclique ``i`` are ``left[left_indptr[i]:left_indptr[i + 1]]``. The order inside a
        list depends on the engine.
    root : ndarray, shape (n,), int32
        Dense id (on the root side) of the root of the first-level subtree in which the biclique was found.
    """

    left_indptr: np.ndarray
    left: np.ndarray
    right_indptr: np.ndarray
    right: np.ndarray
    root: np.ndarray

    def __len__(self) -> int:
        return len(self.root)

    @classmethod
    def from_pairs(cls, pairs: list[tuple[list[int], list[int]]], roots: list[int] | None = None) -> Bicliques:
        """Make a batch of Python lists of (left ids, right ids)."""
        left, right = ([p[k] for p in pairs] for k in (0, 1))
        return cls(
            _offsets(left),
            np.array([x for side in left for x in side], dtype=VERTEX),
            _offsets(right),
            np.array([x for side in right for x in side], dtype=VERTEX),
            np.array(roots if roots is not None else [-1] * len(pairs), dtype=VERTEX),
        )

    @classmethod
    def concat(cls, parts: list[Bicliques]) -> Bicliques:
        """All rows of `parts`, in order."""
        return cls(
            _join([part.left_indptr for part in parts]),
            np.concatenate([part.left for part in parts]),
            _join([part.right_indptr for part in parts]),
            np.concatenate([part.right for part in parts]),
            np.concatenate([part.root for part in parts]),
        )

    def pick(self, which: np.ndarray) -> Bicliques:
        """The rows with these numbers, in that order, in new arrays."""
        left, right = _pick(self.left_indptr, self.left, which), _pick(self.right_indptr, self.right, which)
        return Bicliques(*left, *right, self.root[which])

    def to_pairs(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """One (left, right) of sorted Python tuples per biclique, in this batch's order."""
        return [
            (
                tuple(sorted(self.left[self.left_indptr[i] : self.left_indptr[i + 1]].tolist())),
                tuple(sorted(self.right[self.right_indptr[i] : self.right_indptr[i + 1]].tolist())),
            )
            for i in range(len(self))
        ]


def _join(offsets: list[np.ndarray]) -> np.ndarray:
    lengths = np.concatenate([np.diff(own) for own in offsets])
    return np.concatenate([np.zeros(1, OFFSET), np.cumsum(lengths, dtype=OFFSET)])


def _pick(indptr: np.ndarray, values: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.diff(indptr)[which]
    picked = np.concatenate([np.zeros(1, OFFSET), np.cumsum(lengths, dtype=OFFSET)])
    return picked, values[np.arange(picked[-1]) + np.repeat(indptr[which] - picked[:-1], lengths)]


def _offsets(lists: list[list[int]]) -> np.ndarray:
    return np.concatenate([np.zeros(1, OFFSET), np.cumsum([len(x) for x in lists], dtype=OFFSET)]).astype(OFFSET)


def biclique_schema(
    left_label: pa.DataType, right_label: pa.DataType, names: tuple[str, str] = ("left", "right")
) -> pa.Schema:
    """Arrow schema of the output, one row per maximal biclique, for the given label types.

    Its metadata has the names of the sides in the input (`names`), and is ignored when schemas are compared.
    """
    return pa.schema(
        [
            pa.field("left", pa.list_(pa.field("element", left_label, nullable=False)), nullable=False),
            pa.field("right", pa.list_(pa.field("element", right_label, nullable=False)), nullable=False),
            pa.field("n_left", pa.int32(), nullable=False),
            pa.field("n_right", pa.int32(), nullable=False),
            pa.field("root", pa.int32(), nullable=False),
        ],
        metadata={
            "bicliques.schema": str(SCHEMA_VERSION),
            "bicliques.left": names[0],
            "bicliques.right": names[1],
        },
    )


def splitmix64(x: np.ndarray) -> np.ndarray:
    """The 64-bit mixer of Steele, Lea and Flood (OOPSLA 2014, doi:10.1145/2714064.2660195), elementwise.

    Parameters
    ----------
    x : ndarray of uint64
    """
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def vertex_hashes(n_left: int, n_right: int) -> tuple[np.ndarray, np.ndarray]:
    """The hash of every dense id of both sides, uint64; see `fingerprint`."""
    left, right = (np.arange(n, dtype=np.uint64) for n in (n_left, n_right))
    return splitmix64(left ^ LEFT_SALT), splitmix64(right ^ RIGHT_SALT)


def fingerprint(batch: Bicliques) -> int:
    """Sum modulo 2**64 of one hash per biclique: mix(sum of left vertex hashes, sum of right vertex hashes).

    The hash of a vertex is ``splitmix64(id ^ salt of its side)``, and ``mix(a, b) = splitmix64(a ^
    splitmix64(b))``. Because hashes are summed, the order inside a list does not matter, and the sum over a
    group of twins is computed once.
    """
    return int(np.add.reduce(hashes_of_rows(batch), dtype=np.uint64))


def hashes_of_rows(batch: Bicliques) -> np.ndarray:
    """One hash per biclique, uint64, from its members alone. `row_hashes` is faster for many bicliques."""
    left = _list_sums(batch.left, batch.left_indptr, LEFT_SALT)
    right = _list_sums(batch.right, batch.right_indptr, RIGHT_SALT)
    return splitmix64(left ^ splitmix64(right))


def row_hashes(batch: Bicliques, known: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """One hash per biclique, uint64, whose sum modulo 2**64 is the `fingerprint`.

    Parameters
    ----------
    batch : Bicliques
        Bicliques with a member on each side.
    known : (ndarray, ndarray)
        `vertex_hashes`.
    """
    if len(batch) == 0:
        return np.empty(0, np.uint64)
    left = np.add.reduceat(known[0][batch.left], batch.left_indptr[:-1])
    right = np.add.reduceat(known[1][batch.right], batch.right_indptr[:-1])
    return splitmix64(left ^ splitmix64(right))


def _list_sums(ids: np.ndarray, indptr: np.ndarray, salt: np.uint64) -> np.ndarray:
    hashes = splitmix64(ids.astype(np.uint64) ^ salt)
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return total[indptr[1:]] - total[indptr[:-1]]
