"""The JSON records of a run's folder. Each has a checksum, and its fields are checked before they are used.

A field that this version does not know is ignored, because a later version of the same schema may have written it. A
record of an earlier version may lack the checksum, and fields that have a default.
"""

from __future__ import annotations

import json
import types
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from schemas.errors import IncompleteError, InputError

__all__ = ["check_facts", "checked", "read_as", "with_checksum"]

_CHECKSUM = "crc32"
#: A field of a ledger entry that is large and plain text, so that it need not be encoded again.
_PLAIN_TEXT = "left_over"

T = TypeVar("T")


def with_checksum(data: Mapping[str, Any]) -> dict[str, Any]:
    """A record with its CRC-32, which `checked` compares."""
    return {**data, _CHECKSUM: _crc32(data)}


def checked(data: Mapping[str, Any]) -> dict[str, Any]:
    """A record without its checksum. A record that has none was made by an earlier version, and is not checked.

    Raises
    ------
    IncompleteError
        The record is not what was written.
    """
    if _CHECKSUM in data and data[_CHECKSUM] != _crc32(data):
        raise IncompleteError("it is damaged: its checksum is another")
    return {key: value for key, value in data.items() if key != _CHECKSUM}


def _crc32(data: Mapping[str, Any]) -> int:
    rest = {key: value for key, value in data.items() if key not in (_PLAIN_TEXT, _CHECKSUM)}
    return zlib.crc32(json.dumps(rest, sort_keys=True).encode(), zlib.crc32(str(data.get(_PLAIN_TEXT, "")).encode()))


def read_as(kind: type[T], data: object, name: str) -> T:
    """Make a frozen dataclass of a record, and check the types of all fields.

    Parameters
    ----------
    kind : type
        Its fields are numbers, text, lists, dictionaries, or dataclasses and tuples of such.
    data : object
        The record as JSON has it, in which tuples are lists.
    name : str
        Name of the record, for the error sentence.

    Raises
    ------
    IncompleteError
        A field is missing or has another type. The sentence names it.
    """
    try:
        return cast(T, _read(kind, data, name))
    except InputError as error:  # the value is one that no user could have chosen
        raise IncompleteError(f"it is damaged: {error}") from error


def check_facts(kind: type, data: object, name: str) -> None:
    """Refuse a dictionary that does not fit a `typing.TypedDict`.

    Raises
    ------
    IncompleteError
        As `read_as`.
    """
    _read(kind, data, name)


def _read(hint: Any, value: object, name: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin is NotRequired:
        return _read(inner[0], value, name)
    if origin is Annotated:
        number = _read(inner[0], value, name)
        if not 0 <= number <= inner[1]:
            raise _unfit(name, value, f"a number from 0 to {inner[1]}")
        return number
    if origin in (Union, types.UnionType):
        return _any_of(inner, value, name)
    if origin is Literal:
        if not isinstance(value, str) or value not in inner:
            raise _unfit(name, value, f"one of {', '.join(inner)}")
        return value
    if origin in (list, tuple, Sequence):
        return _sequence(origin, inner, value, name)
    if is_dataclass(hint) or is_typeddict(hint):
        return _fields(hint, value, name)
    if origin is dict or hint is dict:
        if not isinstance(value, dict):
            raise _unfit(name, value, "an object")
        return {key: _read(inner[1] if inner else Any, item, f"{name}.{key}") for key, item in value.items()}
    # a bool is an int in Python, and JSON writes some floats as whole numbers
    kinds = (int, float) if hint is float else (hint,)
    if type(value) not in kinds:
        raise _unfit(name, value, _WORDS[hint])
    return value


_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false", type(None): "null"}


def _any_of(hints: tuple[Any, ...], value: object, name: str) -> Any:
    for hint in hints:
        try:
            return _read(hint, value, name)
        except IncompleteError as error:
            last = error
    raise last


def _sequence(origin: type, inner: tuple[Any, ...], value: object, name: str) -> Any:
    if not isinstance(value, (list, tuple)):
        raise _unfit(name, value, "a list")
    any_length = origin in (list, Sequence) or inner[-1] is Ellipsis
    hints = [inner[0]] * len(value) if any_length else list(inner)
    if len(hints) != len(value):
        raise _unfit(name, value, f"a list of {len(hints)}")
    make = list if origin is list else tuple
    return make(_read(hint, item, f"{name}[{k}]") for k, (hint, item) in enumerate(zip(hints, value, strict=True)))


def _fields(kind: Any, value: object, name: str) -> Any:
    if not isinstance(value, dict):
        raise _unfit(name, value, "an object")
    hints, needed = _shape(kind)
    missing, unknown = hints.keys() - value.keys(), value.keys() - hints.keys()
    # a field that may be missing counts as misspelt if there is an unknown field in its place
    gone = missing & needed or (missing if unknown and is_dataclass(kind) else set())
    if gone:
        spelt = f", but {min(unknown)!r:.40}" if unknown else ""
        raise IncompleteError(f"it is damaged: {name} has no {min(gone)!r}{spelt}")
    found = {key: _read(hints[key], item, f"{name}.{key}") for key, item in value.items() if key in hints}
    return found if is_typeddict(kind) else kind(**found)


@lru_cache
def _shape(kind: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """The types of the fields, and which of them are required."""
    hints = get_type_hints(kind, include_extras=True)
    if is_dataclass(kind):
        needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}
    else:
        needed = {key for key, hint in hints.items() if get_origin(hint) is not NotRequired}
    return hints, frozenset(needed)


def _unfit(name: str, value: object, wanted: str) -> IncompleteError:
    text = repr(value)
    return IncompleteError(f"it is damaged: {name} is {text if len(text) < 40 else text[:36] + ' ...'}, not {wanted}")
