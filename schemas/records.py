"""The JSON records of a run's folder. Each has a checksum, and its fields are checked before they are used.

A field that this version does not know is ignored, because a later version of the same schema may have written it. A
record of an earlier version may lack the checksum, and fields that have a default.
"""

from __future__ import annotations

import json
import types
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
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

from bicliques.schemas.errors import IncompleteError, InputError

_CHECKSUM = "crc32"
#: A field of a ledger entry that is large and plain text, so that it need not be encoded again.
_PLAIN_TEXT = "left_over"

T = TypeVar("T")
#: Takes a value as JSON has it, and its name for the sentence of an error.
Reader = Callable[[Any, str], Any]


def with_checksum(data: Mapping[str, Any]) -> dict[str, Any]:
    """A record with its CRC-32, which `checked` compares."""
    return {**data, _CHECKSUM: _crc32(data)}


def one_line(data: Mapping[str, Any]) -> bytes:
    """A record that is not empty, with its CRC-32, as a line of JSON. `with_checksum` has the same record as an object.

    What the checksum is computed from is what is written, so it is put into words once.
    """
    text, plain = _words(data)
    end = {_PLAIN_TEXT: plain} if _PLAIN_TEXT in data else {}
    return f"{text[:-1]}, {json.dumps(end | {_CHECKSUM: _crc32_of(text, plain)})[1:]}\n".encode()


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
    return _crc32_of(*_words(data))


def _words(data: Mapping[str, Any]) -> tuple[str, str]:
    """What the checksum is computed from: the record in JSON, and its field of plain text."""
    rest = {key: value for key, value in data.items() if key not in (_PLAIN_TEXT, _CHECKSUM)}
    return json.dumps(rest, sort_keys=True), str(data.get(_PLAIN_TEXT, ""))


def _crc32_of(text: str, plain: str) -> int:
    return zlib.crc32(text.encode(), zlib.crc32(plain.encode()))


def parsed(data: bytes) -> dict[str, Any]:
    """The record in a text, with its checksum.

    Raises
    ------
    IncompleteError
        It is no object in JSON.
    """
    try:
        found = json.loads(data)
    except (RecursionError, ValueError) as error:
        raise IncompleteError(f"it is damaged: {type(error).__name__}") from error
    if not isinstance(found, dict):
        raise IncompleteError("it is damaged: it is not an object")
    return found


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
        return cast(T, _reader(cast(Any, kind))(data, name))
    except InputError as error:  # the value is one that no user could have chosen
        raise IncompleteError(f"it is damaged: {error}") from error


def check_facts(kind: type, data: object, name: str) -> None:
    """Refuse a dictionary that does not fit a `typing.TypedDict`.

    Raises
    ------
    IncompleteError
        As `read_as`.
    """
    _reader(kind)(data, name)


@cache
def _reader(hint: Any) -> Reader:
    """What checks a value of this type and makes what is read of it. A type is looked at once, and many values come."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value, name: value
    if origin is NotRequired:
        return _reader(inner[0])
    if origin is Annotated:
        return _number_to(inner[1], _reader(inner[0]))
    if origin in (Union, types.UnionType):
        return _any_of(inner)
    if origin is Literal:
        return _word_of(inner)
    if origin in (list, tuple, Sequence):
        return _sequence(origin, inner)
    if is_dataclass(hint) or is_typeddict(hint):
        return _fields(hint)
    if origin is dict or hint is dict:
        return _object(_reader(inner[1] if inner else Any))
    return _plain(hint)


_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false", type(None): "null"}


def _plain(hint: type) -> Reader:
    # a bool is an int in Python, and JSON writes some floats as whole numbers
    kinds = (int, float) if hint is float else (hint,)

    def read(value: Any, name: str) -> Any:
        if type(value) not in kinds:
            raise _unfit(name, value, _WORDS[hint])
        return value

    return read


def _number_to(most: int, reader: Reader) -> Reader:
    def read(value: Any, name: str) -> Any:
        number = reader(value, name)
        if not 0 <= number <= most:
            raise _unfit(name, value, f"a number from 0 to {most}")
        return number

    return read


def _word_of(words: tuple[Any, ...]) -> Reader:
    def read(value: Any, name: str) -> Any:
        if not isinstance(value, str) or value not in words:
            raise _unfit(name, value, f"one of {', '.join(words)}")
        return value

    return read


def _object(reader: Reader) -> Reader:
    def read(value: Any, name: str) -> Any:
        if not isinstance(value, dict):
            raise _unfit(name, value, "an object")
        return {key: reader(item, f"{name}.{key}") for key, item in value.items()}

    return read


def _any_of(hints: tuple[Any, ...]) -> Reader:
    readers, plain = [_reader(hint) for hint in hints], _WORDS.keys() & set(hints)

    def read(value: Any, name: str) -> Any:
        if type(value) in plain:  # what the others would refuse with a sentence that nobody reads
            return value
        for reader in readers:
            try:
                return reader(value, name)
            except IncompleteError as error:
                last = error
        raise last

    return read


def _sequence(origin: type, inner: tuple[Any, ...]) -> Reader:
    any_length = origin in (list, Sequence) or inner[-1] is Ellipsis
    readers = [_reader(hint) for hint in inner if hint is not Ellipsis]

    def read(value: Any, name: str) -> Any:
        if not isinstance(value, (list, tuple)):
            raise _unfit(name, value, "a list")
        each = readers * len(value) if any_length else readers
        if len(each) != len(value):
            raise _unfit(name, value, f"a list of {len(each)}")
        return tuple(reader(item, f"{name}[{k}]") for k, (reader, item) in enumerate(zip(each, value, strict=True)))

    return read


def _fields(kind: Any) -> Reader:
    def read(value: Any, name: str) -> Any:
        if not isinstance(value, dict):
            raise _unfit(name, value, "an object")
        readers, needed = _shape(kind)
        missing, unknown = readers.keys() - value.keys(), value.keys() - readers.keys()
        # a field that may be missing counts as misspelt if there is an unknown field in its place
        gone = missing & needed or (missing if unknown and is_dataclass(kind) else set())
        if gone:
            spelt = f", but {min(unknown)!r:.40}" if unknown else ""
            raise IncompleteError(f"it is damaged: {name} has no {min(gone)!r}{spelt}")
        found = {key: readers[key](item, f"{name}.{key}") for key, item in value.items() if key in readers}
        return found if is_typeddict(kind) else kind(**found)

    return read


@cache
def _shape(kind: Any) -> tuple[dict[str, Reader], frozenset[str]]:
    """What reads each of the fields, and which of them are required."""
    hints = get_type_hints(kind, include_extras=True)
    if is_dataclass(kind):
        needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}
    else:
        needed = {key for key, hint in hints.items() if get_origin(hint) is not NotRequired}
    return {key: _reader(hint) for key, hint in hints.items()}, frozenset(needed)


def _unfit(name: str, value: object, wanted: str) -> IncompleteError:
    text = repr(value)
    return IncompleteError(f"it is damaged: {name} is {text if len(text) < 40 else text[:36] + ' ...'}, not {wanted}")
