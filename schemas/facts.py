"""What the steps of a run write down, as far as others read it: in ``steps/*.json``, and again in the manifest."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

__all__ = [
    "STEPS",
    "Degrees",
    "GraphFacts",
    "InputFacts",
    "MiningFacts",
    "PlanFacts",
    "Profile",
    "Session",
    "Sessions",
    "StepFiles",
]

#: A number of vertices: dense ids have 32 bits.
Vertices = Annotated[int, 2**31]
Number = Annotated[int, 2**63]


class StepFiles(TypedDict):
    """CRC-32 of the files that a step made, by path below the folder of the run."""

    files: dict[str, int]


class InputFacts(TypedDict):
    """Of `pipeline.ingest.IngestSummary`."""

    n_left: Vertices
    n_right: Vertices
    n_edges: Number
    duplicates: Number
    skipped_lines: Number
    source: str
    digest: str
    seconds: float
    left_name: NotRequired[str]
    right_name: NotRequired[str]
    notes: NotRequired[list[str]]
    read_on: NotRequired[str]
    files: NotRequired[dict[str, int]]


class Degrees(TypedDict):
    """Of `pipeline.build.DegreeProfile`."""

    mean: float
    median: float
    max: int
    gini: float


class Profile(TypedDict):
    """Of both sides."""

    left: Degrees
    right: Degrees


class GraphFacts(TypedDict):
    """Of `pipeline.build.build`."""

    merged_left: Vertices
    merged_right: Vertices
    merged_edges: Number
    root_side: str
    profile: Profile
    seconds: float
    files: NotRequired[dict[str, int]]


class PlanFacts(TypedDict):
    """Of `pipeline.plan.PlanFacts`."""

    n_roots: Vertices
    seconds: float
    files: NotRequired[dict[str, int]]


class Session(TypedDict):
    """Of `pipeline.session.MiningSession`."""

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
    processors: NotRequired[dict[str, Any]]
    ctrl_c: NotRequired[bool]
    startup: NotRequired[float]
    peak_rss: NotRequired[int]


class Sessions(TypedDict):
    """Of `pipeline.session.remember`."""

    sessions: list[Session]


class MiningFacts(TypedDict):
    """Of `pipeline.sealing`, in the manifest."""

    slices: Number
    retries: Number
    busy_ratio: float
    workers: dict[str, dict[str, float]]
    sessions: list[Session]


#: By the name of the step.
STEPS: dict[str, type] = {"ingest": InputFacts, "build": GraphFacts, "plan": PlanFacts, "mine": Sessions}
