"""What the search of the page looks through, without a browser: all members of what is listed, or it says which."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pipeline
from pipeline.results.report import page_search
from pipeline.results.report.page_search import SHOWN, UNFOLDED, members_of, packed
from tests.support.runs import random_edges, write_edges

EDGES = random_edges(60, 40, 0.3, 11)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    source = write_edges(tmp_path / "g.parquet", EDGES, strings=True)
    return pipeline.mine(source, tmp_path / "out", workers=0, progress=False, report=False).path


def data_of(text: str) -> dict[str, Any]:
    """What the script of the page unpacks."""
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
    return data


def searched(page: Path) -> dict[str, Any]:
    """What the search of a page looks through: the labels of each side of each row."""
    found = re.search(r'<script type="text/plain" id="labels">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    data = data_of(found[1])
    rows = {
        by: [{side: [data["labels"][side][k] for k in np.cumsum(own)] for side, own in row.items()} for row in rows]
        for by, rows in data["lists"].items()
    }
    assert (data["shown"], data["unfolded"]) == (SHOWN, UNFOLDED)
    return rows | {"most": data["most"]}


def test_all_labels_of_the_listed_bicliques_can_be_searched(tmp_path: Path) -> None:
    """Also of a list of which the page shows the beginning only."""
    names = [f"user {k} </script>" for k in range(900)]
    edges = pa.table({"l": np.repeat(names, 2), "r": np.tile(["<b>", "x"], 900)})
    edges = pa.concat_tables([edges, pa.table({"l": ["one"], "r": ["x"]})])
    results = pipeline.mine(edges, tmp_path / "out", workers=0, progress=False)
    found = searched(results.path / "report.html")
    assert found["most"] is None
    for by in ("edges", "balance"):
        rows = results.top(50, by).to_pylist()
        assert found[by] == [{side: sorted(row[side]) for side in ("left", "right")} for row in rows]


def test_numbers_are_listed_by_value_and_the_same_label_may_be_on_both_sides(tmp_path: Path) -> None:
    numbers = [9, 10, 100, 2, 5]
    edges = pa.table({"l": np.repeat(numbers, 2), "r": np.tile([9, 100], 5)})
    pipeline.mine(edges, tmp_path / "out", workers=0, progress=False)
    [row] = searched(tmp_path / "out" / "report.html")["edges"]
    assert row == {"left": ["2", "5", "9", "10", "100"], "right": ["9", "100"]}


def test_the_page_shows_the_first_members_of_each_list(out: Path) -> None:
    top = {"balance": pipeline.open_run(out).top(50, by="balance")}
    members = members_of(top)
    for k, row in enumerate(top["balance"].to_pylist()):
        for side in ("left", "right"):
            assert members.shown("balance", k, side) == sorted(row[side])[:SHOWN]


def held(data: dict[str, Any]) -> int:
    """The number of members of all lists."""
    return sum(len(own) for row in data["lists"]["edges"] for own in row.values())


def test_a_page_with_too_many_members_says_how_many_are_searched(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = {"edges": pipeline.open_run(out).top(50)}
    lengths = [n for side in ("n_left", "n_right") for n in top["edges"][side].to_pylist()]
    everything = data_of(packed(members_of(top)))
    assert everything["most"] is None
    assert held(everything) == sum(lengths)
    monkeypatch.setattr(page_search, "MOST_MEMBERS", 300)
    some = data_of(packed(members_of(top)))
    assert some["most"] is not None
    assert held(some) == sum(min(n, some["most"]) for n in lengths) <= 300
    monkeypatch.setattr(page_search, "MOST_BYTES", 300)
    labels = data_of(packed(members_of(top)))["labels"]
    assert sum(len(label) for own in labels.values() for label in own) <= 300
    nothing = data_of(packed(members_of({})))
    assert (nothing["labels"], nothing["lists"], nothing["most"]) == ({"left": [], "right": []}, {}, None)
