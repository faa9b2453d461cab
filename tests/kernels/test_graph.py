"""A graph is reduced to its core, twins are merged, roots are ranked, and a root side is chosen."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bicliques.kernels.graph.core import core_edges, core_rows
from bicliques.kernels.graph.csr import from_sorted_pairs, select_rows, transpose
from bicliques.kernels.graph.prepare import prepare
from bicliques.kernels.graph.sorting import prepare_on
from bicliques.kernels.graph.twins import group_twins
from bicliques.kernels.graph.wedges import rank_order
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from tests.support.oracles import graph_of, random_edges

ORDERS = ("degree", "two-hop", "unilateral", "id")


@st.composite
def edge_tables(draw, largest=12):
    n_left, n_right = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    cells = draw(st.sets(st.tuples(st.integers(0, n_left - 1), st.integers(0, n_right - 1)), min_size=1))
    return np.array(sorted(cells), dtype=np.int32)


def csr(edges):
    return from_sorted_pairs(edges[:, 0], np.ascontiguousarray(edges[:, 1]), int(edges[:, 0].max()) + 1)


@given(edge_tables())
def test_a_graph_transposed_twice_is_the_same(edges):
    indptr, indices = csr(edges)
    n_right = int(edges[:, 1].max()) + 1
    back = transpose(*transpose(indptr, indices, n_right), len(indptr) - 1)
    assert (back[0] == indptr).all()
    assert (back[1] == indices).all()


def check_core(edges, min_left, min_right):
    indptr, indices = csr(edges)
    thresholds = int(edges[:, 1].max()) + 1, min_left, min_right
    kept = {tuple(e) for e in edges[core_edges(indptr, indices, *thresholds)]}
    in_rows = core_rows(indptr, indices, *thresholds)
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(in_rows[0]))
    assert list(zip(rows.tolist(), in_rows[1].tolist(), strict=True)) == sorted(kept)
    expected = {tuple(e) for e in edges}
    while True:
        of_left, of_right = (Counter(edge[side] for edge in expected) for side in (0, 1))
        smaller = {(u, v) for u, v in expected if of_left[u] >= min_right and of_right[v] >= min_left}
        if smaller == expected:
            break
        expected = smaller
    assert kept == expected
    return 0 < len(kept) < len(edges)


@given(edge_tables(), st.integers(1, 4), st.integers(1, 4))
def test_core_is_the_largest_subgraph_with_the_degrees(edges, min_left, min_right):
    check_core(edges, min_left, min_right)


def test_core_is_right_where_a_part_of_the_vertices_is_lost():
    """In these graphs one vertex takes others with it, and a part stays. Hypothesis rarely draws such graphs."""
    rng = np.random.default_rng(5)
    shapes = [(int(rng.integers(20, 40)), int(rng.integers(20, 40)), rng.uniform(0.08, 0.2)) for _ in range(200)]
    bounds = rng.integers(2, 5, size=(200, 2)).tolist()
    partial = [check_core(random_edges(rng, *shape), *pair) for shape, pair in zip(shapes, bounds, strict=True)]
    assert sum(partial) > 50


@given(edge_tables(largest=6))
def test_twins_are_exactly_the_equal_rows(edges):
    indptr, indices = csr(edges)
    representatives, members_indptr, members = group_twins(indptr, indices)
    rows = [tuple(indices[indptr[r] : indptr[r + 1]]) for r in range(len(indptr) - 1)]
    groups = [members[members_indptr[i] : members_indptr[i + 1]].tolist() for i in range(len(representatives))]
    assert [g[0] for g in groups] == representatives.tolist() == sorted(representatives)
    assert sorted(r for g in groups for r in g) == list(range(len(rows)))
    assert all(len({rows[r] for r in g}) == 1 for g in groups)
    assert len({rows[g[0]] for g in groups}) == len(groups)


def test_rows_with_equal_hashes_are_compared(monkeypatch):
    monkeypatch.setattr("bicliques.kernels.graph.twins.splitmix64", lambda x: np.zeros_like(x))
    indptr, indices = csr(np.array([[0, 0], [1, 1], [2, 0], [3, 1]], dtype=np.int32))
    representatives, members_indptr, members = group_twins(indptr, indices)
    assert representatives.tolist() == [0, 1]
    assert members.tolist() == [0, 2, 1, 3]
    assert members_indptr.tolist() == [0, 2, 4]


@given(edge_tables(), st.sampled_from(ORDERS), st.sampled_from(["left", "right", "auto"]))
def test_prepared_graph_is_valid_and_complete(edges, order, root_side):
    n_left, n_right = (int(side.max()) + 1 for side in edges.T)
    graph, facts = prepare(
        *map(np.ascontiguousarray, edges.T), n_left, n_right, BuildOptions(root_side=root_side, order=order)
    )
    graph.validate()
    assert graph.root_side == facts["root_side"]
    expanded = set()
    for r in range(graph.n_roots):
        for b in graph.root_indices[graph.root_indptr[r] : graph.root_indptr[r + 1]]:
            for x in graph.root_members[graph.root_members_indptr[r] : graph.root_members_indptr[r + 1]]:
                for y in graph.base_members[graph.base_members_indptr[b] : graph.base_members_indptr[b + 1]]:
                    expanded.add((int(x), int(y)) if graph.root_side == "left" else (int(y), int(x)))
    assert expanded == {(int(u), int(v)) for u, v in edges}


def test_root_side_is_the_one_with_fewer_wedges():
    star = np.array(sorted([[u, 0] for u in range(5)] + [[u, u + 1] for u in range(5)]), dtype=np.int32)
    _, facts = prepare(*map(np.ascontiguousarray, star.T), 5, 6, BuildOptions())
    assert facts["wedges_right"] == 5 * 4  # five left vertices of degree 2
    assert facts["wedges_left"] == 25 + 5
    assert facts["root_side"] == "right"


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize(("least", "side"), [((1, 1), "right"), ((2, 3), "left"), ((3, 2), "right")])
def test_the_root_side_has_the_fewest_wedges_times_its_threshold(is_compiled, least, side):
    """Each vertex has all but one of the other side, so both sides have as many wedges."""
    left, right = (each.astype(np.int32) for each in np.nonzero(1 - np.eye(6)))
    rest = 6, 6, BuildOptions(), *least
    _, facts = prepare(left, right, *rest) if is_compiled else prepare_on(np, lambda: (left, right), *rest)
    assert facts["wedges_left"] == facts["wedges_right"] == 6 * 5 * 5
    assert facts["root_side"] == side


def test_orders_ascend_and_unilateral_begins_with_the_smallest():
    edges = random_edges(np.random.default_rng(4), 30, 20, 0.3)
    indptr, indices = csr(edges)
    right = transpose(indptr, indices, 20)
    by_degree = rank_order("degree", *right, indptr, indices)
    assert (np.diff(np.diff(right[0])[by_degree]) >= 0).all()
    two_hop = [
        len({w for u in right[1][right[0][v] : right[0][v + 1]] for w in indices[indptr[u] : indptr[u + 1]]})
        for v in range(20)
    ]
    assert (np.diff(np.array(two_hop)[rank_order("two-hop", *right, indptr, indices)]) >= 0).all()
    peeled = rank_order("unilateral", *right, indptr, indices)
    assert sorted(peeled) == list(range(20))
    assert two_hop[peeled[0]] == min(two_hop)


def test_selected_rows_are_in_the_order_asked_for():
    indptr, indices = select_rows(np.array([0, 2, 2, 5]), np.array([1, 4, 0, 2, 3], dtype=np.int32), np.array([2, 0]))
    assert indptr.tolist() == [0, 3, 5]
    assert indices.tolist() == [0, 2, 3, 1, 4]


def test_graph_survives_the_disk_and_damage_is_noticed(tmp_path):
    graph = graph_of(random_edges(np.random.default_rng(1), 9, 9, 0.5))
    graph.save(tmp_path)
    again = MiningGraph.open(tmp_path)
    again.validate()
    assert again.root_side == graph.root_side
    assert (again.root_indices == graph.root_indices).all()
    (tmp_path / "root_indices.npy").write_bytes(b"half")
    with pytest.raises(IncompleteError, match="cannot be read"):
        MiningGraph.open(tmp_path)
