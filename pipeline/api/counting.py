"""Counts maximal bicliques in a temporary run, and keeps nothing."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import Any, Unpack

from bicliques.kernels import engines
from bicliques.pipeline.api import keywords, steps
from bicliques.pipeline.api.choices import Asked, with_engine
from bicliques.pipeline.api.table import with_options
from bicliques.pipeline.process import startup
from bicliques.pipeline.process.interrupts import Interrupted
from bicliques.pipeline.proof import vertices
from bicliques.pipeline.results.cliques import CliqueCounts, cliques_of
from bicliques.pipeline.results.counted import Count
from bicliques.pipeline.results.pq import PqCounts, edges_of, pq_of, shares_of
from bicliques.pipeline.results.results import Results
from bicliques.pipeline.run.accounts import peak_rss_of, seconds_of
from bicliques.pipeline.run.files import temporary_folder
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import OnProgress, Progress, number, pass_on, to_callback
from bicliques.pipeline.workers.opening import begun, check_workers
from bicliques.schemas.errors import IncompleteError, InputError, as_option
from bicliques.schemas.facts import MiningSession
from bicliques.schemas.leaves import ALL, CLIQUES, Leaves
from bicliques.schemas.search import Mode
from bicliques.schemas.values import as_path, sizes_of


@with_options("count")
def count(
    source: Any,
    *,
    progress: OnProgress | bool | None = None,
    stop: threading.Event | None = None,
    **given: Unpack[keywords.Count],
) -> Count:
    """Count the maximal bicliques of a bipartite graph. Nothing is kept.

    Parameters
    ----------
    source : object
        As for `bicliques.mine`.
    {options}
    progress, stop : object
        As for `bicliques.mine`.

    Returns
    -------
    Count
        ``count`` is the number, and ``complete`` is False when a limit was reached. Then nothing is written into the
        folder of `per_vertex`.

    Raises
    ------
    InputError
        If the input or an option is wrong, or the folder of `per_vertex` is not empty.
    ResourceError
        If the engine cannot run, workers fail, or a folder is full.
    KeyboardInterrupt
        After Ctrl-C. What was counted until then is its ``so_far`` (`pipeline.process.interrupts.Interrupted`).

    Examples
    --------
    >>> import bicliques
    >>> counted = bicliques.count("examples/debian12_package_tag.parquet", min_left=5, min_right=5)
    >>> counted.count, counted.complete
    (11869, True)
    """
    if given.get("pq") == CLIQUES:
        raise InputError(
            f"{as_option('pq')} counts bicliques, and the command cliques, or bicliques.clique_counts, cliques"
        )
    return count_of_any(source, progress=progress, stop=stop, **given)


def count_of_any(
    source: Any, *, progress: OnProgress | bool | None = None, stop: threading.Event | None = None, **given: Any
) -> Count:
    """Count bicliques, as `count` does with these options, or cliques, which `count` refuses."""
    started, progress, per_vertex = startup.began(), to_callback(progress), given.get("per_vertex")
    mode: Mode = "fingerprint" if given.get("fingerprint") else "count"
    every = given.get("pq")
    if every is not None and given.get("max_results") is not None:
        raise InputError(f"all sizes are counted or none: leave {as_option('max_results')} out")
    if every in (ALL, CLIQUES) and per_vertex is not None:
        raise InputError(f"{as_option('per_vertex')} counts bicliques of one size: give it as {as_option('pq', '2x2')}")
    asked = Asked.of(source, given, mode=mode, ids="dense", per_vertex=per_vertex is not None and every is None)
    if per_vertex is not None:
        per_vertex = as_path(per_vertex, f"the folder of {as_option('per_vertex')}")
        vertices.refuse_full(per_vertex)
    notes: list[Progress] = []
    options = with_engine(asked.options, asked.workers.scheduler, notes.append)
    platform = engines.kind(options.engine).platform
    check_workers(asked.workers, platform)
    startup.over()  # from now on Ctrl-C must not end the process at once, because a folder has to be removed
    with (
        asked.workers.limited(),
        begun(asked.workers, platform),
        temporary_folder(given.get("folder")) as temporary,
        steps.started(source, temporary / "run", options, asked.limits, progress, asked.call, keep=False) as run,
    ):
        pass_on(notes, progress)
        session = steps.complete_run(run, asked.workers, asked.limits, progress, stop)
        assert session is not None  # a new run is not complete before it is mined
        counted = _count_of(run, session, time.perf_counter() - started)
        if per_vertex is not None and counted.complete:
            if isinstance(counted.pq, PqCounts):
                vertices.write_columns(run, shares_of(run, counted.pq))
                if counted.pq.up_to == (2, 2):
                    vertices.write_edges(run, edges_of(run, counted.pq))
            vertices.copy(run, per_vertex)
            counted = replace(counted, vertices=os.fspath(per_vertex))
    if session.ctrl_c:
        raise Interrupted(f"stopped with {number(counted.count, 'biclique')} counted; nothing is kept", counted)
    return counted


def _count_of(run: Run, session: MiningSession, total_seconds: float) -> Count:
    manifest = run.folder.manifest()
    pq = _numbers_of(run) if run.options.search.pq is not None and session.outcome == "complete" else None
    return Count(
        count=session.count if pq is None else pq.total,
        outcome=session.outcome,
        fingerprint=manifest.fingerprint if manifest else None,
        total_seconds=total_seconds,
        sizes=Results(run).sizes() if run.options.search.sizes else None,
        input=run.facts("ingest"),
        graph=run.facts("build"),
        options=run.options.to_json(),
        seconds=manifest.seconds if manifest else seconds_of(run),
        peak_rss=manifest.peak_rss if manifest else peak_rss_of(run, run.ledger().entries.values()),
        pq=pq,
    )


def _numbers_of(run: Run) -> PqCounts | CliqueCounts:
    if run.options.search.pq != CLIQUES:
        return pq_of(run)
    leaves = run.ledger().total
    assert isinstance(leaves, Leaves)
    return cliques_of(leaves, run.graph)


def pq_counts(
    source: Any,
    up_to: tuple[int, int] | None = None,
    *,
    progress: OnProgress | bool | None = None,
    stop: threading.Event | None = None,
    **given: Unpack[keywords.Count],
) -> PqCounts:
    """Count the p x q bicliques of a bipartite graph, maximal or not, for all p and q at once, exactly.

    Parameters
    ----------
    source : object
        As for `bicliques.mine`.
    up_to : (int, int) or None
        The largest p and q that are wanted, which may save time. None: all.
    progress, stop : object
        As for `bicliques.mine`.
    **given : object
        Options of `bicliques.count`, such as ``workers``.

    Returns
    -------
    PqCounts
        ``counts[p, q]`` is the number with p left and q right members, a whole number of any length, and
        ``counts.total`` that of all. ``counts.checks`` says what was compared with the input.

    Raises
    ------
    InputError
        If the input or an option is wrong.
    IncompleteError
        If a limit was reached, or the numbers contradict the degrees of the input.
    ResourceError
        If the engine cannot run, workers fail, or a folder is full.

    Examples
    --------
    >>> import bicliques
    >>> counts = bicliques.pq_counts("examples/debian12_package_tag.parquet")
    >>> counts[1, 1], counts[2, 2], counts[4, 4]
    (112118, 101500051, 1404810060897)
    """
    if "pq" in given:
        raise InputError("the largest sizes are asked for by up_to=(p, q): leave pq out")
    given["pq"] = ALL if up_to is None else "x".join(map(str, sizes_of(up_to, "up_to")))
    return _all_of(count(source, progress=progress, stop=stop, **given))


@with_options("cliques")
def clique_counts(
    source: Any,
    *,
    progress: OnProgress | bool | None = None,
    stop: threading.Event | None = None,
    **given: Unpack[keywords.Cliques],
) -> CliqueCounts:
    """Count the cliques of each number of vertices, and the motifs of 3 and 4 vertices, of a graph of one kind of them.

    Parameters
    ----------
    source : object
        As for `bicliques.mine`, but both columns have the same vertices. Directions, edges that are there again and
        those from a vertex to itself do not count. A graph of NetworkX needs no attribute ``bipartite``.
    {options}
    progress, stop : object
        As for `bicliques.mine`.

    Returns
    -------
    CliqueCounts
        ``counts[k]`` is the number of cliques of k vertices, a whole number of any length, ``counts.motifs`` has the
        numbers of connected induced subgraphs of 3 and 4 vertices, and ``counts.checks`` says what was compared.

    Raises
    ------
    InputError
        If the input or an option is wrong.
    IncompleteError
        If a limit was reached, or the numbers contradict the degrees of the input.
    ResourceError
        If the engine cannot run, workers fail, or a folder is full.

    Examples
    --------
    >>> import bicliques
    >>> counts = bicliques.clique_counts([("ann", "bob"), ("bob", "eve"), ("eve", "ann"), ("eve", "joe")])
    >>> counts.table(), counts.motifs["tailed triangles"]
    ([4, 4, 1], 1)
    """
    return _all_of(count_of_any(source, progress=progress, stop=stop, pq=CLIQUES, **given))


def _all_of(counted: Count) -> Any:
    if counted.pq is None:
        raise IncompleteError(
            f"it ended before all were counted: count again, with a later {as_option('time_limit')} if it had one"
        )
    return counted.pq
