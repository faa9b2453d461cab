"""What a count answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bicliques.pipeline.results.cliques import CliqueCounts
from bicliques.pipeline.results.pq import PqCounts, digits
from bicliques.pipeline.run.progress import number
from bicliques.schemas.facts import Outcome
from bicliques.schemas.sizes import SizeCounts


@dataclass(frozen=True)
class Count:
    """How many maximal bicliques there are, or with `pq` how many there are at all, or how many cliques.

    Parameters
    ----------
    count : int
        Number of bicliques counted.
    outcome : Outcome
        "complete", or why there may be more than `count`.
    fingerprint : int or None
        64-bit fingerprint of the bicliques. None unless it was asked for and all were counted.
    total_seconds : float
        Wall time of the whole call. For the command line: since its process was started.
    sizes : SizeCounts or None
        Number of bicliques of each size. None unless it was asked for.
    input, graph, options : dict
        As in `schemas.manifest.Manifest`.
    seconds : dict of float
        Seconds of start-up and of each step.
    peak_rss : dict
        Largest resident memory in bytes, of this process and of its workers.
    vertices : str or None
        The folder of ``left.parquet`` and ``right.parquet``. None unless it was asked for and all were counted.
    pq : PqCounts or CliqueCounts or None
        Numbers of bicliques that need not be maximal, or of cliques. None unless they were asked for and all counted.
    """

    count: int
    outcome: Outcome
    fingerprint: int | None
    total_seconds: float
    sizes: SizeCounts | None
    input: dict[str, Any]
    graph: dict[str, Any]
    options: dict[str, Any]
    seconds: dict[str, float]
    peak_rss: dict[str, Any]
    vertices: str | None = None
    pq: PqCounts | CliqueCounts | None = None

    def __repr__(self) -> str:
        what = number(self.count, "maximal biclique") if self.pq is None else repr(self.pq)[1:-1]
        more = "" if self.complete else f" so far ({self.outcome})"
        return f"<{what}{more}, in {self.total_seconds:.2f} s>"

    @property
    def complete(self) -> bool:
        """Whether all bicliques were counted."""
        return self.outcome == "complete"

    def to_json(self) -> dict[str, Any]:
        """A dictionary of plain values, for JSON."""
        text = None if self.fingerprint is None else str(self.fingerprint)
        sizes = None if self.sizes is None else self.sizes.to_json()
        pq = None if self.pq is None else self.pq.to_json()
        count = self.count if self.count < 2**63 else digits(self.count)
        return vars(self) | {"count": count, "complete": self.complete, "fingerprint": text, "sizes": sizes, "pq": pq}
