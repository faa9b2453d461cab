"""The bands of the search for the largest: ranges of left sizes, each with the fewest right members that it needs.

A biclique that has at most `last` left members, and whose measure is to be `bound` or more, has at least
``fewest_right(by, bound, last)`` right members. So the graph of a band is the core for these two thresholds, which is
much smaller than the graph, and each band may have its own root side. The bands are disjoint. So every biclique belongs
to one of them. The idea is that of progressive bounding (Lyu et al., PVLDB 2020, doi:10.14778/3397230.3397234).

Pairs that are no edges make a measure smaller, and never larger. So the measure of two sizes bounds that of every
near-biclique of these sizes, and the bands that hold a measure hold every near-biclique that reaches it.

Imports no library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NotRequired, TypedDict

from bicliques.schemas.search import TOO_MANY, By, Search, fewest_left, fewest_right, measure

#: The last left size of a band is so many times the first, in tenths (Dai et al., SIGMOD 2025, have the same factor).
_TENTHS = 16


@dataclass(frozen=True)
class Band:
    """Bicliques with `first` to `last` left members and at least `min_right` right members."""

    first: int
    last: int
    min_right: int

    def of(self, search: Search) -> Search:
        """The search for those in the band. They are within the limits of `search`."""
        return replace(search, min_left=self.first, max_left=self.last, min_right=self.min_right)


@dataclass(frozen=True)
class Reach:
    """What limits the size of a biclique of a graph: no right vertex has more than `left` neighbours, no left one more
    than `right`. A near-biclique may have as many members more as a member of the other side may miss.
    """

    left: int
    right: int

    def within(self, search: Search) -> Reach:
        """The same, if larger sides than the search allows do not count."""
        near = search.near
        most = (self.left, self.right) if near is None else (self.left + near.right, self.right + near.left)
        return Reach(min(search.max_left or most[0], most[0]), min(search.max_right or most[1], most[1]))


def bands_of(search: Search, bound: int, reach: Reach) -> tuple[Band, ...]:
    """Bands in which all bicliques are that a search wants and whose measure is `bound` or more, by ascending size.

    Neighbouring bands that need the same number of right members are one band.
    """
    by, most = search.by, reach.within(search)
    first = max(search.min_left, fewest_left(by, bound, most.right))
    bands: list[Band] = []
    while first <= most.left:
        last = min(max(-(-first * _TENTHS // 10) - 1, first), most.left)
        min_right = max(search.min_right, fewest_right(by, bound, last))
        if bands and (bands[-1].last, bands[-1].min_right) == (first - 1, min_right):
            bands[-1] = Band(bands[-1].first, last, min_right)
        elif min_right <= most.right:
            bands.append(Band(first, last, min_right))
        first = last + 1
    return tuple(bands)


def corners_of(search: Search, bound: int, reach: Reach) -> tuple[Band, ...]:
    """Bands in which *only* bicliques are that a search wants and whose measure is `bound` or more, and all of these.

    The left sizes of a corner all need the same number of right members.
    """
    by, most, first = search.by, reach.within(search), max(search.min_left, 1)
    corners: list[Band] = []
    while first <= most.left:
        right = max(search.min_right, fewest_right(by, bound, first))
        if right > most.right:
            first = max(first + 1, fewest_left(by, bound, most.right))
            continue
        # the first left size that needs fewer right members
        lower = fewest_left(by, bound, right - 1) if right > search.min_right else TOO_MANY
        last = min(max(lower - 1, first), most.left)
        corners.append(Band(first, last, right))
        first = last + 1
    return tuple(corners)


def gap_in(bands: Sequence[Band], search: Search, bound: int, reach: Reach) -> str | None:
    """Why bicliques of a measure of `bound` or more might be in no band, in one clause. None if all are in one.

    It is plain arithmetic. The measure grows with both sides, so the largest sizes of a range speak for all of it.
    """
    by, most, expected = search.by, reach.within(search), search.min_left
    if most.right < search.min_right:
        return None
    for band in bands:
        if band.first < expected:
            return f"bands overlap at {band.first} left members"
        if (reason := _beyond(by, bound, expected, band.first - 1, most)) is not None:
            return reason
        if band.min_right > max(search.min_right, fewest_right(by, bound, band.last)):
            return f"the band of {band.first} to {band.last} left members begins at {band.min_right} right members"
        expected = band.last + 1
    return _beyond(by, bound, expected, most.left, most)


def _beyond(by: By, bound: int, first: int, last: int, most: Reach) -> str | None:
    """Why a range of left sizes needs a band, if it does."""
    last = min(last, most.left)
    if last < first or measure(by, last, most.right) < bound:
        return None
    return f"no band has {last} left members, and the measure of a biclique with {last} may be {bound}"


class BandCertificate(TypedDict):
    """One band (`schemas.bands.Band`), which was searched to the end.

    ``n_roots`` is the number of nodes of the plan that belong to it. ``taken`` is how many of these slices have taken,
    which is the same. ``slices`` worked in it, left ``left_over`` nodes that others took, and found ``seen`` bicliques.
    """

    first: int
    last: int
    min_right: int
    root_side: str
    n_roots: int
    taken: int
    slices: int
    left_over: int
    seen: int


class Certificate(TypedDict):
    """Why no other biclique is larger.

    ``measure`` and ``top`` are what was asked for. ``rows`` is how many there are, and ``key`` the measure of the last
    one, if there are as many as were asked for. ``first_bound`` is the bound with which the search began. ``most_left``
    and ``most_right`` are the largest degrees: no biclique has more members on that side. ``bands`` hold every pair of
    sizes whose measure is ``key`` or more.
    """

    measure: str
    top: int
    rows: int
    key: NotRequired[int]
    first_bound: int
    most_left: int
    most_right: int
    bands: list[BandCertificate]
