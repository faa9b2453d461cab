"""One Prefect task per step of `pipeline.api.steps`. A step that is done is recorded in the folder and is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State, TaskRun
from prefect.concurrency.sync import concurrency
from prefect.exceptions import ObjectNotFound

from bicliques.flows.names import Keys
from bicliques.flows.progress import ProgressArtifact, run_logs, say
from bicliques.pipeline.api import steps
from bicliques.pipeline.api.refreshing import fill_night
from bicliques.pipeline.compare.difference import Difference
from bicliques.pipeline.compare.in_run import changes_since_the_run_before
from bicliques.pipeline.proof.verification import Verification, verify_run
from bicliques.pipeline.publishing.publish_run import Published
from bicliques.pipeline.publishing.publish_run import publish as publish_run
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.store import store_at
from bicliques.pipeline.series.pruning import Pruning, prune_after
from bicliques.pipeline.series.runs import LATEST, is_run, mark_complete, mark_refused, point_to_newest, run_after
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.errors import IncompleteError, InputError, spoken
from bicliques.schemas.facts import MiningSession
from bicliques.schemas.manifest import Manifest
from bicliques.schemas.options import CallOptions, RunLimits, RunOptions

#: Seconds before the first and the second retry. It takes time until somebody mends a full disk or a missing worker.
_DELAYS_S = [10.0, 60.0]


def is_worth_retrying(task: Task[Any, Any], run: TaskRun, state: State[Any]) -> bool:
    """Whether another attempt may help. It does not if the input is wrong or files are damaged."""
    return not isinstance(state.data, (InputError, IncompleteError))


@task(cache_policy=NO_CACHE, retries=2, retry_delay_seconds=_DELAYS_S, retry_condition_fn=is_worth_retrying)
def ingest(
    path: Path, options: RunOptions, limits: RunLimits, call: CallOptions, series: str, day: str | None
) -> dict[str, Any]:
    """Start the run, or go on with one that is there. Returns `pipeline.ingest.step.IngestSummary` as a dictionary."""
    with run_logs():
        if is_run(path):
            return steps.ingest(path, False, call)
        return steps.start(options.source, path, options, limits, False, call, (series, day)).facts("ingest")


@task(cache_policy=NO_CACHE, retries=2, retry_delay_seconds=_DELAYS_S, retry_condition_fn=is_worth_retrying)
def build(path: Path) -> dict[str, Any]:
    """Build the graph; see `pipeline.api.steps.build`."""
    with run_logs():
        return steps.build(path, progress=False)


@task(cache_policy=NO_CACHE, retries=2, retry_delay_seconds=_DELAYS_S, retry_condition_fn=is_worth_retrying)
def plan(path: Path) -> dict[str, Any]:
    """Weigh the roots; see `pipeline.api.steps.plan`."""
    with run_logs():
        return steps.plan(path, progress=False)


@task(cache_policy=NO_CACHE, retries=2, retry_delay_seconds=_DELAYS_S, retry_condition_fn=is_worth_retrying)
def mine(
    path: Path, workers: WorkerOptions, limits: RunLimits, concurrency_limit: str | None, keys: Keys, is_night: bool
) -> tuple[MiningSession, str | None]:
    """Mine what is outstanding, once `concurrency_limit` has a free slot; see `pipeline.api.steps.mine`.

    Of a night nothing is outstanding if its rows could be taken over from the night before; see
    `pipeline.api.refreshing.fill_night`. Otherwise the second value says why not. A retry goes on from the ledger.
    """
    with run_logs(), ProgressArtifact(keys.key("mining")) as on_progress, _turn(concurrency_limit):
        reason = fill_night(path, workers) if is_night else None
        if reason is not None:
            say(f"this night is mined anew, because {spoken(reason)}")
        return steps.mine(path, workers, limits, on_progress), reason


@task(cache_policy=NO_CACHE, retries=1, retry_delay_seconds=_DELAYS_S[0], retry_condition_fn=is_worth_retrying)
def prove(path: Path, workers: WorkerOptions, keys: Keys) -> Manifest:
    """Prove the run; see `pipeline.api.steps.prove`."""
    with run_logs(), ProgressArtifact(keys.key("proving")) as on_progress:
        return steps.prove(path, workers, on_progress)


@task(cache_policy=NO_CACHE, retries=1, retry_delay_seconds=_DELAYS_S[0], retry_condition_fn=is_worth_retrying)
def verify(
    path: Path, sample: int, seed: int, bound_time: float, complete: tuple[int, int] | None, keys: Keys
) -> Verification:
    """Verify the run; see `pipeline.proof.verification.verify_run`."""
    with run_logs(), ProgressArtifact(keys.key("verifying")) as on_progress:
        return verify_run(path, sample, seed, on_progress, bound_time, complete)


@task(cache_policy=NO_CACHE)
def compare(path: Path) -> Difference | None:
    """Find what changed since the run before; see `pipeline.compare.in_run`."""
    with run_logs():
        found = changes_since_the_run_before(path)
    if found is None:
        say(f"{store_at(path).shown()} has no run before it in its series, so there is nothing to compare with")
    return found


@task(cache_policy=NO_CACHE)
def report(path: Path) -> Path:
    """Write the page of the run, unless it is there and newer than the manifest; see `pipeline.api.steps.report`."""
    folder = RunFolder(path)
    if folder.report.exists() and folder.report.stat().st_mtime >= folder.manifest_file.stat().st_mtime:
        return folder.report
    with run_logs():
        return steps.report(path, progress=False)


@task(cache_policy=NO_CACHE, retries=2, retry_delay_seconds=_DELAYS_S, retry_condition_fn=is_worth_retrying)
def publish(path: Path, url: str, keys: Keys, only_newest: bool) -> Published | None:
    """Publish the run, in the place of one that was published there; see `pipeline.publishing.publish_run`.

    With `only_newest` nothing is done, and None returned, if there is a newer run of the same series and question.
    """
    if only_newest and (newer := run_after(path)) is not None:
        own, other = store_at(path).shown(), store_at(newer.path).shown()
        say(f"{own} is not published: {other} is newer, and the place is the same for both")
        return None
    with run_logs(), ProgressArtifact(keys.key("publishing")) as on_progress:
        return publish_run(path, url, overwrite=True, progress=on_progress)


@task(cache_policy=NO_CACHE)
def mark(path: Path, refused: bool) -> bool:
    """Mark the run as complete or refused, after everything else in its folder is written; see `pipeline.series.runs`.

    Returns whether it is complete and had no mark before.
    """
    if refused:
        mark_refused(path, True)
        return False
    return mark_complete(path)


@task(cache_policy=NO_CACHE)
def link(path: Path) -> None:
    """Let the link ``latest`` lead to the newest complete run of the series; see `pipeline.series.runs`."""
    if (newest := point_to_newest(path)) is not None:
        say(f"{path.absolute().parent / LATEST} leads to {newest}")


@task(cache_policy=NO_CACHE)
def prune(path: Path, keep: int, keep_created: int) -> Pruning:
    """Remove older complete runs of the series, if the one in `path` is its newest; see `pipeline.series.pruning`."""
    with run_logs():
        return prune_after(path, keep, keep_created)


@contextmanager
def _turn(limit: str | None) -> Iterator[None]:
    """Hold a slot of a global concurrency limit. If the slot is lost before the end, the work is stopped."""
    if limit is None:
        yield
        return
    with get_client(sync_client=True) as client:
        try:
            client.read_global_concurrency_limit_by_name(limit)
        except ObjectNotFound as error:
            raise InputError(
                f"the Prefect server has no concurrency limit {limit}; make it with: "
                f"prefect gcl create {limit} --limit 1"
            ) from error
    with concurrency(limit, occupy=1, strict=True):
        yield
