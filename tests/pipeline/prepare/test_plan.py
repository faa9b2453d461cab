"""Build and plan: what is stored, in which order, and how good the weights are."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.graph import threads as graph_threads
from bicliques.kernels.graph import wedges
from bicliques.kernels.graph.prepare import prepare
from bicliques.pipeline.api import steps
from bicliques.pipeline.estimate.walk import only
from bicliques.pipeline.prepare import weights
from bicliques.pipeline.prepare.build import degree_profile
from bicliques.pipeline.prepare.weights import RootWeights, heaviest_first
from bicliques.pipeline.proof.proving import rank_correlation
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.labels import open_labels
from bicliques.pipeline.run.plan import Plan
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions, RunLimits, RunOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.support.examples import examples
from tests.support.runs import random_edges, write_edges


def prepared(tmp_path: Path, edges: np.ndarray, strings: bool = False) -> RunFolder:
    source = write_edges(tmp_path / "g.parquet", edges, strings)
    steps.start(source, tmp_path / "out", RunOptions(source=str(source)), RunLimits(), False)
    steps.prepare(tmp_path / "out", False)
    return RunFolder(tmp_path / "out")


def graph_of(edges: np.ndarray, order: str = "degree") -> MiningGraph:
    n_left, n_right = (int(edges[:, k].max()) + 1 for k in (0, 1))
    return prepare(edges[:, 0], edges[:, 1], n_left, n_right, BuildOptions(order=order))[0]  # type: ignore[arg-type]


def test_workers_map_the_graph_that_was_built(tmp_path: Path) -> None:
    edges = random_edges(40, 30, 0.3, 4)
    folder = prepared(tmp_path, edges, strings=True)
    stored, made = MiningGraph.open(folder.graph), graph_of(edges)
    stored.validate()
    assert isinstance(stored.root_indices, np.memmap)
    assert (stored.n_roots, stored.n_edges) == (made.n_roots, made.n_edges)
    labels = open_labels(folder, "left")
    assert labels.to_pylist() == sorted(f"u{3 * u + 5}" for u in range(40))


def test_the_profile_and_the_wedges_are_stored(tmp_path: Path) -> None:
    edges = random_edges(40, 30, 0.3, 4)
    facts = prepared(tmp_path, edges).need("build")
    degrees = np.bincount(edges[:, 0])
    assert facts["profile"]["left"]["mean"] == pytest.approx(degrees.mean())
    assert facts["profile"]["left"]["max"] == degrees.max()
    assert facts["wedges_right"] == (np.bincount(edges[:, 0]) ** 2).sum()


@pytest.mark.parametrize(
    ("degrees", "gini"), [([3, 3, 3, 3], 0.0), ([0, 0, 0, 1], 0.75), ([1, 2, 3, 4], 0.25)], ids=str
)
def test_gini(degrees: list[int], gini: float) -> None:
    assert degree_profile(np.array(degrees))["gini"] == pytest.approx(gini)


def test_the_plan_has_every_root_once_heavy_ones_first(tmp_path: Path) -> None:
    folder = prepared(tmp_path, random_edges(60, 40, 0.3, 1))
    plan, graph = Plan.read(folder), MiningGraph.open(folder.graph)
    assert sorted(plan.roots.tolist()) == list(range(graph.n_roots))
    assert (np.diff(plan.weights) <= 0).all()
    assert (plan.weights == RootWeights(graph).by_rank[plan.roots]).all()
    facts = folder.need("plan")
    assert facts["heaviest_share"] == pytest.approx(plan.weights[0] / plan.weights.sum())


def test_a_damaged_plan_is_an_error_in_one_sentence(tmp_path: Path) -> None:
    folder = prepared(tmp_path, random_edges(20, 10, 0.3, 1))
    (folder.plan / "roots.npy").write_bytes(b"nothing")
    with pytest.raises(IncompleteError, match=r"mend it with: bicliques.resume"):
        Plan.read(folder)


def test_weights_count_wedges() -> None:
    graph = graph_of(random_edges(30, 20, 0.3, 2))
    expected = np.zeros(graph.n_roots)
    for v in range(graph.n_roots):
        later = every = 0
        for u in graph.root_indices[graph.root_indptr[v] : graph.root_indptr[v + 1]]:
            others = graph.base_indices[graph.base_indptr[u] : graph.base_indptr[u + 1]]
            later += int((others > v).sum())
            every += len(others)
        expected[v] = later**1.5 + every + 1
    assert RootWeights(graph).by_rank == pytest.approx(expected)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_compiled_code_weighs_as_numpy_does(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(random_edges(60, 20, 0.3, 5))
    expected = RootWeights(graph).by_rank
    monkeypatch.setattr(weights, "MANY_EDGES", graph.n_edges)
    monkeypatch.setattr(weights, "count_cores", lambda: threads)
    monkeypatch.setattr(graph_threads, "LEAST", 20)
    used = []
    real = wedges.on_slices
    monkeypatch.setattr(wedges, "on_slices", lambda work, cuts: used.append(len(cuts) - 1) or real(work, cuts))
    assert (RootWeights(graph).by_rank == expected).all()
    assert used[0] == min(threads, graph.n_edges // graph.n_roots)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.0, 1e-9, 1e-5, 1e6, 1e6 + 1e-4])), max_size=40),
    st.sampled_from([1, 3]),
)
def test_the_heaviest_come_first_and_equals_in_the_order_of_their_ranks(
    found: list[tuple[int, float]], threads: int
) -> None:
    own = np.array([later**1.5 + more + 1 for later, more in found])
    assert heaviest_first(own, threads).tolist() == np.argsort(-own, kind="stable").tolist()


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 1000), stops=st.integers(1, 400), pieces=st.sampled_from([0, 8]))
def test_what_is_left_of_a_root_weighs_less_than_the_root(seed: int, stops: int, pieces: int) -> None:
    graph = graph_of(random_edges(40, 25, 0.4, seed))
    weights = RootWeights(graph)
    roots = np.arange(graph.n_roots)
    found = CpuEngine().mine(graph, Subtrees.of_roots(roots), Search("count"), Limits(rows=stops), nowhere)
    left = found.left_over.spread(pieces) if pieces else found.left_over
    of_left = weights.of(left)
    assert len(of_left) == len(left)
    assert (of_left > 0).all()
    root = [int(left.path_of(i).min()) for i in range(len(left))]
    by_root = np.bincount(root, weights=of_left, minlength=graph.n_roots) if len(left) else np.zeros(graph.n_roots)
    assert (by_root <= weights.by_rank * (1 + 1e-9)).all()
    assert weights.of(Subtrees.of_roots(roots)) == pytest.approx(weights.by_rank)


def test_a_range_of_ranks_weighs_what_its_share_of_the_root_does() -> None:
    graph = graph_of(random_edges(90, 60, 0.3, 1))
    weights, n = RootWeights(graph), graph.n_roots
    begin = np.array([1, n // 2, n - 2])
    ranges = Subtrees.of_ranges(np.arange(4), np.zeros(3, int), begin, n - begin, np.zeros(3, bool))
    each = [float(weights.of(ranges.take(k, k + 1))[0]) for k in range(3)]
    assert each[0] == pytest.approx(weights.by_rank[0])
    assert 0.15 < each[1] / each[0] < 0.35, "half of the candidates are a quarter of the pairs"
    assert each[2] < 0.05 * each[0]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ranged", [False, True])
def test_children_of_nodes_are_their_work_each_once(seed: int, ranged: bool) -> None:
    """Every child of every node that is left over, searched alone: together they are the left-over."""
    graph, rng = graph_of(random_edges(90, 25, 0.4, seed)), np.random.default_rng(seed)
    weights, engine, search = RootWeights(graph), CpuEngine(), Search("fingerprint")
    work = Subtrees.of_roots(np.arange(graph.n_roots))
    if ranged:
        closed = engine.mine(graph, work.take(0, 1), search, Limits(), nowhere)
        assert closed.count > 0
        work = Subtrees.of_ranges(np.array([0, 1]), np.zeros(1, int), np.ones(1, int), [graph.n_roots - 1], [False])
    left = engine.mine(graph, work, search, Limits(rows=int(rng.integers(1, 900))), nowhere).left_over
    left = work if ranged and len(left) == 0 else left
    node, child, weight = weights.of_children(left)
    assert (weight > 0).all()
    root = [int(left.path_of(i).min()) for i in range(len(left))]
    by_root = np.bincount(root, np.bincount(node, weight, len(left)), graph.n_roots)
    assert (by_root <= weights.by_rank * (1 + 1e-9)).all(), "what is left of a root weighs no more than all of it"
    expected = engine.mine(graph, left, search, Limits(), nowhere)
    parts = [
        engine.mine(graph, only(left, *map(int, at)), search, Limits(), nowhere) for at in zip(node, child, strict=True)
    ]
    assert sum(found.count for found in parts) == expected.count
    assert sum(found.fingerprint or 0 for found in parts) % 2**64 == expected.fingerprint


def test_weights_rank_roots_as_time_does() -> None:
    """On a graph with heavy-tailed degrees; the count of bicliques stands for time, which is noisy in a test."""
    rng = np.random.default_rng(3)
    edges = np.unique(
        np.stack([(rng.pareto(1.1, 20000) * 20).astype(int) % 900, rng.integers(0, 700, 20000)], 1), axis=0
    )
    left, right = (np.unique(edges[:, k], return_inverse=True)[1] for k in (0, 1))
    graph = graph_of(np.stack([left, right], 1).astype(np.int32))
    weights, engine = RootWeights(graph).by_rank, CpuEngine()
    chosen = rng.choice(graph.n_roots, 120, replace=False)
    counts = [
        engine.mine(graph, Subtrees.of_roots(np.array([r])), Search("count"), Limits(), nowhere).count for r in chosen
    ]
    correlation = rank_correlation([(float(weights[r]), float(c)) for r, c in zip(chosen, counts, strict=True)])
    assert correlation is not None
    assert correlation > 0.8


def test_rank_correlation() -> None:
    assert rank_correlation([(1, 10), (2, 20), (3, 30)]) == pytest.approx(1.0)
    assert rank_correlation([(1, 3), (2, 2), (3, 1)]) == pytest.approx(-1.0)
    assert rank_correlation([(1, 1), (2, 1), (3, 5)]) == pytest.approx(np.sqrt(3) / 2)
    assert rank_correlation([(1, 1), (2, 2)]) is None
    assert rank_correlation([(1, 1), (2, 1), (3, 1)]) is None


def test_nothing_has_no_children() -> None:
    weights = RootWeights(graph_of(random_edges(9, 9, 0.4, 1)))
    assert [len(each) for each in weights.of_children(Subtrees.of_roots(np.arange(0)))] == [0, 0, 0]


def test_the_children_of_a_root_weigh_together_what_it_does() -> None:
    """Of a root that all others meet."""
    graph = graph_of(random_edges(40, 12, 0.9, 1))
    weights, n = RootWeights(graph), graph.n_roots
    children = Subtrees.of_ranges(np.array([0, 1]), np.zeros(1, int), np.ones(1, int), [n - 1], [False])
    assert weights.of_children(children)[2].sum() == pytest.approx(weights.by_rank[0])


def test_a_root_may_weigh_nothing(tmp_path: Path) -> None:
    folder = prepared(tmp_path, random_edges(9, 9, 0.4, 1))
    weights = np.load(folder.plan / "weights.npy")
    weights[-1] = 0.0
    np.save(folder.plan / "weights.npy", weights)
    assert Plan.read(folder).weights[-1] == 0.0
