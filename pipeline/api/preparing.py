"""The steps before mining, each done once: read the input, build the graph, weigh the roots; and whether all are done.

The caller holds the lock of the run. The files of a step that is done are checked. If they are damaged, the step is
done again. A run that is complete as it is needs no lock, and nothing is written.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from bicliques.kernels import engines
from bicliques.pipeline.ingest.doubts import refuse_doubts
from bicliques.pipeline.ingest.from_run import is_run_folder, take_from_run
from bicliques.pipeline.ingest.readers.files import is_named, items_of
from bicliques.pipeline.ingest.sources.names import from_record, is_there
from bicliques.pipeline.ingest.step import ingest as ingest_source
from bicliques.pipeline.prepare.build import build as build_graph
from bicliques.pipeline.prepare.build import compiles
from bicliques.pipeline.prepare.weights import plan as plan_roots
from bicliques.pipeline.process import startup
from bicliques.pipeline.process.logs import tell
from bicliques.pipeline.proof import summary, vertices
from bicliques.pipeline.proof.wholeness import why_not_whole
from bicliques.pipeline.run.files import disk_errors, whole_file
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import is_staging, refuse_links, tables_in
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import OnProgress, Progress, Step
from bicliques.pipeline.run.session import sessions
from bicliques.pipeline.series.runs import withdraw_mark
from bicliques.pipeline.slices import first_use
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.errors import BicliqueError, IncompleteError, InputError
from bicliques.schemas.facts import BEFORE_MINING
from bicliques.schemas.manifest import Manifest
from bicliques.schemas.options import CallOptions
from bicliques.schemas.platform import CORES
from bicliques.schemas.regular_files import read_regular
from bicliques.schemas.values import local_path

logger = logging.getLogger(__name__)


def prepare(run: Run, on_progress: OnProgress, source: Any = None, call: CallOptions | None = None) -> None:
    """Do every step before mining that is not done yet.

    `source` is the input, where a caller has it at hand. It is read if the run was killed before it had read it. It is
    not read a second time, because a caller that has compared it may have used it up.
    """
    ingest(run, on_progress, None if _has_read(run) else source, call)
    build(run, on_progress)
    plan(run, on_progress)


def ingest(run: Run, on_progress: OnProgress, source: Any = None, call: CallOptions | None = None) -> dict[str, Any]:
    """Read the input, or take it from a run that has read it.

    See `pipeline.ingest.step.ingest` and `pipeline.ingest.from_run`. `source` None opens it by the name in the options
    of the run.
    """
    options, call = run.options, call or CallOptions()
    given = from_record(options.source) if source is None else source
    is_run = is_run_folder(given)
    if is_named(given):
        run.store.refuse_above(items_of(given))

    def read() -> dict[str, Any]:
        if source is None and not is_there(options.source):
            raise InputError(
                f"{options.source} cannot be read again, and {run.path} does not hold all of it; start the run anew"
            )
        if is_run:
            facts = take_from_run(local_path(str(given)), options.ingest, run.path, call.ingest_on)
        else:
            facts = asdict(ingest_source(given, options.ingest, run.path, call.ingest_on, run.keep_edges))
        run.finish("ingest", facts, [run.path / file for file in tables_in(run.path)])
        return facts

    def ready() -> None:
        if not is_run:
            first_use.before_reading(given, call.ingest_on, options.ingest.where)

    facts = _once(run, "ingest", on_progress, ready, read)
    refuse_doubts(facts["source"], facts.get("notes", ()) if call.strict else ())
    return facts


def _has_read(run: Run) -> bool:
    try:
        return run.has("ingest")
    except IncompleteError:  # its record is damaged, so nothing was compared with it
        return False


def build(run: Run, on_progress: OnProgress) -> dict[str, Any]:
    """Make the graph; see `pipeline.prepare.build.build`."""
    options, search = run.options, run.options.search
    prunes = search.min_left > 1 or search.min_right > 1

    def ready() -> None:
        # Given members mostly leave too few edges for compiled code. How many they leave is not known yet.
        n_edges = 0 if search.is_containing else run.input["n_edges"]
        first_use.before_building(options.build, prunes, compiles(run, n_edges), run.job.in_bands)

    return _once(run, "build", on_progress, ready, lambda: build_graph(run), run.check_graph)


def plan(run: Run, on_progress: OnProgress) -> dict[str, Any]:
    """Weigh the roots; see `pipeline.prepare.weights.plan`."""
    return _once(run, "plan", on_progress, lambda: None, lambda: plan_roots(run), run.check_plan)


def check_room(run: Run, workers: WorkerOptions) -> None:
    """Refuse a graph that is too large for the device of this process, unless workers of a scheduler search it."""
    if workers.scheduler is None and engines.kind(run.options.engine).platform is not CORES:
        from bicliques.pipeline.estimate.memory import refuse_too_large  # not before it is needed

        refuse_too_large(run)


def _once(
    run: Run,
    step: Step,
    on_progress: OnProgress,
    ready: Callable[[], None],
    work: Callable[[], Any],
    check: Callable[[], None] = lambda: None,
) -> Any:
    """The facts of a step, which is done now unless it is done and its files are undamaged.

    Files that this process has just made are not checked. `check` looks further than their checksums.
    """
    if run.has_made(step):
        return run.facts(step)
    damage = None
    try:
        if run.has(step):
            file = run.folder.broken(step)
            if file is None:
                check()
                return run.facts(step)
            damage = f"{file} is missing or damaged"
    except IncompleteError as error:
        damage = str(error.__cause__ or error)
    on_progress(Progress(step))
    with startup.getting_ready():
        ready()
    startup.log_it()
    started = time.monotonic()
    if damage is None:
        facts = work()
    else:
        logger.warning("%s; step %s is done again", damage, step)
        facts = _again(run.folder, step, work)
    seconds = time.monotonic() - started
    on_progress(Progress(step, share=1.0, seconds=seconds))
    tell(logger, "step", f"step {step} is done in {seconds:.2f} s", step=step, seconds=round(seconds, 6))
    return facts


def _again(folder: RunFolder, step: str, work: Callable[[], Any]) -> Any:
    """Redo a step whose files or record are damaged. Refuse the result if it differs from what the step made before.

    Slices may be mined already, and their results belong to the files that were there.
    """
    sums = folder.keep_checksums(step)
    told = read_regular(folder.step_file(step))
    facts = work()
    if folder.checksums(step) != sums:
        with whole_file(folder.step_file(step)) as file:
            file.write(told)
        raise IncompleteError(
            f"step {step} of {folder.path} does not give again what it gave, as after a change of the input or of the "
            "package; start the run again"
        )
    return facts


def is_complete_as_it_is(run: Run) -> bool:
    """Whether a run is complete, undamaged, and nobody works on it. It is only read.

    A complete run may be in a folder that this process must not write to, where it cannot take the lock. Nothing
    changes such a run but a process that mends or removes it, and that one holds the lock. If it takes the lock while
    the files are read here, either they are all there, and the run was complete when this call began, or one is
    missing, and the answer is False.

    Returns
    -------
    bool
        False if that cannot be found out, too. Whoever then takes the lock finds out why, and says so. False of every
        run that is kept in a store, because its working folder may have what the store still lacks.

    Notes
    -----
    `pipeline.api.steps.complete_run` asks the same step by step under the lock, because it mends what is not so. A file
    that a complete run has to have is looked at in both.
    """
    if run.store.url is not None:
        return False
    try:
        return _is_free(run) and _has_all(run)
    except (BicliqueError, OSError):
        return False


def _is_free(run: Run) -> bool:
    """Whether no process works on the run, or has left input there that it was reading."""
    refuse_links(run.path)
    at_work = run.store.holder()
    return (at_work is None or not at_work.alive) and not any(map(is_staging, run.path.iterdir()))


def _has_all(run: Run) -> bool:
    manifest = run.folder.manifest()
    if manifest is None:  # most often, so it is looked at before all that takes longer
        return False
    return (
        all(run.has(step) and run.folder.broken(step) is None for step in BEFORE_MINING)
        and why_not_whole(run, manifest) is None
        and bool(sessions(run.folder))
        and not (run.options.search.per_vertex and vertices.why_damaged(run))
        and (run.job.rows == "none" or summary.why_damaged(run.folder, manifest) is None)
    )


def proven_manifest(run: Run) -> Manifest | None:
    """The manifest of a run, if it still agrees with the files. Otherwise it is deleted, and None is returned."""
    folder = run.folder
    try:
        manifest = folder.manifest()
    except IncompleteError as error:
        reason: str | None = str(error.__cause__ or error)
    else:
        if manifest is None:
            return None
        reason = why_not_whole(run, manifest)
        if reason is None:
            return manifest
    logger.warning("%s; the manifest is withdrawn, and what is missing is mined again", reason)
    withdraw_mark(folder.path)
    with disk_errors(folder.manifest_file):
        folder.manifest_file.unlink()
    return None
