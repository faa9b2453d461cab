"""The options that a user can choose. They are validated once, cannot be changed, and are stored with the run.

`IngestOptions` says how to read, `schemas.search.Search` what counts as a result, and `BuildOptions` how the
graph is prepared. `RunOptions` has all of these. `RunLimits`, `CallOptions` and the number of workers
(`pipeline.workers.options.WorkerOptions`) are not part of a run's identity. `RunOrigin` distinguishes runs that follow
one another. Every field that a user can choose has a description (`schemas.option`). docs/options.md lists them all.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_args

from bicliques.schemas.errors import IncompleteError, InputError, as_option
from bicliques.schemas.option import NEW, option
from bicliques.schemas.reading import Conditions, as_conditions
from bicliques.schemas.records import read_as
from bicliques.schemas.search import MEASURES, MISSING, MOST_MISSING, Search, Side
from bicliques.schemas.values import seconds

LabelType = Literal["auto", "int", "string"]

#: The side whose vertices begin the search. ``auto`` is the one with fewer wedges to walk (docs/design.md, section 3).
RootSide = Literal["auto"] | Side

#: Rank of the root vertices.
Order = Literal["degree", "two-hop", "unilateral", "id"]

#: Content of the lists in Parquet: the user's labels, or row numbers of the label tables.
Ids = Literal["labels", "dense"]

#: Where something is done that the CPU and a GPU can do. ``auto`` takes a GPU if there is one and it is worth it.
Where = Literal["auto", "cpu", "gpu"]

#: Engines and files count in 64 bits.
_MOST = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class IngestOptions:
    """How to read an edge list. docs/formats.md says which columns are read if none are named."""

    format: str | None = option(
        None,
        help="format of the input; `bicliques formats` lists the names",
        group="reading",
        metavar="NAME",
        otherwise="by name and content",
    )
    left: str | int | None = option(
        None,
        help="column of the left labels, by name or by position from 0",
        group="reading",
        metavar="COLUMN",
        otherwise="the first; the run says its name",
    )
    right: str | int | None = option(
        None,
        help="column of the right labels, by name or by position from 0",
        group="reading",
        metavar="COLUMN",
        otherwise="the second; the run says its name",
    )
    where: Conditions = option(
        (),
        help="conditions on partitions such as day=2026-11-23, the folders of files; also != < <= > >=",
        group="reading",
        metavar="CONDITION",
        otherwise="all files",
    )
    delimiter: str | None = option(
        None,
        help="what stands between columns of a table, or items of transactions; \\t is a tab",
        group="reading",
        metavar="TEXT",
        otherwise="by the first lines; blanks in transactions",
    )
    skip_lines: int | None = option(
        None,
        help="lines at the beginning of each file that are not read; 0 reads all",
        group="reading",
        metavar="N",
        otherwise="comments and counts above the edges are recognised",
    )
    header: bool | None = option(
        None,
        help="whether the first line of a CSV names the columns",
        group="reading",
        otherwise="by its first lines",
    )
    label_type: LabelType = option(
        "auto", help="type of the labels", group="reading", otherwise="auto, integers if a side has only integers"
    )
    min_weight: float | None = option(
        None,
        help="smallest weight of an edge; rows with a smaller one are left out",
        group="reading",
        metavar="WEIGHT",
        otherwise="weights do not matter",
    )
    weight: str | int | None = option(
        None,
        help="column of the weights for --min-weight, by name or by position from 0",
        group="reading",
        metavar="COLUMN",
        otherwise="the one called weight; where formats have one, that",
    )
    skip_bad_lines: bool = option(
        False, help="leave out lines that cannot be read, and count them", group="reading", otherwise="refuse the file"
    )
    undirected: bool = option(
        False,
        help="both columns have the same vertices: each pair of sides counts once, with the least label on the left",
        group="reading",
        on=("mine", "largest", "count"),
        otherwise="no; 7 on the left is not 7 on the right",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", as_conditions(self.where))
        for word, column in (("left", self.left), ("right", self.right), ("weight", self.weight)):
            if column is not None and type(column) not in (int, str):
                raise InputError(
                    f"{as_option(word)} must be the name of a column or its position from 0, not {column!r}"
                )
        if self.delimiter == "\\t":
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and (
            not isinstance(self.delimiter, str) or not self.delimiter or {*self.delimiter} & {"\n", "\r", '"'}
        ):
            raise InputError(
                f"{as_option('delimiter')} must be text on one line without quotes, not {self.delimiter!r}"
            )
        if self.skip_lines is not None and not (type(self.skip_lines) is int and self.skip_lines >= 0):
            raise InputError(f"{as_option('skip_lines')} must be a whole number from 0 on, not {self.skip_lines!r}")
        if self.label_type not in get_args(LabelType):
            raise InputError(f"{as_option('label_type')} must be auto, int or string, not {self.label_type!r}")
        if self.min_weight is not None and not (
            type(self.min_weight) in (int, float) and self.min_weight == self.min_weight
        ):
            raise InputError(f"{as_option('min_weight')} must be a number, not {self.min_weight!r}")
        if self.weight is not None and self.min_weight is None:
            raise InputError(
                f"{self.weight!r} is to hold weights, but there is no smallest one; give {as_option('min_weight')}, too"
            )
        if self.left is not None and self.left == self.right:
            raise InputError(
                f"{as_option('left')} and {as_option('right')} name the same column {self.left!r}; name two columns"
            )


@dataclass(frozen=True, kw_only=True)
class LabelFiles:
    """Files from which a call reads labels of `Search`. The run stores the labels, and not the names of the files."""

    containing_left_from: str | os.PathLike[str] | None = option(
        None,
        help="file of more labels for --containing-left, one per line",
        group="thresholds",
        metavar="FILE",
        otherwise="none",
    )
    containing_right_from: str | os.PathLike[str] | None = option(
        None,
        help="file of more labels for --containing-right, one per line",
        group="thresholds",
        metavar="FILE",
        otherwise="none",
    )


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """How the graph is prepared for the search. None of these changes the result."""

    root_side: RootSide = option(
        "auto", help="side whose vertices begin the search", group="search", otherwise="auto, which promises less work"
    )
    order: Order = option("degree", help="rank of the roots", group="search")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options that identify a run. Two runs with equal options and equal input have equal results.

    Parameters
    ----------
    source : str
        The path as given, or the type of an object in memory.
    engine : str
        A name of `kernels.engines`, or "auto" until one has been chosen.
    ids : "labels" or "dense"
    """

    source: str
    search: Search = field(default_factory=Search)
    build: BuildOptions = field(default_factory=BuildOptions)
    ingest: IngestOptions = field(default_factory=IngestOptions)
    engine: str = option(
        "cpu", help="engine that searches", group="search", asked="auto", otherwise="auto, the fastest that can run"
    )
    ids: Ids = option(
        "labels",
        help="content of the lists: labels, or row numbers of OUT/labels/*.parquet",
        group="result",
        on=("mine", "largest", "dry_run", "flow"),
    )

    def __post_init__(self) -> None:
        if self.ids not in get_args(Ids):
            raise InputError(f"{as_option('ids')} must be labels or dense, not {self.ids!r}")
        if self.build.root_side not in ("auto", "left", "right"):
            raise InputError(f"{as_option('root_side')} must be auto, left or right, not {self.build.root_side!r}")
        if self.build.order not in get_args(Order):
            raise InputError(
                f"{as_option('order')} must be degree, two-hop, unilateral or id, not {self.build.order!r}"
            )
        from bicliques.schemas.jobs import job_of  # not before a run is asked for: it imports NumPy and Arrow

        if self.search.sizes and job_of(self.search).rows != "none":
            raise InputError(
                f"{as_option('sizes')} belongs to {as_option('count_only')}; a run that lists its bicliques has them "
                "in its files"
            )
        if self.search.largest is not None:
            _check_count("top", self.search.largest)
        if self.search.by not in MEASURES:
            raise InputError(f"the largest go by {', '.join(MEASURES)}, not by {self.search.by!r}")
        _check_missing(self.search)
        if self.build.root_side not in ("auto", self.building.root_side):
            side = self.building.root_side
            raise InputError(
                f"where pairs may be missing, the search begins with a given member, and these are {side} ones: give "
                f"{as_option('root_side', side)}, or leave it out"
            )
        for side in ("left", "right"):
            _check_sizes(side, getattr(self.search, f"min_{side}"), getattr(self.search, f"max_{side}"))
        if self.ingest.undirected and self.search.pq != "cliques":
            _refuse_sides(self.search)
            if self.search.mirrored is None:
                small, large = sorted((self.search.min_left, self.search.min_right))
                either = replace(self.search, min_left=small, min_right=small, mirrored=large)
                object.__setattr__(self, "search", either)

    @property
    def building(self) -> BuildOptions:
        """`build`, with roots of the side of the given members where pairs may be missing: these begin the search."""
        left, right = bool(self.search.containing_left), bool(self.search.containing_right)
        if self.search.near is None or left == right:
            return self.build
        return replace(self.build, root_side="left" if left else "right")

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, for a JSON file."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RunOptions:
        """Inverse of `to_json`. Fields of a later version are left out.

        Raises
        ------
        IncompleteError
            A field is missing or damaged.
        """
        if isinstance(data, dict) and (missing := {each.name for each in fields(cls)} - data.keys()):
            raise IncompleteError(f"it is damaged: the options have no {min(missing)!r}")
        found = read_as(cls, data, "options")
        if found.search.pq is not None:  # a text, and not every text is one
            from bicliques.schemas.leaves import bounds_of  # not before it is needed: it imports NumPy

            try:
                bounds_of(found.search.pq)
            except InputError as error:
                raise IncompleteError(f"it is damaged: {error}") from error
        return found


@dataclass(frozen=True)
class RunOrigin:
    """The place of a run among those that follow one another. It is written when the folder of the run is made.

    Parameters
    ----------
    run : str
        A name that no other run has, wherever its folder is.
    created : str
        When its folder was made, in UTC, ISO 8601. A copy of the run has the same value.
    series : str or None
        The source before a date was filled in, which is the same in every run of a series. None for an object in
        memory, because such objects cannot be distinguished.
    date : str or None
        The day that the run stands for, as 2026-01-31. A schedule gives the day, or the name of the folder has it. None
        stands for the day on which the run was created.
    """

    run: str
    created: str
    series: str | None = None
    date: str | None = None

    @property
    def moment(self) -> str:
        """The key that orders runs of a series: the day that a run stands for, then when it was made."""
        return f"{self.date or self.created[:10]} {self.created}"


@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """The limits at which a run stops although work is left. It can be resumed with other limits."""

    max_results: int | None = option(
        None,
        help="most bicliques of the whole run; the limit is exact",
        group="limits",
        on=("mine", "count", "resume", "flow"),
        metavar="N",
        otherwise="no limit",
        is_limit=True,
    )
    time_limit_s: float | None = option(
        None,
        name="time_limit",
        help="seconds of mining; reading the input does not count",
        group="limits",
        on=("mine", "largest", "count", "cliques", "resume", "flow"),
        metavar="SECONDS",
        otherwise="no limit",
        is_limit=True,
    )

    def __post_init__(self) -> None:
        if self.max_results is not None:
            _check_count("max_results", self.max_results)
        if self.time_limit_s is not None:
            object.__setattr__(self, "time_limit_s", seconds(self.time_limit_s, as_option("time_limit")))


@dataclass(frozen=True, kw_only=True)
class CallOptions:
    """Options of one call that are not part of the run's identity, and that workers do not get."""

    count_only: bool = option(
        False,
        help="count and compute the fingerprint, but write no bicliques",
        group="result",
        on=("mine", "dry_run", "flow"),
    )
    overwrite: bool = option(
        False,
        help="begin anew: remove the run that is in OUT, once the input is read",
        group="result",
        on=("mine", "largest"),
        otherwise="go on with the same run, leave a complete one alone, refuse another one",
    )
    fingerprint: bool = option(False, help="also print the fingerprint; takes longer", group="result", on=("count",))
    folder: str | os.PathLike[str] | None = option(
        None,
        help="folder of the graph while it is counted; workers of --scheduler must see it",
        group="result",
        on=("count", "cliques", "diff"),
        words={"diff": "folder of both graphs while they are compared; workers of --scheduler must see it"},
        metavar="DIR",
        otherwise="the temporary folder",
    )
    added: str | os.PathLike[str] | object = option(
        None,
        help="in place of NEW: an edge list of the edges that come to OLD",
        group="result",
        on=("diff",),
        metavar="FILE",
        otherwise="none",
    )
    removed: str | os.PathLike[str] | object = option(
        None,
        help="in place of NEW: an edge list of the edges that OLD loses",
        group="result",
        on=("diff",),
        metavar="FILE",
        otherwise="none",
    )
    per_vertex_folder: str | os.PathLike[str] | None = option(
        None,
        name="per_vertex",
        help="folder for left.parquet and right.parquet: for every vertex the number of bicliques with it and the "
        "largest ones",
        group="result",
        on=("count",),
        metavar="FOLDER",
        otherwise="not looked at",
    )
    sample_time: float = option(
        10.0, help="seconds of the sample for the estimates", group="result", on=("dry_run",), metavar="SECONDS"
    )
    report: bool = option(
        True,
        help="write OUT/report.html once the run is complete",
        group="result",
        on=("mine", "largest", "refresh", "resume", "flow"),
    )
    all_edges: bool = option(
        False,
        name="all",
        help="read all of SOURCE",
        group="result",
        on=("look",),
        otherwise="its first 200,000 edges, or a few more",
    )
    strict: bool = option(
        False, help="refuse an input about which there is any doubt", group="reading", otherwise="go on, and say them"
    )
    ingest_on: Where = option(
        "auto",
        help="where SOURCE is read; the result is the same everywhere",
        group="reading",
        on=NEW,
        otherwise="auto, the GPU for a large file if cuDF is there",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "sample_time", seconds(self.sample_time, as_option("sample_time")))


def _check_count(name: str, count: int) -> None:
    name = as_option(name)
    if type(count) is not int:  # a float would be compared with counts, and a bool is a mistake
        raise InputError(f"{name} must be a whole number (int), not {count!r} ({type(count).__name__})")
    if count < 1:
        raise InputError(f"{name} must be at least 1, not {count}")
    if count > _MOST:
        raise InputError(f"{name} must be at most 2**63 - 1, not {count}; leave it out if there is no limit")


def _check_missing(search: Search) -> None:
    """Refuse what does not say how many pairs may be no edges, and thresholds below which the search has no meaning."""
    given = {name: k for name in MISSING if (k := getattr(search, name)) is not None}
    for name, k in given.items():
        if type(k) is not int or not 0 <= k <= MOST_MISSING:
            raise InputError(f"{as_option(name)} must be a whole number from 0 to {MOST_MISSING}, not {k!r}")
    if len(given) > 1 and given.keys() != {"missing_left", "missing_right"}:
        first, second = map(as_option, list(given)[:2])
        raise InputError(f"{first} and {second} are two definitions of a result: leave one of them out")
    near = search.near
    if near is None:
        if len(given) == 1:
            raise InputError(
                f"a missing pair counts for its left and for its right member: give both {as_option('missing_left')} "
                f"and {as_option('missing_right')}"
            )
        return
    asked = as_option(next(iter(given)))
    for name in ("per_vertex", "pq"):
        if getattr(search, name):
            raise InputError(f"{as_option(name)} does not know of missing pairs yet: leave it or {asked} out")
    for side in ("left", "right"):
        least, size = near.least(side), getattr(search, f"min_{side}")
        if type(size) is int and size < least:
            other = "right" if side == "left" else "left"
            why = as_option(f"missing_{other}") if f"missing_{other}" in given else asked
            raise InputError(
                f"{as_option(f'min_{side}')} must be at least {least} because of {why}, not {size}: two {other} "
                "members of a smaller result need no neighbour in common, so it is no group"
            )


def _refuse_sides(search: Search) -> None:
    """Refuse what says something of a side of a graph of one kind of vertices, or is not known to be right for one."""
    for name in ("max_left", "max_right", "containing_left", "containing_right", "per_vertex", "pq", *MISSING):
        if getattr(search, name) not in (None, (), False):
            raise InputError(
                f"{as_option(name)} does not know of one kind of vertices: leave it or {as_option('undirected')} out"
            )
    if search.by in ("left", "right"):
        raise InputError(
            f"{as_option('by', search.by)} does not know of one kind of vertices: leave it or "
            f"{as_option('undirected')} out"
        )


def _check_sizes(side: str, smallest: int, largest: int | None) -> None:
    _check_count(f"min_{side}", smallest)
    if largest is None:
        return
    _check_count(f"max_{side}", largest)
    if largest < smallest:
        raise InputError(
            f"{as_option(f'max_{side}')} is {largest}, less than {as_option(f'min_{side}')}, which is {smallest}; "
            "nothing could be found"
        )
