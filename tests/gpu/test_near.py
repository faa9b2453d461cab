"""Near-bicliques on a real device: the suite of every engine, known graphs, and random ones against the CPU engine."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.memory import GpuSizes
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from tests.kernels.suite import SIDES, Subject
from tests.kernels.suite_near import LargestNearSuite, NearSuite
from tests.support.emulated import everything
from tests.support.known import NOT_HERE, ROOT, dense_edges, known_graph
from tests.support.near import near_graph
from tests.support.oracles import random_edges, run

pytestmark = pytest.mark.gpu

#: Every warp gives work away whenever another one waits; a problem has room for some 60 vertices of each side.
_TIGHT = GpuSizes(given=1 << 16, left_over=1 << 16, pool=1 << 20, values=1 << 16, records=1 << 13, warps=64)._replace(
    row_cap=64, poll=1, give_min=0
)
ENGINES = {"ample": BitMatrixEngine, "tight": lambda: BitMatrixEngine(sizes=_TIGHT)}
ROWS = json.loads((ROOT / "tests" / "golden" / "near.json").read_text())


class TestNearBicliquesOnDevice(NearSuite, LargestNearSuite):
    subject = Subject(ENGINES["ample"], (ENGINES["tight"], ENGINES["tight"]))


def _missing(row: dict[str, Any]) -> dict[str, int]:
    return {name: k for name, k in row.items() if name.startswith("missing")}


@pytest.mark.parametrize("row", [pytest.param(row, id=" ".join(map(str, list(row.values())[:4]))) for row in ROWS])
def test_known_graphs_have_as_many_near_bicliques(row):
    path = known_graph(row["graph"])
    assert path is not None, NOT_HERE
    search = Search("fingerprint", min_left=row["min_left"], min_right=row["min_right"], **_missing(row))
    graph = near_graph(dense_edges(path), search)
    found = BitMatrixEngine().mine(graph, everything(graph), search, Limits(), nowhere)
    assert (found.count, f"{found.fingerprint:016x}") == (row["count"], row["fingerprint"])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("k", [0, 1, 2, 3])
@pytest.mark.parametrize("model", ["missing_pairs", "missing_each"])
def test_random_graphs_give_what_the_cpu_engine_finds(model, k, side, engine):
    rng = np.random.default_rng(42 + k)
    least = (2 * k if model == "missing_each" else k) + 2
    counted = 0
    for case in range(8):
        n_left, n_right = rng.integers(3 * least, 30 + 2 * least, 2).tolist()
        density = 0.55 / (1 + 0.4 * k) if model == "missing_each" else 0.5 - 0.05 * k
        edges = random_edges(rng, n_left, n_right, density)
        search = Search("fingerprint", min_left=least, min_right=least, **{model: k})
        graph = near_graph(edges, search, BuildOptions(root_side=side))
        expected = run(CpuEngine(), graph, search)
        limits = Limits(seconds=0.02) if case % 2 and engine == "tight" else Limits()
        found = run(ENGINES[engine](), graph, search, limits, rng if case % 4 == 1 else None)
        assert (found.count, found.fingerprint) == (expected.count, expected.fingerprint), case
        counted += found.count
    assert counted > 0


@pytest.mark.parametrize("limits", [Limits(seconds=0.01), Limits(rows=9999)], ids=["short", "rows"])
def test_slices_of_a_real_graph_that_are_dealt_anew(limits):
    row = next(row for row in ROWS if (row["graph"], row["count"]) == ("marvel", 61_747))
    path = known_graph(row["graph"])
    assert path is not None, NOT_HERE
    search = Search("fingerprint", min_left=row["min_left"], min_right=row["min_right"], **_missing(row))
    graph = near_graph(dense_edges(path), search)
    found = run(BitMatrixEngine(), graph, search, limits, np.random.default_rng(1))
    assert (found.count, f"{found.fingerprint:016x}") == (row["count"], row["fingerprint"])
