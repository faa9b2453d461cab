"""A graph is prepared on threads, array for array as on one thread."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.kernels.graph import core, csr, threads, twins
from bicliques.kernels.graph.core import core_edges
from bicliques.kernels.graph.csr import from_sorted_pairs, transpose
from bicliques.kernels.graph.prepare import prepare
from bicliques.kernels.graph.twins import group_twins
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from tests.support.examples import examples
from tests.support.oracles import random_edges

TOGETHER = 120


def table(pairs) -> tuple[np.ndarray, np.ndarray]:
    """Left and right ids of sorted distinct edges. They cannot be written to, as those of a run."""
    columns = np.array(sorted(set(pairs)), dtype=np.int32).reshape(-1, 2).T
    left, right = (np.ascontiguousarray(column) for column in columns)
    left.flags.writeable = right.flags.writeable = False
    return left, right


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    density=st.sampled_from([0.1, 0.3, 0.6, 0.9]),
    least=st.sampled_from([1, 3]),
    min_left=st.integers(1, 3),
    min_right=st.integers(1, 3),
    root_side=st.sampled_from(["left", "right", "auto"]),
)
def test_a_graph_is_the_same_on_any_number_of_threads(seed, density, least, min_left, min_right, root_side):
    """Dense graphs, too: columns are counted on no more threads than a column has edges on average."""
    left, right = np.ascontiguousarray(random_edges(np.random.default_rng(seed), 12, 9, density).T)
    left.flags.writeable = right.flags.writeable = False
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "LEAST", least)
        for n in (1, 2, 7):
            made.append(prepare(left, right, 12, 9, BuildOptions(root_side=root_side), min_left, min_right, threads=n))
    for graph, facts in made[1:]:
        assert facts == made[0][1]
        for field in fields(MiningGraph):
            expected, found = getattr(made[0][0], field.name), getattr(graph, field.name)
            assert np.array_equal(expected, found), field.name
            assert getattr(expected, "dtype", None) == getattr(found, "dtype", None), field.name


def test_rows_are_shared_by_threads(monkeypatch):
    """Each slice waits for the others, in every pass over the rows."""
    monkeypatch.setattr(threads, "LEAST", 1)
    n_slices = []

    def together(work, cuts: np.ndarray):
        meeting = threading.Barrier(len(cuts) - 1)
        n_slices.append(len(cuts) - 1)

        def waiting(k: int, start: int, stop: int):
            meeting.wait(TOGETHER)
            work(k, start, stop)

        threads.on_slices(waiting, cuts)

    for module in (core, csr, twins):
        monkeypatch.setattr(module, "on_slices", together)
    left, right = table(map(tuple, np.argwhere(np.random.default_rng(1).random((30, 40)) < 0.5)))  # no twins
    prepare(left, right, 30, 40, BuildOptions(), threads=3)
    assert n_slices == [3] * len(n_slices)
    assert len(n_slices) > 12
    graph = from_sorted_pairs(left, right, 30)
    n_slices.clear()
    assert not core_edges(*graph, 40, 14, 20, 3).all()
    assert n_slices == [3] * len(n_slices)
    assert len(n_slices) > 6


def test_the_counts_of_all_threads_take_no_more_memory_than_the_edges(monkeypatch):
    monkeypatch.setattr(threads, "LEAST", 1)
    shapes = []
    zeros = np.zeros
    left, right = table((u, v) for u in range(20) for v in range(10) if (u + v) % 3 == 0)
    graph = from_sorted_pairs(left, right, 20)
    monkeypatch.setattr(csr.np, "zeros", lambda *a: (shapes.append(a[0]), zeros(*a))[1])
    transpose(*graph, 10, threads=16)
    core_edges(*graph, 10, 3, 3, threads=16)
    assert {shape for shape in shapes if isinstance(shape, tuple)} == {(len(left) // 10, 10)}


@pytest.mark.parametrize("n", [1, 3])
def test_rows_with_equal_hashes_are_compared(n, monkeypatch):
    monkeypatch.setattr(threads, "LEAST", 1)
    monkeypatch.setattr(twins, "splitmix64", lambda x: np.full_like(x, 1 << 63))
    graph = from_sorted_pairs(*table([(0, 0), (1, 1), (2, 0), (3, 1), (4, 0), (5, 0), (5, 1)]), 6)
    representatives, members_indptr, members = group_twins(*graph, n)
    assert representatives.tolist() == [0, 1, 5]
    assert members.tolist() == [0, 2, 4, 1, 3, 5]
    assert members_indptr.tolist() == [0, 3, 5, 6]


@pytest.mark.parametrize("order", ["up", "down", "random", "few values"])
def test_words_are_parted_near_their_middle(order, monkeypatch):
    monkeypatch.setattr(threads, "LEAST", 50)
    words = np.random.default_rng(5).permutation(10_000) % (5 if order == "few values" else 10_000)
    words = {"up": np.sort(words), "down": np.sort(words)[::-1].copy()}.get(order, words)
    expected = np.sort(words)
    with ThreadPoolExecutor(3) as pool:
        low, high = threads._parted(words, 3, pool)
    assert low.max() <= high.min()
    assert len(low) == pytest.approx(5000, abs=1001 if order == "few values" else 200)
    assert np.array_equal(np.sort(words), expected), "they are parted in place"
    threads.sort(words, 7)
    assert np.array_equal(words, expected)


def test_no_slice_is_too_small_to_be_worth_a_thread():
    indptr = np.arange(0, 10 * threads.LEAST, 100)
    assert len(threads.borders(indptr, 16)) - 1 == 9
    assert threads.borders(np.array([0, 5, 9]), 16).tolist() == [0, 2]
    assert threads.even(1000, 16).tolist() == [0, 1000]
    assert threads.even(2 * threads.LEAST, 16).tolist() == [0, threads.LEAST, 2 * threads.LEAST]
