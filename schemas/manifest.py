"""What a run writes down about itself: one ledger entry a slice, and the manifest once all is proven.

Both are JSON. A fingerprint is a decimal string there, because many readers of JSON lose digits of
64-bit numbers.
"""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass, field
from typing import Any

from schemas.errors import IncompleteError
from schemas.facts import GraphFacts, InputFacts, MiningFacts, PlanFacts
from schemas.options import RunOptions, RunOrigin
from schemas.records import check_facts, read_as
from schemas.sizes import SizeCounts
from schemas.work import Subtrees

__all__ = ["PLAN", "LedgerEntry", "Manifest", "Part", "Range"]

#: The source that is the plan: its nodes are the first-level subtrees in dealing order.
PLAN = -1

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
    rows : int
    bytes : int
        Size of the file.
    """

    name: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class LedgerEntry:
    """What one committed slice took, wrote and left.

    Parameters
    ----------
    slice : int
        Number of the slice; greater than the number of every source it took from.
    took : tuple of Range
    parts : tuple of Part
        Empty when it found nothing, or when nothing is listed.
    count : int
    fingerprint : int or None
        Sum modulo 2**64; None in mode ``count``.
    n_left_over : int
        Nodes of its left-over, a source for later slices. The nodes are in the file, not in this record: a
        run may have more slices than memory has room for their left-overs.
    began : float
        When it began, by the worker's clock, in seconds since 1970 (UTC).
    seconds : float
        Wall time in the worker. On a GPU, of the search alone: the GPU searches the next slice while this one's last
        rows are written.
    worker : str
        Host and process.
    attempt : int
        0 unless the slice failed before.
    stats : dict
        Numbers for the report, as the engine gave them. Of `seconds`, ``writing_seconds`` went into output;
        ``closing_seconds`` went into it after them, on a GPU.
    timed : tuple of (int, float)
        Roots (ranks) that were mined alone, and their seconds.
    weight : float
        Estimated work that it did, in the unit of the plan's weights.
    """

    slice: int
    took: tuple[Range, ...]
    parts: tuple[Part, ...]
    count: int
    fingerprint: int | None
    n_left_over: int
    began: float
    seconds: float
    worker: str
    attempt: int = 0
    stats: dict[str, float] = field(default_factory=dict)
    timed: tuple[tuple[int, float], ...] = ()
    weight: float = 0.0

    def to_json(self, left_over: bytes, sizes: SizeCounts | None = None) -> dict[str, Any]:
        """For one JSON file, together with what would take too much memory in this record.

        Parameters
        ----------
        left_over : bytes
            Packed by `Subtrees.to_bytes`; empty for none.
        sizes : SizeCounts or None
            Of its bicliques; None unless the run counts sizes.
        """
        return asdict(self) | {
            "fingerprint": None if self.fingerprint is None else str(self.fingerprint),
            "left_over": base64.b64encode(left_over).decode(),
            "sizes": None if sizes is None else sizes.to_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> tuple[LedgerEntry, Subtrees]:
        """Inverse of `to_json`: the entry and its left-over.

        Raises
        ------
        IncompleteError
            If a field is missing or damaged.
        """
        try:
            packed = base64.b64decode(data["left_over"], validate=True)
            own = {key: value for key, value in data.items() if key not in ("left_over", "sizes")}
            entry = read_as(cls, own | {"fingerprint": _number(data["fingerprint"])}, "the entry")
        except (KeyError, TypeError, ValueError) as error:
            raise IncompleteError(f"it is damaged ({type(error).__name__}: {error})") from error
        left_over = Subtrees.from_bytes(packed) if packed else Subtrees.empty()
        if len(left_over) != entry.n_left_over:
            raise IncompleteError(f"it promises {entry.n_left_over} left-over nodes and holds {len(left_over)}")
        return entry, left_over


def _number(text: str | None) -> int | None:
    if text is not None and not isinstance(text, str):
        raise TypeError(f"the fingerprint is {text!r:.40}, not a decimal string")
    return None if text is None else int(text)


@dataclass(frozen=True)
class Manifest:
    """The proof of a complete run, and its run card.

    Parameters
    ----------
    schema_version : int
        Of the Parquet layout and the fingerprint.
    version : str
        Of the package.
    created : str
        When it was sealed, in UTC, ISO 8601.
    count : int
    fingerprint : int or None
        Of the engine; equal to the one recomputed from Parquet when `proven_rows` is `count`. None in
        mode ``count``.
    proven_rows : int
        Rows read back from Parquet; 0 when nothing was listed.
    run : dict
        `schemas.options.RunOrigin`.
    options : dict
        `RunOptions`.
    input : dict
        `pipeline.ingest.IngestSummary`.
    graph : dict
        Sizes before and after reduction, wedges, degree profile of both sides.
    plan : dict
        Number of roots, how their weights are spread, rank correlation with measured time.
    parts : tuple of Part
    mining : dict
        Slices, retries, workers with their busy seconds, busy ratio, bytes.
    seconds : dict
        Wall time: ``startup`` (imports, loading machine code, starting workers), then of each step without that.
    peak_rss : dict
        Most main memory in bytes, mapped files that were read included: ``driver``, and ``workers`` by name. Empty
        in runs of earlier versions.
    compared_rows : int
        Rows that were compared with each other when the run was sealed, and of which no two are equal: all of them, or
        0 where that was left to `verify`, as in runs of earlier versions.
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

    @property
    def bytes(self) -> int:
        """Bytes of all parts."""
        return sum(part.bytes for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """For ``manifest.json``."""
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
            manifest = read_as(cls, data | {"fingerprint": _number(data["fingerprint"])}, "the manifest")
        except (KeyError, TypeError, ValueError) as error:
            raise IncompleteError(f"it is damaged ({type(error).__name__}: {error})") from error
        RunOptions.from_json(manifest.options)
        read_as(RunOrigin, manifest.run, "run")
        for name, facts in _FACTS.items():
            check_facts(facts, getattr(manifest, name), name)
        return manifest


_FACTS: dict[str, type] = {"input": InputFacts, "graph": GraphFacts, "plan": PlanFacts, "mining": MiningFacts}
