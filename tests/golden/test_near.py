"""Near-bicliques of known graphs. Another program found the same numbers (docs/lab/near.md says which)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.schemas.emit import nowhere
from bicliques.schemas.search import Limits, Search
from tests.support.emulated import everything
from tests.support.known import NOT_HERE, ROOT, SHIPPED, dense_edges, known_graph
from tests.support.near import near_graph

#: Rows with more results take seconds.
FEW = 20_000
ROWS = json.loads((ROOT / "tests" / "golden" / "near.json").read_text())


def _name(row: dict[str, Any]) -> str:
    return " ".join(map(str, (row["graph"], list(row)[1], *list(row.values())[1:4])))


def _marks(row: dict[str, Any]) -> list[pytest.MarkDecorator]:
    marks = [] if row["graph"] in SHIPPED else [pytest.mark.golden]
    return [*marks, pytest.mark.exhaustive] if row["count"] > FEW else marks


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=_name(row), marks=_marks(row)) for row in ROWS],
)
def test_known_graphs_have_as_many_near_bicliques(row: dict[str, Any]) -> None:
    path = known_graph(row["graph"])
    if path is None:
        pytest.skip(NOT_HERE)
    missing = {name: k for name, k in row.items() if name.startswith("missing")}
    search = Search("fingerprint", min_left=row["min_left"], min_right=row["min_right"], **missing)
    graph = near_graph(dense_edges(path), search)
    found = CpuEngine().mine(graph, everything(graph), search, Limits(), nowhere)
    assert (found.count, f"{found.fingerprint:016x}") == (row["count"], row["fingerprint"])
