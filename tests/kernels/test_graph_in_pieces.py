"""A graph that a device makes piece by piece equals the host's, array for array. NumPy stands for the device."""

from collections import Counter
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.kernels.graph import pieces, sorting
from bicliques.kernels.graph.csr import from_sorted_pairs, transpose
from bicliques.kernels.graph.pieces import PieceDevice, edges_of_a_piece, prepare_in_pieces
from bicliques.kernels.graph.prepare import prepare
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.jobs import EVERY_REDUCTION
from bicliques.schemas.options import BuildOptions
from tests.support.examples import examples
from tests.support.like_cupy import LIKE_CUPY


class Toy:
    """Main memory in the place of a device. It knows the longest array that came, and how many did."""

    def __init__(self):
        self.longest, self.copies = 0, 0

    def upload(self, array: np.ndarray) -> np.ndarray:
        self.longest, self.copies = max(self.longest, len(array)), self.copies + 1
        return array.copy()

    def device(self, edges: int, whole: int = 0) -> PieceDevice:
        return PieceDevice(LIKE_CUPY, self.upload, lambda array: array.copy(), edges, whole)


def table(pairs) -> tuple[np.ndarray, np.ndarray]:
    """Left and right ids of sorted distinct edges. They cannot be written to, as those of a run."""
    columns = np.array(sorted(set(pairs)), dtype=np.int32).reshape(-1, 2).T
    left, right = (np.ascontiguousarray(column) for column in columns)
    left.flags.writeable = right.flags.writeable = False
    return left, right


def check(device: PieceDevice, *arguments) -> MiningGraph:
    """Make a graph in pieces and compare it with that of the host."""
    left, right, n_left, n_right, *rest = arguments
    graph, facts = prepare(*arguments)
    made, told, degrees = prepare_in_pieces(device, lambda: (left, right), n_left, n_right, *rest)
    assert told == facts
    for field in fields(MiningGraph):
        expected, found = getattr(graph, field.name), getattr(made, field.name)
        assert np.array_equal(expected, found), field.name
        assert getattr(expected, "dtype", None) == getattr(found, "dtype", None), field.name
    for ids, n, found in ((left, n_left, degrees[0]), (right, n_right, degrees[1])):
        assert np.array_equal(np.bincount(ids, minlength=n), found)
    return graph


@settings(max_examples=examples(300), deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 8)), min_size=1, max_size=70),
    edges=st.sampled_from([1, 2, 7, 20, 1000]),
    whole=st.sampled_from([0, 10, 30]),
    side=st.sampled_from(["auto", "left", "right"]),
    order=st.sampled_from(["degree", "two-hop", "unilateral", "id"]),
    min_left=st.integers(1, 3),
    min_right=st.integers(1, 3),
    reductions=st.sampled_from([EVERY_REDUCTION, frozenset({"core"}), frozenset({"twins"}), frozenset()]),
)
def test_any_graph_is_prepared_as_on_the_host(pairs, edges, whole, side, order, min_left, min_right, reductions):
    options = BuildOptions(root_side=side, order=order)
    check(Toy().device(edges, whole), *table(pairs), 12, 9, options, min_left, min_right, reductions)


@pytest.mark.parametrize("n_pieces", [1, 2, 7, 40])
@pytest.mark.parametrize("least", [1, 3])
def test_no_piece_is_larger_than_it_may_be(n_pieces, least):
    rng = np.random.default_rng(5)
    left, right = table(zip(*(rng.integers(0, 300, 4000) for _ in range(2)), strict=True))
    edges, toy = -(-len(left) // n_pieces), Toy()
    check(toy.device(edges), left, right, 300, 300, BuildOptions(), least, least)
    assert toy.longest <= max(edges, 300)
    assert toy.copies >= 4 * n_pieces  # degrees, columns, rows and columns again


def test_a_core_that_fits_is_finished_as_a_whole(monkeypatch):
    grid = [(u, v) for u in range(6) for v in range(5)]
    left, right = table([*grid, *((u, u) for u in range(6, 400))])
    monkeypatch.setattr(PieceDevice, "transpose", None)  # not in pieces
    graph = check(Toy().device(50, whole=len(grid)), left, right, 400, 400, BuildOptions(), 2, 2)
    assert graph.n_roots == 1
    monkeypatch.setattr(pieces, "prepare_on", None)
    with pytest.raises(TypeError):
        check(Toy().device(50, whole=len(grid) - 1), left, right, 400, 400, BuildOptions(), 2, 2)


@pytest.mark.parametrize("steps", [10, 1000])
def test_the_core_of_a_long_chain_is_found(steps):
    """Each round takes two vertices off its ends; what the rounds leave is for the queue of `kernels.graph.core`."""
    corner = [(0, 0), (0, 1), (1, 0), (1, 1)]
    chain = [*corner, *((2 + k, 2 + k) for k in range(steps)), *((2 + k, 1 + k) for k in range(steps))]
    check(Toy().device(100), *table(chain), steps + 2, steps + 2, BuildOptions(), 2, 2)


def test_rows_and_columns_that_are_longer_than_a_piece():
    star = [(0, v) for v in range(90)] + [(u, 0) for u in range(90)]
    check(Toy().device(8), *table(star), 90, 90, BuildOptions())


def test_different_rows_with_equal_hashes_are_told_apart(monkeypatch):
    asked = Counter[str]()
    of_host = pieces.group_twins

    def watched(*arguments):
        asked["host"] += 1
        return of_host(*arguments)

    monkeypatch.setattr(sorting, "splitmix64", lambda x: x * np.uint64(0))
    monkeypatch.setattr(pieces, "group_twins", watched)
    check(Toy().device(2), *table([(0, 0), (1, 0), (1, 1), (2, 1)]), 3, 2, BuildOptions())
    assert asked["host"] > 0


@settings(max_examples=examples(100), deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 8)), max_size=60), edges=st.sampled_from([1, 3, 100])
)
def test_any_rows_are_transposed(pairs, edges):
    rows = from_sorted_pairs(*table(pairs), 12)  # some of them empty
    for expected, found in zip(transpose(*rows, 9), Toy().device(edges).transpose(*rows, 9), strict=True):
        assert np.array_equal(expected, found)


def test_the_edges_of_a_piece_follow_from_free_memory():
    vertices = sorting.VERTEX_BYTES * 30
    assert edges_of_a_piece(vertices + 7 * pieces.PIECE_BYTES, 20, 30) == 7
    assert edges_of_a_piece(vertices, 20, 30) == 0
    assert edges_of_a_piece(0, 20, 30) < 0


def test_no_rows_have_no_twins():
    found = Toy().device(2).group_twins(np.zeros(1, np.int64), np.empty(0, np.int32))
    assert [array.tolist() for array in found] == [[], [0], []]
