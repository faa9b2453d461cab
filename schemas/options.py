"""What a user can choose, validated once, immutable, and stored with the run.

`IngestOptions` says how to read, `schemas.work.Search` what counts as a result, `BuildOptions` how the
graph is prepared; `RunOptions` is all of them. `RunLimits` and the number of workers
(`pipeline.workers.WorkerOptions`) are not part of a run's identity. `RunOrigin` tells runs apart that follow
one another.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from schemas.errors import IncompleteError, InputError
from schemas.graph import Side
from schemas.records import read_as
from schemas.work import Search

__all__ = ["BuildOptions", "IngestOptions", "LabelType", "RunLimits", "RunOptions", "RunOrigin"]

LabelType = Literal["auto", "int", "string"]

#: Engines and files count in 64 bits.
_MOST = 2**63 - 1


@dataclass(frozen=True)
class IngestOptions:
    """How to read an edge list.

    Parameters
    ----------
    format : str or None
        A name that ``bicliques formats`` lists; None decides by the file's name and first lines.
    left, right : str, int or None
        Column of each side, by name or by position from 0; None takes the first two columns, unless others are known
        as the two sides (docs/formats.md).
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


@dataclass(frozen=True)
class RunOptions:
    """Everything that identifies a run: two runs with equal options and equal input have equal results.

    Parameters
    ----------
    source : str
        The path as given, or the type of an object in memory.
    search : Search
    build : BuildOptions
    ingest : IngestOptions
    engine : str
        A name of `pipeline.engines`, never "auto".
    ids : "labels" or "dense"
        What the lists in Parquet hold: the user's labels, or row numbers of the label tables.
    """

    source: str
    search: Search = field(default_factory=Search)
    build: BuildOptions = field(default_factory=BuildOptions)
    ingest: IngestOptions = field(default_factory=IngestOptions)
    engine: str = "cpu"
    ids: Literal["labels", "dense"] = "labels"

    def __post_init__(self) -> None:
        if self.ids not in ("labels", "dense"):
            raise InputError(f"ids must be labels or dense, not {self.ids!r}")
        if self.build.root_side not in ("auto", "left", "right"):
            raise InputError(f"the root side must be auto, left or right, not {self.build.root_side!r}")
        if self.build.order not in ("degree", "two-hop", "unilateral", "id"):
            raise InputError(f"the order must be degree, two-hop, unilateral or id, not {self.build.order!r}")
        if self.search.sizes and self.search.mode == "list":
            raise InputError("sizes are counted with count_only; a run that lists its bicliques has them in its files")
        for side in ("left", "right"):
            _check_sizes(side, getattr(self.search, f"min_{side}"), getattr(self.search, f"max_{side}"))

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, for a JSON file."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RunOptions:
        """Inverse of `to_json`; fields of a later version are left out.

        Raises
        ------
        IncompleteError
            If a field is missing or damaged.
        """
        if isinstance(data, dict) and (missing := {each.name for each in fields(cls)} - data.keys()):
            raise IncompleteError(f"it is damaged: the options have no {min(missing)!r}")
        return read_as(cls, data, "options")


@dataclass(frozen=True)
class RunOrigin:
    """Where a run stands among those that follow one another; written down when its folder is made.

    Parameters
    ----------
    run : str
        A name that no other run has, wherever its folder is.
    created : str
        When its folder was made, in UTC, ISO 8601. A copy of the run keeps it.
    series : str or None
        What one night has in common with the next: the source as it was asked for, before a date was filled in.
        None for an object in memory, which nobody can tell from another one.
    date : str or None
        The day that the run stands for, as 2026-01-31: the day that a schedule meant, or the day in the name of the
        folder. None stands for the day on which it was created.
    """

    run: str
    created: str
    series: str | None = None
    date: str | None = None

    @property
    def moment(self) -> str:
        """By which runs of a series are ordered: the day that it stands for, then when it was made."""
        return f"{self.date or self.created[:10]} {self.created}"


@dataclass(frozen=True)
class RunLimits:
    """When a run stops although work is left. It can be resumed, with other limits.

    Parameters
    ----------
    max_results : int or None
        Most bicliques of the whole run: exact, never one more.
    time_limit_s : float or None
        Seconds of mining, from the first slice of this session on; reading the input does not count.
    """

    max_results: int | None = None
    time_limit_s: float | None = None

    def __post_init__(self) -> None:
        if self.max_results is not None:
            _check_count("max_results", self.max_results)
        if self.time_limit_s is not None and not (
            isinstance(self.time_limit_s, (int, float)) and self.time_limit_s > 0
        ):
            raise InputError(f"the time limit must be more than 0 seconds, not {self.time_limit_s}")


def _check_count(name: str, count: int) -> None:
    if type(count) is not int:  # a float would be compared with counts, and a bool is a mistake
        raise InputError(f"{name} must be a whole number (int), not {count!r} ({type(count).__name__})")
    if count < 1:
        raise InputError(f"{name} must be at least 1, not {count}")
    if count > _MOST:
        raise InputError(f"{name} must be at most 2**63 - 1, not {count}; leave it out if there is no limit")


def _check_sizes(side: str, smallest: int, largest: int | None) -> None:
    _check_count(f"min_{side}", smallest)
    if largest is None:
        return
    _check_count(f"max_{side}", largest)
    if largest < smallest:
        raise InputError(f"max_{side} is {largest}, less than min_{side}, which is {smallest}; nothing could be found")
