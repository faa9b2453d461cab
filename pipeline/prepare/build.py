"""The second step of a run. It makes the graph that workers memory-map, and its profile, of the edge table.

A GPU builds it in pieces if it has no room for all edges.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bicliques.kernels import engines
from bicliques.kernels.graph.greedy import Found
from bicliques.kernels.graph.members import Restricted, with_given
from bicliques.kernels.graph.remains import around_marks, with_marks
from bicliques.pipeline.prepare.bands import Bands, Bounded, make_bands, reach_of, what_a_bound_leaves
from bicliques.pipeline.prepare.members import restricted, why_nothing
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.run.files import checksums_of, create, disk_errors, settle
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.labels import LABEL_FILES
from bicliques.pipeline.run.names import LEFT_LABELS_FILE, RIGHT_LABELS_FILE
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.tables import check_edges, read_integers, read_table
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.facts import Degrees, PrepareFacts
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.hashes import VertexHashes
from bicliques.schemas.search import Search

logger = logging.getLogger(__name__)

#: Edges from which on a graph is built by compiled code, which is two to four times as fast as sorting with NumPy.
#: Loading it takes some hundredths of a second, but seconds where it has to be compiled first.
MANY_EDGES, MANY_WITHOUT_COMPILER = 1 << 17, 1 << 20
_SOURCES: dict[str, Path] = {"left": LEFT_LABELS_FILE, "right": RIGHT_LABELS_FILE}
#: Vertices are numbered anew if there are more than so many for each edge.
_FEW = 4
#: Most threads that build a graph. Their memory bounds them.
MOST_THREADS = 16


def build(run: Run) -> dict[str, Any]:
    """Restrict, reduce to the core, merge twins, choose the root side, rank, and store. See `kernels.graph.prepare`.

    Returns
    -------
    dict
        `schemas.facts.PrepareFacts`, ``nbytes`` of the graph, the degree profile of both sides of the input,
        ``built_on`` ("gpu", or "cpu"), in how many ``pieces`` (1 unless the GPU had no room for all edges),
        ``seconds``, and ``nothing`` if no biclique contains the given members: why. If the job is done in bands, also
        the first ``bound``, and the ``bands``; see `pipeline.prepare.bands`.

    Notes
    -----
    It takes O(m + n log n) time, and at most 32 bytes per edge and 130 per vertex. The GPU builds the graph if it has
    read the input, unless members are given, which leave little of a large graph.
    """
    started = time.perf_counter()
    options, sizes, folder = run.options, run.input, run.folder
    search, target = options.search, folder.fresh(folder.graph)
    threads = min(count_cores(), MOST_THREADS)
    with ThreadPoolExecutor(2) as beside:
        labels = [beside.submit(_copy_labels, folder, side) for side in LABEL_FILES]
        made: Any = None
        bands = nothing = None
        if search.is_containing or search.marked or run.job.in_bands:
            run.take_edges()  # and let them go
        elif sizes.get("read_on") == "gpu":
            _finish(labels)
            made = build_on_gpu(run, lambda: read_edges(folder), _rest(run, search), threads)
        built_on, pieces = ("cpu", 1) if made is None else ("gpu", made.pieces)
        if made is None:
            edges = read_edges(folder)
            _finish(labels)
            kept = restricted(run, *edges)
            nothing = why_nothing(run, kept)
            if search.marked:
                kept = around_marks(kept, sizes["n_left"], sizes["n_right"], run.marks)
            is_compiled = compiles(run, len(kept.left))
            of_input = beside.submit(_degrees, *edges, sizes["n_right"], threads if is_compiled else None)
            if run.job.in_bands:
                graph, prepared, bands = _in_bands(run, kept, is_compiled, threads)
            else:
                graph, prepared = _prepared(run, kept, search, is_compiled)
                graph = with_marks(graph, run.marks) if search.marked else graph
            made = graph, prepared, of_input.result()
        graph, prepared, degrees = made[:3]
        profiles = [beside.submit(degree_profile, of_side) for of_side in degrees]
        with disk_errors(target):
            graph.save(target)
            if bands is not None:
                MiningGraph.save_all(bands.graphs, target)
            settled, summed = beside.submit(settle, target), beside.submit(checksums_of, folder.own_files(target))
            MiningGraph.open(target).validate(threads)
            for each in MiningGraph.open_all(target) if bands is not None else ():
                each.validate(threads)
            settled.result()
    facts = {
        **prepared,
        "nbytes": graph.nbytes,
        "profile": {side: profile.result() for side, profile in zip(LABEL_FILES, profiles, strict=True)},
        "built_on": built_on,
        "pieces": pieces,
        "seconds": time.perf_counter() - started,
    }
    if bands is not None:
        facts |= bands.facts
    if nothing is not None:
        facts["nothing"] = nothing
    run.finish("build", facts, summed.result())
    return facts


def _finish(labels: list[Future[None]]) -> None:
    """Wait for the labels, whose hashes the graph has."""
    for copied in labels:
        copied.result()


def _copy_labels(folder: RunFolder, side: str) -> None:
    """Write the labels of a side as workers map them."""
    labels = read_table(folder.path / _SOURCES[side]).combine_chunks()
    file = folder.graph / LABEL_FILES[side]
    with disk_errors(file), create(file) as stream, pa.ipc.new_file(stream, labels.schema) as writer:
        writer.write_table(labels)


def compiles(run: Run, n_edges: int) -> bool:
    """Whether compiled code builds the graph of a run from so many edges, unless the GPU does."""
    used = engines.kind(run.options.engine).platform.is_used_by_driver
    return run.options.build.order not in ("degree", "id") or n_edges >= (MANY_EDGES if used else MANY_WITHOUT_COMPILER)


def _in_bands(run: Run, kept: Restricted, is_compiled: bool, threads: int) -> tuple[MiningGraph, PrepareFacts, Bands]:
    """The graph of all bicliques that can be among the largest, and its bands."""
    search, reach = run.options.search, reach_of(kept)
    bounded = Bounded(Found(search), None, kept)
    if is_compiled and search.near is None:  # a ceiling takes every pair for an edge
        from bicliques.kernels.graph.ceilings import EdgesByCeiling  # not before it is needed: it imports a compiler

        edges = EdgesByCeiling(kept.left, kept.right, run.input["n_left"], run.input["n_right"], search, threads)
        bounded = what_a_bound_leaves(search, edges, kept, lambda some: _prepared(run, some, search, True)[0])
    graph, facts = _prepared(run, bounded.kept, search, is_compiled)
    return graph, facts, make_bands(search, bounded, reach, graph, partial(with_thresholds, run, bounded.kept))


def with_thresholds(run: Run, kept: Restricted, min_left: int, min_right: int) -> MiningGraph:
    """The graph that a run would have with these thresholds. Nothing is stored. `kept` has the edges of the run."""
    search = replace(run.options.search, min_left=min_left, min_right=min_right)
    return _prepared(run, kept, search, compiles(run, len(kept.left)))[0]


def _prepared(run: Run, kept: Restricted, search: Search, is_compiled: bool) -> tuple[MiningGraph, PrepareFacts]:
    """The graph of some edges of a run for the thresholds of a search.

    If they are few, their vertices are numbered first. So it takes no time in proportion to all vertices of the run.
    """
    prepare = partial(_compiled, threads=min(count_cores(), MOST_THREADS)) if is_compiled else _sorted
    left, right, n_left, n_right, *how = _arguments(run, kept, search)
    if _FEW * len(left) >= n_left + n_right:
        graph, facts = prepare(left, right, n_left, n_right, *how, known=run.hashes)
        return with_given(graph, kept.given), facts
    (left_ids, left), (right_ids, right) = (np.unique(ids, return_inverse=True) for ids in (left, right))
    known = run.hashes[0][left_ids], run.hashes[1][right_ids]
    graph, facts = prepare(left.astype(VERTEX), right.astype(VERTEX), len(left_ids), len(right_ids), *how, known=known)
    root_ids, base_ids = (left_ids, right_ids) if graph.root_side == "left" else (right_ids, left_ids)
    members = {"root_members": root_ids[graph.root_members], "base_members": base_ids[graph.base_members]}
    return with_given(replace(graph, n_left=n_left, n_right=n_right, **members), kept.given), facts


def _arguments(run: Run, kept: Restricted, search: Search) -> tuple[Any, ...]:
    """What `kernels.graph.prepare.prepare` is called with."""
    return kept.left, kept.right, *_rest(run, search)


def _rest(run: Run, search: Search) -> tuple[Any, ...]:
    """As `_arguments`, without the edges."""
    sizes = run.input["n_left"], run.input["n_right"]
    return *sizes, run.options.building, *search.fewest_neighbours, run.job.reductions


def _compiled(*arguments: Any, known: VertexHashes, threads: int) -> tuple[MiningGraph, PrepareFacts]:
    from bicliques.kernels.graph.prepare import prepare  # not before it is needed

    return prepare(*arguments, known=known, threads=threads)


def _sorted(left: np.ndarray, right: np.ndarray, *rest: Any, known: VertexHashes) -> tuple[MiningGraph, PrepareFacts]:
    from bicliques.kernels.graph.sorting import prepare_on

    return prepare_on(np, lambda: (left, right), *rest, known=known)


def read_edges(folder: RunFolder) -> tuple[np.ndarray, np.ndarray]:
    """The edge table as two int32 columns, sorted by (left, right), 8 bytes per edge. All cores read it."""
    facts = folder.need("ingest")
    sizes = {"left": facts["n_left"], "right": facts["n_right"]}
    files = folder.edge_files()
    columns = read_integers(files, min(count_cores(), MOST_THREADS), sizes)
    check_edges(files[0], len(columns["left"]), sizes.values())
    return columns["left"], columns["right"]


def _degrees(left: np.ndarray, right: np.ndarray, n_right: int, threads: int | None) -> list[np.ndarray]:
    """Degrees of both sides of the input, counted by NumPy or, on a number of threads, by compiled code."""
    if threads is None:
        return [np.bincount(left), np.bincount(right)]
    from bicliques.kernels.graph.csr import (
        degrees_of_columns,
        from_sorted_pairs,
    )  # not before it is needed: it imports a compiler

    by_left, _ = from_sorted_pairs(left, right, int(left[-1]) + 1, threads)
    return [np.diff(by_left), degrees_of_columns(right, n_right, threads)]


def degree_profile(degrees: np.ndarray) -> Degrees:
    """Mean, median, maximum and Gini coefficient of the degrees of one side."""
    ordered, n = np.sort(degrees).astype(np.float64), len(degrees)
    total = float(ordered.sum())
    gini = float(2 * (np.arange(1, n + 1) * ordered).sum() / (n * total) - (n + 1) / n)
    middle, largest = float(np.median(ordered)), int(ordered[-1])
    return {"vertices": n, "mean": total / n, "median": middle, "max": largest, "gini": gini}


class Built(NamedTuple):
    """A graph that the GPU has built.

    Parameters
    ----------
    degrees : list of ndarray
        Degrees of both sides of the edge table.
    pieces : int
        How many pieces the edges of the table were cut into.
    """

    graph: MiningGraph
    facts: PrepareFacts
    degrees: list[np.ndarray]
    pieces: int


def build_on_gpu(
    run: Run, read: Callable[[], tuple[np.ndarray, np.ndarray]], rest: tuple[Any, ...], threads: int
) -> Built | None:
    """The graph of all edges of a run. If that fails, log why and return None.

    Parameters
    ----------
    run : Run
        It may have the edges that ingest left on the GPU. Then they are not read.
    read : callable
        () -> the edge table, as two columns.
    rest : tuple
        What `kernels.graph.prepare.prepare` is called with after the edges.
    """
    from bicliques.kernels.gpu.device import release_memory, why_no_gpu

    held, reason = [run.take_edges()], why_no_gpu()
    if reason is None:
        try:
            built = _on_device(run, held, read, rest, threads)
            if isinstance(built, Built):
                return built
            reason = built
        except MemoryError as error:
            reason = str(error)
        finally:
            held.clear()  # before memory is released
            release_memory()
    logger.warning("the graph is built on the CPU: %s", reason)
    return None


def _on_device(
    run: Run,
    held: list[Any],
    read: Callable[[], tuple[np.ndarray, np.ndarray]],
    rest: tuple[Any, ...],
    threads: int,
) -> Built | str:
    """The graph, as a whole or, if that fails or would fail, in pieces; or why the GPU cannot help.

    `held` has the edges that are on the GPU, as words, or None. They are taken out.
    """
    from bicliques.kernels.gpu.device import CudaDevice, release_memory
    from bicliques.kernels.graph.sorting import edges_of_a_whole

    n_edges, sizes = run.input["n_edges"], (run.input["n_left"], run.input["n_right"])
    most = n_edges
    if edges_of_a_whole(CudaDevice().free_bytes(), *sizes) >= n_edges:
        try:
            return _as_a_whole(run, held, read, rest)
        except MemoryError as error:
            # as text, because a handler that keeps the error would keep its frames, with arrays on the GPU
            logger.warning("all %d edges at once should have had room on the GPU, but: %s", n_edges, str(error))
            most = -(-n_edges // 2)
    held.clear()  # their memory is needed, and what the attempt had
    release_memory()
    return _in_pieces(run, CudaDevice().free_bytes(), most, read, rest, threads)


def _as_a_whole(
    run: Run,
    held: list[Any],
    read: Callable[[], tuple[np.ndarray, np.ndarray]],
    rest: tuple[Any, ...],
) -> Built:
    """See `_on_device`."""
    import cupy

    from bicliques.kernels.gpu.buffers import Staging
    from bicliques.kernels.graph.sorting import prepare_on

    staging = Staging(cupy)
    degrees: list[np.ndarray] = []

    def edges() -> tuple[Any, Any]:
        words = held.pop()
        if words is None:
            left, right = map(staging.upload, read())
        else:
            left, right = (words >> 32).astype(VERTEX), (words & 0xFFFFFFFF).astype(VERTEX)
            del words  # their memory is needed
        degrees.extend(staging.download(cupy.bincount(ids)) for ids in (left, right))
        return left, right

    return Built(*prepare_on(cupy, edges, *rest, known=run.hashes, to_host=staging.download), degrees, 1)


def _in_pieces(
    run: Run,
    free_bytes: int,
    most: int,
    read: Callable[[], tuple[np.ndarray, np.ndarray]],
    rest: tuple[Any, ...],
    threads: int,
) -> Built | str:
    """The graph, with at most so many edges on the GPU at once, or why the GPU cannot help."""
    import cupy

    from bicliques.kernels.gpu.buffers import Staging
    from bicliques.kernels.graph.pieces import PieceDevice, prepare_in_pieces

    staging, n_edges, sizes = Staging(cupy), run.input["n_edges"], (run.input["n_left"], run.input["n_right"])

    device = PieceDevice.of(cupy, staging.upload, staging.download, free_bytes, sizes, threads)
    device = replace(device, edges=min(device.edges, most), whole=min(device.whole, most))
    if device.edges < 1:
        return f"{max(sizes)} vertices of a side leave no room for edges in {free_bytes >> 20} MiB"
    pieces = -(-n_edges // device.edges)
    text = "the GPU has no room for all %d edges at once: the graph is built in %d pieces"
    logger.warning(text, n_edges, pieces)
    return Built(*prepare_in_pieces(device, read, *rest, known=run.hashes), pieces)
