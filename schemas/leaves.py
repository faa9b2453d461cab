"""Leaves of a pivot tree, from which the number of p x q bicliques follows for all p and q at once.

A leaf has held vertices, which are in all of its bicliques, and free ones, which may be in or not. All of them are
joined to all of the other side. So a leaf with ``hl`` held and ``fl`` free left vertices, ``hr`` and ``fr`` right ones,
stands for C(fl, p - hl) * C(fr, q - hr) bicliques with p left and q right vertices. Only the numbers of such leaves are
kept, so any two totals add up, exactly.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np

from bicliques.schemas.errors import IncompleteError, InputError, as_option
from bicliques.schemas.hashes import splitmix64
from bicliques.schemas.totals import Found

#: The words for all p and q, and for cliques, whose leaves have one side, the left.
ALL, CLIQUES = "all", "cliques"
#: The fewest and the most members of a side. None: any number.
Range = tuple[int, int | None]


def bounds_of(pq: str) -> tuple[int, int] | None:
    """The largest p and q that ``PxQ`` asks for. None for all, and for cliques.

    Raises
    ------
    InputError
        If it is neither.
    """
    if pq in (ALL, CLIQUES):
        return None
    numbers = pq.split("x") if isinstance(pq, str) else []
    if len(numbers) != 2 or not all(n.isascii() and n.isdigit() and len(n) < 10 and int(n) for n in numbers):
        raise InputError(
            f"{as_option('pq')} must be two numbers from 1 to 999999999, as 4x4, or the word {ALL}, not {pq!r:.40}"
        )
    return int(numbers[0]), int(numbers[1])


@dataclass(frozen=True, eq=False)
class Leaves:
    """How many leaves there are of each kind.

    Parameters
    ----------
    keys : ndarray, shape (n, 4), int64
        Held left, free left, held right and free right vertices, ascending, each once.
    number : ndarray, shape (n,), int64
        Leaves of each kind, 1 or more.
    mix : int
        The sum of `mixes` of all leaves modulo 2**64, which is added up leaf by leaf, beside the numbers.
    """

    keys: np.ndarray
    number: np.ndarray
    mix: int

    @classmethod
    def of(cls, keys: np.ndarray, number: np.ndarray, mix: int) -> Leaves:
        """Add up the numbers of equal keys, which come in any order."""
        keys = keys.reshape(-1, 4).astype(np.int64)
        order = np.lexsort(keys.T[::-1])  # `np.unique` of rows takes five times as long
        keys = keys[order]
        first = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]).any(axis=1))[: len(keys)])
        return cls(keys[first], np.add.reduceat(number[order], first), mix % 2**64)

    @classmethod
    def none(cls) -> Leaves:
        """No leaves."""
        return cls(np.zeros((0, 4), np.int64), np.zeros(0, np.int64), 0)

    fingerprint: ClassVar[None] = None  # nothing is hashed, and what is counted is not maximal
    sizes: ClassVar[None] = None

    @property
    def count(self) -> int:
        """The number of leaves. No row is listed."""
        return int(self.number.sum())

    seen = count

    def __add__(self, other: Leaves) -> Leaves:
        keys, number = (np.concatenate(both) for both in ((self.keys, other.keys), (self.number, other.number)))
        return Leaves.of(keys, number, self.mix + other.mix)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leaves) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def to_json(self) -> dict[str, Any]:
        """The fields of a ledger entry. The keys and numbers are packed."""
        table = np.column_stack([self.keys, self.number]).astype("<i8")
        packed = base64.b64encode(zlib.compress(table.tobytes())).decode()
        return {"count": self.count, "fingerprint": None, "mix": str(self.mix), "leaves": packed}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Leaves:
        """Inverse of `to_json`.

        Raises
        ------
        IncompleteError
            The leaves are damaged.
        """
        try:
            packed = zlib.decompress(base64.b64decode(data["leaves"], validate=True))
            table = np.frombuffer(packed, "<i8").astype(np.int64).reshape(-1, 5)
        except (MemoryError, TypeError, ValueError, zlib.error) as error:
            raise IncompleteError(f"its leaves cannot be read: {error}") from error
        found = cls(table[:, :4], table[:, 4], int(data["mix"]))
        if found.count != data["count"] or not found.is_whole:
            raise IncompleteError("its leaves do not have their checksum")
        return found

    @property
    def is_whole(self) -> bool:
        """Whether the numbers are those of the leaves that were added up."""
        with np.errstate(over="ignore"):
            return int((mixes(self.keys) * self.number.astype(np.uint64)).sum()) == self.mix

    def outline(self) -> Found:
        """The number of leaves."""
        return Found(self.count)

    def bicliques(self, left: Range, right: Range) -> int:
        """How many bicliques there are, exactly, with so many left and right members."""
        fits = np.ones(len(self.keys), bool)
        for k, (least, most) in ((0, left), (2, right)):
            held, free = self.keys[:, k], self.keys[:, k + 1]
            fits &= (held + free >= least) & (most is None or held <= most)
        rows = zip(self.keys[fits].tolist(), self.number[fits].tolist(), strict=True)
        return sum(n * ways(hl, fl, *left) * ways(hr, fr, *right) for (hl, fl, hr, fr), n in rows)


def ways(held: int, free: int, least: int, most: int | None) -> int:
    """How many sets of so many vertices have all held and any of the free ones."""
    if most is None or most >= held + free:
        return (1 << free) - sum(comb(free, n - held) for n in range(held, least))
    return sum(comb(free, n - held) for n in range(max(least, held), most + 1))


def mixes(keys: np.ndarray) -> np.ndarray:
    """A hash of each kind of leaf, uint64. It is the same with the sides exchanged."""
    kinds = keys.astype(np.uint64)
    left, right = (splitmix64(kinds[:, k] << np.uint64(32) | kinds[:, k + 1]) for k in (0, 2))
    return splitmix64(left + right)
