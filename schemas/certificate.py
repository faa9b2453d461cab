"""The certificate of a run that found the largest: what was searched, with which bounds, and that nothing was left."""

from __future__ import annotations

from typing import NotRequired, TypedDict

__all__ = ["BandCertificate", "Certificate"]


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
