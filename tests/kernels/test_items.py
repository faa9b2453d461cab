"""Items of a GPU's queue become subtrees again, and these are all of the work, each part once."""

import numpy as np
import pytest

from bicliques.kernels.bitmatrix import items as module
from bicliques.kernels.bitmatrix.items import compacted, items_of, joined, subtrees_of
from bicliques.kernels.bitmatrix.layout import HUB, ITEM, PATH
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.kernels.suite import ORDERS
from tests.support.oracles import graph_of


def intervals(n: int) -> np.ndarray:
    """Edges of a graph in which each right vertex has an interval of the left ones: many intervals contain others."""
    rng, n_left = np.random.default_rng(5), 20 * n
    start, length = rng.integers(0, n_left // 2, n), rng.integers(2 * n_left // 5, 3 * n_left // 5, n)
    inside = np.arange(n_left)[:, None] - start
    return np.argwhere((inside >= 0) & (inside < length)).astype(np.int32)


def mined(graph: MiningGraph, work: Subtrees) -> tuple[int, int]:
    found = CpuEngine().mine(graph, work, Search("fingerprint"), Limits(), nowhere)
    assert found.fingerprint is not None
    return found.count, found.fingerprint


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("pieces", [1, 300, 5000])
def test_any_part_of_the_ranges_and_the_rest_make_the_whole(monkeypatch, order, pieces):
    monkeypatch.setattr(module, "FEW_ITEMS", 64)  # ranges of a dozen candidates
    graph = graph_of(intervals(100), BuildOptions(root_side="right", order=order))
    whole = Subtrees.of_roots(np.arange(graph.n_roots))
    count, total = mined(graph, whole)
    items, pool = items_of(graph, whole, sieving=False)
    assert (items["kind"] == HUB).sum() > 200
    for seed in range(2):
        rng = np.random.default_rng(seed)
        some = rng.random(len(items)) < rng.choice([0.1, 0.5, 0.9])
        halves = [mined(graph, subtrees_of(graph, items[own], pool).spread(pieces)) for own in (some, ~some)]
        assert sum(half[0] for half in halves) == count
        assert sum(half[1] for half in halves) % 2**64 == total


def test_parts_of_a_node_that_were_given_away_together_become_one_node():
    """Not with parts of another node, and not where one of them is missing because a warp took it."""
    graph = graph_of(intervals(100), BuildOptions(root_side="right"))
    pool = np.concatenate([graph.root_indices[:40], np.arange(60, 100, dtype=np.int32)])
    items = np.zeros(7, ITEM)
    items["kind"], items["bound"], items["closure_at"], items["n_base"], items["n_cand"] = PATH, -1, -1, 3, 40
    items["cand_at"], items["base_at"] = 40, [0, 0, 0, 0, 8, 8, 8]
    items["begin"], items["end"] = [0, 5, 9, 20, 20, 22, 23], [5, 9, 12, 21, 22, 23, 40]
    items["fresh"] = [1, 0, 0, 0, 0, 0, 1]
    nodes = subtrees_of(graph, items, pool)
    assert nodes.todo.tolist() == [12, 1, 3, 17]
    assert np.diff(nodes.candidate_indptr).tolist() == [40, 20, 20, 17]
    assert nodes.fresh.tolist() == [True, False, False, True]
    assert len(subtrees_of(graph, items[:0], pool)) == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_compacted_pool_has_the_lists_of_the_items_and_nothing_else(seed):
    """Items share lists, or parts of them; some lists are empty, and some items have none."""
    rng = np.random.default_rng(seed)
    n, pool = (60, 3, 200, 1, 0)[seed], rng.integers(0, 1 << 20, 2000).astype(np.int32)
    items = np.zeros(n, ITEM)
    items["bound"] = np.arange(n)
    lists = (("base_at", "n_base"), ("closure_at", "n_closure"), ("cand_at", "n_cand"))
    used = np.zeros(len(pool), bool)
    for at, length in lists:
        items[at] = np.where(rng.random(n) < 0.3, -1, rng.integers(0, 1900, n))
        items[length] = np.where(rng.random(n) < 0.2, 0, rng.integers(0, 30, n))
        for item in items[items[at] >= 0]:
            used[item[at] : item[at] + item[length]] = True
    moved, kept = compacted(items, pool)
    assert kept.tolist() == pool[used].tolist()
    assert moved["bound"].tolist() == list(range(n))
    for at, length in lists:
        assert (moved[at] == -1).tolist() == (items[at] == -1).tolist()
        for old, new in zip(items, moved, strict=True):
            if old[at] >= 0:
                before, after = pool[old[at] : old[at] + old[length]], kept[new[at] : new[at] + new[length]]
                assert before.tolist() == after.tolist()


def test_items_are_joined_in_order():
    parts = [np.zeros(n, ITEM) for n in (2, 0, 3)]
    for number, part in enumerate(parts):
        part["bound"], part["end"] = number, np.arange(len(part))
    whole = joined(parts)
    assert (whole["bound"].tolist(), whole["end"].tolist()) == ([0, 0, 2, 2, 2], [0, 1, 0, 1, 2])
    whole["bound"] = 9
    assert parts[0]["bound"].tolist() == [0, 0]
