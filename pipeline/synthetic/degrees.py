"""Degrees that follow a power law and have a given sum, without a machine's own logarithms.

The vertex of rank ``i`` has the degree ``(1 + i/s)**(-1/(exponent - 1))`` times the largest one, rounded down, and at
least 1 (Chung and Lu, PNAS 2002, doi:10.1073/pnas.252631999). So the number of vertices with a degree of at least k
falls as ``k**(1 - exponent)``. `s` is chosen so that the degrees have the given sum.
"""

from __future__ import annotations

from decimal import Context, Decimal
from itertools import pairwise
from math import isqrt

import numpy as np

from pipeline.run.progress import number
from schemas.errors import InputError

__all__ = ["Degrees", "begins_of", "power_law", "usual_largest"]

#: Its logarithm and its exponential are correctly rounded, so they are the same everywhere.
_DECIMAL = Context(prec=50)
_ONE = 1 << 40
#: Degrees above this have as many bits as it has, less one.
_EXACT = 1 << 9
#: Entries of the guide, from which few classes are passed to find the one of a stub.
_GUIDE = 1 << 14


def begins_of(sizes: np.ndarray) -> np.ndarray:
    """Where lists of these sizes begin, one behind the other, and where the last one ends. int64."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


class Degrees:
    """Degrees of a side in runs of equal ones. The vertices are numbered from the largest degree to the least.

    Parameters
    ----------
    degrees, counts : ndarray of int64
        A degree, and how many vertices have it.

    Attributes
    ----------
    stubs, vertices : ndarray of int64
        First stub and first vertex of every run, and the number of all of them.
    """

    def __init__(self, degrees: np.ndarray, counts: np.ndarray):
        self.degrees, self.counts = degrees, counts
        self.stubs, self.vertices = begins_of(degrees * counts), begins_of(counts)

    def classes(self) -> tuple[tuple[np.ndarray, ...], int]:
        """`classes` and `shift` of `kernels.compiled.random_edges.draw`."""
        n = int(self.stubs[-1])
        shift = max(n.bit_length() - _GUIDE.bit_length() + 1, 0)
        places = np.arange((n >> shift) + 1, dtype=np.int64) << shift
        guide = np.searchsorted(self.stubs[1:-1], places, side="right").astype(np.int64)
        return (self.stubs, self.vertices[:-1].copy(), self.degrees, guide), shift

    def before(self, vertices: np.ndarray) -> np.ndarray:
        """How many stubs the vertices before each of these (int64, 0 to the number of vertices) have, int64."""
        k = np.searchsorted(self.vertices[1:-1], vertices, side="right")
        found: np.ndarray = self.stubs[k] + (vertices - self.vertices[k]) * self.degrees[k]
        return found

    def of(self, first: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """First stubs and degrees (int64) of vertices of a range."""
        degrees = np.repeat(self.degrees, np.diff(np.clip(self.vertices, first, stop)))
        return self.before(np.array([first])) + np.cumsum(degrees) - degrees, degrees


def usual_largest(edges: int, n: int, limit: int) -> int:
    """The largest degree where none is named: the root of the edges, at least twice the mean, at most `limit`."""
    return max(min(max(isqrt(edges), -(-2 * edges // n)), limit, edges - n + 1), 1)


def power_law(side: str, n: int, edges: int, exponent: Decimal, largest: int) -> Degrees:
    """Degrees of `n` vertices of a side with the sum `edges`, by an exponent above 1, the largest of which is given.

    Raises
    ------
    InputError
        If there are no such degrees.
    """
    if not n + largest - 1 <= edges:
        raise InputError(
            f"{number(edges, 'edge is', 'edges are')} too few for {n:,} {side} vertices, each with an edge and "
            f"one with {largest:,}; ask for more edges, or fewer vertices"
        )
    if edges > n * largest:
        raise InputError(
            f"{n:,} {side} vertices with at most {number(largest, 'edge')} each have fewer than {edges:,} edges; ask "
            "for fewer edges, more vertices, or a larger degree"
        )
    grid = _grid(largest)
    ratios = [_ratio(largest, k, exponent) for k in grid]
    at_least = _at_least(n, edges, grid, ratios)
    counts = [a - b for a, b in pairwise([*at_least, 0])]
    runs = [(k, count) for k, count in zip(grid, counts, strict=True) if count][::-1]
    runs = _raised(runs, edges - sum(k * count for k, count in runs), largest)
    return Degrees(*(np.array(column, np.int64) for column in zip(*runs, strict=True)))


def _grid(largest: int) -> list[int]:
    """The degrees that occur: all up to `_EXACT`, above it those with few bits, and the largest one."""
    grid, step = list(range(1, min(largest, _EXACT) + 1)), 1
    while grid[-1] < largest:
        step *= 2
        grid += range(grid[-1] + step, min(2 * grid[-1], largest) + 1, step)
        grid += [largest] if grid[-1] + 2 * step > largest > grid[-1] else []
    return grid


def _ratio(largest: int, k: int, exponent: Decimal) -> int:
    """``(largest / k)**(exponent - 1)``, in units of 1 / `_ONE`."""
    log = _DECIMAL.ln(_DECIMAL.divide(Decimal(largest), Decimal(k)))
    power = _DECIMAL.exp(_DECIMAL.multiply(_DECIMAL.subtract(exponent, Decimal(1)), log))
    return int(_DECIMAL.multiply(power, Decimal(_ONE)))


def _at_least(n: int, edges: int, grid: list[int], ratios: list[int]) -> list[int]:
    """How many vertices have at least each degree, so that there are no more than `edges`, and not many fewer."""
    steps = [k - before for before, k in pairwise([0, *grid])]

    def counts(s: int) -> list[int]:
        return [n, *(min(n, (s * (ratio - _ONE) >> 80) + 1) for ratio in ratios[1:])]

    low, high = 0, 1
    if len(grid) > 1:
        high = (n << 80) // max(ratios[-2] - _ONE, 1) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if sum(step * count for step, count in zip(steps, counts(middle), strict=True)) <= edges:
            low = middle
        else:
            high = middle
    return counts(low)


def _raised(runs: list[tuple[int, int]], missing: int, largest: int) -> list[tuple[int, int]]:
    """Runs in descending order of which the first vertices have a stub more, until none is missing."""
    while missing:
        raised: list[tuple[int, int]] = []
        for k, count in runs:
            more = min(missing, count) if k < largest else 0
            missing -= more
            for degree, n in ((k + 1, more), (k, count - more)):
                if n and raised and raised[-1][0] == degree:
                    raised[-1] = (degree, raised[-1][1] + n)
                elif n:
                    raised.append((degree, n))
        runs = raised
    return runs
