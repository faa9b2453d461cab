"""Known counts and fingerprints of real and of generated graphs, and counts with thresholds.

The counts of real graphs were given by at least two independent published programs each, those of the random ones by
AdaMBE, that of the crowns by a formula; the fingerprints by this project's engines from both root sides.
"""

import numpy as np
import pytest

from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.graph.prepare import prepare
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Search
from tests.support.known import GOLDEN, NOT_HERE, SHIPPED, dense_edges, known_graph
from tests.support.known_largest import LARGEST, SLOW, SLOWEST, sizes_of_the_largest
from tests.support.oracles import run


def golden_graphs():
    """Those that are counted in a second are in `make test`.

    That with more than 10^8 bicliques takes half a minute, and is left to `tests/gpu/test_engines.py`.
    """
    for name in GOLDEN:
        if GOLDEN[name]["bicliques"] > 10**8:
            continue
        marks = [] if name in SHIPPED else [pytest.mark.golden]
        slow = [pytest.mark.exhaustive] if GOLDEN[name]["bicliques"] > 10**6 else []
        yield pytest.param(name, marks=[*marks, *slow], id=name)


@pytest.mark.parametrize("name", list(golden_graphs()))
def test_count_and_fingerprint(name):
    if known_graph(name) is None:
        pytest.skip(f"{name}.parquet is not here: {NOT_HERE}")
    outcome = run(CpuEngine(), _graph_of(name, "auto"), Search("fingerprint"))
    assert outcome.count == GOLDEN[name]["bicliques"]
    assert outcome.fingerprint == int(GOLDEN[name]["fingerprint"])


def test_what_ships_is_known():
    assert {"debian12_package_tag", "debian12_package_depends", "random_dense", "crowns"} <= SHIPPED <= set(GOLDEN)


def test_the_count_of_the_crowns_is_the_formula():
    """n pairs, each vertex joined to all of the other side but its own partner: every proper subset, and no other."""
    assert GOLDEN["crowns"]["bicliques"] == sum(2**n - 2 for n in (4, 8, 10, 12, 14))


#: Thresholds (left, right) that are tried on graphs that ship.
BOUNDS = ((2, 2), (10, 10), (20, 3), (1, 12), (40, 1))


@pytest.mark.parametrize("name", ["debian12_package_tag", "debian12_package_depends"])
def test_thresholds_keep_what_a_full_enumeration_finds_of_that_size(name):
    full = run(CpuEngine(), _graph_of(name, "auto"), Search("count", sizes=True)).sizes
    for least in BOUNDS:
        expected = int(full.count[(full.n_left >= least[0]) & (full.n_right >= least[1])].sum())
        search = Search("count", min_left=least[0], min_right=least[1])
        assert run(CpuEngine(), _graph_of(name, "auto", *least), search).count == expected


@pytest.mark.golden
@pytest.mark.exhaustive
@pytest.mark.parametrize(("least", "count"), [((60, 15), 2_067_663), ((40, 40), 0)], ids=str)
def test_thresholds_of_a_graph_that_is_too_dense_to_list(least, count):
    """A program that shares nothing with this one has counted as many, with items as roots.

    30 and 30, of which there are 1,542, takes ten times as long, and is left to `tests/gpu/test_engines.py`.
    """
    if known_graph("movielens_100k") is None:
        pytest.skip(f"movielens_100k.parquet is not here: {NOT_HERE}")
    search = Search("count", min_left=least[0], min_right=least[1])
    assert run(CpuEngine(), _graph_of("movielens_100k", "right", *least), search).count == count


def _graph_of(name, side, *least):
    edges = dense_edges(known_graph(name))
    sizes = (int(edges[:, 0].max()) + 1, int(edges[:, 1].max()) + 1)
    return prepare(*map(np.ascontiguousarray, edges.T), *sizes, BuildOptions(root_side=side), *least)[0]


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "by", "least", "size"),
    [
        pytest.param(*row, marks=[pytest.mark.exhaustive] if row in SLOW else [])
        for row in LARGEST
        if row not in SLOWEST
    ],
)
def test_the_largest(name, by, least, size, tmp_path):
    assert sizes_of_the_largest(name, by, least, "cpu", tmp_path) == ([size] if size else [])
