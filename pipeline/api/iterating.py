"""Goes through maximal bicliques without a folder of a run: the run is a temporary one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from bicliques.kernels import engines
from bicliques.pipeline.api import steps
from bicliques.pipeline.api.choices import Asked, with_engine
from bicliques.pipeline.api.table import entries_of, refuse_unknown
from bicliques.pipeline.results.forms import Arrays
from bicliques.pipeline.results.results import Results
from bicliques.pipeline.rows.collection import Biclique
from bicliques.pipeline.run.files import temporary_folder
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import OnProgress, to_callback
from bicliques.pipeline.workers.opening import begun, check_workers
from bicliques.schemas.errors import InputError

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
    asked = _asked("maximal_bicliques", source, options)
    return _rows(source, asked, folder, to_callback(progress))


def arrays(
    left: Any,
    right: Any,
    *,
    folder: str | os.PathLike[str] | None = None,
    progress: OnProgress | bool | None = False,
    **options: Any,
) -> Arrays:
    """Find every maximal biclique of the graph with the edges ``left[i], right[i]``, arrays in and arrays out.

    Parameters
    ----------
    left, right : array or sequence, shape (n_edges,), integers or text
        The ends of each edge, as of `scipy.sparse.coo_array`. An edge may be there more than once.
    folder, progress : object
        As for `maximal_bicliques`.
    **options : object
        As for `maximal_bicliques`.

    Returns
    -------
    Arrays
        Biclique k has the left members ``left[left_indptr[k] : left_indptr[k + 1]]``, and so on the right. The order of
        bicliques has no meaning.

    Raises
    ------
    InputError
        If the arrays have not one dimension and the same length, or an option is wrong.
    ResourceError
        If the engine cannot run, workers fail, or the folder is full.
    TypeError
        If there is no such option.

    Notes
    -----
    Meanwhile the rows are in a temporary folder; the arrays are all in memory.

    Examples
    --------
    >>> import bicliques
    >>> found = bicliques.arrays([0, 0, 1, 1, 2], [5, 6, 5, 6, 6])
    >>> sorted(int(n) for n in found.left_indptr), len(found.right)
    ([0, 2, 5], 3)
    """
    ends = np.asarray(left), np.asarray(right)
    if any(end.ndim != 1 for end in ends) or len(ends[0]) != len(ends[1]):
        shapes = " and ".join(str(end.shape) for end in ends)
        raise InputError(f"left and right must be arrays of one dimension and one length, not of the shapes {shapes}")
    source = pa.table(dict(zip(("left", "right"), ends, strict=True)))  # two arrays of two numbers may be two edges
    asked = _asked("arrays", source, options)
    with in_temporary_folder(source, asked, folder, progress) as results:
        return results.to_arrays()


def _asked(call: str, source: Any, options: dict[str, Any]) -> Asked:
    refuse_unknown(call, options, {entry.name for entry in entries_of("mine")} - _NOT_TAKEN)
    asked = Asked.of(source, options, mode="list")
    if asked.options.engine != engines.AUTO:
        engines.kind(asked.options.engine)
    return asked


def _rows(source: Any, asked: Asked, folder: str | os.PathLike[str] | None, progress: OnProgress) -> Iterator[Biclique]:
    with in_temporary_folder(source, asked, folder, progress) as results:
        yield from results


@contextmanager
def in_temporary_folder(
    source: Any, asked: Asked, folder: str | os.PathLike[str] | None, progress: OnProgress | bool | None
) -> Iterator[Results]:
    """The results of a run that is there during the block.

    Raises `InputError` or `ResourceError` as `bicliques.mine`.

    Parameters
    ----------
    source : path or object
        See `bicliques.mine`.
    folder : path or None
        Where the temporary folder is made. None: the temporary folder of the system.
    progress : callable, bool or None
        See `pipeline.run.progress.to_callback`.
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
