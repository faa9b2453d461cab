"""A graph that is prepared on a device equals the host's, array for array. NumPy stands for the device."""

import tracemalloc
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.kernels.graph import sorting as by_sorting
from bicliques.kernels.graph.prepare import prepare
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from tests.support.examples import examples
from tests.support.like_cupy import LIKE_CUPY


def check(pairs: list[tuple[int, int]], options: BuildOptions, min_left: int = 1, min_right: int = 1):
    edges = np.array(sorted(set(pairs)), dtype=np.int32).reshape(-1, 2)
    left, right = np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1])
    arguments = (left, right, 12, 9, options, min_left, min_right)
    graph, facts = prepare(*arguments)
    for xp in (np, LIKE_CUPY):
        made, told = by_sorting.prepare_on(xp, lambda: (left, right), *arguments[2:])
        assert told == facts
        for field in fields(MiningGraph):
            expected, found = getattr(graph, field.name), getattr(made, field.name)
            assert np.array_equal(expected, found), field.name
            if isinstance(expected, np.ndarray):
                assert expected.dtype == found.dtype, field.name


@settings(max_examples=examples(300), deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 8)), min_size=1, max_size=70),
    side=st.sampled_from(["auto", "left", "right"]),
    order=st.sampled_from(["degree", "two-hop", "unilateral", "id"]),
    min_left=st.integers(1, 3),
    min_right=st.integers(1, 3),
    part=st.sampled_from([1, 2, 7, 1 << 25]),
)
def test_any_graph_is_prepared_as_on_the_host(pairs, side, order, min_left, min_right, part):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_sorting, "PART", part)
        check(pairs, BuildOptions(root_side=side, order=order), min_left, min_right)


@pytest.mark.parametrize("steps", [10, 1000])
def test_the_core_of_a_long_chain_is_found(steps):
    """Each round takes two vertices off its ends; what the rounds leave is for the queue of `kernels.graph.core`."""
    corner = [(0, 0), (0, 1), (1, 0), (1, 1)]
    chain = np.array(
        [*corner, *((2 + k, 2 + k) for k in range(steps)), *((2 + k, 1 + k) for k in range(steps))], np.int32
    )
    chain = chain[np.lexsort((chain[:, 1], chain[:, 0]))]
    left, right = np.ascontiguousarray(chain[:, 0]), np.ascontiguousarray(chain[:, 1])
    _, facts = by_sorting.prepare_on(np, lambda: (left, right), steps + 2, steps + 2, BuildOptions(), 2, 2)
    assert (facts["core_left"], facts["core_right"], facts["core_edges"]) == (2, 2, 4)
    assert facts == prepare(left, right, steps + 2, steps + 2, BuildOptions(), 2, 2)[1]


def test_different_rows_with_equal_hashes_are_left_to_the_host(monkeypatch):
    monkeypatch.setattr(by_sorting, "splitmix64", lambda x: x * np.uint64(0))
    csr = by_sorting.from_sorted(np, np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]), 3)
    assert by_sorting.twins_of(np, csr) is None
    check([(0, 0), (1, 0), (1, 1), (2, 1)], BuildOptions())


def test_rows_of_the_other_side_of_equal_hashes_are_left_to_the_host(monkeypatch):
    grouped, told = by_sorting.twins_of, []

    def once(xp, csr: by_sorting.Csr) -> by_sorting.Twins | None:
        told.append(len(csr.indptr) - 1)
        return grouped(xp, csr) if len(told) % 2 == 1 else None

    monkeypatch.setattr(by_sorting, "twins_of", once)
    check([(0, 3), (2, 3), (3, 1), (3, 4), (4, 1), (5, 4)], BuildOptions(), 1, 2)
    check([(0, 3), (2, 3), (3, 1), (3, 4), (4, 1), (5, 4)], BuildOptions())
    assert told == [1, 2, 1, 2, 5, 3, 5, 3]


@pytest.mark.values
@pytest.mark.parametrize(
    ("n", "least", "twice"), [(4000, 1, False), (20_000, 15, False), (2000, 1, True), (150_000, 2, False)]
)
@pytest.mark.parametrize("part", [1 << 12, 1 << 25])
def test_memory_is_what_is_reckoned_with(monkeypatch, n, least, twice, part):
    """A fifth of what is reckoned with per edge is for blocks of CuPy's pool that are larger than what is in them, and
    another one for sorting, which NumPy does in place. In one part, what is made on the way counts, too.
    """
    rng = np.random.default_rng(n)
    words = np.unique(rng.integers(0, n, 400_000) << 32 | rng.integers(0, 4000, 400_000) ** 2 // 4000)
    if twice:
        words = np.concatenate([words, words + (n << 32)])

    def read() -> tuple[np.ndarray, np.ndarray]:
        return (words >> 32).astype(np.int32), words.astype(np.int32)

    monkeypatch.setattr(by_sorting, "PART", part)
    sizes = n * (1 + twice), 4000
    tracemalloc.start()
    try:
        by_sorting.prepare_on(np, read, *sizes, BuildOptions(), least, least)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    most = by_sorting.EDGE_BYTES * 3 // 5 * len(words) + by_sorting.PART_BYTES * min(part, len(words))
    assert peak <= most + by_sorting.VERTEX_BYTES * max(sizes)


def test_the_edges_of_a_whole_follow_from_free_memory():
    vertices, in_one = by_sorting.VERTEX_BYTES * 30, by_sorting.EDGE_BYTES + by_sorting.PART_BYTES
    assert by_sorting.edges_of_a_whole(vertices + 7 * in_one, 20, 30) == 7
    assert by_sorting.edges_of_a_whole(0, 20, 30) < 0
    full = vertices + by_sorting.PART * in_one
    assert by_sorting.edges_of_a_whole(full, 30, 20) == by_sorting.PART
    assert by_sorting.edges_of_a_whole(full + 100 * by_sorting.EDGE_BYTES, 30, 20) == by_sorting.PART + 100
