"""For every vertex the number of bicliques with it and the largest of them: from lists, from counts, after anything."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.kernels import engines
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.pipeline.cli.main import main
from bicliques.pipeline.proof import vertices
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.slices.slice_search import SliceSearch
from bicliques.schemas.bicliques import Bicliques, Emit, nowhere, row_hashes
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.hashes import vertex_hashes
from bicliques.schemas.jobs import job_of
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.totals import PerVertex
from bicliques.schemas.work import Slice, Subtrees
from tests.support.emulated import runnable
from tests.support.oracles import graph_of, run
from tests.support.runs import OWN, QUIET, labels_of, random_edges, write_edges

COLUMNS = (
    *("label", "degree", "bicliques"),
    *("edges_left", "edges_right", "edges_id", "balance_left", "balance_right", "balance_id"),
)
#: With twins on both sides, and with many bicliques of the same sizes.
_SOME = random_edges(14, 11, 0.45, 3)
EDGES = np.concatenate([_SOME, _SOME[_SOME[:, 0] < 4] + [14, 0]]).astype(np.int32)


def expected(
    edges: np.ndarray, is_dense: bool = False, **thresholds: int
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """A row per vertex of both sides, by going through all bicliques of the reference engine."""
    pairs = run(ReferenceEngine(), graph_of(edges), Search()).rows
    least = thresholds.get("min_left", 1), thresholds.get("min_right", 1)
    most = thresholds.get("max_left", 99), thresholds.get("max_right", 99)
    pairs = [p for p in pairs if all(a <= len(own) <= b for own, a, b in zip(p, least, most, strict=True))]
    left, right = (pa.array(np.arange(99)),) * 2 if is_dense else labels_of(np.arange(99), np.arange(99))
    known = vertex_hashes(left, "left"), vertex_hashes(right, "right")
    ids = row_hashes(Bicliques.from_pairs([(list(a), list(b)) for a, b in pairs]), known).view(np.int64).tolist()
    sides = []
    for k in (0, 1):
        rows = []
        for vertex, degree in enumerate(np.bincount(edges[:, k])):
            own = [(len(p[0]), len(p[1]), number) for p, number in zip(pairs, ids, strict=True) if vertex in p[k]]
            best = [
                max(own, key=lambda b: (by(b), b[0] * b[1], b[0], b[2]), default=(0, 0, 0))
                for by in (lambda b: b[0] * b[1], lambda b: min(b[:2]))
            ]
            label = vertex * 3 + 5 if k == 0 else vertex * 7 + 1
            rows.append((label, int(degree), len(own), *best[0], *best[1]))
        sides.append(rows)
    return sides[0], sides[1]


def tables(folder: Path) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    found = []
    for side in ("left", "right"):
        table = pq.read_table(folder / f"{side}.parquet")
        assert tuple(table.column_names) == COLUMNS
        found.append([tuple(row.values()) for row in table.to_pylist()])
    return found[0], found[1]


@pytest.mark.parametrize(
    ("engine", "side", "thresholds"),
    [
        ("cpu", "left", {}),
        ("reference", "right", {}),
        ("cpu", "right", {"min_left": 2, "min_right": 3}),
        ("reference", "left", {"max_left": 4}),
        ("cpu", "left", {"min_left": 15}),
    ],
    ids=str,
)
def test_lists_and_counts_say_what_all_bicliques_say(tmp_path, engine, side, thresholds):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    truth, asked = expected(EDGES, **thresholds), {"engine": engine, "root_side": side} | thresholds
    results = bq.mine(source, tmp_path / "out", per_vertex=True, **QUIET, **asked)
    assert tables(tmp_path / "out" / "vertices") == truth
    assert bq.verify(tmp_path / "out").count == len(results)
    counted = bq.count(source, per_vertex=tmp_path / "new" / "counted", **OWN, **asked)
    assert counted.count == len(results)
    assert tables(tmp_path / "new" / "counted") == truth


class OneNode(ReferenceEngine):
    """It is late after its first node, in slices of any length."""

    def mine(self, graph: MiningGraph, subtrees: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        return super().mine(graph, subtrees, search, Limits(0.0, limits.rows), emit)


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(k, marks=pytest.mark.exhaustive) for k in range(4, 12))])
@pytest.mark.first(2)
def test_many_random_graphs_cut_into_slices_of_no_time(seed):
    """Seven workers with two engines take turns, and each leaves work over. Their totals come from ledger entries."""
    rng = np.random.default_rng(seed)
    workers = [OneNode() if k % 3 else engines.kind("cpu").make(0) for k in range(7)]
    for _ in range(25):
        shape = int(rng.integers(2, 13)), int(rng.integers(2, 10))
        edges = random_edges(*shape, float(rng.uniform(0.2, 0.8)), int(rng.integers(1 << 30)))
        least = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        search = Search("count", min_left=least[0], min_right=least[1], per_vertex=True)
        graph = graph_of(edges, BuildOptions(root_side=rng.choice(["left", "right"])), *least)
        totals, work, job = [], Subtrees.of_roots(np.arange(graph.n_roots)), job_of(search)
        while len(work):
            limits = Limits(1e9, rows=int(rng.integers(1, 9)))
            one = SliceSearch(workers[len(totals) % 7], graph, search, limits, nowhere)
            one.all_of(work, 0)
            totals.append(job.read_total(json.loads(json.dumps(one.total.to_json()))))
            work = Subtrees.concat(one.left_over)
        whole = sum((totals[k] for k in rng.permutation(len(totals))), job.zero)
        assert isinstance(whole, PerVertex)
        truth = expected(edges, True, min_left=least[0], min_right=least[1])
        for own, rows in zip((whole.left, whole.right), truth, strict=True):
            own, n = own.padded(len(rows)), len(rows)
            columns = [own.count, *(own.largest[by].hash.view(np.int64) for by in ("edges", "balance"))]
            assert [column.tolist()[:n] for column in columns] == [[row[k] for row in rows] for k in (2, 5, 8)]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_any_number_of_workers_and_a_run_that_was_stopped(tmp_path, workers):
    edges = random_edges(60, 40, 0.25, 5)
    source = write_edges(tmp_path / "g.parquet", edges)
    whole = bq.mine(source, tmp_path / "whole", per_vertex=True, **QUIET)
    out = tmp_path / "out"
    first = bq.mine(source, out, per_vertex=True, max_results=100, **QUIET)
    assert not first.complete
    assert not (out / "vertices").exists()
    limit = 300
    while not (found := bq.resume(out, max_results=limit, **QUIET)).complete:
        limit = None if limit is None or limit > 1000 else 2 * limit
        if limit is None:
            found = bq.resume(out, max_results=None, progress=False, report=False, workers=workers)
            break
    assert found.manifest.fingerprint == whole.manifest.fingerprint
    assert tables(out / "vertices") == tables(tmp_path / "whole" / "vertices")


@pytest.mark.parametrize("name", ["bitmatrix", "cumbe"])
def test_engines_of_a_gpu(tmp_path, name):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    with runnable(name):
        bq.mine(source, tmp_path / "out", engine=name, per_vertex=True, **QUIET)
        bq.count(source, engine=name, per_vertex=tmp_path / "counted", fingerprint=True, **OWN)
    assert tables(tmp_path / "out" / "vertices") == tables(tmp_path / "counted") == expected(EDGES)


def test_with_given_members_and_dense_ids(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    bq.mine(source, tmp_path / "out", per_vertex=True, containing_left=[5], ids="dense", **QUIET)
    rows = bq.open_run(tmp_path / "out").to_arrow().to_pylist()
    left, right = tables(tmp_path / "out" / "vertices")
    assert (left[0][0], left[0][2]) == (5, len(rows))
    assert [row[2] for row in right] == [sum(v in row["right"] for row in rows) for v in range(len(right))]


def test_damaged_tables_are_made_anew(tmp_path):
    source, out = write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "out"
    bq.mine(source, out, per_vertex=True, count_only=True, **QUIET)
    for damage in (lambda file: file.unlink(), lambda file: file.write_bytes(b"nothing")):
        damage(out / "vertices" / "right.parquet")
        assert vertices.why_damaged(Run.at(out)) is not None
        bq.resume(out, **QUIET)
        assert tables(out / "vertices") == expected(EDGES)


def test_tables_of_other_rows_are_refused_by_verify(tmp_path):
    source, out = write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "out"
    bq.mine(source, out, per_vertex=True, **QUIET)
    assert "the tables of vertices count the rows with each vertex" in bq.verify(out).proven
    file = out / "vertices" / "left.parquet"
    table = pq.read_table(file)
    pq.write_table(table.set_column(2, "bicliques", pc.add(table["bicliques"], 1)), file)
    with pytest.raises(IncompleteError, match=r"left.parquet is not of these rows; delete .*resume"):
        bq.verify(out)
    file.unlink()
    with pytest.raises(IncompleteError, match=r"left\.parquet cannot be read"):
        bq.verify(out)
    bq.resume(out, **QUIET)
    assert bq.verify(out).count == len(bq.open_run(out))


def test_rows_that_disagree_with_the_slices_are_refused(tmp_path, monkeypatch):
    write = vertices.write

    def with_one_more(opened: Run, total, summary=None):
        total.left.count[0] += 1
        write(opened, total, summary)

    monkeypatch.setattr(vertices, "write", with_one_more)
    with pytest.raises(IncompleteError, match="have other left members than the slices have counted; mine it again"):
        bq.mine(write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "out", per_vertex=True, **QUIET)
    assert not (tmp_path / "out" / "manifest.json").exists()
    assert not (tmp_path / "out" / "vertices").exists()


def test_what_cannot_be_asked_for_is_one_sentence_and_nothing_is_written(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    for folder, said in ((tmp_path / "full", "is not empty"), (source, "is no folder"), ("s3://a/b", "is a URL")):
        with pytest.raises(InputError, match=said):
            bq.count(source, per_vertex=folder, **OWN)
    with pytest.raises(InputError, match="leave one out"):
        bq.mine(source, tmp_path / "out", per_vertex=True, write_on="gpu", **QUIET)
    with pytest.raises(InputError, match="leave one of both out"):  # as the flow may be asked to
        job_of(Search(largest=3, per_vertex=True))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "g.parquet"]


def test_the_command_line(tmp_path, capsys):
    source, counted = write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "counted"
    assert main(["mine", str(source), "-o", str(tmp_path / "out"), "--per-vertex", "--quiet", "--workers", "0"]) == 0
    assert f"vertices: {tmp_path / 'out' / 'vertices'}\n" in capsys.readouterr().out
    assert main(["count", str(source), "--per-vertex", str(counted), "--quiet", "--workers", "0"]) == 0
    assert f"vertices: {counted}" in capsys.readouterr().out
    assert tables(counted) == tables(tmp_path / "out" / "vertices") == expected(EDGES)
    stopped = ["count", str(source), "--per-vertex", str(tmp_path / "no"), "--max-results", "3", "--quiet"]
    assert main(stopped) == 3
    assert "vertices: not written" in capsys.readouterr().out
    assert not (tmp_path / "no").exists()


def test_workers_keep_the_sums_of_all_their_calls(monkeypatch):
    """A slice times some roots alone, so it calls its engine several times."""
    graph, search = graph_of(EDGES), Search("fingerprint", per_vertex=True)
    one = SliceSearch(engines.kind("cpu").make(0), graph, search, Limits(), nowhere)
    one.all_of(Subtrees.of_roots(np.arange(graph.n_roots)), 4)
    assert len(one.timed) > 1
    assert isinstance(one.total, PerVertex)
    assert one.total.count == run(ReferenceEngine(), graph, replace(search, per_vertex=False)).count
    assert one.total.left.padded(18).count.tolist()[:18] == [row[2] for row in expected(EDGES)[0]]
