"""What a run would be: profile, plan, and estimates of memory, output and time. Leaves nothing behind."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from pipeline import engines, startup, steps
from pipeline.choices import choose_engine, how_to_read, run_options
from pipeline.engines import Choice
from pipeline.estimate import Estimate, Guess, estimate
from pipeline.files import temporary_folder
from pipeline.gpu.devices import Devices
from pipeline.gpu.ingest import IngestOn
from pipeline.memory import MemoryBound, memory_bound
from pipeline.progress import Report
from pipeline.workers import WorkerOptions, check_workers, count_workers
from schemas.errors import InputError, ResourceError
from schemas.options import RunLimits
from schemas.work import Search

__all__ = ["DryRun", "dry_run"]


@dataclass(frozen=True)
class DryRun:
    """What was found out.

    Parameters
    ----------
    input, graph, plan : dict
        As in `schemas.manifest.Manifest`.
    engine : Choice
    memory : MemoryBound
    estimate : Estimate or None
        None when nothing of the graph is left.
    count_only : bool
    workers : int or None
        That would share the work, 0 for this process alone; None if nothing was said of them.
    """

    input: dict[str, Any]
    graph: dict[str, Any]
    plan: dict[str, Any]
    engine: Choice
    memory: MemoryBound
    estimate: Estimate | None
    count_only: bool
    workers: int | None

    @property
    def seconds(self) -> Guess | None:
        """Of mining and writing by all workers, if they always have something to do; None as `estimate`."""
        if self.estimate is None:
            return None
        alone, n = self.estimate.seconds, self.workers or 1
        return Guess(alone.value / n, alone.low / n, alone.high / n)

    @property
    def total_memory(self) -> int | None:
        """In bytes, of all workers on one machine and this process; None if nothing was said of workers."""
        if self.workers is None:
            return None
        return self.memory.total(self.workers) if self.workers else self.memory.shared + self.memory.worker

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        seconds = None if self.seconds is None else asdict(self.seconds)
        more = {"engine": self.engine._asdict(), "seconds": seconds, "total_memory": self.total_memory}
        return asdict(self) | more


def dry_run(
    source: Any,
    *,
    sample_time: float = 10.0,
    min_left: int = 1,
    min_right: int = 1,
    max_left: int | None = None,
    max_right: int | None = None,
    count_only: bool = False,
    sizes: bool = False,
    engine: str = engines.AUTO,
    workers: int | None = None,
    scheduler: str | None = None,
    devices: Devices | None = None,
    ids: Literal["labels", "dense"] = "labels",
    ingest_on: IngestOn = "auto",
    progress: Report | bool | None = None,
    **how: Any,
) -> DryRun:
    """What `mine` would do: profile, plan, and estimates of memory, output and time. Nothing is kept.

    Parameters
    ----------
    sample_time : float
        Seconds for mining the sample the estimates come from, in this process.
    workers, scheduler, devices
        As for `mine`. The engine is one that the workers of a `scheduler` can run; no others are started.
    **how
        ``root_side``, ``order``, and how to read; as for `mine`, where the other parameters are, too.
    """
    if not sample_time > 0:
        raise InputError(f"the time for the sample must be more than 0 seconds, not {sample_time}")
    search = Search("prove" if count_only else "list", min_left, min_right, max_left, max_right, sizes)
    build, ingest = how_to_read(how)
    wanted = WorkerOptions(workers, scheduler, devices=devices)
    choice = choose_engine(engine, search, scheduler)
    kind = engines.kind(choice.name)
    if scheduler is not None and (reason := kind.why_not()) is not None:
        raise ResourceError(
            f"the workers of {scheduler} would use engine {kind.name}, and the sample is mined here, where it cannot "
            f"run: {reason}; choose an engine that runs in both places"
        )
    check_workers(wanted, kind.place)
    options = run_options(source, search, build, ingest, kind.name, ids)
    n_workers = count_workers(wanted, kind.place)
    startup.over()  # for there is a folder to remove from now on
    with temporary_folder() as temporary:
        folder = steps.start(source, temporary / "run", options, RunLimits(), progress, ingest_on)
        steps.prepare(folder.path, progress)
        plan = folder.need("plan")
        return DryRun(
            input=folder.need("ingest"),
            graph=folder.need("build"),
            plan=plan,
            engine=choice,
            memory=memory_bound(folder),
            estimate=estimate(folder, sample_time) if plan["n_roots"] else None,
            count_only=count_only,
            workers=n_workers,
        )
