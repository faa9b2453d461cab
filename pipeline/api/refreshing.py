"""The call `refresh`: a run of today's edges from the complete run of yesterday's, by what changed between the two."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from bicliques.kernels import engines
from bicliques.pipeline.api import keywords, preparing, steps
from bicliques.pipeline.api.choices import Asked, with_engine
from bicliques.pipeline.api.diffing import Compared, Comparison
from bicliques.pipeline.api.preparing import is_complete_as_it_is
from bicliques.pipeline.api.runs import results_of
from bicliques.pipeline.api.same_run import is_there_already
from bicliques.pipeline.api.table import with_options
from bicliques.pipeline.compare.taking_over import mined_seconds, take_over
from bicliques.pipeline.compare.two_graphs import TwoGraphs
from bicliques.pipeline.ingest.from_run import is_run_folder
from bicliques.pipeline.output.part_writer import part_schema
from bicliques.pipeline.process import startup
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.logs import tell
from bicliques.pipeline.proof.wholeness import why_not_whole
from bicliques.pipeline.results.results import Results, open_results
from bicliques.pipeline.run.files import PathLike
from bicliques.pipeline.run.names import store_url
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import OnProgress, Progress, number, pass_on, to_callback
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.series.runs import run_before
from bicliques.pipeline.workers.opening import begun, check_workers
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.bicliques import ID, SCHEMA_VERSION, Bicliques
from bicliques.schemas.errors import IncompleteError, InputError, as_option
from bicliques.schemas.manifest import Manifest
from bicliques.schemas.options import CallOptions, IngestOptions, RunLimits
from bicliques.schemas.values import as_path

logger = logging.getLogger(__name__)

#: What changed is not looked for if mining takes less than so many seconds, and so many times those of the graph. To
#: look takes some time before anything is found.
LEAST_S, BUILDS = 3.0, 40.0
#: Nor if one in so many edges has changed. Some 1 % of the edges changes most of the bicliques.
EDGES = 100
#: This share of the time of mining is spent to look for what changed. It goes on if all that is left is foreseen to be
#: done in the other share. The time of the search is not foreseen, but that of what its rows leave is.
SHARE, SURE = 0.1, 0.6
#: Seconds of one core to write a byte of a part again, and the share of the time of mining that this may take.
BYTE_S, WRITING = 40e-9, 0.8


@with_options("refresh")
def refresh(
    run: PathLike,
    new: Any,
    output: PathLike,
    *,
    progress: OnProgress | bool | None = None,
    **given: Unpack[keywords.Refresh],
) -> Results:
    """Make the run of a new edge list from the complete run of an older one.

    Only what changed is searched for. Other rows are taken over, and their files are shared where that is possible. The
    new run is complete, proven, and needs no file of the older one. If that would take longer than `mine`, `new` is
    mined, and `progress` says why: docs/what-changed.md.

    Parameters
    ----------
    run : path
        Folder of a complete run that lists all bicliques. Its thresholds and given members hold for `new`, too, and so
        does how it was read, unless an option says how to read `new`.
    new : path, sequence of paths, or object
        As for `bicliques.mine`.
    output : path
        Folder of the new run. It is empty, does not exist yet, or holds the same run, which then goes on.
    {options}
    progress : callable, bool or None
        As for `bicliques.mine`.

    Returns
    -------
    Results
        As of `bicliques.mine`. ``manifest.parent`` says what was taken from where, and is None if `new` was mined.

    Raises
    ------
    InputError
        If `run` cannot be used, or as of `bicliques.mine`. Nothing is written then.
    ResourceError, IncompleteError
        As `bicliques.mine`.

    Examples
    --------
    >>> import bicliques
    >>> yesterday = [("ann", "up"), ("ann", "her"), ("bob", "up"), ("bob", "her")]
    >>> before = bicliques.mine(yesterday, "OUT-yesterday")
    >>> len(bicliques.refresh("OUT-yesterday", [*yesterday, ("bob", "jaws")], "OUT-now"))
    2
    """
    on_progress, parent = to_callback(progress), parent_at(as_path(run, "the folder of a run"))
    Compared(run, True).search(given)
    place = as_path(output, "the output folder")
    if store_url(place) is not None:
        raise InputError("a run in a store is not made from another one; mine the new edge list there")
    asked = Asked.of(new, given, mode="list")
    ingest = asked.options.ingest
    if ingest == IngestOptions() and not is_run_folder(new):  # nothing says how to read it
        ingest = replace(parent.options.ingest, format=None)
    options = replace(asked.options, search=parent.options.search, ids=parent.options.ids, ingest=ingest)
    with asked.workers.limited():
        notes: list[Progress] = []
        if is_there_already(place, options, new, asked.call.ingest_on):
            there = Run.to_go_on(place)
            if is_complete_as_it_is(there):
                return open_results(place)
            options, opening = there.options, steps.opened(place)
        else:
            options = with_engine(options, asked.workers.scheduler, notes.append)
            opening = steps.started(new, place, options, RunLimits(), on_progress, asked.call)
        platform = engines.kind(options.engine).platform
        check_workers(asked.workers, platform)
        with begun(asked.workers, platform), opening as today:
            pass_on(notes, on_progress)
            preparing.prepare(today, on_progress, new, asked.call)
            if (reason := fill(today, parent, asked.workers, on_progress)) is not None:
                on_progress(Progress("mine", note=f"mining anew, because {reason}"))
                tell(logger, "anew", f"mining anew, because {reason}", reason=reason)
            session = steps.complete_run(today, asked.workers, RunLimits(), on_progress)
        return results_of(place, session, asked.call.report, on_progress)


def parent_at(path: Path) -> Run:
    """A run whose rows can be taken over."""
    if store_url(path) is not None:
        raise InputError(f"{path} is kept in a store, and rows are taken over from folders; mine the new edge list")
    run = Run.at(path)
    if run.job.name != "all" or run.job.rows != "slices":
        raise InputError(
            f"{path} is not a run that lists all bicliques; name one of `mine` without {as_option('count_only')}"
        )
    try:
        manifest = run.folder.manifest()
        if manifest is None:
            raise InputError(f"{path} is not complete; continue with: {how_to_resume(path, run.ended())}")
        if manifest.schema_version != SCHEMA_VERSION:
            raise InputError(f"{path} has rows of schema {manifest.schema_version}, not {SCHEMA_VERSION}; mine again")
        if (reason := why_not_whole(run, manifest)) is not None:
            raise InputError(f"{reason}; mend it with: {how_to_resume(path)}")
        run.folder.check("ingest")
    except IncompleteError as error:
        raise InputError(str(error)) from error
    return run


def fill(run: Run, parent: Run, workers: WorkerOptions, on_progress: OnProgress) -> str | None:
    """Fill a run from a complete one with the same thresholds, if that takes less time than mining. Or say why not.

    Parameters
    ----------
    run : Run
        Its steps before mining are done, and the caller holds its lock.
    parent : Run
        As of `parent_at`.
    workers : WorkerOptions
        Those of the run. What changed is searched for by threads of this process.
    on_progress : callable

    Returns
    -------
    str or None
        Why the run has to be mined, in one clause. None: all is there, and to be proven. Or it has begun to be mined.
    """
    began, started, manifest = time.time(), time.monotonic(), parent.folder.manifest()
    assert manifest is not None
    if run.survey()[0].entries:
        return None
    if len(run.plan.roots) == 0:
        return "nothing is left to search"
    seconds = mined_seconds(manifest)
    if seconds < LEAST_S + BUILDS * run.built["seconds"]:
        return f"that takes some {seconds:.1f} s"
    if run.options.ids != parent.options.ids or part_schema(run.tables) != part_schema(parent.tables):
        return f"the lists of {parent.path} have members of another type"
    until = started + SHARE * seconds
    own = WorkerOptions(workers=0 if workers.workers == 0 else None, slice_seconds=workers.slice_seconds)
    options = replace(run.options, ids="dense", engine=engines.AUTO)
    asked = Asked(options=options, limits=RunLimits(), workers=own, call=CallOptions())
    sides = Compared(parent.path, True), Compared(run.path, True)
    comparison = Comparison(sides, (None, None), asked, run.options.search, on_progress)
    try:
        with startup.lent(), comparison.read() as two:
            n, n_edges = sum(map(len, two.only)), run.input["n_edges"]
            if n * EDGES > n_edges:
                return f"{number(n, 'edge has', 'edges have')} changed, of {n_edges:,}"
            if not comparison.mine(two, until):
                raise _TooLongError
            pace = _Pace(two, until, started + SURE * seconds - _writing_seconds(manifest, manifest.count))
            gone = [np.empty(0, ID), *(batch.ids for batch in pace.keep(two.rows(0)))]
            ids, new = np.concatenate(gone), pace.keep(two.rows(1))
            if (writing := _writing_seconds(manifest, len(ids))) > WRITING * seconds:
                return f"writing what stays takes some {writing:.1f} s, and mining {seconds:.1f} s"
            take_over(run, (parent, manifest), two.numbers, ids, new, began, on_progress)
    except InputError as error:  # the labels or the sides of the two do not fit together
        return str(error)
    except _TooLongError:
        return f"what changed was not found in {until - started:.1f} s, {SHARE:.0%} of the time that it takes"
    return None


def fill_night(path: Path, workers: WorkerOptions) -> str | None:
    """Fill the run of a night from the run before it in its series; see `fill`. None, too, if there is none before.

    A run before that is damaged is a reason to mine, because a night has to give a run.
    """
    with steps.opened(path) as run:
        if run.job.name != "all" or run.job.rows != "slices" or (before := run_before(path)) is None:
            return None
        try:
            return fill(run, parent_at(before.path), workers, to_callback(False))
        except (IncompleteError, InputError) as error:
            return str(error)


def _writing_seconds(manifest: Manifest, n_gone: int) -> float:
    """How long it takes to write again the parts with one of so many rows, if these are anywhere."""
    touched = 1 - math.exp(-n_gone / max(len(manifest.parts), 1))
    return manifest.bytes * touched * BYTE_S / count_cores()


class _TooLongError(Exception):
    """What changed was not found in time."""


class _Pace:
    """Whether what changed is found in time, once the bicliques with a changed edge are there.

    From `until` on, the search only goes on if its end is foreseen before `latest`.
    """

    def __init__(self, two: TwoGraphs, until: float, latest: float) -> None:
        self._two, self._until, self._latest = two, until, latest
        self._began, self._is_sure = time.monotonic(), False

    def keep(self, batches: Iterable[Bicliques]) -> Iterator[Bicliques]:
        for batch in batches:
            now = time.monotonic()
            if not self._is_sure and now > self._until:
                share = self._two.looked_at / max(self._two.n_with_own_edge, 1)
                self._is_sure = self._began + (now - self._began) / max(share, 1e-9) < self._latest
                if not self._is_sure:
                    raise _TooLongError
            yield batch
