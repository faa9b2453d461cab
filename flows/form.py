"""The options of a run as parameters of a flow: one model per group, made from the table of all options.

Prefect shows each model as a part of the form of a run. The fields have the descriptions of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model

from bicliques.pipeline.api.table import Entry, entries_of
from bicliques.schemas.option import GROUPS


def given(*groups: BaseModel) -> dict[str, Any]:
    """The options of all groups in one dictionary, by name."""
    return {name: value for group in groups for name, value in group.model_dump().items()}


def _model(key: str) -> type[BaseModel]:
    entries = [entry for entry in entries_of("flow") if entry.told.group == key]
    return create_model(
        key.capitalize(),
        __config__=ConfigDict(extra="forbid", frozen=True),
        __doc__=GROUPS[key].help,
        __module__=__name__,
        **{
            entry.name: (_hint(entry), Field(entry.default, description=entry.sentence_on("flow"))) for entry in entries
        },
    )  # type: ignore[call-overload]


def _hint(entry: Entry) -> Any:
    """The type of an option, changed where a form cannot ask for it: words to choose from, lists, paths, objects."""
    if entry.choices is not None:
        return Literal[entry.choices]
    if get_origin(entry.hint) is Sequence:
        return tuple[str, ...]  # text may stand for a number
    kinds: Iterable[Any] = get_args(entry.hint)
    if any(kind is object or get_origin(kind) is PathLike for kind in kinds):
        return str | None
    if any(get_origin(kind) is Sequence for kind in kinds):
        return list[int] | None if NoneType in kinds else list[int]
    return entry.hint


if TYPE_CHECKING:
    Result: TypeAlias = Any
    Thresholds: TypeAlias = Any
    Limits: TypeAlias = Any
    Searching: TypeAlias = Any
    Workers: TypeAlias = Any
    Reading: TypeAlias = Any
else:
    Result, Thresholds, Limits, Searching, Workers, Reading = (_model(key) for key in GROUPS)
