"""What the scheduler is told, and what it says: a policy in, instructions out."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.manifest import Outcome, Range

__all__ = ["Finish", "Policy", "Start"]


@dataclass(frozen=True)
class Policy:
    """How slices are cut.

    Parameters
    ----------
    max_seconds, min_seconds : float
        Longest and shortest time a slice is given.
    max_results : int or None
        Rows still wanted.
    max_nodes : int
        Most nodes of a slice.
    event_seconds : float
        The caller's time to commit a slice and deal the next: the more workers, the longer slices have to be.
    attempts : int
        How often a slice is tried before the run fails.
    """

    max_seconds: float = 10.0
    min_seconds: float = 0.25
    max_results: int | None = None
    max_nodes: int = 1 << 16
    event_seconds: float = 0.0
    attempts: int = 3


@dataclass(frozen=True)
class Start:
    """Instruction: run a slice.

    Parameters
    ----------
    slice : int
    attempt : int
        0 at first.
    took : tuple of Range
    seconds : float
    rows : int or None
        Most bicliques it may find.
    """

    slice: int
    attempt: int
    took: tuple[Range, ...]
    seconds: float
    rows: int | None


@dataclass(frozen=True)
class Finish:
    """Instruction: the run is over.

    Parameters
    ----------
    outcome : Outcome
    reason : str
        One sentence when it failed, else empty.
    """

    outcome: Outcome
    reason: str = ""
