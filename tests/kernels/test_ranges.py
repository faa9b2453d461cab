"""Ranges of candidates as lists, against sets."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kernels.gpu.ranges import candidates_of
from schemas.options import BuildOptions
from tests.oracles import graph_of
from tests.runs import random_edges


@pytest.mark.parametrize(("density", "least", "most"), [(0.03, 50, 199), (0.6, 0, 20)])
def test_the_same_as_by_sets(density: float, least: int, most: int) -> None:
    """Many, then few of the nodes have fewer wedges than there are ranks."""
    graph = graph_of(random_edges(90, 70, density, 3), BuildOptions())
    rng = np.random.default_rng(1)
    lists = [rng.choice(graph.n_base, rng.integers(1, 6), replace=False).astype(np.int32) for _ in range(200)]
    n = np.array([len(own) for own in lists])
    begin = rng.integers(0, graph.n_roots + 1, len(lists))
    end = begin + rng.integers(0, graph.n_roots + 1 - begin)
    indptr, candidates, todo = candidates_of(graph, np.concatenate(lists), np.cumsum(n) - n, n, begin, end)
    rows = [graph.base_indices[a:b].tolist() for a, b in pairwise(graph.base_indptr)]
    listed = 0
    for i, own in enumerate(lists):
        expected = list(range(begin[i], graph.n_roots))
        if sum(len(rows[u]) for u in own) < len(expected):
            expected = sorted({v for u in own for v in rows[u] if v >= begin[i]})
            listed += 1
        assert candidates[indptr[i] : indptr[i + 1]].tolist() == expected
        assert todo[i] == sum(v < end[i] for v in expected)
    assert least <= listed <= most
    assert (indptr.dtype, candidates.dtype, todo.dtype) == (np.int64, np.int32, np.int32)
