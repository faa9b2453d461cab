"""What is asked for: which bicliques count, by which measure, with which members, and when a slice must end.

Every measure grows with both sides. So a measure of the most members that two sides can have bounds whatever lies
below, and a measure that has to be reached gives thresholds.

Imports no library, because the command line reads it before it knows whether anything else is needed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from bicliques.schemas.errors import InputError
from bicliques.schemas.option import option

#: A label of a vertex: text or a whole number. Text may stand for a number, because the command line has only text.
Label = str | int
Labels = Sequence[str | int]

#: Labels that a sentence names, and characters that it shows of one.
_NAMED, _SHOWN = 3, 40


def as_labels(name: str, given: object) -> tuple[Label, ...]:
    """Labels that a user gave, each once, in an order that does not depend on theirs.

    Parameters
    ----------
    name : str
        Name of the option, for the error sentence.
    given : object
        One label, or an iterable of labels. NumPy's whole numbers and text are labels, too.

    Raises
    ------
    InputError
        If something is no label.
    """
    if isinstance(given, (bytes, dict)) or not isinstance(given, (str, int, Iterable)):
        raise InputError(f"{name} must be labels, text or whole numbers, not {given!r} ({type(given).__name__})")
    several = [given] if isinstance(given, (str, int)) else list(given)
    labels = {_as_label(name, label) for label in several}
    return tuple(sorted(labels, key=lambda label: (isinstance(label, str), label)))


def _as_label(name: str, given: object) -> Label:
    if isinstance(given, str):
        try:
            given.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{name} has the label {given!r}, which is not UTF-8; give it as UTF-8") from error
        return str(given)
    try:
        if isinstance(given, bool):
            raise TypeError
        return operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(
            f"{name} must be labels, text or whole numbers, not {given!r} ({type(given).__name__})"
        ) from None


def label_words(labels: Labels) -> str:
    """The labels in a sentence, as "'ann', 'bob' and 3 more"."""
    shown = [_short(label) for label in labels[:_NAMED]]
    more = len(labels) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more:,} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _short(label: Label) -> str:
    if isinstance(label, int) or len(label) <= _SHOWN:
        return repr(label)
    return f"{label[:_SHOWN]!r} ..."


Side = Literal["left", "right"]

#: ``count`` counts, ``fingerprint`` also hashes, ``list`` also hands every biclique to `schemas.bicliques.Emit`.
Mode = Literal["count", "fingerprint", "list"]

#: Measures by which bicliques are ranked.
By = Literal["edges", "vertices", "balance", "left", "right"]
MEASURES: tuple[By, ...] = get_args(By)

#: The options that say how many pairs may be no edges, and the most of them that may be asked for.
MISSING = ("missing_pairs", "missing_each", "missing_left", "missing_right")
MOST_MISSING = 16

#: What may be asked of the search tree: see `schemas.jobs`.
JobName = Literal["all", "cliques", "largest", "marked", "near", "near-largest", "pq", "vertices"]


@dataclass(frozen=True)
class Near:
    """How many pairs of a left and a right member may be no edges (docs/holes.md).

    Parameters
    ----------
    pairs : int or None
        How many in all, in a k-defective biclique. None: any number, in a k-biplex.
    left, right : int
        How many of them each left member, and each right member, may be in. `pairs` of them, if that is given.
    """

    pairs: int | None
    left: int
    right: int

    def least(self, side: Side) -> int:
        """The smallest threshold of a side that may be asked for.

        From it on, any two members of the *other* side have a neighbour in common among the members of this side. So
        every result hangs together, and is found two steps around its first member.
        """
        if self.pairs is not None:
            return self.pairs + 1
        return 2 * (self.right if side == "left" else self.left) + 1


@dataclass(frozen=True)
class Search:
    """The definition of a result. It is part of the run's identity.

    Parameters
    ----------
    mode : "count", "fingerprint" or "list"
    min_left, min_right : int
        Smallest sides of a biclique that is emitted. They prune the search.
    max_left, max_right : int or None
        Largest sides. They filter the *maximal* bicliques. If one is larger, it is left out, and its parts do not
        take its place.
    containing_left, containing_right : Labels
        Labels of vertices that every biclique has to contain. The graph is restricted to them before an engine gets it,
        so engines do not look at them. See `kernels.graph.members`.
    sizes : bool
        Whether to count the bicliques of each size, too, in any mode.
    largest : int or None
        How many of the largest bicliques by `by` are the result. None: all are. See `schemas.jobs`.
    per_vertex : bool
        Whether to find for every vertex the number of bicliques with it and the largest of them, in any mode.
    by : By
        Measure of `largest`: see `schemas.totals.keys_of`.
    missing_pairs, missing_each, missing_left, missing_right : int or None
        How many pairs of a result may be no edges; `near` says it in one form. 0 is None. But 0 for one side beside a
        number for the other one stays, and then every pair is an edge, because a missing pair is in both sides.
    marked : bool
        Whether only bicliques with a marked edge are the result. The graph that an engine gets says which edges are
        marked. Users cannot ask for it: `pipeline.api.diffing` does.
    mirrored : int or None
        In a double cover every biclique is there a second time, with its sides exchanged. Not None: only the one whose
        left side has the least vertex is a result, and only if one of its sides has so many members. Users cannot ask
        for it: `schemas.options.RunOptions` does for a graph of one kind of vertices.
    pq : str or None
        Count bicliques, maximal or not, of up to ``PxQ`` members, or of ``all`` numbers. None: only maximal ones. See
        `schemas.leaves`.
    """

    mode: Mode = "list"
    min_left: int = option(1, help="fewest left members; prunes the search", group="thresholds", metavar="N")
    min_right: int = option(1, help="fewest right members; prunes the search", group="thresholds", metavar="N")
    max_left: int | None = option(
        None,
        help="most left members; a filter: larger ones are left out, their parts do not appear",
        group="thresholds",
        metavar="N",
        otherwise="any",
    )
    max_right: int | None = option(
        None,
        help="most right members; a filter: larger ones are left out, their parts do not appear",
        group="thresholds",
        metavar="N",
        otherwise="any",
    )
    containing_left: Labels = option(
        (),
        help="left labels; only bicliques that contain all of these",
        group="thresholds",
        metavar="LABEL",
        otherwise="any",
    )
    containing_right: Labels = option(
        (),
        help="right labels; only bicliques that contain all of these",
        group="thresholds",
        metavar="LABEL",
        otherwise="any",
    )
    missing_pairs: int | None = option(
        None,
        help="pairs in all that may be no edges in a biclique; docs/holes.md",
        group="thresholds",
        on=("mine", "largest", "count", "dry_run", "flow"),
        metavar="K",
        otherwise="none",
    )
    missing_each: int | None = option(
        None,
        help="right members that each left member may miss, and left ones that each right one may",
        group="thresholds",
        on=("mine", "largest", "count", "dry_run", "flow"),
        metavar="K",
        otherwise="none",
    )
    missing_left: int | None = option(
        None,
        help="right members that each left member may miss; with --missing-right",
        group="thresholds",
        on=("mine", "largest", "count", "dry_run", "flow"),
        metavar="K",
        otherwise="none",
    )
    missing_right: int | None = option(
        None,
        help="left members that each right member may miss; with --missing-left",
        group="thresholds",
        on=("mine", "largest", "count", "dry_run", "flow"),
        metavar="K",
        otherwise="none",
    )
    sizes: bool = option(
        False,
        help="with --count-only: also count the bicliques of each size; see: bicliques sizes",
        group="result",
        on=("mine", "count", "dry_run", "flow"),
        words={"count": "also print the number of bicliques of each size; takes longer"},
    )
    largest: int | None = option(
        None,
        name="top",
        help="how many of the largest bicliques are wanted",
        group="result",
        on=("largest", "flow"),
        metavar="K",
        otherwise="1; the flow writes all",
    )
    per_vertex: bool = option(
        False,
        help="also write OUT/vertices/*.parquet: for every vertex the number of bicliques with it and the largest ones",
        group="result",
        on=("mine", "flow"),
    )
    by: By = option("edges", help="what the largest have most of", group="result", on=("largest", "flow"))
    pq: str | None = option(
        None,
        help="count the bicliques of p x q members, maximal or not, for all p and q up to PxQ, or for all",
        group="result",
        on=("count",),
        metavar="PxQ",
        otherwise="count the maximal ones",
    )
    marked: bool = field(default=False, kw_only=True)
    mirrored: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        # beside a number for the one side, 0 for the other one says something: that nothing may be missing
        asked = any(type(each) is int and each > 0 for each in (self.missing_left, self.missing_right))
        for name in MISSING[:2] if asked else MISSING:
            if type(getattr(self, name)) is int and getattr(self, name) == 0:
                object.__setattr__(self, name, None)

    @property
    def near(self) -> Near | None:
        """Which pairs may be no edges. None: every pair is an edge."""
        if self.missing_pairs:
            return Near(self.missing_pairs, self.missing_pairs, self.missing_pairs)
        left, right = self.missing_each or self.missing_left, self.missing_each or self.missing_right
        return Near(None, left, right) if left and right else None

    @property
    def fewest_neighbours(self) -> tuple[int, int]:
        """The fewest neighbours that a right member and a left member of a result have among its other side."""
        near = self.near
        return (
            (self.min_left, self.min_right)
            if near is None
            else (self.min_left - near.right, self.min_right - near.left)
        )

    @property
    def has_thresholds(self) -> bool:
        """Whether bicliques have to be larger than the smallest ones."""
        return self.min_left > 1 or self.min_right > 1

    @property
    def prunes(self) -> bool:
        """Whether parts of the search tree lead nowhere, because of thresholds, or of a bound of the largest."""
        return self.has_thresholds or self.largest is not None

    @property
    def has_filters(self) -> bool:
        """Whether bicliques that are too large are left out."""
        return self.max_left is not None or self.max_right is not None

    @property
    def is_plain(self) -> bool:
        """Whether every maximal biclique of the graph that an engine gets is a result."""
        return not (self.has_thresholds or self.has_filters)

    @property
    def is_containing(self) -> bool:
        """Whether vertices are given that every biclique has to contain."""
        return bool(self.containing_left or self.containing_right)


def search_words(search: Search) -> str:
    """Which bicliques were asked for, such as "at least 3 left members, on the right 'a' and 'b'". Empty for all."""
    words = []
    for word, bound in (("at least", "min"), ("at most", "max")):
        for side in ("left", "right"):
            size = getattr(search, f"{bound}_{side}")
            if size is not None and (bound == "max" or size > 1):
                words.append(f"{word} {size:,} {side} member{'' if size == 1 else 's'}")
    if search.mirrored is not None and search.mirrored > search.min_left:
        words.append(f"at least {search.mirrored:,} members on one side")
    for side in ("left", "right"):
        if given := getattr(search, f"containing_{side}"):
            words.append(f"on the {side} {label_words(given)}")
    if (near := search.near) is not None:
        words.append(_near_words(near))
    return ", ".join(words)


def _near_words(near: Near) -> str:
    if near.pairs is not None:
        return f"at most {near.pairs} missing pair{'' if near.pairs == 1 else 's'}"
    if near.left == near.right:
        return f"at most {near.left} missing of the other side for each member"
    return f"at most {near.left} missing for each left and {near.right} for each right member"


@dataclass(frozen=True)
class Limits:
    """When a slice must end. Work that is unfinished then comes back as left-over.

    Parameters
    ----------
    seconds : float or None
        Wall time. An engine looks at the clock every few milliseconds.
    rows : int or None
        Most bicliques that this slice may find. The limit is exact.
    bound : int or None
        `schemas.jobs.Job.bound` of the total so far: a measure that the last of as many rows as are wanted reaches. An
        engine may leave out bicliques whose measure (`Search.by`) is below it, and end nodes that cannot reach it. It
        must not leave out those whose measure is equal. What it emits may raise the bound: then `Job.bound_of` of the
        receiver is higher. A lower bound, or none, is never wrong (`kernels.reference.tree` says why).
    """

    seconds: float | None = None
    rows: int | None = None
    bound: int | None = None


#: More members than any side has: nothing on this side is enough.
TOO_MANY = 2**62

_MEASURES: dict[By, Callable[[Any, Any], Any]] = {
    "edges": lambda left, right: left * right,
    "vertices": lambda left, right: left + right,
    "balance": min,
    "left": lambda left, right: left,
    "right": lambda left, right: right,
}
_TRANSPOSED: dict[By, By] = {"left": "right", "right": "left"}


def measure(by: By, left: Any, right: Any) -> Any:
    """The measure of a biclique with so many members: numbers, or arrays unless the measure is balance."""
    return _MEASURES[by](left, right)


def fewest_left(by: By, least: int, right: int) -> int:
    """The fewest left members whose measure, with `right` right members, is `least` or more. May be 0 or `TOO_MANY`."""
    if by == "edges":
        return -(-least // right) if right > 0 else (TOO_MANY if least > 0 else 0)
    if by == "vertices":
        return max(least - right, 0)
    if by == "balance":
        return max(least, 0) if right >= least else TOO_MANY
    if by == "left":
        return max(least, 0)
    return 0 if right >= least else TOO_MANY


def fewest_right(by: By, least: int, left: int) -> int:
    """As `fewest_left`, with the sides exchanged."""
    return fewest_left(_TRANSPOSED.get(by, by), least, left)
