"""Records become bicliques on a device as they do on the host. The device is emulated."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.kernels.gpu.pack import Members, pack
from bicliques.kernels.gpu.records import RECORD
from bicliques.kernels.gpu.slice_run import unpack
from bicliques.kernels.graph.prepare import prepare
from bicliques.schemas import bicliques
from bicliques.schemas.bicliques import Bicliques, row_hashes
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.hashes import hashes_of_ids
from bicliques.schemas.options import BuildOptions
from tests.emulation.device import EmulatedDevice, why_not
from tests.support.examples import examples
from tests.support.runs import random_edges

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


DEVICE = EmulatedDevice()


def packed(
    graph: MiningGraph, records: np.ndarray, values: np.ndarray, in_blocks: bool = False, **fields: int
) -> Bicliques:
    handles = DEVICE.upload(records), DEVICE.upload(values)
    hashes = {side: DEVICE.upload(getattr(graph, f"{side}_hash")) for side in ("base", "root")}
    members = replace(Members.of(DEVICE, graph, hashes), **fields)
    return pack(DEVICE, members, handles[0], len(records), handles[1], in_blocks)


def with_twins(edges: np.ndarray, twins: int, share: float, seed: int) -> np.ndarray:
    """Edges in which a share of the vertices, on both sides, is there `twins` times."""
    rng = np.random.default_rng(seed)
    for side in (0, 1):
        many = np.where(rng.random(edges[:, side].max() + 1) < share, twins, 1)
        begin = np.cumsum(many) - many
        copies = many[edges[:, side]]
        number = np.arange(copies.sum()) - np.repeat(np.cumsum(copies) - copies, copies)
        edges = np.repeat(edges, copies, axis=0)
        edges[:, side] = begin[edges[:, side]] + number
    return edges


@settings(max_examples=examples(80), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(0, 40),
    side=st.sampled_from(["left", "right"]),
    shape=st.sampled_from([(14, 9), (90, 70)]),
    twins=st.sampled_from([1, 2, 8, 12]),
    share=st.sampled_from([0.02, 1.0]),
)
def test_records_with_holes_and_twins_are_packed_as_on_the_host(seed, n, side, shape, twins, share):
    graph, records, values = drawn(seed, n, side, shape, twins, share)
    assert_same(packed(graph, records, values), unpack(graph, records, values))


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([3, 40, 400]),
    side=st.sampled_from(["left", "right"]),
    twins=st.sampled_from([1, 3]),
    block=st.sampled_from([1, 7, 100, 1000]),
    fields=st.sampled_from([{}, {"key_step": 0}]),
)
def test_rows_in_blocks_are_the_same_rows_with_the_largest_first(seed, n, side, twins, block, fields):
    graph, records, values = drawn(seed, n, side, (14, 9), twins, 0.3)
    given = unpack(graph, records, values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bicliques, "BLOCK_ROWS", block)
        found = packed(graph, records, values, True, **fields)
    _, first, number = np.unique(given.ids, return_index=True, return_inverse=True)
    numbers = dict(zip(given.ids.tolist(), first[number].tolist(), strict=True))
    which = np.array([numbers[own] for own in found.ids.tolist()], int)
    assert sorted(found.ids.tolist()) == sorted(given.ids.tolist())
    assert_same(found, given.pick(which))
    sizes = list(zip(np.diff(found.left_indptr).tolist(), np.diff(found.right_indptr).tolist(), strict=True))
    cut = [slice(start, start + block) for start in range(0, len(found), block)]
    for one, other in pairwise(cut):
        assert min(sizes[one]) >= max(sizes[other])
    for one in cut:
        inside = which[one]
        alone = np.isin(inside, first[np.bincount(number) == 1])
        assert (np.diff(inside[alone]) > 0).all()


def drawn(
    seed: int, n: int, side: str, shape: tuple[int, int], twins: int, share: float
) -> tuple[MiningGraph, np.ndarray, np.ndarray]:
    """Records with holes and gaps, of a graph with twins."""
    edges = with_twins(random_edges(*shape, 0.4, seed % 50), twins, share, seed)
    left, right = (np.ascontiguousarray(column.astype(np.int32)) for column in edges.T)
    graph, _ = prepare(left, right, int(left.max()) + 1, int(right.max()) + 1, BuildOptions(root_side=side))
    rng = np.random.default_rng(seed)
    records, values = np.zeros(n, RECORD), []
    for record in records:
        if rng.random() < 0.2:
            continue  # a hole
        base = rng.choice(graph.n_base, rng.integers(1, graph.n_base + 1), replace=False)
        ranks = rng.choice(graph.n_roots, rng.integers(1, graph.n_roots + 1), replace=False)
        record["at"], record["n_base"], record["n_root"] = len(values), len(base), len(ranks)
        values += [*base, *ranks, 77]  # a gap, which belongs to no record
    return graph, records, np.array(values, np.int32)


def assert_same(found: Bicliques, expected: Bicliques):
    for name in ("left_indptr", "left", "right_indptr", "right", "root", "ids"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
        assert getattr(found, name).dtype == getattr(expected, name).dtype, name


def test_many_records_are_packed_as_on_the_host():
    """There are more members than 16 bits can count."""
    edges = random_edges(30, 20, 0.5, 1)
    graph, _ = prepare(*(np.ascontiguousarray(c) for c in edges.T), 30, 20, BuildOptions())
    n = 40_000
    records = np.zeros(n, RECORD)
    records["at"], records["n_base"], records["n_root"] = np.arange(n) * 3, 2, 1
    first, step = np.random.default_rng(2).integers(1, min(graph.n_base, graph.n_roots), (2, n))
    values = np.stack([first, (first + step) % min(graph.n_base, graph.n_roots), step], axis=1).ravel().astype(np.int32)
    found, expected = packed(graph, records, values), unpack(graph, records, values)
    assert np.array_equal(found.left, expected.left)
    assert np.array_equal(found.root, expected.root)
    assert len(found) == n


@pytest.mark.parametrize("n", [0, 3])
def test_records_of_only_holes_give_no_biclique(n):
    edges = random_edges(5, 4, 0.5, 1)
    graph, _ = prepare(*(np.ascontiguousarray(c) for c in edges.T), 5, 4, BuildOptions())
    found = packed(graph, np.zeros(n, RECORD), np.empty(0, np.int32))
    assert len(found) == 0
    assert found.left_indptr.tolist() == [0]


@pytest.mark.parametrize("n", [31, 32, 33, 64, 127, 128, 129, 255, 256, 257, 1000])
@pytest.mark.parametrize("twins", [False, True])
def test_lists_of_every_length_ascend(n, twins):
    """Short lists are sorted several at a time, others in registers, and those of more than 128 members in memory."""
    edges = np.argwhere(np.eye(1100, dtype=bool)[:, :1000] | (np.arange(1000) == 0)).astype(np.int32)
    if twins:
        edges = with_twins(edges, 2, 0.3, n)
    left, right = (np.ascontiguousarray(column.astype(np.int32)) for column in edges.T)
    graph, _ = prepare(left, right, int(left.max()) + 1, int(right.max()) + 1, BuildOptions())
    rng = np.random.default_rng(n)
    sizes = [(n, 3), (1, n), (n, n)]
    lists = [(rng.permutation(graph.n_base)[:k], rng.permutation(graph.n_roots)[:m]) for k, m in sizes]
    records, values = np.zeros(len(lists), RECORD), np.concatenate([part for both in lists for part in both])
    records["n_base"], records["n_root"] = ([len(both[k]) for both in lists] for k in (0, 1))
    records["at"] = np.cumsum([0, *(len(base) + len(roots) for base, roots in lists)])[:-1]
    found, expected = packed(graph, records, values.astype(np.int32)), unpack(graph, records, values.astype(np.int32))
    for side in ("left", "right"):
        indptr, members = getattr(found, f"{side}_indptr"), getattr(found, side)
        assert np.array_equal(members, getattr(expected, side))
        inner = np.setdiff1d(np.arange(1, len(members)), indptr)
        assert (members[inner] > members[inner - 1]).all()
    assert np.array_equal(found.ids, row_hashes(found, hashes_of_ids(graph.n_left, graph.n_right)).view(np.int64))


@pytest.mark.parametrize(("n", "step"), [(2**16 - 2, 2**16 - 1), (2**16 - 1, 0)])
def test_keys_of_32_bits_sort_rows_only_of_graphs_whose_sizes_fit(n, step):
    graph, _ = prepare(*(np.ascontiguousarray(c) for c in random_edges(5, 4, 0.5, 1).T), 5, 4, BuildOptions())
    graph = replace(graph, n_left=n, n_right=n)
    assert Members.of(DEVICE, graph, {"base": None, "root": None}).key_step == step
