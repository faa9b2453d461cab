"""What the steps of a run write down, as far as others read it: in ``steps/*.json``, and again in the manifest."""

from __future__ import annotations

from collections.abc import Mapping
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
    "side_names",
]

#: A number of vertices: dense ids have 32 bits.
Vertices = Annotated[int, 2**31]
Number = Annotated[int, 2**63]


class StepFiles(TypedDict):
    """CRC-32 of the files that a step made, by path below the folder of the run."""

    files: dict[str, int]


class InputFacts(TypedDict):
    """Of `pipeline.ingest.step.IngestSummary`."""

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
    """Of `pipeline.prepare.build.DegreeProfile`."""

    mean: float
    median: float
    max: int
    gini: float


class Profile(TypedDict):
    """Of both sides."""

    left: Degrees
    right: Degrees


class GraphFacts(TypedDict):
    """Of `pipeline.prepare.build.build`."""

    merged_left: Vertices
    merged_right: Vertices
    merged_edges: Number
    root_side: str
    profile: Profile
    seconds: float
    files: NotRequired[dict[str, int]]


class PlanFacts(TypedDict):
    """Of `pipeline.prepare.plan.PlanFacts`."""

    n_roots: Vertices
    seconds: float
    files: NotRequired[dict[str, int]]


class Session(TypedDict):
    """Of `pipeline.run.session.MiningSession`."""

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
    """Of `pipeline.run.session.remember`."""

    sessions: list[Session]


class MiningFacts(TypedDict):
    """Of `pipeline.proof.proving`, in the manifest."""

    slices: Number
    retries: Number
    seen: NotRequired[Number]
    busy_ratio: float
    workers: dict[str, dict[str, float]]
    sessions: list[Session]


#: By the name of the step.
STEPS: dict[str, type] = {"ingest": InputFacts, "build": GraphFacts, "plan": PlanFacts, "mine": Sessions}


def side_names(facts: Mapping[str, Any] | None) -> tuple[str, str]:
    """Names of the sides in the facts of this step; a run that was made before they were written down has none."""
    left, right = ((facts or {}).get(f"{side}_name", side) for side in ("left", "right"))
    return left, right
