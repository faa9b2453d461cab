"""Hive partitions: folders such as ``day=2026-11-23`` say a value of all files below them."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from schemas.errors import InputError
from schemas.where import Condition

__all__ = ["chosen"]

#: What Hive, Spark and Arrow write for rows without a value.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
#: Values that a sentence names.
_NAMED = 3


def chosen(title: str, places: Sequence[str], where: Sequence[str]) -> tuple[str, list[int]]:
    """The files for which all conditions hold: a title for them, and their positions.

    Parameters
    ----------
    title : str
        The source, for messages.
    places : sequence of str
        Whole paths, with slashes.
    where : sequence of str
        Conditions as `schemas.where.Condition` reads them.

    Raises
    ------
    InputError
        A file is in no folder of a key, or no file fits.
    """
    conditions = [Condition.parse(each) for each in where]
    values = [_values(place) for place in places]
    for place, own in zip(places, values, strict=True):
        for condition in conditions:
            if condition.key not in own:
                known = f" (its partitions are {', '.join(sorted(own))})" if own else ""
                raise InputError(
                    f"{place} lies in no folder {condition.key}=...{known}, so --where cannot tell whether it "
                    "is meant; name a partition, or leave --where out"
                )
    fits = [k for k, own in enumerate(values) if all(_holds(each, own[each.key]) for each in conditions)]
    if not fits:
        key = conditions[0].key
        there = sorted({own[key] for own in values})
        more = f" and {len(there) - _NAMED:,} more" if len(there) > _NAMED else ""
        raise InputError(
            f"no file of {title} fits {' '.join(where)}; the values of {key} are {', '.join(there[:_NAMED])}{more}"
        )
    return f"{title}, of which {len(fits):,} where {' and '.join(where)}", fits


def _holds(condition: Condition, value: str) -> bool:
    """Whether a value fits. No value is neither less nor more than another one, nor unlike it, as in SQL."""
    return (value != _NO_VALUE or condition.value == _NO_VALUE) and condition.holds(value)


def _values(place: str) -> dict[str, str]:
    """The values that the folders of a path say, by key."""
    pairs = [part.partition("=") for part in place.split("/")[:-1]]
    return {unquote(key): unquote(value) for key, sign, value in pairs if key and sign}
