"""The largest bicliques of graphs in publications. The graphs do not ship with the project."""

from pathlib import Path

import pytest

import bicliques as bq
from bicliques.schemas.search import By
from tests.support.known import NOT_HERE, known_graph

#: The largest with at least so many members on the left and on the right, by a measure; None if there are none. The
#: measures are from publications (Lyu et al., PVLDB 2020; Dai et al., SIGMOD 2025), and the sizes from listings of this
#: project.
LARGEST: tuple[tuple[str, By, tuple[int, int], tuple[int, int] | None], ...] = (
    ("youtube", "edges", (3, 3), (313, 3)),
    ("youtube", "edges", (5, 5), (71, 5)),
    ("youtube", "edges", (7, 7), (30, 7)),
    ("youtube", "edges", (9, 9), (9, 20)),
    ("youtube", "edges", (11, 11), (11, 15)),
    ("youtube", "edges", (13, 13), None),
    ("marvel", "edges", (4, 4), (4, 588)),
    ("marvel", "vertices", (4, 4), (4, 588)),
    ("marvel", "balance", (4, 4), (16, 15)),
    ("dbpedia_writers", "edges", (4, 4), (34, 4)),
    ("dbpedia_writers", "vertices", (4, 4), (34, 4)),
    ("dbpedia_writers", "balance", (4, 4), (9, 6)),
    ("movielens_100k", "edges", (55, 3), (181, 7)),
    ("movielens_100k", "edges", (13, 13), (96, 13)),
    ("movielens_100k", "edges", (3, 3), (181, 7)),
)
#: Those that take long or are much like others, and those that take half a minute and more on a core.
SLOW, SLOWEST = LARGEST[1:6], LARGEST[-2:]


def sizes_of_the_largest(name: str, by: By, least: tuple[int, int], engine: str, folder: Path) -> list[tuple[int, int]]:
    """Sizes of the largest biclique of a graph, found by an engine. The run is in a subfolder of `folder`."""
    source = known_graph(name)
    if source is None:
        pytest.skip(f"{name}.parquet is not here: {NOT_HERE}")
    how = {"engine": engine, "report": False, "progress": False}
    found = bq.largest(source, folder / "out", by=by, min_left=least[0], min_right=least[1], **how)
    return [(row["n_left"], row["n_right"]) for row in found.to_arrow().select(["n_left", "n_right"]).to_pylist()]
