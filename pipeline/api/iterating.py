"""Goes through maximal bicliques without a folder of a run: the run is a temporary one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bicliques.kernels import engines
from bicliques.pipeline.api import steps
from bicliques.pipeline.api.choices import Asked, with_engine
from bicliques.pipeline.api.table import entries_of, refuse_unknown
from bicliques.pipeline.results.results import Results
from bicliques.pipeline.rows.collection import Biclique
from bicliques.pipeline.run.files import temporary_folder
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import OnProgress, to_callback
from bicliques.pipeline.workers.opening import begun, check_workers

#: Options of `bicliques.mine` that are about its folder, or after which nobody could say whether all were found.
_NOT_TAKEN = frozenset({"count_only", "overwrite", "report", "sizes", "per_vertex", "time_limit"})


def maximal_bicliques(
    source: Any,
    *,
    folder: str | os.PathLike[str] | None = None,
    progress: OnProgress | bool | None = False,
    **options: Any,
) -> Iterator[Biclique]:
    """Go through every maximal biclique of a bipartite graph.

    Parameters
    ----------
    source : path, sequence of paths, or object
        As for `bicliques.mine`.
    folder : path or None
        Where the temporary folder is made. None: the temporary folder of the system.
    progress : callable, bool or None
        As for `bicliques.mine`, except that nothing is shown unless it is asked for.
    **options : object
        Options of `bicliques.mine`: thresholds, given members, ``max_results``, ``ids``, and how to search and to read.

    Returns
    -------
    iterator of Biclique
        Pairs of two lists, ``left, right``, with the attribute ``id``.

    Raises
    ------
    InputError
        If an option is wrong, at once; if the input or `folder` is, before the first biclique.
    ResourceError
        If the engine cannot run, workers fail, or the folder is full.
    TypeError
        If there is no such option.

    Notes
    -----
    Mining begins when the first biclique is asked for, and ends before it is given. Rows are on disk meanwhile, and
    memory is bounded as that of `bicliques.mine`. The folder goes when the iterator ends, is closed or is forgotten.

    Examples
    --------
    >>> import bicliques
    >>> edges = [("ann", "up"), ("ann", "her"), ("bob", "up"), ("bob", "her"), ("bob", "jaws")]
    >>> sorted((sorted(left), sorted(right)) for left, right in bicliques.maximal_bicliques(edges))
    [(['ann', 'bob'], ['her', 'up']), (['bob'], ['her', 'jaws', 'up'])]
    """
    known = {entry.name for entry in entries_of("mine")} - _NOT_TAKEN
    refuse_unknown("maximal_bicliques", options, known)
    asked = Asked.of(source, options, mode="list")
    if asked.options.engine != engines.AUTO:
        engines.kind(asked.options.engine)
    return _rows(source, asked, folder, to_callback(progress))


def _rows(source: Any, asked: Asked, folder: str | os.PathLike[str] | None, progress: OnProgress) -> Iterator[Biclique]:
    with in_temporary_folder(source, asked, folder, progress) as results:
        yield from results


@contextmanager
def in_temporary_folder(
    source: Any, asked: Asked, folder: str | os.PathLike[str] | None, progress: OnProgress | bool | None
) -> Iterator[Results]:
    """The results of a run that is there during the block.

    Parameters
    ----------
    source : path or object
        See `bicliques.mine`.
    asked : Asked
    folder : path or None
        Where the temporary folder is made. None: the temporary folder of the system.
    progress : callable, bool or None
        See `pipeline.run.progress.to_callback`.

    Raises
    ------
    InputError, ResourceError
        As `bicliques.mine`.
    KeyboardInterrupt
        After Ctrl-C. Nothing is kept.
    """
    progress = to_callback(progress)
    options = with_engine(asked.options, asked.workers.scheduler, progress)
    platform = engines.kind(options.engine).platform
    check_workers(asked.workers, platform)
    with asked.workers.limited(), begun(asked.workers, platform), temporary_folder(folder) as temporary:
        path = temporary / "run"
        with steps.started(source, path, options, asked.limits, progress, asked.call, keep=False) as run:
            session = steps.complete_run(run, asked.workers, asked.limits, progress)
        if session is not None and session.ctrl_c:
            raise KeyboardInterrupt
        yield Results(Run.with_holes(path))
