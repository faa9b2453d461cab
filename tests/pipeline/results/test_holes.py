"""What is shown of rows with missing pairs: each pair by name, as a hole, and never as an edge."""

import csv
import io
import json
import math
import re
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.pipeline.proof.verification import Adjacency
from bicliques.pipeline.results import candidates
from bicliques.pipeline.results.edges import Parts, degrees_of
from bicliques.pipeline.results.report.content import content_of
from bicliques.pipeline.results.report.page import _holes
from bicliques.pipeline.results.surprise import Surprise
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.errors import IncompleteError, InputError
from tests.support.notebook import HOSTILE
from tests.support.runs import OWN, QUIET, random_edges, write_edges
from tests.support.svg import SVG, parsed, squares

EDGES = random_edges(14, 12, 0.72, 42)
THERE = {(3 * u + 5, 7 * v + 1) for u, v in EDGES.tolist()}  # as `write_edges` labels them
ASKED = [{"missing_pairs": 2, "min_left": 4, "min_right": 4}, {"missing_each": 1, "min_left": 5, "min_right": 4}]


@pytest.fixture(scope="module", params=ASKED, ids=["pairs", "each"])
def results(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("holes")
    return bq.mine(write_edges(folder / "g.parquet", EDGES), folder / "out", **request.param, **OWN)


def holes_of(row: dict[str, Any]) -> set[tuple[int, int]]:
    return {(u, v) for u in row["left"] for v in row["right"]} - THERE


def bits_of(row: dict[str, Any]) -> float:
    """The surprise by its definition: the bits of the edges, less those that say which pairs these are."""
    left, right = Counter(u for u, _ in THERE), Counter(v for _, v in THERE)
    pairs = {(u, v) for u in row["left"] for v in row["right"]}
    joined = sum(-math.log2(-math.expm1(-left[u] * right[v] / len(THERE))) for u, v in pairs & THERE)
    ways = (len(left), row["n_left"]), (len(right), row["n_right"]), (len(pairs), len(pairs - THERE))
    return joined - sum(math.log2(math.comb(n, k)) for n, k in ways)


@pytest.mark.first(1)
def test_explain_names_the_missing_pairs_and_counts_edges_alone(results):
    rows = results.to_arrow().to_pylist()
    some = np.random.default_rng(1).choice(len(rows), 12, replace=False).tolist()
    most = max(range(len(rows)), key=lambda k: rows[k]["missing"])
    for row in (rows[k] for k in {*some, most}):
        found, holes = results.explain(row["id"], n=5), holes_of(row)
        named = [(one["label"], v) for one in found.holes.to_pylist() for v in one["missing"]]
        assert (len(named), {*named}, found.n_holes) == (row["missing"], holes, row["missing"])
        edges = {(u, v) for u in row["left"] for v in row["right"]} & THERE
        shares = {
            other["id"]: len(edges & {(u, v) for u in other["left"] for v in other["right"]})
            for other in rows
            if other["id"] != row["id"]
        }
        told = {other["id"]: other["shared_edges"] for other in found.overlapping.to_pylist()}
        assert told == {id: shares[id] for id in told}
        assert sorted(told.values()) == sorted(shares.values())[-5:]
        assert found.overlapping["share"].to_pylist() == [n / len(edges) for n in told.values()]
        assert found.surprise == pytest.approx(bits_of(row), abs=1e-4)
        title, text = str(found).splitlines()[0], str(found)
        assert title.startswith(f"near-biclique {row['id']} of ")
        assert f"{len(edges)} edge" in title
        assert f"{row['missing']} missing pair" in title
        assert ("of it are no edges" in text) == (row["missing"] > 1)
        assert found.to_json()["holes"] == found.holes.to_pylist()


def test_a_picture_crosses_the_missing_pairs_out(results):
    row = max(results.to_arrow().to_pylist(), key=lambda row: row["missing"])
    root = parsed(results.plot(row["id"], missing=0, n=1).svg)
    assert len(squares(root, "hole")) == row["missing"] + 1, "one is in the legend"
    assert len(squares(root, "own")) == row["n_left"] * row["n_right"] - row["missing"] + 1
    assert f"with {row['missing']} missing pairs" in (root.get("aria-label") or "")


def test_members_with_a_hole_are_drawn_among_many(tmp_path):
    is_edge = np.ones((200, 4), bool)
    is_edge[101, 2] = False
    out = bq.mine(np.argwhere(is_edge), tmp_path / "out", missing_pairs=1, min_left=2, min_right=2, report=False, **OWN)
    root = parsed(out.plot().svg)
    assert len(squares(root, "hole")) == 2
    assert len(squares(root, "own")) == 30 * 4 - 1 + 1


def test_surprise_is_of_the_edges_and_of_the_places_of_the_holes(results, monkeypatch):
    table = results.top(len(results), "surprise")
    bits = table["surprise"].to_pylist()
    assert bits == pytest.approx([bits_of(row) for row in table.to_pylist()], abs=1e-4)
    assert bits == sorted(bits, reverse=True)
    monkeypatch.setattr(candidates, "_FIRST", 2)
    assert results.top(3, "surprise").equals(table.slice(0, 3))


def test_bounds_of_the_surprise_hold_where_no_member_has_other_neighbours(results, tmp_path):
    """A row may have more members than any vertex has neighbours."""
    block = np.argwhere(~np.eye(5, dtype=bool))
    alone = bq.mine(block, tmp_path / "out", missing_each=1, min_left=3, min_right=3, report=False, **OWN)
    assert alone.top(1, "surprise")["missing"].to_pylist() == [5]
    for one in (results, alone):
        run = Run.with_holes(one.path)
        score, rows = Surprise(run, degrees_of(run)), Parts(run, one.files).rows(0, 0)
        sizes = np.diff(rows.left_indptr), np.diff(rows.right_indptr)
        found = score.of(rows, np.arange(len(rows)))
        assert (found <= score.bounds(*sizes)).all()
        assert (found <= score.most(*map(max, sizes))).all()


def test_rows_without_holes_have_the_surprise_of_bicliques(tmp_path):
    sizes = {"min_left": 4, "min_right": 4}
    edges = np.concatenate([EDGES, np.argwhere(np.ones((5, 4), bool)) + 20])  # nothing else is joined to the last ones
    near = bq.mine(edges, tmp_path / "near", missing_pairs=1, **sizes, **QUIET)
    plain = bq.mine(edges, tmp_path / "plain", **sizes, **QUIET)
    of_plain = dict(zip(*plain.top(999, "surprise").select(["id", "surprise"]).to_pydict().values(), strict=True))
    same = [row for row in near.top(9999, "surprise").to_pylist() if row["missing"] == 0]
    assert [row["surprise"] for row in same] == [of_plain[row["id"]] for row in same]
    assert same


def test_distinct_rows_share_few_pairs_with_better_ones(results):
    kept = []
    for row in results.top(len(results)).to_pylist():
        pairs = {(u, v) for u in row["left"] for v in row["right"]}
        if all(len(pairs & other) / len(pairs) <= 0.6 for other in kept):
            kept.append(pairs)
    found = results.top(len(results), distinct=0.6).to_pylist()
    assert [{(u, v) for u in row["left"] for v in row["right"]} for row in found] == kept
    assert len(kept) < len(results)


def test_text_has_the_number_of_missing_pairs(results, tmp_path):
    missing = {row["id"]: row["missing"] for row in results.to_arrow().to_pylist()}
    for format in ("csv", "jsonl"):
        results.export(format, tmp_path / format)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "csv").read_text())))
    assert {int(row["id"]): int(row["missing"]) for row in rows} == missing
    assert json.loads(rows[0]["left"]) == results[0].left
    lines = [json.loads(line) for line in (tmp_path / "jsonl").read_text().splitlines()]
    assert {int(line["id"]): line["missing"] for line in lines} == missing
    plain = bq.mine(results.path.parent / "g.parquet", tmp_path / "plain", report=False, **OWN)
    for format in ("cxt", "adj"):  # which hold the graph
        for number, own in enumerate((results, plain)):
            own.export(format, tmp_path / f"{format}{number}")
        assert (tmp_path / f"{format}0").read_bytes() == (tmp_path / f"{format}1").read_bytes()


def test_the_page_says_how_many_rows_have_how_many_holes(results):
    counts = Counter(results.to_arrow()["missing"].to_pylist())
    assert content_of(Run.with_holes(results.path)).holes == dict(sorted(counts.items()))
    page = (results.path / "report.html").read_text()
    part = page[page.index('<section id="holes">') : page.index('<section id="top">')]
    cells = re.findall(r'<tr><td class="n">(\d+)</td>.*?<td class="n">([\d,]+)</td>', part, re.DOTALL)
    assert [(int(k), int(n.replace(",", ""))) for k, n in cells] == sorted(counts.items())
    assert re.search(rf"All {len(results):,} groups of .* that share .*, with at most \d missing", page)
    assert "most pairs" in page
    assert "most edges" not in page.partition("<script")[0]


def test_the_page_of_many_kinds_of_holes_ends_with_one_line():
    lines = _holes({k: 2 * k + 1 for k in range(50)})
    assert lines[:2] == [("0", 1), ("1", 3)]
    assert (len(lines), lines[-1]) == (20, ("more", sum(2 * k + 1 for k in range(19, 50))))
    assert len(_holes({k: 1 for k in range(20)})) == 20


def test_the_page_of_bicliques_has_no_holes(tmp_path):
    out = bq.mine(EDGES, tmp_path / "out", **OWN)
    page = (out.path / "report.html").read_text()
    assert 'id="holes"' not in page
    assert "near-biclique" not in page
    assert "holes" not in out.explain().to_json()


def test_no_label_of_a_missing_pair_is_code(tmp_path):
    labels = [*HOSTILE, "a\nb", "\x1b[31mred", "</script><script>alert(1)</script>"]
    pairs = [(a, b) for i, a in enumerate(labels) for j, b in enumerate(labels) if i + j != 15 or i % 8 > 1]
    table = pa.table({"<i>l": [a for a, _ in pairs], "<b>r": [b for _, b in pairs]})
    out = bq.mine(table, tmp_path / "<u>run", missing_pairs=4, min_left=9, min_right=9, **OWN)
    found = out.explain(n=99)
    assert found.n_holes == 4
    assert all(line.isprintable() for line in str(found).splitlines())
    assert not re.search(r"<(script|img|i>|u>)", found._repr_html_())
    assert {one.tag for one in parsed(out.plot().svg).iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "style", "title", "text", "path")
    }
    page = (out.path / "report.html").read_text()
    assert 'id="holes"' in page
    assert "<script>alert" not in page
    assert "<u>run" not in page


def test_holes_of_rows_that_state_another_number_are_refused():
    adjacency = Adjacency(*np.ascontiguousarray(EDGES.T), 14, 12)
    row = Bicliques.from_pairs([([0, 1, 2], [0, 1, 2])])
    n = sum((u, v) not in {*map(tuple, EDGES.tolist())} for u in range(3) for v in range(3))
    for wrong in (n - 1, n + 1):
        with pytest.raises(IncompleteError, match="states another number of missing pairs"):
            adjacency.holes(Bicliques(**row.arrays, missing=np.array([wrong], np.int32)))


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (lambda results, out: results.cover(2), "a cover counts every pair of a row as an edge"),
        (lambda results, out: bq.verify(results.path, complete=(4, 4)), "rows of which every pair is an edge"),
        (lambda results, out: results.communities(3, 3), "communities rest on rows of which every pair is an edge"),
        (lambda results, out: results.export("spmf", out / "rows"), "counts who has all of its items"),
        (lambda results, out: results.to_networkx(), "would have an edge for every pair"),
    ],
    ids=["cover", "complete", "communities", "spmf", "networkx"],
)
def test_what_takes_every_pair_for_an_edge_refuses_the_run_and_says_why(asked, why, results, tmp_path):
    sentence = f"near-bicliques, of which a few pairs are no edges, and .*{why}; mine without"
    with pytest.raises(InputError, match=sentence):
        asked(results, tmp_path)
    assert list(tmp_path.iterdir()) == []
