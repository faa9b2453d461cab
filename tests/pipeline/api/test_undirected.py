"""Bicliques of graphs of one kind of vertices, each pair of sides once."""

import networkx as nx
import numpy as np
import pytest

import bicliques as bq
from bicliques.kernels import engines
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.search import Search, measure
from tests.support.commands import run
from tests.support.one_kind import edges_of, random_graphs
from tests.support.oracles import closed_pairs
from tests.support.runs import QUIET

GRAPH = nx.gnp_random_graph(40, 0.3, seed=6)
#: Of (min_left, min_right).
THRESHOLDS = [(1, 1), (2, 2), (1, 3), (3, 1), (2, 3)]


def expected(graph: nx.Graph, least: tuple[int, int] = (1, 1)) -> list[tuple[list[int], list[int]]]:
    """By closing sets of the double cover."""
    edges = edges_of(graph).tolist()
    return sorted(
        (sorted(left), sorted(right))
        for left, right in closed_pairs({(u, v) for u, v in edges} | {(v, u) for u, v in edges})
        if min(left) < min(right)
        and any(len(a) >= least[0] and len(b) >= least[1] for a, b in ((left, right), (right, left)))
    )


def rows(found) -> list[tuple[list[int], list[int]]]:
    return sorted((sorted(left), sorted(right)) for left, right in found)


def written(graph: nx.Graph, path, seed: int = 0):
    """Its edges in any direction and order, some twice, with some loops."""
    rng = np.random.default_rng(seed)
    edges = edges_of(graph)
    edges = np.concatenate([edges, edges[rng.random(len(edges)) < 0.3][:, ::-1], [[v, v] for v in list(graph)[:2]]])
    edges = [edge if rng.random() < 0.5 else edge[::-1] for edge in rng.permutation(edges).tolist()]
    path.write_text("".join(f"{u} {v}\n" for u, v in edges))
    return path


@pytest.fixture
def source(tmp_path):
    return written(GRAPH, tmp_path / "g.el")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = tmp_path_factory.mktemp("whole")
    return bq.mine(written(GRAPH, place / "g.el"), place / "out", undirected=True, **QUIET)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_random_graphs_give_the_pairs_of_the_definition(engine, tmp_path):
    for k, graph in enumerate(random_graphs(9, 12, 10)):
        path, least = written(graph, tmp_path / f"{k}.el", k), THRESHOLDS[k % len(THRESHOLDS)]
        options = {"undirected": True, "min_left": least[0], "min_right": least[1], "engine": engine, "workers": 0}
        found = rows(bq.maximal_bicliques(path, **options))
        assert found == expected(graph, least)
        counted = bq.count(path, sizes=True, fingerprint=True, **options)
        assert counted.count == len(found)
        assert counted.sizes.total == len(found)


def test_every_count_and_fingerprint_is_that_of_the_rows(whole, source, tmp_path):
    for least in THRESHOLDS:
        options = {"undirected": True, "min_left": least[0], "min_right": least[1]}
        wanted = [
            (left, right)
            for left, right in rows(whole)
            if min(len(left), len(right)) >= min(least) and max(len(left), len(right)) >= max(least)
        ]
        results = bq.mine(source, tmp_path / f"{least}", **options, **QUIET)
        assert rows(results) == wanted
        assert all(min(left) < min(right) and not set(left) & set(right) for left, right in wanted)
        workers = int(least == THRESHOLDS[0])  # a process takes a second to start
        counted = bq.count(source, fingerprint=True, sizes=True, workers=workers, slice_seconds=0.01, **options)
        assert (counted.count, counted.fingerprint) == (len(wanted), results.manifest.fingerprint)
        assert bq.verify(results.path).count == len(wanted)


def test_both_directions_are_twice_as_many(whole, tmp_path):
    edges = edges_of(GRAPH)
    both = np.concatenate([edges, edges[:, ::-1]])
    assert bq.count(list(map(tuple, both.tolist())), workers=0).count == 2 * len(whole)


def test_a_run_that_stopped_goes_on(whole, source, tmp_path):
    out = tmp_path / "out"
    first = bq.mine(source, out, undirected=True, max_results=7, slice_seconds=0.01, **QUIET)
    assert (len(first), first.outcome) == (7, "max_results")
    then = bq.resume(out, max_results=len(whole) // 2, progress=False)
    assert len(then) == len(whole) // 2
    assert bq.resume(out, max_results=None, progress=False).manifest.fingerprint == whole.manifest.fingerprint
    assert bq.mine(source, out, undirected=True, **QUIET).complete
    with pytest.raises(InputError, match="a run with undirected=True and 1 members on one side, not without undir"):
        bq.mine(source, out, **QUIET)


@pytest.mark.values
@pytest.mark.parametrize("by", ["edges", "vertices", "balance"])
@pytest.mark.parametrize("top", [1, 2, 3, 20])
def test_the_largest_are_the_largest_pairs(whole, source, tmp_path, by, top):
    """Where a search that takes both directions for two would end with a bound that is too high."""
    for least in ((1, 1), (2, 4), (3, 3)):
        options = {"undirected": True, "min_left": least[0], "min_right": least[1], "top": top, "by": by}
        found = bq.largest(source, tmp_path / f"{least}", **options, **QUIET)
        measures = sorted(
            (measure(by, len(left), len(right)) for left, right in expected_of(whole, least)), reverse=True
        )
        assert sorted((measure(by, len(left), len(right)) for left, right in found), reverse=True) == measures[:top]
        assert set(map(str, rows(found))) <= set(map(str, rows(whole)))
        assert any("there is no biclique" in words for words in bq.verify(found.path).proven)


def test_a_pair_with_more_edges_may_be_too_small_on_its_larger_side(tmp_path):
    """The search must not begin with the bound that it reaches."""
    graph = nx.disjoint_union(nx.complete_bipartite_graph(5, 5), nx.complete_bipartite_graph(2, 10))
    source = written(graph, tmp_path / "g.el")
    found = bq.largest(source, tmp_path / "out", undirected=True, min_left=10, min_right=2, **QUIET)
    assert rows(found) == [([10, 11], list(range(12, 22)))]
    assert any("there is no biclique" in words for words in bq.verify(found.path).proven)


def expected_of(whole, least):
    sizes = [(min(len(a), len(b)), max(len(a), len(b)), (a, b)) for a, b in rows(whole)]
    return [pair for small, large, pair in sizes if small >= min(least) and large >= max(least)]


def test_labels_stay_one_set(tmp_path):
    edges = [("eve", "ann"), ("eve", "bob"), ("joe", "ann"), ("joe", "bob")]
    results = bq.mine(edges, tmp_path / "out", undirected=True, **QUIET)
    assert rows(results) == [(["ann", "bob"], ["eve", "joe"])]
    assert "4 vertices, 4 edges" in str(results) or results.manifest.input["n_edges"] == 8
    again = bq.mine(results.path, tmp_path / "again", undirected=True, min_left=2, **QUIET)
    assert again.manifest.fingerprint == results.manifest.fingerprint
    with pytest.raises(InputError, match="is a run that has read one kind of vertices, not two"):
        bq.count(results.path)


@pytest.mark.parametrize("name", ["bitmatrix", "cumbe", "cpu", "reference"])
def test_every_engine_can_do_it(name):
    """It lists the bicliques of the double cover, and each slice looks at them."""
    assert engines.kind(name).lacks(Search(mirrored=2)) is None
    assert engines.kind(name).lacks(Search("count", mirrored=2, sizes=True)) in (
        None,
        "it does not count bicliques by size",
    )


REFUSED = {
    "max_left": 3,
    "max_right": 3,
    "containing_left": [1],
    "containing_right": [1],
    "missing_pairs": 1,
    "per_vertex": True,
    "write_on": "gpu",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_says_something_of_a_side_is_refused(source, tmp_path, name):
    least = {"min_left": 3, "min_right": 3} if name == "missing_pairs" else {}
    with pytest.raises(InputError, match=f"leave (it or undirected|{name}='gpu') out"):
        bq.mine(source, tmp_path / "out", undirected=True, **{name: REFUSED[name]}, **least, **QUIET)
    assert not (tmp_path / "out").exists()


def test_other_questions_are_refused(whole, source, tmp_path, capsys):
    out = whole.path
    for words in (
        ("count", source, "--undirected", "--pq", "2x2"),
        ("largest", source, "--undirected", "--by", "left"),
        ("mine", source, "--undirected", "--dry-run"),
        ("mine", source, "--undirected", "-o", tmp_path / "O", "--ingest-on", "gpu"),
        ("verify", out, "--complete"),
        ("communities", out, "--at", "2x2"),
        ("cover", out),
        ("diff", out, out, "-o", tmp_path / "D"),
        ("refresh", out, source, "-o", tmp_path / "R"),
        ("diff", out, source, "-o", tmp_path / "D"),
        ("export", out, "--format", "spmf", "-o", tmp_path / "S"),
        ("look", source, "--undirected"),
    ):
        code, text, errors = run(capsys, *words, *(() if words[0] in ("cover", "look", "export") else ("--quiet",)))
        assert (code, text) == (2, ""), words
        assert errors.count("\n") == 1, (words, errors)


def test_what_a_run_says(whole, source, capsys):
    for words in (("show", whole.path), ("sizes", whole.path), ("explain", whole.path), ("verify", whole.path)):
        assert run(capsys, *words)[0] == 0
    code, text, _ = run(capsys, "count", source, "--undirected", "--min-left", "2", "--min-right", "4", "--quiet")
    assert code == 0
    assert f"{source}: 40 vertices, {GRAPH.number_of_edges()} edges" in text
    assert "only with: at least 2 left members, at least 2 right members, at least 4 members on one side" in text


def test_a_row_in_the_other_direction_is_noticed(whole, source, tmp_path, monkeypatch):
    """It is a maximal biclique of the double cover, so nothing else would notice it."""
    results = bq.mine(source, tmp_path / "out", undirected=True, min_left=2, **QUIET)
    monkeypatch.setattr(Bicliques, "once", lambda self, least: self.pick(np.arange(len(self) - 1)))
    with pytest.raises(IncompleteError, match="too small, or whose least member is on the right"):
        bq.verify(results.path)
