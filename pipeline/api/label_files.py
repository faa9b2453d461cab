"""Reads the labels of given members from files, one per line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bicliques.pipeline.api.table import record
from bicliques.schemas.errors import InputError
from bicliques.schemas.members import as_labels
from bicliques.schemas.option import as_option
from bicliques.schemas.options import LabelFiles
from bicliques.schemas.regular_files import read_regular
from bicliques.schemas.values import as_path


def labels_asked(given: Mapping[str, Any]) -> dict[str, Any]:
    """The labels of both sides that a call names itself and in files, by the names of the fields of `Search`.

    Parameters
    ----------
    given : mapping
        Values by the names of `pipeline.api.table.TABLE`.

    Raises
    ------
    InputError
        If something is no label, or a file cannot be read or holds none.
    """
    files = record(LabelFiles, given)
    found = {}
    for name, file in (
        ("containing_left", files.containing_left_from),
        ("containing_right", files.containing_right_from),
    ):
        option, labels = as_option(name), given.get(name, ())
        found[name] = as_labels(option, labels)
        if file is not None:
            found[name] = as_labels(option, (*found[name], *_lines(as_path(file, f"{option}-from"), f"{option}-from")))
    return found


def _lines(file: Path, option: str) -> list[str]:
    """The lines of a file without the ends of lines. Empty lines are left out, because no label is empty."""
    try:
        text = read_regular(file).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); correct {option}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"line {line} of {file} is not UTF-8; convert the file, or correct {option}") from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    labels = [line for line in lines if line]
    if not labels:
        raise InputError(f"{file} holds no label; correct {option}")
    return labels
