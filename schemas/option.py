"""The description of an option, which is stated once, at the field that holds the option.

The command line with its ``--help``, the keywords of the Python calls, the form of a flow and docs/options.md are made
from these descriptions (`pipeline.api.table`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field
from numbers import Integral, Rational, Real
from operator import index
from types import MappingProxyType
from typing import Any, Literal

#: Where an option can be given: the Python calls and the commands of that name (``dry_run`` is ``mine --dry-run``),
#: and the flow `mine`.
Call = Literal["mine", "largest", "count", "cliques", "diff", "refresh", "resume", "dry_run", "look", "demo", "flow"]

#: The calls that start with an input.
NEW: tuple[Call, ...] = ("mine", "largest", "count", "diff", "refresh", "dry_run", "flow")


@dataclass(frozen=True, kw_only=True)
class Group:
    """Options that are shown together.

    Parameters
    ----------
    title : str or None
        In ``--help``; None puts them among those that belong to one command.
    help : str
        A sentence for the form of a flow and for docs/options.md.
    """

    title: str | None
    help: str


#: The groups by key, in the order in which they are shown.
GROUPS: Mapping[str, Group] = MappingProxyType(
    {
        "result": Group(title=None, help="What a run returns and writes."),
        "thresholds": Group(title="which bicliques", help="Which bicliques count."),
        "limits": Group(title="when to stop, resumable", help="When a run stops although work is left."),
        "search": Group(
            title="how to search; none of these changes the result",
            help="How to search; none of these changes the result.",
        ),
        "workers": Group(title="workers", help="Where the search runs; the result is the same."),
        "reading": Group(title="how to read SOURCE", help="How to read the input."),
    }
)


@dataclass(frozen=True, kw_only=True)
class Option:
    """The description of an option. Its name, type and default are those of the field.

    Parameters
    ----------
    help : str
        One clause in small letters, without the default.
    group : str
        A key of `GROUPS`.
    metavar : str or None
        The word for the value in ``--help``: its unit, if it has one. None for switches and choices.
    otherwise : str or None
        What happens without the option, in words. None where the default says that.
    name : str or None
        Name of the keyword and of the option. None: that of the field.
    asked : object
        The value of a call that does not give the option. None: the default of the field.
    least : int or None
        The command line refuses a smaller number at once.
    is_limit : bool
        Whether the word ``none`` lifts it, and resuming leaves it as it was.
    words : mapping
        Another `help` for some of the calls.
    """

    help: str
    group: str
    on: tuple[Call, ...] = NEW
    metavar: str | None = None
    otherwise: str | None = None
    name: str | None = None
    asked: Any = None
    least: int | None = None
    is_limit: bool = False
    words: Mapping[Call, str] = field(default_factory=dict)


def option(default: Any, **told: Any) -> Any:
    """A keyword field of a dataclass that a user can choose. `told` are the fields of `Option`.

    An option of reading is one of ``look``, too, and those of reading and of searching of ``cliques``, unless they say
    where they can be given.
    """
    if told["group"] in ("reading", "search"):
        told.setdefault("on", (*NEW, "cliques", "look") if told["group"] == "reading" else (*NEW, "cliques"))
    return field(default=default, kw_only=True, metadata={"option": Option(**told)})


def as_plain(value: Any) -> Any:
    """A number of another library, as NumPy's, as an int or a float of Python. Everything else as it is.

    Options are checked, compared and written as JSON, and NumPy's numbers are no JSON.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return index(value) if hasattr(value, "__index__") else value  # a time of NumPy has a unit, and is no number
    return float(value) if isinstance(value, Real) and not isinstance(value, Rational) else value


def option_of(each: Field[Any]) -> Option | None:
    """The description of a field. None if users cannot choose it."""
    return each.metadata.get("option")
