"""What graph is wanted, checked before anything is drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, get_args

from bicliques.schemas.dtypes import MAX_VERTICES
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.values import as_index

Labels = Literal["integers", "text"]
#: Options that are whole numbers: the least and the largest value.
_RANGES = {
    "n_left": (1, MAX_VERTICES),
    "n_right": (1, MAX_VERTICES),
    "edges": (1, (1 << 40) - 1),
    "seed": (0, 2**64 - 1),
}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A graph. The same one follows from equal fields on any machine. `bicliques.generate` explains them.

    Parameters
    ----------
    left_exponent, right_exponent, noise : str
        Decimal numbers.
    """

    n_left: int
    n_right: int
    edges: int
    left_exponent: str
    right_exponent: str
    max_left_degree: int | None
    max_right_degree: int | None
    plant: tuple[tuple[int, int], ...]
    noise: str
    labels: Labels
    seed: int

    @property
    def removed(self) -> tuple[int, ...]:
        """How many edges each planted biclique lacks."""
        return tuple(int(Decimal(self.noise) * p * q + Decimal("0.5")) for p, q in self.plant)

    @property
    def drawn_edges(self) -> int:
        """The edges outside planted bicliques."""
        return self.edges - sum(p * q for p, q in self.plant) + sum(self.removed)

    @property
    def most_neighbours(self) -> int:
        """Drawn neighbours that any left vertex can have."""
        return self.n_right - max((q for _, q in self.plant), default=0)

    def to_json(self) -> dict[str, Any]:
        """The fields, as JSON gives them back."""
        return asdict(self) | {"plant": [list(sizes) for sizes in self.plant]}


def wanted(**given: Any) -> Wanted:
    """A checked `Wanted` from the options of `bicliques.generate`."""
    plant = given.pop("plant")
    for name, (least, most) in _RANGES.items():
        given[name] = whole(name, given[name], least, most)
    for name in ("max_left_degree", "max_right_degree"):
        given[name] = None if given[name] is None else whole(name, given[name])
    for name in ("left_exponent", "right_exponent"):
        given[name] = _decimal(name, "2.5" if given[name] is None else given[name], "1.01", "10")
    given["noise"] = _decimal("noise", given["noise"], "0", "1")
    if given["labels"] not in get_args(Labels):
        raise InputError(f"{as_option('labels')} is {given['labels']!r}; choose one of {', '.join(get_args(Labels))}")
    sizes = plant if isinstance(plant, Iterable) and not isinstance(plant, str) else [plant]
    found = Wanted(**given, plant=tuple(map(_sizes, sizes)))
    if found.noise != "0" and not found.plant:
        raise InputError(
            f"{as_option('noise')} is {found.noise}, and there are no planted edges that it could remove; name sizes "
            f"with {as_option('plant')}, or leave it out"
        )
    _check(found)
    return found


def whole(name: str, value: object, least: int | None = None, most: int | None = None) -> int:
    """The value of an option, as `schemas.values.as_index` has it."""
    try:
        found = as_index(value)
    except TypeError:
        raise InputError(f"{as_option(name)} is {value!r}; it has to be a whole number") from None
    if most is not None and not (least or 0) <= found <= most:
        raise InputError(f"{as_option(name)} is {found:,}; it has to be from {least:,} to {most:,}")
    if least is not None and found < least:
        raise InputError(f"{as_option(name)} is {found}; it has to be at least {least}")
    return found


def _sizes(given: Any) -> tuple[int, int]:
    """The left and the right size of a biclique to plant."""
    pair = given
    if isinstance(given, str):
        found = re.fullmatch(r"(\d+)[xX](\d+)", given)
        pair = None if found is None else map(int, found.groups())
    try:
        p, q = pair
    except (TypeError, ValueError):
        raise InputError(
            f"{as_option('plant')}: {given!r} is not of the form 60x40, left by right vertices, and no pair of numbers"
        ) from None
    return whole("plant", p), whole("plant", q)


def _decimal(name: str, value: object, least: str, most: str) -> str:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        number = Decimal("NaN")
    if not (number.is_finite() and Decimal(least) <= number <= Decimal(most) and len(number.as_tuple().digits) <= 20):
        raise InputError(
            f"{as_option(name)} is {value}; it has to be a number from {least} to {most} with at most 20 digits"
        )
    return str(number.normalize() + 0)


def _check(found: Wanted) -> None:
    """Whether planted bicliques and all other edges have room."""
    drawn, planted = found.drawn_edges, found.edges - found.drawn_edges
    for p, q in found.plant:
        if p < 1 or q < 1:
            raise InputError(f"a planted biclique is {p} x {q}; both sides have to have a vertex")
    if planted > found.edges:
        raise InputError(f"planted bicliques have {planted:,} edges, more than all {found.edges:,}; ask for more edges")
    sides = (
        ("left", found.n_left, found.max_left_degree, found.most_neighbours),
        ("right", found.n_right, found.max_right_degree, found.n_left),
    )
    for k, (side, n, degree, limit) in enumerate(sides):
        if (taken := sum(sizes[k] for sizes in found.plant)) > n:
            raise InputError(
                f"planted bicliques, which share no vertex, need {taken:,} {side} vertices, and there are {n:,}; plant "
                "fewer or smaller ones"
            )
        if degree is not None and not 1 <= degree <= limit:
            raise InputError(
                f"the largest {side} degree is {degree:,}, and a vertex may have 1 to {limit:,} neighbours beside "
                "planted ones; ask for another one, or for more vertices on the other side"
            )
    for side, n, *_ in sides:
        if found.plant and drawn < n:
            raise InputError(
                f"{drawn:,} of the {found.edges:,} edges are not planted, too few for {n:,} {side} vertices, each with "
                "such an edge; ask for more edges, or fewer vertices"
            )
    most = found.n_left * found.most_neighbours
    if drawn > most:
        beside = " beside the planted ones" if found.plant else ""
        raise InputError(
            f"{drawn:,} edges{beside} do not fit between {found.n_left:,} left and {found.n_right:,} right vertices, "
            f"which have room for {most:,}; ask for fewer"
        )
