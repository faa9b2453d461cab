"""Says what a run would be: profile, plan, and estimates of memory, output and time. Nothing is kept."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, replace
from typing import Any, Unpack

from bicliques.kernels import engines
from bicliques.kernels.engines import Choice
from bicliques.pipeline.api import keywords, preparing, steps
from bicliques.pipeline.api.choices import Asked, choose_engine, with_engine
from bicliques.pipeline.api.table import with_options
from bicliques.pipeline.estimate.memory import MemoryBound, PreparingBound, memory_bound, preparing_bound
from bicliques.pipeline.estimate.sample import Estimate, estimate
from bicliques.pipeline.estimate.table import COUNTS, Guess, in_range, threshold_table
from bicliques.pipeline.process import startup
from bicliques.pipeline.process.interrupts import Interrupted, interruptible
from bicliques.pipeline.run.accounts import peak_rss
from bicliques.pipeline.run.files import temporary_folder
from bicliques.pipeline.run.progress import OnProgress, to_callback
from bicliques.pipeline.workers.opening import check_workers, expected_capacity
from bicliques.pipeline.workers.options import address_of
from bicliques.schemas.errors import ResourceError, spoken


@dataclass(frozen=True)
class DryRun:
    """What a dry run found out.

    Parameters
    ----------
    input, graph, plan : dict
        As in `schemas.manifest.Manifest`.
    engine : Choice
        The engine that the run would use, and why.
    preparing : PreparingBound
        Bounds on the main memory of reading and building, in bytes.
    memory : MemoryBound
        Bounds on the memory of mining, in bytes.
    peak_rss : int
        Most main memory that this process had taken when the graph was built, in bytes. A run that is the first of its
        process takes as much until then.
    estimate : Estimate or None
        Estimates from a sample, also for larger thresholds. None if the reduction leaves nothing of the graph.
    count_only : bool
        Whether the run would only count.
    workers : int or None
        Number of workers that would share the work. 0 means this process alone. None if the call said nothing about
        workers.
    """

    input: dict[str, Any]
    graph: dict[str, Any]
    plan: dict[str, Any]
    engine: Choice
    preparing: PreparingBound
    memory: MemoryBound
    peak_rss: int
    estimate: Estimate | None
    count_only: bool
    workers: int | None

    @property
    def seconds(self) -> Guess | None:
        """Seconds of mining and writing, if all workers always have something to do. None if `estimate` is None."""
        if self.estimate is None:
            return None
        return self.estimate.seconds * (1 / (self.workers or 1))

    @property
    def total_memory(self) -> int | None:
        """Bytes of memory that this process and all workers take on one machine. None if `workers` is None."""
        if self.workers is None:
            return None
        return self.memory.total(self.workers)

    def __repr__(self) -> str:
        """The number of bicliques, and the table of thresholds that the command prints."""
        if self.estimate is None:
            return "<dry run: no maximal biclique is large enough>"
        count = in_range(self.estimate.bicliques, COUNTS)
        table = threshold_table(self.estimate.table, self.workers)
        return f"<dry run: {count} maximal bicliques>\n{spoken(table)}"

    def to_json(self) -> dict[str, Any]:
        """A dictionary of plain values, for JSON."""
        seconds = None if self.seconds is None else asdict(self.seconds)
        more = {"engine": self.engine._asdict(), "seconds": seconds, "total_memory": self.total_memory}
        return asdict(self) | more


@with_options("dry_run")
def dry_run(
    source: Any,
    *,
    progress: OnProgress | bool | None = None,
    **given: Unpack[keywords.DryRun],
) -> DryRun:
    """Say what `mine` would do: profile, plan, and estimates of memory, output and time. Nothing is kept.

    Parameters
    ----------
    source : object
        As for `bicliques.mine`.
    {options}
    progress : callable, bool or None
        As for `bicliques.mine`.

    Returns
    -------
    DryRun
        Memory in bytes, times in seconds.

    Raises
    ------
    InputError
        If the input or an option is wrong.
    ResourceError
        If the engine cannot run in this process, or the temporary folder is full.
    KeyboardInterrupt
        At Ctrl-C. If it samples then, `so_far` of the exception is what was found out.

    Notes
    -----
    All numbers for larger thresholds are of one worker (`pipeline.estimate.table.Cell`).
    With a `scheduler` the engine is one that its workers can run. The sample is mined in this process, and no worker is
    started for it.

    Examples
    --------
    >>> import bicliques
    >>> dry = bicliques.dry_run("examples/debian12_package_tag.parquet", sample_time=1)
    >>> dry.graph["root_side"], dry.memory.worker > 0
    ('right', True)
    """
    on_progress = to_callback(progress)
    asked = Asked.of(source, given, mode="fingerprint" if given.get("count_only") else "list")
    scheduler = asked.workers.scheduler
    choice = choose_engine(asked.options.engine, asked.options.search, scheduler)
    kind = engines.kind(choice.name)
    if scheduler is not None and (reason := kind.why_not()) is not None:
        raise ResourceError(
            f"the workers of {address_of(scheduler)} would use engine {kind.name}, and the sample is mined here, where "
            f"it cannot run: {reason}; choose an engine that runs in both places"
        )
    check_workers(asked.workers, kind.platform)
    options = with_engine(replace(asked.options, engine=kind.name))
    there = expected_capacity(asked.workers, kind.platform)
    startup.over()  # from now on Ctrl-C must not end the process at once, because a folder has to be removed
    with (
        asked.workers.limited(),
        temporary_folder() as temporary,
        steps.started(source, temporary / "run", options, asked.limits, on_progress, asked.call, keep=False) as run,
    ):
        preparing.prepare(run, on_progress)
        taken = peak_rss()
        preparing.check_room(run, asked.workers)
        guessed = None
        with interruptible(stop := threading.Event()) as ctrl_c:
            if run.planned["n_roots"]:
                guessed = estimate(run, asked.call.sample_time, on_progress=on_progress, stop=stop)
        found = DryRun(
            input=run.facts("ingest"),
            graph=run.facts("build"),
            plan=run.facts("plan"),
            engine=choice,
            preparing=preparing_bound(run),
            memory=memory_bound(run, shares=there is not None and there.shared is not None),
            peak_rss=taken,
            estimate=guessed,
            count_only=asked.options.search.mode == "fingerprint",
            workers=None if there is None else there.workers,
        )
    if ctrl_c.is_set():
        raise Interrupted("the dry run was stopped before its sample was complete", found)
    return found
