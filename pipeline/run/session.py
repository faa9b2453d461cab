"""A session, which is one call of mining: how it ended, and what the run keeps of it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from bicliques.pipeline.process.interrupts import Terminated
from bicliques.pipeline.run.files import disk_errors
from bicliques.pipeline.run.folder import RunFolder
from bicliques.schemas.errors import BicliqueError, IncompleteError
from bicliques.schemas.facts import Session
from bicliques.schemas.manifest import Manifest, Outcome
from bicliques.schemas.records import read_as

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class MiningSession:
    """What one call of `mine_run` did.

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
    """

    outcome: Outcome
    count: int
    began: float
    seconds: float
    slices: int
    retries: int
    workers: str
    busy_seconds: float
    idle_seconds: float
    reason: str = ""
    processors: dict[str, Any] = field(default_factory=dict)
    ctrl_c: bool = False
    startup: float = 0.0
    peak_rss: int = 0

    @property
    def busy_ratio(self) -> float:
        """Share of the workers' time that was spent in slices, 0 to 1."""
        return _ratio(self.busy_seconds, self.idle_seconds) or 0.0


def busy_ratio_of(mined: Iterable[Session]) -> float | None:
    """Share of the workers' time that was spent in slices, 0 to 1, over several sessions. None if there was no time."""
    together = [(session["busy_seconds"], session["idle_seconds"]) for session in mined]
    return _ratio(sum(busy for busy, _ in together), sum(idle for _, idle in together))


def _ratio(busy: float, idle: float) -> float | None:
    return busy / (busy + idle) if busy + idle > 0 else None


def how_it_ended(error: BaseException) -> tuple[Outcome, str]:
    """Outcome and reason of a session that `error` ends. An error that is no `Exception` comes from outside."""
    if isinstance(error, BicliqueError):
        return "failed", error.written
    if isinstance(error, Exception):
        return "failed", f"{type(error).__name__}: {error}"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", ""
    if isinstance(error, Terminated):
        return "interrupted", str(error)
    return "interrupted", f"it was cancelled ({type(error).__name__})"


def remember(folder: RunFolder, session: MiningSession) -> None:
    """Add a session to those of the run, also in its store. A session that began at the same time is replaced.

    Raises `ResourceError` if the disk is full, or the store does not take the record.
    """
    facts = asdict(session) | {"busy_ratio": session.busy_ratio}
    before = [other for other in sessions(folder) if other["began"] != session.began]
    folder.finish("mine", {"sessions": [*before, facts]})
    folder.store.keep("steps/mine.json")  # or another machine that goes on would not know of it


def last_session(folder: RunFolder) -> MiningSession:
    """The session that ended last. The run has to be complete."""
    facts = {"processors": {}} | sessions(folder)[-1]
    facts.pop("busy_ratio", None)
    return read_as(MiningSession, facts, "the last session")


def mend_sessions(folder: RunFolder, manifest: Manifest | None) -> None:
    """Make a damaged record of the sessions anew from the manifest of a complete run. Without a manifest, remove it.

    Raises `ResourceError` if the disk is full, or the record cannot be written for another reason.
    """
    file = folder.step_file("mine")
    try:
        if sessions(folder) or manifest is None:
            return
        reason = f"{file} is missing"
    except IncompleteError as error:
        reason = str(error.__cause__ or error)
    if manifest is not None:
        logger.warning("%s; it is made anew from the manifest", reason)
        folder.finish("mine", {"sessions": manifest.mining["sessions"]})
    else:
        logger.warning(
            "%s; the seconds and watts of the sessions so far are forgotten, their bicliques are not", reason
        )
        with disk_errors(file):
            file.unlink()


def sessions(folder: RunFolder) -> list[Session]:
    """The `MiningSession` of every session as a dictionary, oldest first. A killed one is as it was when it began."""
    facts = folder.facts("mine")
    return list(facts["sessions"]) if facts else []
