"""What a run would be: profile, plan, and estimates of memory, output and time. Leaves nothing behind."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from pipeline import engines, steps
from pipeline.choices import how_to_read, run_options
from pipeline.engines import Choice
from pipeline.estimate import Estimate, estimate
from pipeline.files import temporary_folder
from pipeline.memory import MemoryBound, memory_bound
from pipeline.progress import Report
from schemas.errors import InputError
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
    """

    input: dict[str, Any]
    graph: dict[str, Any]
    plan: dict[str, Any]
    engine: Choice
    memory: MemoryBound
    estimate: Estimate | None
    count_only: bool

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self) | {"engine": self.engine._asdict()}


def dry_run(
    source: Any,
    *,
    sample_time: float = 10.0,
    min_left: int = 1,
    min_right: int = 1,
    max_left: int | None = None,
    max_right: int | None = None,
    count_only: bool = False,
    engine: str = engines.AUTO,
    ids: Literal["labels", "dense"] = "labels",
    progress: Report | bool | None = None,
    **how: Any,
) -> DryRun:
    """What `mine` would do: profile, plan, and estimates of memory, output and time. Nothing is kept.

    Parameters
    ----------
    sample_time : float
        Seconds for mining the sample the estimates come from.
    **how
        ``root_side``, ``order``, and how to read; as for `mine`, where the other parameters are, too.
    """
    if not sample_time > 0:
        raise InputError(f"the time for the sample must be more than 0 seconds, not {sample_time}")
    search = Search("prove" if count_only else "list", min_left, min_right, max_left, max_right)
    build, ingest = how_to_read(how)
    choice = engines.choose(engine)
    options = run_options(source, search, build, ingest, choice.name, ids)
    with temporary_folder() as temporary:
        path = temporary / "run"
        folder = steps.start(source, path, options, RunLimits(), progress)
        steps.prepare(path, progress)
        plan = folder.need("plan")
        return DryRun(
            input=folder.need("ingest"),
            graph=folder.need("build"),
            plan=plan,
            engine=choice,
            memory=memory_bound(folder),
            estimate=estimate(folder, sample_time) if plan["n_roots"] else None,
            count_only=options.search.mode != "list",
        )
