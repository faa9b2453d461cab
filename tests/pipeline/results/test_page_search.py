"""What the search of the page looks through, without a browser: all members of what is listed, or it says which."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pipeline
from pipeline.results.report import page_search
from pipeline.results.report.page_search import search_data
from tests.support.runs import random_edges, write_edges

EDGES = random_edges(60, 40, 0.3, 11)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    source = write_edges(tmp_path / "g.parquet", EDGES, strings=True)
    return pipeline.mine(source, tmp_path / "out", workers=0, progress=False, report=False).path


def searched(page: Path) -> dict[str, Any]:
    """What the search of a page looks through: the labels of each row."""
    found = re.search(r'<script type="application/json" id="labels">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    rows = {by: [[data["labels"][k] for k in np.cumsum(row)] for row in rows] for by, rows in data["lists"].items()}
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
        assert [sorted(row) for row in found[by]] == [sorted([*row["left"], *row["right"]]) for row in rows]


def test_a_page_with_too_many_members_says_how_many_are_searched(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = {"edges": pipeline.open_run(out).top(50)}
    lengths = [n for side in ("n_left", "n_right") for n in top["edges"][side].to_pylist()]
    everything = json.loads(search_data(top))
    assert everything["most"] is None
    assert sum(map(len, everything["lists"]["edges"])) == sum(lengths)
    monkeypatch.setattr(page_search, "MOST_MEMBERS", 300)
    some = json.loads(search_data(top))
    assert some["most"] is not None
    assert sum(map(len, some["lists"]["edges"])) == sum(min(n, some["most"]) for n in lengths) <= 300
    monkeypatch.setattr(page_search, "MOST_BYTES", 300)
    assert sum(map(len, json.loads(search_data(top))["labels"])) <= 300
    assert json.loads(search_data({})) == {"labels": [], "lists": {}, "most": None}
