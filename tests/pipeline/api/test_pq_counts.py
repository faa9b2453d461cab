"""Counts of p x q bicliques from Python and on the command line."""

import json
import threading
from math import comb

import numpy as np
import pyarrow.parquet as pq_file
import pytest

import bicliques as bq
from bicliques.kernels import engines
from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.pipeline.results import pq
from bicliques.pipeline.results.pq import digits
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.search import Search
from tests.support.commands import run
from tests.support.emulated import runnable
from tests.support.oracles import bicliques_by_size, random_edges
from tests.support.runs import write_edges

EDGES = random_edges(np.random.default_rng(8), 9, 12, 0.5)
EXPECTED = bicliques_by_size(EDGES)


@pytest.mark.parametrize(("engine", "workers"), [("reference", 0), ("cpu", 0), ("cpu", 1), ("bitmatrix", 0)])
def test_every_pair_of_sizes_has_its_number(source, engine, workers):
    with runnable(engine):
        counts = bq.pq_counts(source, engine=engine, workers=workers, slice_seconds=0.01)
    assert all(counts[p, q] == EXPECTED[p, q] for p in range(1, 11) for q in range(1, 14))
    assert all(type(counts[p, 2]) is int for p in (1, 2, 9))
    assert counts.total == sum(EXPECTED.values())
    assert counts.checks[0] == "checksum of the leaves"
    assert {"edges", "butterflies"} < set(counts.checks)
    assert counts.shape == tuple(max(side) for side in zip(*EXPECTED, strict=True))


def test_what_a_gpu_leaves_over_has_vertices_of_both_sides(tmp_path, monkeypatch):
    file = write_edges(tmp_path / "g.parquet", random_edges(np.random.default_rng(2), 30, 40, 0.4))
    mine, held = BitMatrixEngine.mine, []

    def spied(self, graph, subtrees, *rest):
        held.append(int((subtrees.path >= graph.n_roots).sum()))
        return mine(self, graph, subtrees, *rest)

    monkeypatch.setattr(BitMatrixEngine, "mine", spied)
    with runnable("bitmatrix"):
        counts = bq.pq_counts(file, engine="bitmatrix", workers=0, slice_seconds=0.01)
    assert counts.table() == bq.pq_counts(file, engine="cpu", workers=0).table()
    assert sum(map(bool, held)) > 3


def test_sizes_up_to_a_bound_are_all_that_is_told(source):
    some = bq.pq_counts(source, (2, 3), workers=0)
    assert some.table() == [[EXPECTED[p, q] for q in (1, 2, 3)] for p in (1, 2)]
    assert some.total == sum(map(sum, some.table()))
    for wrong, why in (((3, 1), "3x1 bicliques were not counted"), ((0, 1), "at least 1"), (2, "must be two sizes")):
        with pytest.raises(InputError, match=why):
            some[wrong]


def test_the_command_prints_the_table(source, capsys):
    code, text, _ = run(capsys, "count", source, "--pq", "2x3", "--quiet")
    assert code == 0
    assert [f"{EXPECTED[2, q]:,}" for q in (1, 2, 3)] == text.splitlines()[-1].split()[1:]
    assert "as the input says: checksum of the leaves, edges" in text
    code, text, _ = run(capsys, "count", source, "--pq", "all", "--quiet", "--json")
    told = json.loads(text)
    assert told["pq"]["total"] == str(sum(EXPECTED.values()))
    assert told["pq"]["table"][1][1] == str(EXPECTED[2, 2])
    assert len(told["pq"]["checks"]) == 6


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--pq", "2"), "--pq must be two numbers from 1 to 999999999, as 4x4, or the word all, not '2'"),
        (("--pq", "cliques"), "--pq counts bicliques, and the command cliques, or bicliques.clique_counts, cliques"),
        (("--pq", "all", "--min-left", "2"), "leave thresholds, filters and given members out"),
        (("--pq", "all", "--max-results", "2"), "leave --max-results out"),
        (("--pq", "all", "--per-vertex", "V"), "--per-vertex counts bicliques of one size: give it as --pq 2x2"),
        (("--pq", "2x2", "--sizes"), "leave --sizes and --fingerprint out"),
    ],
)
def test_what_does_not_go_together_is_refused(source, options, why, capsys):
    code, text, errors = run(capsys, "count", source, *options, "--quiet")
    assert (code, text) == (2, "")
    assert why in errors
    assert errors.count("\n") == 1


def test_an_engine_that_does_not_count_them_says_so():
    assert engines.kind("cumbe").lacks(Search("count", pq="all")) == "it cannot do the job 'pq'"


@pytest.mark.parametrize("wrong", [(2,), (0, 2), 4, (2, 2, 2), ("a", 2), "2x2"])
def test_sizes_that_are_none_are_refused(source, wrong):
    with pytest.raises(InputError):
        bq.pq_counts(source, wrong)


def test_a_count_that_was_stopped_has_no_numbers(source):
    stop = threading.Event()
    stop.set()
    with pytest.raises(IncompleteError, match="count again, with a later time_limit if it had one"):
        bq.pq_counts(source, workers=0, stop=stop)


def test_numbers_that_contradict_the_wedges_are_refused(source, monkeypatch):
    monkeypatch.setattr(pq, "count_common", lambda *arrays: arrays[4].__setitem__(2, 1))
    with pytest.raises(IncompleteError, match="butterflies, and the input has 1; count again"):
        bq.pq_counts(source, workers=0)


def test_the_bicliques_of_every_vertex(source, tmp_path, capsys):
    code, text, _ = run(capsys, "count", source, "--pq-per-vertex", "2x3", tmp_path / "V", "--quiet")
    assert code == 0
    assert f"vertices: {tmp_path / 'V'}" in text
    for column, side in enumerate(("left", "right")):
        table = pq_file.read_table(tmp_path / "V" / f"{side}.parquet").to_pydict()
        assert sum(table["bicliques"]) == (2, 3)[column] * EXPECTED[2, 3]
        for label, degree, number in zip(table["label"], table["degree"], table["bicliques"], strict=True):
            own = EDGES[EDGES[:, column] != ((label - 5) // 3, (label - 1) // 7)[column]]
            assert (len(EDGES) - len(own), number) == (degree, EXPECTED[2, 3] - bicliques_by_size(own)[2, 3])


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_butterflies_of_every_edge(source, tmp_path, side, monkeypatch):
    bq.count(source, pq="2x2", per_vertex=tmp_path / "V", root_side=side, workers=0)
    rows = pq_file.read_table(tmp_path / "V" / "edges.parquet").to_pylist()
    edges = [((row["left"] - 5) // 3, (row["right"] - 1) // 7) for row in rows]
    assert edges == sorted(map(tuple, EDGES.tolist()))
    for edge, row in zip(edges, rows, strict=True):
        without = bicliques_by_size(EDGES[(edge != EDGES).any(axis=1)])
        assert row["bicliques"] == EXPECTED[2, 2] - without[2, 2]
    monkeypatch.setattr(pq, "butterflies_of_edges", lambda *arrays: arrays[-1].__setitem__(0, 1))
    with pytest.raises(IncompleteError, match="the numbers of the edges do not add up to"):
        bq.count(source, pq="2x2", per_vertex=tmp_path / "W", workers=0)
    bq.count(source, pq="2x3", per_vertex=tmp_path / "X", workers=0)
    assert {file.name for file in (tmp_path / "X").iterdir()} == {"left.parquet", "right.parquet"}


def test_too_many_for_a_vertex_are_refused(tmp_path, capsys):
    complete = write_edges(tmp_path / "k.parquet", np.argwhere(np.ones((70, 80), bool)).astype(np.int32))
    code, _, errors = run(capsys, "count", complete, "--pq-per-vertex", "30x30", tmp_path / "V", "--quiet")
    assert (code, errors.count("\n"), (tmp_path / "V").exists()) == (2, 1, False)
    assert "has room for 2**63 of each vertex: ask for smaller sizes" in errors
    counted = bq.count(complete, pq="3x3", per_vertex=tmp_path / "V", workers=0)
    assert counted.vertices == str(tmp_path / "V")
    (number,) = set(pq_file.read_table(tmp_path / "V" / "left.parquet")["bicliques"].to_pylist())
    assert number == comb(69, 2) * comb(80, 3)


def test_shares_that_do_not_add_up_are_refused(source, tmp_path, monkeypatch):
    monkeypatch.setattr(
        pq.LeafCounter, "shares", lambda self, *_: [np.ones(len(at), np.uint64) for at in self._local[:2]]
    )
    with pytest.raises(IncompleteError, match="do not add up to"):
        bq.count(source, pq="2x2", per_vertex=tmp_path / "V", workers=0)
    assert not (tmp_path / "V").exists()


def test_numbers_of_any_length_become_text(tmp_path, capsys):
    n = 7 * 10**9000 + 12
    assert digits(n) == "7" + "0" * 8998 + "12"
    assert [digits(k) for k in (0, 5, 10**4000 - 1)] == ["0", "5", "9" * 4000]
    complete = write_edges(tmp_path / "k.parquet", np.argwhere(np.ones((70, 80), bool)).astype(np.int32))
    _, text, _ = run(capsys, "count", complete, "--pq", "all", "--quiet", "--json")
    assert json.loads(text)["pq"]["total"] == str((2**70 - 1) * (2**80 - 1))
    assert json.loads(text)["count"] == str((2**70 - 1) * (2**80 - 1))
    _, text, _ = run(capsys, "count", complete, "--pq", "all", "--quiet")
    assert "bicliques: 1.427... x 10^45" in text
