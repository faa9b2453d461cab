"""What the script of the page gets, without a browser: all members of what is listed, or it says which."""

import base64
import itertools
import json
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.pipeline.results.report import listed as listing
from bicliques.pipeline.results.report.content import content_of
from bicliques.pipeline.results.report.listed import Listed
from bicliques.pipeline.results.report.page import PAGE, SHOWN, UNFOLDED, packed
from bicliques.pipeline.run.opened import Run
from tests.support.runs import OWN, QUIET, random_edges, write_edges

EDGES = random_edges(60, 40, 0.3, 11)
SIDES = ("left", "right")


@pytest.fixture
def out(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES, strings=True)
    return bq.mine(source, tmp_path / "out", **QUIET).path


def listed_of(run: Path) -> Listed:
    found = content_of(Run.at(run)).listed
    assert found is not None
    return found


def unpacked(text: str) -> dict[str, Any]:
    """What the script of the page unpacks. Labels are whole, and the members of each row are labels."""
    data = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
    assert (data["page"], data["unfolded"]) == (PAGE, UNFOLDED)
    for side in SIDES:
        labels, rows = [""], []
        for label in data["labels"][side]:
            common = labels[-1].encode("utf-16-le")[: 2 * (ord(label[0]) - 48)]  # JavaScript counts these units
            labels.append(common.decode("utf-16-le") + label[1:])
        del labels[0]
        for above, *steps in data["members"][side]:
            own = set(itertools.accumulate(steps))
            rows.append(own if above < 0 else rows[above] ^ own)
        data["labels"][side] = labels
        data["members"][side] = [[labels[k] for k in sorted(row)] for row in rows]
    return data


def of_page(page: Path) -> dict[str, Any]:
    found = re.search(r'<script type="text/plain" id="labels">(.*?)</script>', page.read_text(), re.DOTALL)
    return unpacked(found[1])


def test_all_members_of_the_listed_bicliques_are_there(tmp_path):
    """Also of a list of which the page shows the beginning only."""
    names = [f"user {k} </script>" for k in range(900)]
    edges = pa.table({"l": np.repeat(names, 2), "r": np.tile(["<b>", "x"], 900)})
    edges = pa.concat_tables([edges, pa.table({"l": ["one"], "r": ["x"]})])
    results = bq.mine(edges, tmp_path / "out", **OWN)
    data = of_page(results.path / "report.html")
    assert data["most"] is None
    for by in ("edges", "balance"):
        for k, row in zip(data["lists"][by], results.top(100, by).to_pylist(), strict=True):
            assert [data["members"][side][k] for side in SIDES] == [sorted(row[side]) for side in SIDES]
            assert [data["n"][side][k] for side in SIDES] == [row["n_left"], row["n_right"]]


HOSTILE = ["", "\\", '"', "\u2028", "</script>", "🌟", "🌟a", "🌟b", "a🌟", "a🌟b", "a" * 99, "a" * 100, "\ud83c"]


@pytest.mark.parametrize("seed", range(8))
def test_any_rows_and_labels_come_back(seed):
    draw = np.random.default_rng(seed)
    names = sorted({*HOSTILE[:-1], *(str(n) for n in draw.integers(0, 3000, 80))}, key=lambda label: label.encode())

    def lists(n: int) -> Sequence[list[str]]:
        return [draw.permutation(names)[: draw.integers(1, len(names))].tolist() for _ in range(n)]

    left, right = lists(12), lists(12)
    sizes = {f"n_{side}": [len(row) for row in rows] for side, rows in (("left", left), ("right", right))}
    table = pa.table({"left": left, "right": right, "id": range(-6, 6)} | sizes)
    table = table.take(np.lexsort((table["id"], table["n_left"], np.multiply(table["n_left"], table["n_right"])))[::-1])
    places = [(0, 0, k) for k in range(12)]
    ranks = np.column_stack([np.zeros((9, 4), int), places[:9]])
    found = listing.listed(table, places, {"edges": ranks}, places[9:])
    left, right = table["left"].to_pylist(), table["right"].to_pylist()
    data = unpacked(packed(found, {"more": 1}, 10**9))
    assert (data["ids"], data["more"], data["most"]) == ([str(k) for k in found.ids], 1, None)
    assert found.rows == table, "those of the ranking first"
    assert data["lists"] == {"edges": list(range(9))}
    for side, rows in (("left", left), ("right", right)):
        assert [set(row) for row in data["members"][side]] == [set(row) for row in rows]
        assert data["labels"][side] == [name for name in names if any(name in row for row in rows)]
    assert data["shares"] == [], "the script counts them"
    short = packed(found, {}, 1200)
    some = unpacked(short)
    assert np.array_equal(some["shares"], np.floor(100 * found.shares[:9, :9] + 1e-9))
    assert len(short) <= 1200
    assert 0 < some["most"] < max(len(row) for row in (*left, *right))
    for side, rows in (("left", left), ("right", right)):
        first = [sorted(row, key=lambda label: label.encode())[: some["most"]] for row in rows]
        assert [sorted(row, key=lambda label: label.encode()) for row in some["members"][side]] == first
    assert unpacked(packed(found, {}, 1))["most"] == 0, "there is no room for any"


def test_numbers_are_listed_by_value_and_a_label_may_be_on_both_sides(tmp_path):
    numbers = [9, 10, 100, 2, 5]
    edges = pa.table({"l": np.repeat(numbers, 2), "r": np.tile(["9", "100"], 5)})
    bq.mine(edges, tmp_path / "out", **OWN)
    data = of_page(tmp_path / "out" / "report.html")
    assert data["members"] == {"left": [["2", "5", "9", "10", "100"]], "right": [["100", "9"]]}
    assert data["numeric"] == {"left": True, "right": False}


def test_the_rows_are_the_largest_by_both_measures_each_once(out):
    found, results = listed_of(out), bq.open_run(out)
    assert len(set(found.ids)) == len(found.ids) == len(found.rows) > 100
    for by, order in found.lists.items():
        assert found.numbers[by][:100].tolist() == list(range(1, 101))
        assert found.rows["id"].take(order[:100]).to_pylist() == results.top(100, by)["id"].to_pylist()
    assert list(found.lists) == ["surprise", "edges", "balance"], "the first one is shown first"
    edges = np.prod([found.sizes(k) for k in range(len(found.ids))], axis=1)
    ranked = set(np.concatenate(list(found.lists.values())).tolist())
    assert ranked == set(range(found.n_ranked)), "they come first"
    for own in (edges[: found.n_ranked], edges[found.n_ranked :]):
        assert len(own) > 1
        assert (np.diff(own) <= 0).all()
    assert found.first(3, "left", SHOWN) == sorted(found.rows["left"][3].as_py())[:SHOWN]


def test_rows_that_repeat_a_better_one_are_known(out):
    found = listed_of(out)
    edges = [{(a, b) for a in row["left"] for b in row["right"]} for row in found.rows.to_pylist()]
    for by, order in (*found.lists.items(), ("all", np.arange(len(edges)))):
        kept = []
        for k, other in zip(order.tolist(), found.repeats[by].tolist(), strict=True):
            own = [len(edges[k] & edges[j]) / len(edges[k]) for j in kept]
            assert (other >= 0) == (max(own, default=0) > 0.8)
            if other < 0:
                kept.append(k)
        assert 0 < len(kept) <= len(order)


def test_what_has_nearly_room_is_packed_better_and_not_cut(out):
    found = listed_of(out)
    whole = packed(found, {}, 10**9)
    better = packed(found, {}, len(whole) - 1)
    assert len(better) < len(whole)
    assert unpacked(better) == unpacked(whole)
    assert unpacked(better)["most"] is None
    assert unpacked(packed(found, {}, int(0.9 * len(whole))))["most"] is not None


def test_more_members_than_can_be_compared_are_cut(out, monkeypatch):
    monkeypatch.setattr(listing, "MOST_MEMBERS", 900)
    found = listed_of(out)
    assert found.most is not None
    assert sum(len(own) for rows in found.members.values() for own in rows) <= 900
    assert unpacked(packed(found, {}, 10**9))["most"] == found.most
    for side in SIDES:
        assert [row.as_py()[: found.most] for row in found.rows[side]] == [
            [found.labels[side][k] for k in row] for row in found.members[side]
        ]


def test_shares_are_those_of_whole_lists_wherever_these_are_cut(out, monkeypatch):
    whole = listed_of(out)
    monkeypatch.setattr(listing, "MOST_MEMBERS", 900)
    found = listed_of(out)
    assert found.ids == whole.ids
    sides = [[set(row.as_py()) for row in found.rows[side]] for side in SIDES]
    common = np.prod([[[len(a & b) for b in rows] for a in rows] for rows in sides], axis=0)
    assert np.array_equal(found.shares, common / np.diag(common)[:, None])
    assert all(np.array_equal(found.repeats[by], whole.repeats[by]) for by in whole.repeats)
    shares = np.floor(100 * whole.shares[: whole.n_ranked, : whole.n_ranked] + 1e-9)
    assert np.array_equal(unpacked(packed(found, {}, 10**9))["shares"], shares)
