"""A session, which is one call of mining: how it ended, and what the run keeps of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict

from bicliques.pipeline.process.interrupts import Terminated
from bicliques.pipeline.run.files import disk_errors
from bicliques.pipeline.run.folder import RunFolder
from bicliques.schemas.errors import BicliqueError, IncompleteError
from bicliques.schemas.facts import MiningSession, Outcome
from bicliques.schemas.manifest import Manifest
from bicliques.schemas.records import read_as

logger = logging.getLogger(__name__)


def busy_ratio_of(mined: Sequence[MiningSession]) -> float | None:
    """Share of the workers' time that was spent in slices, 0 to 1, over several sessions. None if there was no time."""
    busy = sum(session.busy_seconds for session in mined)
    seconds = busy + sum(session.idle_seconds for session in mined)
    return busy / seconds if seconds > 0 else None


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
    before = [other for other in sessions(folder) if other.began != session.began]
    folder.finish("mine", {"sessions": list(map(asdict, (*before, session)))})
    folder.store.keep("steps/mine.json")  # or another machine that goes on would not know of it


def last_session(folder: RunFolder) -> MiningSession:
    """The session that ended last. The run has to be complete."""
    return sessions(folder)[-1]


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


def sessions(folder: RunFolder) -> list[MiningSession]:
    """Every session, oldest first. A killed one is as it was when it began."""
    facts = folder.facts("mine")
    return [read_as(MiningSession, one, "a session") for one in facts["sessions"]] if facts else []
