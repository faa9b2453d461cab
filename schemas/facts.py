"""The facts that the steps of a run write and that others read, in ``steps/*.json`` and again in the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from bicliques.schemas.reading import Reading

#: Pattern of the name of a part: slice, attempt, and number of the part. It has no way out of a folder.
PART_NAME = r"part-\d{6,}-[0-9a-f]{12}-\d+\.parquet"

#: How a session ended. Only "complete" means that no work is left.
Outcome = Literal["complete", "max_results", "time_limit", "interrupted", "failed"]

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


@dataclass(frozen=True)
class MiningSession:
    """What one call of `pipeline.mining.driver.mine_run` did.

    Parameters
    ----------
    outcome : Outcome
        "complete" if no work is left; else why the session stopped. The run can then be resumed.
    count : int
        Bicliques of the whole run so far.
    began : float
        When the session began, in seconds since 1970 (UTC).
    seconds : float
        Wall time of this session.
    slices, retries : int
        Slices that this session committed, and attempts that it made again.
    workers : str
        The workers in a few words.
    busy_seconds, idle_seconds : float
        Seconds that all workers together spent in slices, and outside them.
    reason : str
        One sentence if the session failed. One clause if something other than Ctrl-C stopped it. Else empty.
    processors : dict
        `pipeline.slices.power.ProcessorEnergy` of the session.
    ctrl_c : bool
        Whether Ctrl-C stopped the session.
    startup : float
        Seconds that this process took to get ready (`pipeline.process.startup`), since the session before or else since
        the start of the process.
    peak_rss : int
        Most main memory that this process had taken when the session ended, in bytes.
    busy_ratio : float
        Share of the workers' time that was spent in slices, 0 to 1, which is computed.
    """

    outcome: Outcome
    count: Number
    began: float
    seconds: float
    slices: Number
    retries: Number
    workers: str
    busy_seconds: float
    idle_seconds: float
    reason: str = ""
    processors: dict[str, Any] = field(default_factory=dict)
    ctrl_c: bool = False
    startup: float = 0.0
    peak_rss: int = 0
    busy_ratio: float = 0.0

    def __post_init__(self) -> None:
        seconds = self.busy_seconds + self.idle_seconds
        object.__setattr__(self, "busy_ratio", self.busy_seconds / seconds if seconds > 0 else 0.0)


class Sessions(TypedDict):
    """Facts of `pipeline.run.session.remember`."""

    sessions: list[MiningSession]


class MiningFacts(TypedDict):
    """Facts of `pipeline.proof.proving`, in the manifest."""

    slices: Number
    retries: Number
    seen: NotRequired[Number]
    busy_ratio: float
    workers: dict[str, dict[str, float]]
    sessions: list[MiningSession]


#: The type of the facts, by the name of the step.
STEPS: dict[str, type] = {"ingest": InputFacts, "build": GraphFacts, "plan": PlanFacts, "mine": Sessions}


#: The steps before mining, in their order.
BEFORE_MINING = ("ingest", "build", "plan")


def side_names(facts: Mapping[str, Any] | None) -> tuple[str, str]:
    """Names of the sides in the facts of the ingest step. Runs of earlier versions have none."""
    left, right = ((facts or {}).get(f"{side}_name", side) for side in ("left", "right"))
    return left, right
