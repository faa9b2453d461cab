"""Graphs as large as a device takes: their bicliques follow from a formula."""

from __future__ import annotations

import numpy as np
import pytest

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.gpu.device import CudaDevice, release_memory
from bicliques.kernels.graph.sorting import EDGE_BYTES, prepare_on
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Search
from tests.support.bands import band, bicliques_of_band
from tests.support.oracles import graph_of, run


def graph_on_device(n: int, width: int) -> MiningGraph:
    import cupy

    graph, _ = prepare_on(cupy, lambda: band(cupy, n, width), n, n, BuildOptions())
    release_memory()
    return graph


def test_the_formula_holds():
    for n, width in ((9, 2), (40, 3), (90, 33)):
        graph = graph_of(np.column_stack(band(np, n, width)))
        assert run(CpuEngine(), graph, Search("count")).count == bicliques_of_band(n, width)


@pytest.mark.gpu
@pytest.mark.timeout(400)
def test_ten_million_vertices_and_half_a_billion_edges():
    """On a device with less memory, as many as fit."""
    n = min(8_200_000, CudaDevice().free_bytes() // (61 * 3 * EDGE_BYTES))  # the band takes more than the graph
    graph = graph_on_device(n, 30)
    assert run(BitMatrixEngine(), graph, Search("count")).count == bicliques_of_band(n, 30)


@pytest.mark.gpu
@pytest.mark.timeout(400)
def test_hundreds_of_thousands_of_large_roots_that_have_little_in_common():
    n = 300_000
    graph = graph_on_device(n, 40)
    assert np.diff(graph.root_indptr).max() > 64
    assert run(BitMatrixEngine(), graph, Search("count")).count == bicliques_of_band(n, 40)


@pytest.mark.gpu
def test_hubs_far_below_one_another():
    graph = graph_on_device(2_000, 90)  # chains of 117, four times the stack of a warp
    assert run(BitMatrixEngine(), graph, Search("count")).count == bicliques_of_band(2_000, 90)
