"""Says what is done of a run, what is left and how to go on. It reads only the folder, also while the run goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from bicliques.pipeline.mining.incumbent import gap_of
from bicliques.pipeline.proof.wholeness import why_not_whole
from bicliques.pipeline.run.accounts import Account, by_worker
from bicliques.pipeline.run.files import PathLike
from bicliques.pipeline.run.ledger import Ledger
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import Gap, number
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.schemas.errors import in_one_line, said, spoken, written
from bicliques.schemas.facts import BEFORE_MINING, MiningSession
from bicliques.schemas.manifest import LedgerEntry
from bicliques.schemas.values import as_path

#: "stopped": the run stopped at a limit, by Ctrl-C or SIGTERM, or between two steps. "failed": it ended with an error.
#: "dead": its process was killed, or the machine went down.
State = Literal["complete", "running", "stopped", "failed", "dead"]

#: What `pipeline.run.ledger.Ledger.survey` returns.
Surveyed = tuple[Ledger, dict[Path, str]]

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
        Number of committed slices, and of the bicliques that they found.
    busy_seconds : float
        Seconds that these slices took.
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
    """The state of a run at one moment.

    Parameters
    ----------
    folder : Path or str
        Its address if the run is kept in a store.
    source : str
        What is mined, as it was given.
    state : State
        What happens to the run now, in a word.
    why : str
        One clause that says which process works on the run, or how the run ended.
    done : tuple of str
        The steps that are done, of ingest, build, plan, mine and prove.
    step : str
        The first step that is not done. Empty if the run is complete.
    count, bytes, slices : int
        Bicliques in the committed slices, bytes of their parts, and the number of these slices.
    share : float or None
        Share of the estimated work of mining that is done, 0 to 1. None before there is a plan.
    nodes_left : int or None
        Number of search-tree nodes that no committed slice took. None before there is a plan.
    gap : Gap or None
        While the largest are searched for: how large they are, and how large others may be. None before there is a
        plan, and of a complete run.
    sessions : int
        How often mining was begun.
    mining_seconds : float
        Wall time of the sessions that are over.
    silent_seconds : float or None
        Seconds since the end of the last committed slice. None before the first.
    workers : tuple of WorkerStatus
        Those that have committed slices.
    problems : tuple of str
        One sentence for each file that does not count any more. Its slice is mined again.
    go_on : str
        The call that continues the run, for the command line the command. Empty if the run is complete or running.
    """

    folder: Path | str
    source: str
    state: State
    why: str
    done: tuple[str, ...]
    step: str
    count: int
    bytes: int
    slices: int
    share: float | None
    nodes_left: int | None
    gap: Gap | None
    sessions: int
    mining_seconds: float
    silent_seconds: float | None
    workers: tuple[WorkerStatus, ...]
    problems: tuple[str, ...]
    go_on: str

    def __repr__(self) -> str:
        share = "" if self.share is None or self.state == "complete" else f", {self.share:.0%} of the search"
        return in_one_line(f"<{self.folder}: {self.why}; {number(self.count, 'maximal biclique')}{share}>")

    def to_json(self) -> dict[str, Any]:
        """A dictionary of plain values, for JSON."""
        gap = None if self.gap is None else self.gap._asdict()
        return asdict(self) | {"folder": str(self.folder), "gap": gap}


def status(folder: PathLike) -> Status:
    """Say how far a run is and how to go on. Nothing in the folder is changed.

    Parameters
    ----------
    folder : path
        Folder of the run.

    Returns
    -------
    Status
        What is done and what is left, in numbers and words.

    Raises
    ------
    InputError
        If `folder` is not that of a run.
    IncompleteError
        If a file of the run is damaged in a way that `Status.problems` cannot say.

    Notes
    -----
    Reads the ledger (one small file per slice), the plan and the sizes of the parts, but no rows and no graph.

    Examples
    --------
    >>> import bicliques
    >>> results = bicliques.mine("examples/debian12_package_tag.parquet", "OUT-status", max_results=1000)
    >>> now = bicliques.status("OUT-status")
    >>> now.state, now.count, now.go_on
    ('stopped', 1000, "bicliques.resume('OUT-status', max_results=None)")
    """
    run = Run.with_holes(as_path(folder, "the folder of a run"))
    return status_of(run, run.survey(), spoken)


def status_of(run: Run, surveyed: Surveyed, say: Callable[[str], str] = written) -> Status:
    """The `status` of an open run whose ledger `Run.survey` has read. `say` renders sentences, as for a page."""
    mined, has_plan = run.sessions(), run.has("plan")
    total = float(run.plan.weights.sum()) if has_plan else 0.0
    ledger, problems = surveyed
    entries = list(ledger.entries.values())
    left = sum(stop - start for ranges in ledger.outstanding().values() for start, stop in ranges)
    state, why = _state(run, mined, surveyed if has_plan else None)
    if state == "complete":
        done, share = [*BEFORE_MINING, "mine", "prove"], 1.0
    else:
        done = [step for step in BEFORE_MINING if run.has(step)]
        done += ["mine"] if has_plan and left == 0 and mined else []
        share = 1.0 if "mine" in done else min(sum(entry.weight for entry in entries) / max(total, 1e-300), 0.999)
    outcome = mined[-1].outcome if mined else ""
    waiting = [step for step in (*BEFORE_MINING, "mine", "prove") if step not in done]
    return Status(
        folder=run.store.address,
        source=run.options.source,
        state=state,
        why=say(said(why)),
        done=tuple(done),
        step=waiting[0] if waiting else "",
        count=ledger.total.count,
        bytes=sum(part.bytes for entry in entries for part in entry.result.parts),
        slices=len(entries),
        share=share if has_plan else None,
        nodes_left=left if has_plan else None,
        gap=gap_of(run, ledger) if has_plan and state != "complete" else None,
        sessions=len(mined),
        mining_seconds=sum(session.seconds for session in mined),
        silent_seconds=max(time.time() - Account.of(entries).last_seen, 0.0) if entries else None,
        workers=_workers(entries),
        problems=tuple(in_one_line(say(said(each))) for each in problems.values()),
        go_on="" if state in ("complete", "running") else say(how_to_resume(run.path, outcome)),
    )


def _state(run: Run, mined: list[MiningSession], surveyed: Surveyed | None) -> tuple[State, str]:
    manifest, at_work = run.folder.manifest(), run.store.holder()
    if at_work is not None and at_work.alive:
        return "running", at_work.words
    if manifest is not None:
        damage = why_not_whole(run, manifest, surveyed) if surveyed else "the plan is missing"
        return ("failed", damage) if damage else ("complete", f"proven {manifest.created}")
    if at_work is not None:
        return "dead", f"{at_work.words} has ended without a word"
    outcome = mined[-1].outcome if mined else ""
    if outcome == "failed":
        return "failed", mined[-1].reason or "it ended before it was done"
    ended = _ENDED.get(outcome, "all is mined, and not proven yet" if mined else "mining has not begun")
    return "stopped", (mined[-1].reason if mined else "") or ended


def _workers(entries: list[LedgerEntry]) -> tuple[WorkerStatus, ...]:
    return tuple(
        WorkerStatus(name, own.slices, own.bicliques, own.busy_seconds, own.last_seen)
        for name, own in sorted(by_worker(entries).items())
    )
