"""The facts that the steps of a run write and that others read, in ``steps/*.json`` and again in the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypedDict

from bicliques.schemas.reading import Reading

#: Pattern of the name of a part: slice, attempt, and number of the part. It has no way out of a folder.
PART_NAME = r"part-\d{6,}-[0-9a-f]{12}-\d+\.parquet"

#: A number of vertices, which is bounded because dense ids have 32 bits.
Vertices = Annotated[int, 2**31]
Number = Annotated[int, 2**63]


class StepFiles(TypedDict):
    """CRC-32 of each file that a step made, by its path below the folder of the run."""

    files: dict[str, int]


class InputFacts(TypedDict):
    """Facts of `pipeline.ingest.step.IngestSummary`. ``from_run`` is the run from which the tables were taken."""

    n_left: Vertices
    n_right: Vertices
    n_edges: Number
    duplicates: Number
    skipped_lines: Number
    light_rows: NotRequired[Number]
    source: str
    digest: str
    seconds: float
    left_name: NotRequired[str]
    right_name: NotRequired[str]
    notes: NotRequired[list[str]]
    reading: NotRequired[Reading]
    read_on: NotRequired[str]
    pieces: NotRequired[Number]
    from_run: NotRequired[str]
    undirected: NotRequired[bool]
    files: NotRequired[dict[str, int]]


class Degrees(TypedDict):
    """Degrees of one side of the graph as it was read. ``gini``: 0 if all are equal, near 1 if few have most edges."""

    vertices: NotRequired[int]
    mean: float
    median: float
    max: int
    gini: float


class Profile(TypedDict):
    """Degrees of both sides."""

    left: Degrees
    right: Degrees


class BandFacts(TypedDict):
    """A band (`schemas.bands.Band`) and the core that is its graph. ``edges`` are left once twins are merged.

    No biclique of the band has a larger measure than ``ceiling``.
    """

    first: Number
    last: Number
    min_right: Number
    left: Vertices
    right: Vertices
    edges: Number
    root_side: str
    n_roots: Vertices
    ceiling: int


class PrepareFacts(TypedDict):
    """Sizes of the graph on the way from the edge table to the search.

    ``core_*`` are vertices and edges of the core, and ``merged_*`` those after twins are merged. ``wedges_*`` is the
    number of wedges to walk with that side as roots.
    """

    core_left: Vertices
    core_right: Vertices
    core_edges: Number
    merged_left: Vertices
    merged_right: Vertices
    merged_edges: Number
    wedges_left: NotRequired[int]
    wedges_right: NotRequired[int]
    root_side: str


class GraphFacts(PrepareFacts):
    """Facts of `pipeline.prepare.build.build`."""

    profile: Profile
    seconds: float
    pieces: NotRequired[Number]
    nothing: NotRequired[str]
    bound: NotRequired[int]
    bands: NotRequired[list[BandFacts]]
    files: NotRequired[dict[str, int]]


class PlanFacts(TypedDict):
    """How the work is spread over the roots. ``bands`` are those of `pipeline.run.plan.Plan`.

    Shares are those of the estimated work, in the heaviest root and in the heaviest hundredth of all roots.
    """

    n_roots: Number
    heaviest_share: NotRequired[float]
    top_share: NotRequired[float]
    seconds: float
    bands: NotRequired[list[tuple[int, int]]]
    files: NotRequired[dict[str, int]]


class Session(TypedDict):
    """Facts of `pipeline.run.session.MiningSession`."""

    outcome: str
    count: Number
    began: float
    seconds: float
    slices: Number
    retries: Number
    workers: str
    busy_seconds: float
    idle_seconds: float
    reason: str
    busy_ratio: NotRequired[float]
    processors: NotRequired[dict[str, Any]]
    ctrl_c: NotRequired[bool]
    startup: NotRequired[float]
    peak_rss: NotRequired[int]


class Sessions(TypedDict):
    """Facts of `pipeline.run.session.remember`."""

    sessions: list[Session]


class MiningFacts(TypedDict):
    """Facts of `pipeline.proof.proving`, in the manifest."""

    slices: Number
    retries: Number
    seen: NotRequired[Number]
    busy_ratio: float
    workers: dict[str, dict[str, float]]
    sessions: list[Session]


#: The type of the facts, by the name of the step.
STEPS: dict[str, type] = {"ingest": InputFacts, "build": GraphFacts, "plan": PlanFacts, "mine": Sessions}


#: The steps before mining, in their order.
BEFORE_MINING = ("ingest", "build", "plan")


def side_names(facts: Mapping[str, Any] | None) -> tuple[str, str]:
    """Names of the sides in the facts of the ingest step. Runs of earlier versions have none."""
    left, right = ((facts or {}).get(f"{side}_name", side) for side in ("left", "right"))
    return left, right
