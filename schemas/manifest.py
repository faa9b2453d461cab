"""The records of a run: one ledger entry per slice, and the manifest once all is proven.

Both are JSON. A fingerprint is a decimal string there, because many JSON readers lose digits of 64-bit numbers.
"""

from __future__ import annotations

import base64
import re
from dataclasses import asdict, dataclass, field
from typing import Any

from bicliques.schemas.bands import Certificate
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.facts import PART_NAME, GraphFacts, InputFacts, MiningFacts, PlanFacts
from bicliques.schemas.jobs import Job
from bicliques.schemas.options import RunOptions, RunOrigin
from bicliques.schemas.records import check_facts, read_as
from bicliques.schemas.stats import SliceStats
from bicliques.schemas.totals import Total, fingerprint_from
from bicliques.schemas.work import Subtrees

#: The number of the plan as a source. Its nodes are the first-level subtrees in dealing order.
PLAN = -1

_PART_NAME = re.compile(PART_NAME, re.ASCII)

#: Nodes ``start`` to ``stop - 1`` of a source: (source, start, stop). A source is `PLAN` or the number of
#: the slice whose left-over it is.
Range = tuple[int, int, int]


@dataclass(frozen=True)
class Part:
    """One Parquet file.

    Parameters
    ----------
    name : str
        File name below ``bicliques/``.
    bytes : int
        Size of the file.
    fingerprint : str
        Sum of the ids of its rows, modulo 2**64, in decimal. Empty in runs of earlier versions.

    Raises
    ------
    IncompleteError
        If no run gives such a name to a part. Files are read, moved and deleted by it.
    """

    name: str
    rows: int
    bytes: int
    fingerprint: str = ""

    def __post_init__(self) -> None:
        if _PART_NAME.fullmatch(self.name) is None:
            raise IncompleteError(f"it is damaged: {self.name!r:.80} is not the name of a part")


@dataclass(frozen=True)
class SliceResult:
    """The result of a slice, as a worker returns it. The left-over is separate.

    Parameters
    ----------
    attempt : int
        Number of earlier attempts at the slice, which failed.
    parts : tuple of Part
        Empty when the slice found nothing, or when its job has no rows in parts.
    total : Total
        In an open ledger, only the outline. `Ledger.total` has the sum.
    n_left_over : int
        Nodes of its left-over, which is a source for later slices. The nodes are not in this record, because memory may
        have no room for the left-overs of all slices.
    began : float
        When it began, by the worker's clock, in seconds since 1970 (UTC).
    seconds : float
        Wall time in the worker. On a GPU this is the time of the search alone, because the GPU searches the next slice
        while the last rows of this one are written.
    worker : str
        Host and process.
    timed : tuple of (int, float)
        Roots (ranks) that were mined alone, and their seconds.
    """

    slice: int
    attempt: int
    parts: tuple[Part, ...]
    total: Total
    n_left_over: int
    began: float
    seconds: float
    worker: str
    stats: SliceStats = field(default_factory=SliceStats)
    timed: tuple[tuple[int, float], ...] = ()

    @property
    def busy_seconds(self) -> float:
        """Seconds that it kept engines busy, of all threads that shared it together."""
        return self.seconds * self.stats.threads - self.stats.idle_seconds


@dataclass(frozen=True)
class Parent:
    """The complete run that the rows of another one were taken from (`pipeline.compare.taking_over`).

    Parameters
    ----------
    run : str
        Its identity.
    folder : str
        Where it was.
    fingerprint : str
        In decimal.
    gone, new : int
        How many of its rows were left out, and how many others were added.
    mined_seconds : float
        Wall time of mining of the last run that was mined: the parent, or one that the parent follows from.
    """

    run: str
    folder: str
    count: int
    fingerprint: str
    gone: int
    new: int
    mined_seconds: float


@dataclass(frozen=True)
class LedgerEntry:
    """The record of a committed slice: what it took, wrote and left.

    Parameters
    ----------
    result : SliceResult
        The number of its slice is greater than the number of every source it took from.
    weight : float
        Estimated work that it did, in the unit of the plan's weights.
    parent : Parent or None
        Where its rows come from, if they were not searched for.
    """

    result: SliceResult
    took: tuple[Range, ...]
    weight: float = 0.0
    parent: Parent | None = None

    def to_json(self, left_over: bytes) -> dict[str, Any]:
        """One flat object for a JSON file.

        Parameters
        ----------
        left_over : bytes
            Packed by `Subtrees.to_bytes`. Empty if there is none.
        """
        result = {name: getattr(self.result, name) for name in _OF_RESULT}
        return (
            result
            | {"parts": [vars(part) for part in self.result.parts], "stats": self.result.stats.to_json()}
            | self.result.total.to_json()
            | ({} if self.parent is None else {"parent": vars(self.parent)})
            | {"took": self.took, "weight": self.weight, "left_over": base64.b64encode(left_over).decode()}
        )

    @classmethod
    def from_json(cls, data: dict[str, Any], job: Job) -> tuple[LedgerEntry, bytes]:
        """Inverse of `to_json`, for a run of this job. Returns the entry and its packed left-over.

        The left-over is not unpacked, because most callers want none: its nodes are counted.

        Raises
        ------
        IncompleteError
            If a field is missing or damaged.
        """
        try:
            packed = base64.b64decode(data["left_over"], validate=True)
            flat = read_as(_Flat, {k: v for k, v in data.items() if k not in _BESIDE}, "the entry")
            total = job.read_total(data)
            parent = read_as(Parent, data["parent"], "parent") if "parent" in data else None
        except (KeyError, TypeError, ValueError) as error:
            raise IncompleteError(f"it is damaged ({type(error).__name__}: {error})") from error
        n_left_over = Subtrees.number_in(packed) if packed else 0
        if n_left_over != flat.n_left_over:
            raise IncompleteError(f"it promises {flat.n_left_over} left-over nodes and holds {n_left_over}")
        result = SliceResult(
            **{name: getattr(flat, name) for name in _OF_RESULT},
            parts=flat.parts,
            total=total,
            stats=SliceStats.from_json(flat.stats),
        )
        return cls(result, flat.took, flat.weight, parent), packed


#: Fields of an entry in JSON that belong to its total, its left-over or its parent.
_BESIDE = ("count", "fingerprint", "sizes", "seen", "rows", "left_over", "parent")
_OF_RESULT = ("slice", "attempt", "n_left_over", "began", "seconds", "worker", "timed")


@dataclass(frozen=True)
class _Flat:
    """The fields of an entry as they are in the file, without its total and its left-over."""

    slice: int
    took: tuple[Range, ...]
    parts: tuple[Part, ...]
    n_left_over: int
    began: float
    seconds: float
    worker: str
    attempt: int = 0
    stats: dict[str, Any] = field(default_factory=dict)
    timed: tuple[tuple[int, float], ...] = ()
    weight: float = 0.0


@dataclass(frozen=True)
class Manifest:
    """The proof of a complete run, and its run card.

    Parameters
    ----------
    schema_version : int
        Version of the Parquet layout and the fingerprint.
    version : str
        Version of the package.
    created : str
        When the run was proven, in UTC, ISO 8601.
    fingerprint : int or None
        Fingerprint from the engine. If `proven_rows` is `count`, the one recomputed from Parquet is equal. None in
        mode ``count``.
    proven_rows : int
        Rows read back from Parquet. 0 when nothing was listed.
    run : dict
        `schemas.options.RunOrigin`.
    options : dict
        `RunOptions`.
    input : dict
        `pipeline.ingest.step.IngestSummary`.
    graph : dict
        Sizes before and after reduction, wedges, degree profile of both sides.
    plan : dict
        Number of roots, how their weights are spread, rank correlation with measured time.
    mining : dict
        Slices, retries, workers with their busy seconds, busy ratio, bytes.
    seconds : dict
        Wall time of ``startup`` (imports, loading machine code, starting workers), and of each step without it.
    peak_rss : dict
        Most main memory in bytes, of the ``driver``, and of ``workers`` by name. Mapped files that were read are
        included. Empty in runs of earlier versions.
    compared_rows : int
        Rows that were compared with each other when the run was proven. No two of them are equal. These are all rows,
        or 0 if that was left to `verify`, as in runs of earlier versions.
    certificate : dict or None
        `schemas.bands.Certificate` of a run that found the largest.
    parent : Parent or None
        The run before, if the rows were taken from it. None if they were searched for.
    """

    schema_version: int
    version: str
    created: str
    count: int
    fingerprint: int | None
    proven_rows: int
    run: dict[str, Any]
    options: dict[str, Any]
    input: dict[str, Any]
    graph: dict[str, Any]
    plan: dict[str, Any]
    parts: tuple[Part, ...]
    mining: dict[str, Any]
    seconds: dict[str, float]
    peak_rss: dict[str, Any] = field(default_factory=dict)
    compared_rows: int = 0
    certificate: dict[str, Any] | None = None
    parent: Parent | None = None

    @property
    def bytes(self) -> int:
        """Bytes of all parts."""
        return sum(part.bytes for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """A dictionary for ``manifest.json``."""
        return asdict(self) | {"fingerprint": None if self.fingerprint is None else str(self.fingerprint)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Manifest:
        """Inverse of `to_json`.

        Raises
        ------
        IncompleteError
            If a field is missing or damaged.
        """
        try:
            manifest = read_as(cls, data | {"fingerprint": fingerprint_from(data["fingerprint"])}, "the manifest")
        except (KeyError, TypeError, ValueError) as error:
            raise IncompleteError(f"it is damaged ({type(error).__name__}: {error})") from error
        RunOptions.from_json(manifest.options)
        read_as(RunOrigin, manifest.run, "run")
        for name, facts in _FACTS.items():
            check_facts(facts, getattr(manifest, name), name)
        if manifest.certificate is not None:
            check_facts(Certificate, manifest.certificate, "certificate")
        return manifest


_FACTS: dict[str, type] = {"input": InputFacts, "graph": GraphFacts, "plan": PlanFacts, "mining": MiningFacts}
