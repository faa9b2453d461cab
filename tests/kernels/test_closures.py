"""`closures_of` finds the closures of many lists at once; the tests compare it with intersections of sets."""

from itertools import pairwise

import numpy as np
import pytest

from bicliques.kernels.bitmatrix.items import closures_of
from bicliques.schemas.options import BuildOptions
from tests.support.oracles import graph_of
from tests.support.runs import random_edges


@pytest.mark.parametrize("density", [0.15, 0.6, 0.95])
@pytest.mark.parametrize("n_lists", [0, 1, 200])
def test_closures_are_the_intersections_of_the_neighbours(density, n_lists):
    graph = graph_of(random_edges(40, 25, density, 3), BuildOptions())
    rng = np.random.default_rng(n_lists)
    lists = [rng.choice(graph.n_base, rng.integers(1, 6), replace=False).astype(np.int32) for _ in range(n_lists)]
    rows = [set(graph.base_indices[a:b].tolist()) for a, b in pairwise(graph.base_indptr)]
    indptr = np.cumsum([0, *map(len, lists)])
    found, roots = closures_of(graph, indptr, np.concatenate([np.empty(0, np.int32), *lists]))
    expected = [sorted(set.intersection(*(rows[v] for v in own))) for own in lists]
    assert [roots[a:b].tolist() for a, b in pairwise(found)] == expected
    assert (found.dtype, roots.dtype) == (np.int64, np.int32)
