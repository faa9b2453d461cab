"""The shapes in which the bit-matrix kernel is compiled: how many rows and how long a list a warp has room for.

There are few of them, so that the package can bring the machine code of all (`kernels.shipped`).
"""

from __future__ import annotations

from typing import NamedTuple

from bicliques.kernels.bitmatrix.memory import HUB_BITS, HUB_BITS_DEFINES, NEAR_WORDS, Form, GpuSizes, defines_of
from bicliques.kernels.gpu.machine_code import Variant
from bicliques.kernels.gpu.pack import DeviceGraph

#: Problems with more rows than a launch allows go to the next level, whose launch allows this many times as many.
_GROWTH = 8
#: Rows of the smallest shape, unless the sizes say less.
_LEAST_ROWS = 1024
#: Rows with which the words of a problem of near-bicliques have numbers of 31 bits.
_MOST_ROWS = (1 << 25) - 128


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
    def of(cls, graph: DeviceGraph, form: Form) -> Needs:
        """Bounds for a graph. A word problem has at most 64 base vertices, and a problem of a sieve has any number.

        A problem of near-bicliques has bit rows in both directions, and is no larger than the device can count.
        """
        n_roots, n_base = graph.graph.n_roots, graph.graph.n_base
        if form.near:
            words = 2 * (n_roots + 32) * (n_base + 32) // 32 + 32 * form.near
            return cls(min(words // NEAR_WORDS, _MOST_ROWS) + 1, 1)
        rows = n_roots if form.sieving else graph.max_rows
        return cls(rows + 128, 4 * graph.max_root_degree + 4096)


def shape(level: int, needs: Needs, sizes: GpuSizes) -> Shape:
    """The shape of a level. The first level has one of two, whatever the graph is.

    Problems of further levels are rare. A launch of one fixed shape would take most of the device's memory for them, so
    their shapes are no larger than the graph needs.
    """
    if level == 0:
        least = min(_LEAST_ROWS, sizes.row_cap)
        return Shape(least if needs.rows <= least else sizes.row_cap, sizes.list_cap)
    return smallest_shape(level, needs, sizes)


def smallest_shape(level: int, needs: Needs, sizes: GpuSizes) -> Shape:
    """The shape of a level where it is larger than a graph needs: powers of two that suffice for the graph."""
    rows, length = _caps(level, sizes)
    return Shape(_power_of_two(min(rows, max(needs.rows, _LEAST_ROWS))), _power_of_two(min(length, needs.list)))


def sifts_much(needs: Needs, n_roots: int, sizes: GpuSizes) -> bool:
    """Whether rows are sifted through a large filter: in a graph of many roots, whose problems may be large, too."""
    return n_roots >= sizes.many_roots and shape(0, needs, sizes).rows == sizes.row_cap


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
    """All that a first launch with the usual sizes asks for, in all modes.

    For a large graph with thresholds, also the two levels behind it, which its hubs need. To compile each takes 5 to
    13 s, in which a slice would wait.
    """
    sizes = GpuSizes()
    shapes = [shape(0, Needs(rows, 1), sizes) for rows in (1, sizes.row_cap)]
    modes = [
        (True, False, False),
        (False, False, False),
        (False, True, False),
        (True, False, True),
        (False, True, True),
    ]
    forms = [*(Form(*mode) for mode in modes), Form(False, True, sieving=True, bounded=True)]
    forms += [form._replace(merging=True) for form in forms if not form.sieving]
    forms += [Form(False, sieving, sieving, marked=True) for sieving in (False, True)]
    large = [shape(level, Needs(1 << 30, 1 << 30), sizes) for level in (1, 2)]
    usual = [(each, form) for each in shapes for form in forms]
    near = Form(False, True, sieving=True, near=1)
    usual += [(shapes[0], near._replace(**own)) for own in ({}, {"pivots": True}, {"pivots": True, "one": True})]
    usual += [(shapes[-1], form._replace(sifting=True)) for form in forms if not form.sieving and not form.merging]
    hubs = [(each, form) for each in large for form in forms if form.sieving and not (form.bounded or form.marked)]
    searches = [Variant.of(form.kernel, defines_of(*each, form, sizes)) for each, form in usual + hubs]
    return [*searches, Variant.of(HUB_BITS, HUB_BITS_DEFINES)]
