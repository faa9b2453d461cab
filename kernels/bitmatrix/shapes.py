"""The shapes in which the bit-matrix kernel is compiled: how many rows and how long a list a warp has room for.

There are few of them, so that the package can bring the machine code of all (`kernels.shipped`).
"""

from __future__ import annotations

from typing import NamedTuple

from kernels.bitmatrix.memory import HUB_BITS, HUB_BITS_DEFINES, SEARCH, GpuSizes, defines_of
from kernels.gpu.device_graph import DeviceGraph
from kernels.gpu.source import Variant

__all__ = ["Needs", "Shape", "grows", "shape", "shipped", "smallest_shape"]

#: Problems with more rows than a launch allows go to the next level, whose launch allows this many times as many.
_GROWTH = 8
#: Rows of the smallest shape, unless the sizes say less.
_LEAST_ROWS = 1024
#: Levels that have one shape for all graphs. Problems beyond them are rare, and need more memory than most devices
#: have, so the shapes of further levels are no larger than a graph needs.
_FIXED_LEVELS = 3


class Shape(NamedTuple):
    """What a warp has room for.

    Parameters
    ----------
    rows : int
        Rows of a word problem, a power of two.
    list : int
        Base vertices on the stack of hubs.
    """

    rows: int
    list: int


class Needs(NamedTuple):
    """What no problem of a graph exceeds, in the units of `Shape`."""

    rows: int
    list: int

    @classmethod
    def of(cls, graph: DeviceGraph) -> Needs:
        """Bounds for a graph."""
        return cls(graph.max_rows + 128, 4 * graph.max_root_degree + 4096)


def shape(level: int, needs: Needs, sizes: GpuSizes) -> Shape:
    """The shape of a level. The first has one of two, the next have one each, whatever the graph is."""
    if level == 0:
        least = min(_LEAST_ROWS, sizes.row_cap)
        return Shape(least if needs.rows <= least else sizes.row_cap, sizes.list_cap)
    if level < _FIXED_LEVELS:
        return Shape(*_caps(level, sizes))
    return smallest_shape(level, needs, sizes)


def smallest_shape(level: int, needs: Needs, sizes: GpuSizes) -> Shape:
    """The shape of a level where it is larger than a graph needs: powers of two that suffice for the graph."""
    rows, length = _caps(level, sizes)
    return Shape(_power_of_two(min(rows, max(needs.rows, _LEAST_ROWS))), _power_of_two(min(length, needs.list)))


def grows(level: int, needs: Needs, sizes: GpuSizes) -> bool:
    """Whether a graph may have problems that are too large for a level."""
    rows, length = _caps(level, sizes)
    return rows < needs.rows or length < needs.list


def _caps(level: int, sizes: GpuSizes) -> tuple[int, int]:
    return sizes.row_cap * _GROWTH**level, sizes.list_cap * _GROWTH**level


def _power_of_two(n: int) -> int:
    """The least that is not less than `n`."""
    return 1 << (n - 1).bit_length()


def shipped() -> list[Variant]:
    """All that a launch with the usual sizes asks for at the fixed levels, in all modes."""
    sizes = GpuSizes()
    small, large = Needs(rows=1, list=1), Needs(rows=sizes.row_cap + 1, list=sizes.list_cap + 1)
    shapes = [shape(0, small, sizes), *(shape(level, large, sizes) for level in range(_FIXED_LEVELS))]
    modes = [(True, False), (False, False), (False, True)]  # plain, measured
    searches = [Variant.of(SEARCH, defines_of(*each, *mode, sizes)) for each in shapes for mode in modes]
    return [*searches, Variant.of(HUB_BITS, HUB_BITS_DEFINES)]
