"""The policy that the scheduler follows, and the instructions that it gives."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bicliques.schemas.manifest import Outcome, Range


@dataclass(frozen=True)
class Policy:
    """How slices are cut.

    Parameters
    ----------
    max_seconds, min_seconds : float
        Longest and shortest time of a slice, in seconds.
    max_results : int or None
        Number of rows that are still wanted. None: all.
    max_nodes : int
        Largest number of nodes of a slice.
    event_seconds : float
        Seconds that the caller needs to commit a slice and to deal the next one. The more workers there are, the longer
        slices have to be.
    attempts : int
        How often a slice is tried before the run fails.
    """

    max_seconds: float = 10.0
    min_seconds: float = 0.25
    max_results: int | None = None
    max_nodes: int = 1 << 16
    event_seconds: float = 0.0
    attempts: int = 3

    def of_sharing(self) -> Policy:
        """The same for workers whose threads share slices. These are longer, because threads wait at the end of one."""
        return replace(self, min_seconds=min(_SHARED_S, self.max_seconds))


#: `Policy.min_seconds` of workers whose threads share slices (docs/lab/scaling.md).
_SHARED_S = 1.0


@dataclass(frozen=True)
class Start:
    """Instruction: run a slice.

    Parameters
    ----------
    slice : int
        Number of the slice.
    attempt : int
        Number of earlier attempts at the slice, which failed.
    took : tuple of Range
        The nodes to search.
    seconds : float
        Longest time of the slice.
    rows : int or None
        Largest number of bicliques that the slice may find. None: any number.
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
        One sentence if the run failed, else empty.
    """

    outcome: Outcome
    reason: str = ""
