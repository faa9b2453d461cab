"""Keys of random numbers. A key follows from the seed and from what it is for, whatever was drawn before."""

from __future__ import annotations

from math import gcd

import numpy as np

from schemas.hashes import splitmix64

__all__ = ["Relabelling", "key_of", "words"]

_STEP = np.uint64(0x9E3779B97F4A7C15)


def key_of(seed: int, *purpose: str | int) -> int:
    """The key of a stream, 64 bits.

    Parameters
    ----------
    seed : int
        0 to 2**64 - 1.
    *purpose : str or int
        Words of at most 8 letters, and numbers.
    """
    key = splitmix64(np.array([seed], np.uint64))
    for each in purpose:
        number = int.from_bytes(each.encode(), "little") if isinstance(each, str) else each
        key = splitmix64(key ^ np.uint64(number))
    return int(key[0])


def words(key: int, counters: np.ndarray) -> np.ndarray:
    """The random words (uint64) of a stream at some places (int64). Compiled code draws the same."""
    return splitmix64(np.uint64(key) + counters.astype(np.uint64) * _STEP)


class Relabelling:
    """A permutation of ``0..n-1`` that is a line modulo `n`.

    Parameters
    ----------
    n : int
        Less than 2**31.
    key : int
        It chooses the line.
    """

    def __init__(self, n: int, key: int):
        factor, shift = (int(word) % n for word in words(key, np.arange(2)))
        while gcd(factor, n) != 1:
            factor += 1
        self.n, self.factor, self.shift = n, factor % n, shift

    @property
    def line(self) -> tuple[int, int, int]:
        """Factor, shift and modulus."""
        return self.factor, self.shift, self.n

    def __call__(self, numbers: np.ndarray) -> np.ndarray:
        """Where numbers (int64) lead, int64."""
        found: np.ndarray = (numbers.astype(np.int64) * self.factor + self.shift) % self.n
        return found
