"""Builds the graph of a run on the GPU, in pieces if it has no room for all edges."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bicliques.pipeline.run.opened import Run
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.facts import PrepareFacts
from bicliques.schemas.graph import MiningGraph

logger = logging.getLogger(__name__)


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
