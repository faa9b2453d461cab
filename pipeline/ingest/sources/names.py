"""The name of a source: how it is recorded with a run, and what can be said of it before it is read."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bicliques.pipeline.ingest.readers.files import Named, find, is_named, is_pattern, items_of
from bicliques.pipeline.remote.urls import HIDDEN, without_secrets
from bicliques.pipeline.run.names import url_of
from bicliques.schemas.errors import InputError

#: The name of standard input.
STDIN = "-"


def recorded(source: Any) -> str:
    """The name under which a run records its source.

    Parameters
    ----------
    source : path, sequence of paths, or object
        Paths become absolute, and URLs lose what is secret in them. Several become a list in JSON. Of an object in
        memory only the type is recorded.
    """
    if not is_named(source):
        return f"<{type(source).__name__}>"
    names = [_recorded(item) for item in items_of(source)]
    return names[0] if isinstance(source, (str, os.PathLike)) else json.dumps(names, ensure_ascii=False)


def _recorded(item: str) -> str:
    if url_of(item) is not None:
        return without_secrets(item)
    return item if item == STDIN else str(Path(item).absolute())


def from_record(name: str) -> Named:
    """The source that a run has recorded. Inverse of `recorded` for paths."""
    if not name.startswith('["'):
        return name
    try:
        names = json.loads(name)
    except (RecursionError, ValueError):  # a file may be called so
        return name
    return names if all(isinstance(each, str) for each in names) else name


def is_there(name: str) -> bool:
    """Whether a recorded source can be read again: all of its files are there, and it was no stream or object."""
    return all(_is_there(item) for item in items_of(from_record(name)))


def _is_there(item: str) -> bool:
    if item == STDIN or url_of(item) is not None:
        return item != STDIN and HIDDEN not in item
    try:
        return bool(find(item).paths) if is_pattern(item) else os.path.lexists(item)
    except InputError:
        return False


def n_bytes_of(source: Any, where: Sequence[str] = ()) -> int:
    """Bytes of the files of a source, as far as they are known before they are read. 0 for an object in memory."""
    if not is_named(source) or any(item == STDIN or url_of(item) for item in items_of(source)):
        return 0
    try:
        return find(source, where).n_bytes
    except InputError:  # reading says it
        return 0
