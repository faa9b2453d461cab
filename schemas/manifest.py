"""What a run writes down about itself: one ledger entry a slice, and the manifest once all is proven.

Both are JSON. A fingerprint is a decimal string there, because many readers of JSON lose digits of
64-bit numbers.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import asdict, dataclass, field
from typing import Any

from schemas.errors import IncompleteError
from schemas.sizes import SizeCounts
from schemas.work import Subtrees

__all__ = ["PLAN", "LedgerEntry", "Manifest", "Part", "Range", "entry_checksum"]

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
        data = asdict(self) | {
            "fingerprint": None if self.fingerprint is None else str(self.fingerprint),
            "left_over": base64.b64encode(left_over).decode(),
            "sizes": None if sizes is None else sizes.to_json(),
        }
        return data | {"crc32": entry_checksum(data)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> tuple[LedgerEntry, Subtrees]:
        """Inverse of `to_json`: the entry and its left-over.

        Raises
        ------
        IncompleteError
            If a field is missing or damaged.
        """
        try:
            if entry_checksum(data) != data["crc32"]:
                raise IncompleteError("it is damaged (its checksum is another)")
            packed = base64.b64decode(data["left_over"], validate=True)
            left_over = Subtrees.from_bytes(packed) if packed else Subtrees.empty()
            entry = cls(
                slice=data["slice"],
                took=tuple((source, start, stop) for source, start, stop in data["took"]),
                parts=tuple(Part(**part) for part in data["parts"]),
                count=data["count"],
                fingerprint=None if data["fingerprint"] is None else int(data["fingerprint"]),
                n_left_over=data["n_left_over"],
                began=data["began"],
                seconds=data["seconds"],
                worker=data["worker"],
                attempt=data["attempt"],
                stats=data["stats"],
                timed=tuple((root, seconds) for root, seconds in data["timed"]),
                weight=data["weight"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise IncompleteError(f"it is damaged ({type(error).__name__}: {error})") from error
        if len(left_over) != entry.n_left_over:
            raise IncompleteError(f"it promises {entry.n_left_over} left-over nodes and holds {len(left_over)}")
        return entry, left_over


def entry_checksum(data: dict[str, Any]) -> int:
    """CRC-32 of a ledger entry as JSON; what an engine only counted could not be checked in any other way."""
    left_over = str(data["left_over"])  # large, and plain text: it need not go through the encoder once more
    rest = {key: value for key, value in data.items() if key not in ("left_over", "crc32")}
    return zlib.crc32(json.dumps(rest, sort_keys=True).encode(), zlib.crc32(left_over.encode()))


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
            If a field is missing.
        """
        try:
            number = None if data["fingerprint"] is None else int(data["fingerprint"])
            parts = tuple(Part(**part) for part in data["parts"])
            return cls(**(data | {"fingerprint": number, "parts": parts}))
        except (KeyError, TypeError, ValueError) as error:
            raise IncompleteError(f"the manifest is damaged ({type(error).__name__}: {error})") from error
