"""What a run would be: profile, plan, and estimates of memory, output and time. Leaves nothing behind."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from kernels import engines
from kernels.engines import Choice
from pipeline.api import preparing, steps
from pipeline.api.choices import Asked, choose_engine, with_engine
from pipeline.api.table import described
from pipeline.estimate.memory import MemoryBound, memory_bound
from pipeline.estimate.sample import Estimate, Guess, estimate
from pipeline.process import startup
from pipeline.run.files import temporary_folder
from pipeline.run.progress import OnProgress, to_callback
from pipeline.workers.devices import Devices
from pipeline.workers.opening import check_workers, count_workers
from schemas.errors import ResourceError
from schemas.options import Ids, LabelType, Order, RootSide, Where

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


@described("dry_run")
def dry_run(
    source: Any,
    *,
    count_only: bool = False,
    sample_time: float = 10.0,
    sizes: bool = False,
    ids: Ids = "labels",
    min_left: int = 1,
    min_right: int = 1,
    max_left: int | None = None,
    max_right: int | None = None,
    engine: str = "auto",
    root_side: RootSide = "auto",
    order: Order = "degree",
    workers: int | None = None,
    scheduler: str | None = None,
    devices: Devices | None = None,
    ingest_on: Where = "auto",
    format: str | None = None,
    left: str | int | None = None,
    right: str | int | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    label_type: LabelType = "auto",
    skip_bad_lines: bool = False,
    progress: OnProgress | bool | None = None,
) -> DryRun:
    """What `mine` would do: profile, plan, and estimates of memory, output and time. Nothing is kept.

    Parameters
    ----------
    source, progress
        As for `pipeline.mine`.
    {options}

    Notes
    -----
    The engine is one that the workers of a `scheduler` can run; no others are started. The sample is mined in this
    process.
    """
    given = locals()
    asked = Asked.of(source, given, mode="fingerprint" if count_only else "list")
    choice = choose_engine(engine, asked.options.search, scheduler)
    kind = engines.kind(choice.name)
    if scheduler is not None and (reason := kind.why_not()) is not None:
        raise ResourceError(
            f"the workers of {scheduler} would use engine {kind.name}, and the sample is mined here, where it cannot "
            f"run: {reason}; choose an engine that runs in both places"
        )
    check_workers(asked.workers, kind.platform)
    options = with_engine(replace(asked.options, engine=kind.name))
    n_workers = count_workers(asked.workers, kind.platform)
    startup.over()  # for there is a folder to remove from now on
    with (
        temporary_folder() as temporary,
        steps.started(source, temporary / "run", options, asked.limits, progress, ingest_on, keep=False) as run,
    ):
        preparing.prepare(run, to_callback(progress))
        return DryRun(
            input=run.facts("ingest"),
            graph=run.facts("build"),
            plan=run.facts("plan"),
            engine=choice,
            memory=memory_bound(run),
            estimate=estimate(run, sample_time) if run.planned["n_roots"] else None,
            count_only=count_only,
            workers=n_workers,
        )
