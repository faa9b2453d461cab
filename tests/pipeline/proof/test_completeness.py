"""Rows that are missing are found with the probability that is told, and a run that has all of them is accepted."""

from collections import Counter
from math import comb, sqrt
from pathlib import Path
from random import Random

import numpy as np
import pytest

import bicliques as bq
from bicliques.kernels.cpu import leaves as cpu_leaves
from bicliques.kernels.reference.tree import Tree
from bicliques.pipeline.prepare.build import read_edges
from bicliques.pipeline.proof import completeness
from bicliques.pipeline.proof.completeness import _around, _Numbered, common, draw
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.search import Search
from tests.support.commands import run as command
from tests.support.oracles import all_pairs, bicliques_by_size, random_edges, whole_graph_of
from tests.support.runs import quiet, write_edges

EDGES = random_edges(np.random.default_rng(2), 12, 14, 0.5)


def mined(folder: Path, edges: np.ndarray = EDGES, **options) -> Path:
    source = write_edges(folder / "g.parquet", edges)
    bq.mine(source, folder / "RUN", workers=0, report=False, **{"engine": "cpu"} | options)
    return folder / "RUN"


@pytest.fixture
def lossy(tmp_path, monkeypatch):
    """A run that lacks one row, and how many members that has. Its count and fingerprint are those of its rows."""
    lost = max((pair for pair in all_pairs(EDGES) if len(pair[0]) == 4), key=lambda pair: len(pair[1]))
    whole = Tree.biclique

    def biclique(self: Tree, node):
        found = whole(self, node)
        return None if found is not None and found.left.tolist() == list(lost[0]) else found

    monkeypatch.setattr(Tree, "biclique", biclique)
    run = mined(tmp_path, engine="reference")
    assert bq.open_run(run).manifest.count == len(all_pairs(EDGES)) - 1
    return run, (len(lost[0]), len(lost[1]))


def test_every_biclique_has_a_number_of_its_own(monkeypatch):
    rng, random = np.random.default_rng(1), Random(0)
    for k in range(16):
        edges = random_edges(rng, *rng.integers(2, 9, 2).tolist(), rng.uniform(0.3, 0.9))
        monkeypatch.setattr(cpu_leaves, "_WIDE", (1 << 22, 3)[k % 2])
        graph = whole_graph_of(edges, ("left", "right")[k % 2])
        expected = bicliques_by_size(edges)
        for p, q in ((1, 1), (1, 2), (2, 2), (3, 1), (3, 2)):
            sizes = (p, q) if graph.root_side == "left" else (q, p)
            numbered, start = _Numbered(graph, sizes), np.empty(0, np.int32)
            n = sum(numbered.below(start)[1])
            assert n == expected[p, q]
            drawn = list(numbered.at(start, list(range(n)), random))
            paths = Counter(tuple(path.tolist()) for path, _ in drawn)
            assert len(drawn) == n
            for path, base in drawn:
                shared = common(graph.root_indptr, graph.root_indices, path)
                assert set(base.tolist()) <= set(shared.tolist())
                assert (len(path), len(base)) == sizes
                assert paths[tuple(path.tolist())] == comb(len(shared), sizes[1])


@pytest.mark.parametrize("side", ["left", "right"])
def test_exactly_those_that_contain_what_was_drawn_are_searched(side):
    graph, random, rows = whole_graph_of(EDGES, side), Random(1), all_pairs(EDGES)
    for sizes in ((1, 1), (2, 2), (3, 1)):
        numbered, start = _Numbered(graph, sizes), np.empty(0, np.int32)
        n = sum(numbered.below(start)[1])
        for path, base in numbered.at(start, sorted(random.sample(range(n), 15)), random):
            drawn = graph.root_members[path], graph.base_members[base]
            left, right = (set(ids.tolist()) for ids in (drawn if side == "left" else drawn[::-1]))
            around = [row for row in rows if left <= set(row[0]) and right <= set(row[1])]
            for least in (1, 3):
                found = _around(graph, path, base, Search(min_left=least, min_right=least))
                large = sorted(tuple(map(len, row)) for row in around if min(map(len, row)) >= least)
                assert sorted(map(tuple, found[1:].T.tolist())) == large


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1)])
@pytest.mark.first(1)
def test_a_missing_row_is_found_as_often_as_is_told(lossy, sizes):
    path, lost = lossy
    opened, turns = Run.at(path), 60
    edges, rows = read_edges(opened.folder), {row.id for row in bq.open_run(path)}
    hits, n = 0, sum(sizes)
    for seed in range(turns):
        drawn = draw(opened, edges, sizes, n, seed, quiet)
        hits += not set(drawn.found[0].view(np.int64).tolist()) <= rows
    chance = drawn.chance(*lost)
    assert 0.1 < chance < 0.9
    assert abs(hits - turns * chance) < 4 * sqrt(turns * chance * (1 - chance))


def test_a_run_without_one_row_is_refused(lossy, capsys):
    path, (left, right) = lossy
    assert bq.verify(path, progress=False).count == len(all_pairs(EDGES)) - 1
    with pytest.raises(IncompleteError, match=f"lacks 1 maximal biclique around .* with {left} left and {right} right"):
        bq.verify(path, complete=(1, 1), sample=100, progress=False)
    code, text, errors = command(capsys, "verify", path, "--complete", "--sample", "100", "--quiet")
    assert (code, text, errors.count("\n")) == (1, "", 1)


@pytest.mark.parametrize("options", [{"root_side": "left"}, {"min_left": 3, "min_right": 2, "root_side": "right"}])
@pytest.mark.first(1)
def test_a_run_that_has_all_rows_is_accepted(tmp_path, options):
    run = mined(tmp_path, **options)
    for sizes in ((1, 1), (2, 3)):
        told = bq.verify(run, complete=sizes, sample=40, progress=False).sampled_only[-1]
        assert "around 40 that were drawn uniformly (seed 0)" in told
        assert f"bicliques of {sizes[0]} x {sizes[1]}" in told
    rows = bq.open_run(run).manifest.count
    found = draw(Run.at(run), read_edges(Run.at(run).folder), (1, 1), 400, 1, quiet).found
    assert found.shape == (3, rows)


def test_many_ids_are_gathered_in_turns(tmp_path, monkeypatch):
    run = Run.at(mined(tmp_path))
    edges = read_edges(run.folder)
    whole = draw(run, edges, (2, 2), 50, 3, quiet)
    monkeypatch.setattr(completeness, "_GATHERED", 10)
    assert np.array_equal(draw(run, edges, (2, 2), 50, 3, quiet).found, whole.found)


@pytest.mark.parametrize("options", [{"max_left": 9}, {"containing_right": [8]}, {"count_only": True}])
def test_runs_that_need_not_have_all_rows_are_refused(tmp_path, options):
    run = mined(tmp_path, **options)
    with pytest.raises(InputError, match=r"in runs without most members|count_only"):
        bq.verify(run, complete=(1, 1), progress=False)


def test_the_largest_and_a_run_that_was_stopped_are_refused(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    bq.largest(source, tmp_path / "LARGEST", top=2, workers=0, report=False)
    with pytest.raises(InputError, match="in runs without most members, given members and largest ones"):
        bq.verify(tmp_path / "LARGEST", complete=(1, 1), progress=False)
    bq.mine(source, tmp_path / "SHORT", workers=0, max_results=3, report=False)
    with pytest.raises(IncompleteError, match="is not complete"):
        bq.verify(tmp_path / "SHORT", complete=(1, 1), progress=False)


@pytest.mark.parametrize(
    ("sizes", "why"),
    [((0, 1), "at least 1"), ((30, 30), "no biclique of 30 x 30"), (4, "two sizes"), ((1,), "two sizes")],
)
def test_sizes_that_cannot_be_drawn_are_refused(tmp_path, sizes, why):
    with pytest.raises(InputError, match=why):
        bq.verify(mined(tmp_path), complete=sizes, progress=False)
