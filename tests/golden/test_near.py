"""Near-bicliques of known graphs. Another program found the same numbers (docs/lab/near.md says which)."""

import json
from typing import Any

import pytest

import bicliques as bq
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Engine
from tests.emulation.device import why_not
from tests.support.emulated import bitmatrix, everything
from tests.support.known import NOT_HERE, ROOT, SHIPPED, dense_edges, known_graph
from tests.support.near import near_graph
from tests.support.runs import OWN

#: Rows with more results take seconds.
FEW = 20_000
ROWS = json.loads((ROOT / "tests" / "golden" / "near.json").read_text())


#: Graph, which pairs may be missing, the smallest side of both, and the most edges that a near-biclique has. Each was
#: found by MDBP (docs/lab/near.md), but for that of Debian, which is the first of all of its near-bicliques, and the
#: last two, which are the largest by the certificates of their runs.
LARGEST = [
    ("debian12_package_tag", 1, 8, 431),
    ("dblp4_paper_author", 1, 3, 44),
    ("dblp4_paper_author", 2, 4, 46),
    ("ucforum", 1, 4, 39),
    ("ucforum", 2, 5, 34),
    ("escorts", 1, 5, 41),
    ("marvel", 1, 10, 299),
    ("movielens_ut", 1, 8, 119),
    ("youtube", 1, 11, 175),
    ("ucforum", 3, 4, 45),
    ("youtube", 2, 9, 196),
]


def _name(row: dict[str, Any]) -> str:
    return " ".join(map(str, (row["graph"], list(row)[1], *list(row.values())[1:4])))


def _marks(row: dict[str, Any]) -> list[pytest.MarkDecorator]:
    marks = [] if row["graph"] in SHIPPED else [pytest.mark.golden]
    return [*marks, pytest.mark.exhaustive] if row["count"] > FEW else marks


@pytest.mark.parametrize("row", [pytest.param(row, id=_name(row), marks=_marks(row)) for row in ROWS])
def test_known_graphs_have_as_many_near_bicliques(row):
    _check(row, CpuEngine())


@pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")
@pytest.mark.parametrize("name", ["unicode_languages missing_pairs 1 3 3"])
def test_an_emulated_gpu_finds_as_many(name):
    """Most graphs would take minutes."""
    _check(next(row for row in ROWS if _name(row) == name), bitmatrix("usual")())


def _check(row: dict[str, Any], engine: Engine):
    path = known_graph(row["graph"])
    if path is None:
        pytest.skip(NOT_HERE)
    missing = {name: k for name, k in row.items() if name.startswith("missing")}
    search = Search("fingerprint", min_left=row["min_left"], min_right=row["min_right"], **missing)
    graph = near_graph(dense_edges(path), search)
    found = engine.mine(graph, everything(graph), search, Limits(), nowhere)
    assert (found.count, f"{found.fingerprint:016x}") == (row["count"], row["fingerprint"])


@pytest.mark.parametrize(
    ("graph", "pairs", "least", "edges"),
    [
        pytest.param(*row, marks=[] if row[0] in SHIPPED else [pytest.mark.golden], id=" ".join(map(str, row)))
        for row in LARGEST
    ],
)
def test_the_largest_near_bicliques_of_known_graphs(graph, pairs, least, edges, tmp_path):
    path = known_graph(graph)
    if path is None:
        pytest.skip(NOT_HERE)
    sizes = {"min_left": 40 if graph in SHIPPED else least, "min_right": least}
    found = bq.largest(path, tmp_path / "out", missing_pairs=pairs, report=False, **OWN, **sizes)
    (row,) = found.to_arrow().to_pylist()
    assert row["n_left"] * row["n_right"] - row["missing"] == edges == found.manifest.certificate["key"]
