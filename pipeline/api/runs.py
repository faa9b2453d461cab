"""The calls `mine`, `largest`, `open_run`, `resume` and `verify` of the Python API, and of the commands so named."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from bicliques.kernels import engines
from bicliques.pipeline.api import keywords, steps
from bicliques.pipeline.api.choices import Asked, with_engine
from bicliques.pipeline.api.same_run import begun_anew, is_there_already
from bicliques.pipeline.api.table import AS_BEFORE, record, with_options
from bicliques.pipeline.process.interrupts import Interrupted
from bicliques.pipeline.results.results import Results, open_results
from bicliques.pipeline.run.files import PathLike
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import REPORT_FILE
from bicliques.pipeline.run.opened import driven
from bicliques.pipeline.run.progress import OnProgress, Progress, number, pass_on, to_callback
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.workers.opening import begun, check_workers
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.facts import MiningSession
from bicliques.schemas.options import RunLimits
from bicliques.schemas.values import as_path

if TYPE_CHECKING:
    from bicliques.pipeline.proof.verification import Verification


@with_options("mine", "bicliques.maximal_bicliques and bicliques.count take none")
def mine(
    source: Any,
    output: PathLike,
    *,
    progress: OnProgress | bool | None = None,
    stop: threading.Event | None = None,
    **given: Unpack[keywords.Mine],
) -> Results:
    """Write every maximal biclique of a bipartite graph to Parquet.

    Parameters
    ----------
    source : path, sequence of paths, or object
        An edge list in a format of ``bicliques formats``, several, a folder of them, or a pattern such as
        ``in/*.csv``, also by their URLs. Or a pandas, Polars, Dask or Arrow table, a scipy.sparse matrix, a networkx or
        igraph graph, a NumPy array, pairs of labels, or a dict of sets: docs/formats.md says what is left and right. Or
        the folder of a run: then the edges that it has read are used.
    output : path
        Folder of the run. It is empty, does not exist yet, or holds the same run: the same input and options. Then the
        run goes on with the limits and workers of this call, and a complete run is left as it is.
    {options}
    progress : callable, bool or None
        A callable gets a `pipeline.run.progress.Progress` a few times per second. True writes a bar to stderr, or below
        the cell of a notebook. False writes nothing. None writes the bar in a notebook, and if stderr is a terminal.
    stop : threading.Event or None
        When it is set, running slices are committed, and the call returns. The run can be resumed.

    Returns
    -------
    Results
        Rows are read only when they are asked for. ``complete`` is False if a limit was reached or `stop` was set.

    Raises
    ------
    InputError
        If the input, the folder or an option is wrong. Nothing is written then.
    ResourceError
        If the engine cannot run, the disk is full, or workers fail. A run that has read its input can be resumed.
    IncompleteError
        If the proof fails.
    KeyboardInterrupt
        After Ctrl-C, once running slices are committed (`Interrupted`). The run can be resumed.

    Notes
    -----
    Memory holds the graph, which workers share, and a bounded workspace per worker. It never holds the results. Worker
    processes do not import the script that makes this call.

    Examples
    --------
    >>> import bicliques
    >>> results = bicliques.mine("examples/debian12_package_tag.parquet", "OUT", min_left=5, min_right=5)
    >>> len(results), results.complete
    (11869, True)
    >>> results.to_pandas(columns=["n_left", "n_right"]).max().tolist()
    [763, 12]
    """
    asked = Asked.of(source, given, mode="fingerprint" if given.get("count_only") else "list")
    place = driven(as_path(output, "the output folder"), anew=asked.call.overwrite)
    return _new_run(source, place, asked, to_callback(progress), stop)


@with_options("largest")
def largest(
    source: Any,
    output: PathLike,
    *,
    progress: OnProgress | bool | None = None,
    stop: threading.Event | None = None,
    **given: Unpack[keywords.Largest],
) -> Results:
    """Find the largest maximal bicliques of a bipartite graph, by branch and bound, and prove that none is larger.

    Parameters
    ----------
    source, output : object
        As for `mine`.
    {options}
    progress, stop : object
        As for `mine`.

    Returns
    -------
    Results
        The rows are the largest bicliques. Ties go to the larger number of edges, then to the larger left side, then to
        the larger hash. ``manifest.certificate`` says what was searched, and with which bounds.

    Raises
    ------
    InputError, ResourceError, IncompleteError, KeyboardInterrupt
        As `mine`.

    Notes
    -----
    ``edges`` is the product of both sides, ``vertices`` their sum, ``balance`` the smaller one. The result does not
    depend on the engine, the workers or the time that anything takes. See docs/asking-for-less.md.

    Examples
    --------
    >>> import bicliques
    >>> source = "examples/debian12_package_tag.parquet"
    >>> results = bicliques.largest(source, "OUT-largest", top=2, min_left=5, min_right=5)
    >>> results.top(2)["n_left"].to_pylist()
    [763, 672]
    """
    top = given.get("top")
    asked = Asked.of(source, {**given, "top": 1 if top is None else top}, mode="list")
    place = driven(as_path(output, "the output folder"), anew=asked.call.overwrite)
    return _new_run(source, place, asked, to_callback(progress), stop)


def _new_run(source: Any, output: Path, asked: Asked, progress: OnProgress, stop: threading.Event | None) -> Results:
    """Do all steps of a new run, or those that are left of the same run."""
    with asked.workers.limited():
        if not asked.call.overwrite and is_there_already(output, asked.options, source, asked.call.ingest_on):
            session = steps.run(output, asked.workers, asked.limits, progress, stop, source, asked.call)
            return results_of(output, session, asked.call.report, progress)
        notes: list[Progress] = []
        options = with_engine(asked.options, asked.workers.scheduler, notes.append)
        platform = engines.kind(options.engine).platform
        check_workers(asked.workers, platform)
        with (
            begun(asked.workers, platform),
            begun_anew(output, source) if asked.call.overwrite else nullcontext(lambda: None) as has_begun,
            steps.started(source, output, options, asked.limits, progress, asked.call) as run,
        ):
            has_begun()
            pass_on(notes, progress)
            session = steps.complete_run(run, asked.workers, asked.limits, progress, stop)
        return results_of(output, session, asked.call.report, progress)


def open_run(folder: PathLike) -> Results:
    """Open the results of a run, complete or not; see `pipeline.results.results.Results`.

    Parameters
    ----------
    folder : path
        Folder of the run.

    Returns
    -------
    Results
        Rows are read only when they are asked for. ``complete`` is False if there may be more.

    Raises
    ------
    InputError
        If `folder` is not that of a run.
    IncompleteError
        If the manifest or the ledger is damaged.

    Examples
    --------
    >>> import bicliques
    >>> made = bicliques.mine("examples/debian12_package_tag.parquet", "OUT-open", report=False)
    >>> results = bicliques.open_run("OUT-open")
    >>> results.top(1, by="edges").column_names
    ['id', 'left', 'right', 'n_left', 'n_right', 'root']
    """
    return open_results(as_path(folder, "the folder of a run"))


@with_options("resume")
def resume(
    folder: PathLike,
    *,
    progress: OnProgress | bool | None = None,
    stop: threading.Event | None = None,
    **given: Unpack[keywords.Resume],
) -> Results:
    """Go on with a run that has stopped for any reason. A complete run is not changed.

    Parameters
    ----------
    folder : path
        Folder of the run.
    {options}
    progress, stop : object
        As for `mine`.

    Returns
    -------
    Results
        As of `mine`.

    Raises
    ------
    InputError
        If `folder` is not that of a run, another process works on it, or an option is wrong.
    ResourceError
        If the engine cannot run, the disk is full, or workers fail. The run can be resumed again.
    IncompleteError
        If a file is damaged in a way that cannot be mended, or the proof fails.
    KeyboardInterrupt
        As of `mine`.

    Notes
    -----
    These options may differ from those of the call before. `max_results` includes the bicliques that are there already.

    Examples
    --------
    >>> import bicliques
    >>> source = "examples/debian12_package_tag.parquet"
    >>> len(bicliques.mine(source, "OUT-in-two-calls", max_results=1000))
    1000
    >>> len(bicliques.resume("OUT-in-two-calls", max_results=None))
    56688
    """
    path, progress = driven(as_path(folder, "the folder of a run")), to_callback(progress)
    limits_given = {"max_results": AS_BEFORE, "time_limit": AS_BEFORE, **given}
    limits = record(RunLimits, limits_given, before=RunFolder(path).limits())
    session = steps.run(path, record(WorkerOptions, given), limits, progress, stop)
    return results_of(path, session, given.get("report", True), progress)


def verify(
    folder: PathLike,
    *,
    sample: int = 1000,
    seed: int = 0,
    bound_time: float = 60.0,
    complete: tuple[int, int] | None = None,
    progress: OnProgress | bool | None = None,
) -> Verification:
    """Check the results of a complete run again, from its files alone.

    Parameters
    ----------
    folder : path
        Folder of the run.
    sample : int
        Number of rows to compare with the input, and of bicliques to draw. They are chosen at random.
    seed : int
        Seed of that choice.
    bound_time : float
        Of a run of `largest`: most seconds for a second search, which counts that nothing is larger.
    complete : (int, int) or None
        Draw `sample` bicliques with so many left and right members from the input, too, and look whether all maximal
        bicliques that contain one of them are rows. (1, 1) draws edges, and finds most. None: draw none.
    progress : callable, bool or None
        As for `mine`.

    Returns
    -------
    Verification
        What is proven about all rows, what about the sample, and what is not proven.

    Raises
    ------
    IncompleteError
        If the run is not complete, or a check fails. The error names what is wrong.
    InputError
        If `folder` is not that of a run, or the run only counted; or `complete` is asked of a run that is not of all
        maximal bicliques above its thresholds.
    ResourceError
        If the temporary folder has no room for 8 bytes per row.

    Examples
    --------
    >>> import bicliques
    >>> results = bicliques.mine("examples/debian12_package_tag.parquet", "OUT-verify", report=False)
    >>> bicliques.verify("OUT-verify").count
    56688
    """
    from bicliques.pipeline.proof.verification import verify_run  # not before it is needed

    return verify_run(as_path(folder, "the folder of a run"), sample, seed, progress, bound_time, complete)


def results_of(path: Path, session: MiningSession | None, report: bool, progress: OnProgress | bool | None) -> Results:
    """The results of a run whose session has ended. Its page is written first, if the run is complete."""
    results = open_results(path)
    if session is not None and session.ctrl_c:
        raise Interrupted(
            f"stopped with {number(len(results), 'biclique')}; go on with: {how_to_resume(path)}", results
        )
    if report and results.complete and (session is not None or not (path / REPORT_FILE).exists()):
        steps.report(path, progress)
    return results
