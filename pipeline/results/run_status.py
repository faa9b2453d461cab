"""What is done of a run, what is left and how to go on, from its folder alone, while it is running or after."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pipeline.proof.wholeness import why_not_whole
from pipeline.run.accounts import Account, by_worker
from pipeline.run.files import PathLike
from pipeline.run.folder import how_to_resume
from pipeline.run.ledger import Ledger
from pipeline.run.lock import holder
from pipeline.run.opened import Run
from schemas.facts import Session
from schemas.manifest import LedgerEntry

__all__ = ["State", "Status", "WorkerStatus", "status", "status_of"]

#: "stopped": a limit, Ctrl-C, SIGTERM, or between two steps. "failed": by an error. "dead": killed, or the machine went
#: down.
State = Literal["complete", "running", "stopped", "failed", "dead"]

#: As of `pipeline.run.ledger.Ledger.survey`.
Surveyed = tuple[Ledger, dict[Path, str]]

_STEPS = ("ingest", "build", "plan")
_ENDED = {
    "max_results": "the limit on the number of results was reached",
    "time_limit": "the time limit was reached",
    "interrupted": "it was stopped by Ctrl-C",
}


@dataclass(frozen=True)
class WorkerStatus:
    """What a worker has committed.

    Parameters
    ----------
    name : str
        Host and process.
    slices, bicliques : int
    busy_seconds : float
    last_seen : float
        End of its last committed slice, in seconds since 1970 (UTC).
    """

    name: str
    slices: int
    bicliques: int
    busy_seconds: float
    last_seen: float


@dataclass(frozen=True)
class Status:
    """A run at one moment.

    Parameters
    ----------
    folder : Path
    state : State
    why : str
        One clause: which process works on it, or how it ended.
    done : tuple of str
        Steps that are done, of ingest, build, plan, mine and prove.
    step : str
        The first step that is not done; empty when the run is complete.
    count, bytes, slices : int
        Of the committed slices.
    share : float or None
        Of the estimated work of mining, 0 to 1; None before there is a plan.
    nodes_left : int or None
        Search-tree nodes that no committed slice took; None before there is a plan.
    sessions : int
        How often mining was begun.
    mining_seconds : float
        Of the sessions that are over.
    silent_seconds : float or None
        Since the last slice was committed; None before the first.
    workers : tuple of WorkerStatus
    problems : tuple of str
        Files that do not count any more, one sentence each; their slices are mined again.
    go_on : str
        The command that continues the run; empty when there is nothing to do.
    """

    folder: Path
    state: State
    why: str
    done: tuple[str, ...]
    step: str
    count: int
    bytes: int
    slices: int
    share: float | None
    nodes_left: int | None
    sessions: int
    mining_seconds: float
    silent_seconds: float | None
    workers: tuple[WorkerStatus, ...]
    problems: tuple[str, ...]
    go_on: str

    def to_json(self) -> dict[str, Any]:
        """A dictionary of plain values, for JSON."""
        return asdict(self) | {"folder": str(self.folder)}


def status(folder: PathLike) -> Status:
    """Look at a run without touching it.

    Raises
    ------
    InputError
        If `folder` is not that of a run.

    Notes
    -----
    Reads the ledger (one small file per slice) and the sizes of the parts; no rows, no graph.
    """
    run = Run.at(Path(folder))
    return status_of(run, run.survey())


def status_of(run: Run, surveyed: Surveyed) -> Status:
    """The same for a run that is opened, and its ledger as `Run.survey` has seen it."""
    mined, has_plan = run.sessions(), run.has("plan")
    total = float(run.plan.weights.sum()) if has_plan else 0.0
    ledger, problems = surveyed
    entries = list(ledger.entries.values())
    left = sum(stop - start for ranges in ledger.outstanding().values() for start, stop in ranges)
    state, why = _state(run, mined, surveyed if has_plan else None)
    if state == "complete":
        done, share = [*_STEPS, "mine", "prove"], 1.0
    else:
        done = [step for step in _STEPS if run.has(step)]
        done += ["mine"] if has_plan and left == 0 and mined else []
        share = 1.0 if "mine" in done else min(sum(entry.weight for entry in entries) / max(total, 1e-300), 0.999)
    outcome = mined[-1]["outcome"] if mined else ""
    waiting = [step for step in (*_STEPS, "mine", "prove") if step not in done]
    return Status(
        folder=run.path,
        state=state,
        why=why,
        done=tuple(done),
        step=waiting[0] if waiting else "",
        count=ledger.total.count,
        bytes=sum(part.bytes for entry in entries for part in entry.result.parts),
        slices=len(entries),
        share=share if has_plan else None,
        nodes_left=left if has_plan else None,
        sessions=len(mined),
        mining_seconds=sum(session["seconds"] for session in mined),
        silent_seconds=max(time.time() - Account.of(entries).last_seen, 0.0) if entries else None,
        workers=_workers(entries),
        problems=tuple(problems.values()),
        go_on="" if state in ("complete", "running") else how_to_resume(run.path, outcome),
    )


def _state(run: Run, mined: list[Session], surveyed: Surveyed | None) -> tuple[State, str]:
    manifest, at_work = run.folder.manifest(), holder(run.folder.lock_file)
    if at_work is not None and at_work.alive:
        return "running", at_work.words
    if manifest is not None:
        damage = why_not_whole(run, manifest, surveyed) if surveyed else "the plan is missing"
        return ("failed", damage) if damage else ("complete", f"proven {manifest.created}")
    if at_work is not None:
        return "dead", f"{at_work.words} has ended without a word"
    outcome = mined[-1]["outcome"] if mined else ""
    if outcome == "failed":
        return "failed", mined[-1]["reason"] or "it ended before it was done"
    ended = _ENDED.get(outcome, "all is mined, and not proven yet" if mined else "mining has not begun")
    return "stopped", (mined[-1]["reason"] if mined else "") or ended


def _workers(entries: list[LedgerEntry]) -> tuple[WorkerStatus, ...]:
    return tuple(
        WorkerStatus(name, own.slices, own.bicliques, own.busy_seconds, own.last_seen)
        for name, own in sorted(by_worker(entries).items())
    )
