"""What a user can choose, validated once, immutable, and stored with the run.

`IngestOptions` says how to read, `schemas.work.Search` what counts as a result, `BuildOptions` how the
graph is prepared. How many workers mine it is not part of a run's identity and lives in
`pipeline.cluster`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from schemas.errors import InputError
from schemas.graph import Side

__all__ = ["BuildOptions", "IngestOptions", "LabelType"]

LabelType = Literal["auto", "int", "string"]


@dataclass(frozen=True)
class IngestOptions:
    """How to read an edge list.

    Parameters
    ----------
    format : str or None
        A name that ``bicliques formats`` lists; None decides by the file's name and first lines.
    left, right : str, int or None
        Column of each side, by name or by position from 0; None takes the first two columns.
    delimiter : str or None
        One character between columns of a CSV; None decides by the first lines.
    header : bool or None
        Whether the first line of a CSV holds column names; None decides by the first lines.
    label_type : "auto", "int" or "string"
        ``auto`` takes integers when every label of the column is one, and refuses a mixture.
    skip_bad_lines : bool
        Leave out and count lines that cannot be read, instead of refusing the file.
    """

    format: str | None = None
    left: str | int | None = None
    right: str | int | None = None
    delimiter: str | None = None
    header: bool | None = None
    label_type: LabelType = "auto"
    skip_bad_lines: bool = False

    def __post_init__(self) -> None:
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise InputError(f"the delimiter must be one character, not {self.delimiter!r}")
        if self.label_type not in ("auto", "int", "string"):
            raise InputError(f"label type must be auto, int or string, not {self.label_type!r}")
        if self.left is not None and self.left == self.right:
            raise InputError(f"left and right name the same column {self.left!r}; name two columns")


@dataclass(frozen=True)
class BuildOptions:
    """How the graph is prepared for the search. None of these changes the result.

    Parameters
    ----------
    root_side : "auto", "left" or "right"
        ``auto`` takes the side with fewer wedges to walk (docs/design.md, section 3).
    order : "degree", "two-hop", "unilateral" or "id"
        Rank of the root vertices.
    """

    root_side: Literal["auto"] | Side = "auto"
    order: Literal["degree", "two-hop", "unilateral", "id"] = "degree"
