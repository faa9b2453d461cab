"""Known counts and fingerprints of real and of generated graphs.

The counts of real graphs were given by at least two independent published programs each, those of the random ones by
AdaMBE, that of the crowns by a formula; the fingerprints by this project's engines from both root sides.
"""

from __future__ import annotations

import numpy as np
import pytest

from kernels.cpu.engine import CpuEngine
from kernels.graph.prepare import prepare
from schemas.options import BuildOptions
from schemas.search import Search
from tests.support.known import GOLDEN, NOT_HERE, SHIPPED, dense_edges, known_graph
from tests.support.oracles import run


def golden_graphs():
    for name in GOLDEN:
        marks = [] if name in SHIPPED else [pytest.mark.golden]
        yield pytest.param(name, marks=marks, id=name)


@pytest.mark.parametrize("name", list(golden_graphs()))
def test_count_and_fingerprint(name):
    path = known_graph(name)
    if path is None:
        pytest.skip(f"{name}.parquet is not here: {NOT_HERE}")
    edges = dense_edges(path)
    sizes = (int(edges[:, 0].max()) + 1, int(edges[:, 1].max()) + 1)
    graph, _ = prepare(*map(np.ascontiguousarray, edges.T), *sizes, BuildOptions())
    outcome = run(CpuEngine(), graph, Search("fingerprint"))
    assert outcome.count == GOLDEN[name]["bicliques"]
    assert outcome.fingerprint == int(GOLDEN[name]["fingerprint"])


def test_what_ships_is_known():
    assert {"debian12_package_tag", "debian12_package_depends", "random_dense", "crowns"} <= SHIPPED <= set(GOLDEN)


def test_the_count_of_the_crowns_is_the_formula():
    """n pairs, each vertex joined to all of the other side but its own partner: every proper subset, and no other."""
    assert GOLDEN["crowns"]["bicliques"] == sum(2**n - 2 for n in (4, 8, 10, 12, 14))
