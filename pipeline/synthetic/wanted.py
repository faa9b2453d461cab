"""What graph is wanted, checked before anything is drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Literal, get_args

from schemas.dtypes import MAX_VERTICES
from schemas.errors import InputError
from schemas.option import as_option
from schemas.values import as_index

__all__ = ["Labels", "Model", "Wanted", "wanted", "whole"]

Model = Literal["chung-lu", "rmat"]
Labels = Literal["integers", "text"]

_MOST_EDGES = 1 << 40
_USUAL_EXPONENT, _USUAL_QUADRANTS = "2.5", ("0.57", "0.19", "0.19", "0.05")
#: Options of one model.
_OWN: dict[Model, tuple[str, ...]] = {
    "chung-lu": ("left_exponent", "right_exponent", "max_left_degree", "max_right_degree"),
    "rmat": ("quadrants",),
}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A graph. The same one follows from equal fields on any machine.

    Parameters
    ----------
    n_left, n_right, edges : int
        Vertices of both sides, and edges, with those of the planted bicliques.
    model : Model
    left_exponent, right_exponent : str
        Decimal numbers. Empty where the model has none.
    max_left_degree, max_right_degree : int or None
        Largest degrees beside planted bicliques. None for the usual one.
    quadrants : tuple of str
        Four decimal numbers with the sum 1: both ends in the first halves; only the left one; only the right one; none.
    plant : tuple of (int, int)
        Left and right sizes of planted bicliques. No two share a vertex.
    noise : str
        Share of the edges of each planted biclique that are removed, a decimal number.
    labels : Labels
    seed : int
        0 to 2**64 - 1.
    """

    n_left: int
    n_right: int
    edges: int
    model: Model
    left_exponent: str
    right_exponent: str
    max_left_degree: int | None
    max_right_degree: int | None
    quadrants: tuple[str, ...]
    plant: tuple[tuple[int, int], ...]
    noise: str
    labels: Labels
    seed: int

    @property
    def removed(self) -> tuple[int, ...]:
        """How many edges each planted biclique lacks."""
        return tuple(int(Decimal(self.noise) * p * q + Decimal("0.5")) for p, q in self.plant)

    @property
    def planted_edges(self) -> int:
        """Edges inside planted bicliques."""
        return sum(p * q for p, q in self.plant) - sum(self.removed)

    @property
    def drawn_edges(self) -> int:
        """The other edges."""
        return self.edges - self.planted_edges

    @property
    def most_neighbours(self) -> int:
        """Drawn neighbours that any left vertex can have."""
        return self.n_right - max((q for _, q in self.plant), default=0)

    def to_json(self) -> dict[str, Any]:
        """The fields, as JSON gives them back."""
        return asdict(self) | {"plant": [list(sizes) for sizes in self.plant], "quadrants": list(self.quadrants)}


def wanted(
    *,
    n_left: int,
    n_right: int,
    edges: int,
    model: str,
    plant: str | Iterable[str | tuple[int, int]],
    noise: object,
    labels: str,
    seed: int,
    **of_model: Any,
) -> Wanted:
    """A checked `Wanted`. Options of a model that are None have their usual values.

    Raises
    ------
    InputError
        If there is no such graph.
    """
    _one_of("model", model, get_args(Model))
    _one_of("labels", labels, get_args(Labels))
    n_left, n_right = whole("n_left", n_left), whole("n_right", n_right)
    edges, seed = whole("edges", edges), whole("seed", seed)
    for name, number, most in (
        ("n_left", n_left, MAX_VERTICES),
        ("n_right", n_right, MAX_VERTICES),
        ("edges", edges, _MOST_EDGES - 1),
    ):
        if not 1 <= number <= most:
            raise InputError(f"{as_option(name)} is {number:,}; it has to be from 1 to {most:,}")
    if not 0 <= seed < 2**64:
        raise InputError(f"--seed is {seed}; it has to be from 0 to {2**64 - 1}")
    strangers = [name for kind, names in _OWN.items() if kind != model for name in names if of_model[name] is not None]
    if strangers:
        raise InputError(f"the model {model} has no {as_option(strangers[0])}; leave it out, or choose another model")
    found = Wanted(
        n_left=n_left,
        n_right=n_right,
        edges=edges,
        model=model,  # type: ignore[arg-type]
        left_exponent=_exponent("left_exponent", of_model) if model == "chung-lu" else "",
        right_exponent=_exponent("right_exponent", of_model) if model == "chung-lu" else "",
        max_left_degree=_degree("max_left_degree", of_model),
        max_right_degree=_degree("max_right_degree", of_model),
        quadrants=_quadrants(of_model["quadrants"]) if model == "rmat" else (),
        plant=tuple(map(_sizes, plant if isinstance(plant, Iterable) and not isinstance(plant, str) else [plant])),
        noise=str(_decimal("noise", noise, Decimal(0), Decimal(1))),
        labels=labels,  # type: ignore[arg-type]
        seed=seed,
    )
    if found.noise != "0" and not found.plant:
        raise InputError(
            f"{as_option('noise')} is {found.noise}, and there are no planted edges that it could remove; name sizes "
            f"with {as_option('plant')}, or leave it out"
        )
    _check_planted(found)
    _check_room(found)
    return found


def whole(name: str, value: object) -> int:
    """The value of an option, as `schemas.values.as_index` has it.

    Raises
    ------
    InputError
        If it is no whole number.
    """
    try:
        return as_index(value)
    except TypeError:
        raise InputError(f"{as_option(name)} is {value!r}; it has to be a whole number") from None


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


def _degree(name: str, of_model: dict[str, Any]) -> int | None:
    return None if of_model[name] is None else whole(name, of_model[name])


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{as_option(name)} is {value!r}; choose one of {', '.join(choices)}")


def _decimal(name: str, value: object, least: Decimal, most: Decimal) -> Decimal:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        number = Decimal("NaN")
    if not (number.is_finite() and least <= number <= most and len(number.as_tuple().digits) <= 20):
        raise InputError(
            f"{as_option(name)} is {value}; it has to be a number from {least} to {most} with at most 20 digits"
        )
    return number.normalize() + 0


def _exponent(name: str, of_model: dict[str, Any]) -> str:
    value = of_model[name]
    return str(_decimal(name, _USUAL_EXPONENT if value is None else value, Decimal("1.01"), Decimal(10)))


def _quadrants(given: Iterable[object] | None) -> tuple[str, ...]:
    shares = tuple(_decimal("quadrants", each, Decimal(0), Decimal(1)) for each in given or _USUAL_QUADRANTS)
    if len(shares) != 4 or sum(map(Fraction, shares)) != 1:  # a sum of Decimal may be rounded
        raise InputError(
            f"the quadrants are {', '.join(map(str, shares))}; they have to be four numbers with the sum 1"
        )
    return tuple(map(str, shares))


def _check_planted(found: Wanted) -> None:
    for p, q in found.plant:
        if p < 1 or q < 1:
            raise InputError(f"a planted biclique is {p} x {q}; both sides have to have a vertex")
    for k, (side, n) in enumerate((("left", found.n_left), ("right", found.n_right))):
        taken = sum(sizes[k] for sizes in found.plant)
        if taken > n:
            raise InputError(
                f"planted bicliques, which share no vertex, need {taken:,} {side} vertices, and there are {n:,}; plant "
                "fewer or smaller ones"
            )
    if found.drawn_edges < 0:
        raise InputError(
            f"planted bicliques have {found.planted_edges:,} edges, more than all {found.edges:,}; ask for more edges"
        )
    for side, n in (("left", found.n_left), ("right", found.n_right)):
        if found.plant and found.model == "chung-lu" and found.drawn_edges < n:
            raise InputError(
                f"{found.drawn_edges:,} of the {found.edges:,} edges are not planted, too few for {n:,} {side} "
                "vertices, each with such an edge; ask for more edges, fewer vertices, or the model rmat, which leaves "
                "vertices out"
            )


def _check_room(found: Wanted) -> None:
    most = found.n_left * found.most_neighbours
    if found.edges > found.n_left * found.n_right or found.drawn_edges > most:
        beside = " beside the planted ones" if found.plant else ""
        raise InputError(
            f"{found.drawn_edges:,} edges{beside} do not fit between {found.n_left:,} left and {found.n_right:,} right "
            f"vertices, which have room for {most:,}; ask for fewer"
        )
    for side, degree, limit in (
        ("left", found.max_left_degree, found.most_neighbours),
        ("right", found.max_right_degree, found.n_left),
    ):
        if degree is not None and not 1 <= degree <= limit:
            raise InputError(
                f"the largest {side} degree is {degree:,}, and a vertex may have 1 to {limit:,} neighbours beside "
                "planted ones; ask for another one, or for more vertices on the other side"
            )
