"""The same graph in every format gives the same edge table and the same labels."""

import bz2
import csv
import gzip
import io
import lzma
import re
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.pipeline.ingest.readers import formats, infer
from bicliques.pipeline.ingest.readers.opening import COMPRESSIONS
from bicliques.pipeline.ingest.step import ingest
from bicliques.pipeline.run.names import EDGES_FILE, LEFT_LABELS_FILE, RIGHT_LABELS_FILE
from bicliques.schemas.options import IngestOptions
from tests.support.examples import examples

FORMATS = Path(__file__).parents[2] / "data" / "formats"

#: File -> (its format, options it needs).
TINY = {
    "out.tiny": ("konect", {}),
    "out.tiny-weighted": ("konect", {}),
    "out.tiny.gz": ("konect", {}),
    "tiny.txt": ("snap", {}),
    "tiny.el": ("snap", {}),
    "tiny.csv": ("csv", {}),
    "tiny.csv.gz": ("csv", {}),
    "tiny.csv.bz2": ("csv", {}),
    "tiny.csv.xz": ("csv", {}),
    "tiny.csv.zst": ("csv", {}),
    "tiny-no-header.csv": ("csv", {}),
    "tiny-named.csv": ("csv", {"left": "user", "right": "item"}),
    "tiny.tsv": ("tsv", {}),
    "tiny.mtx": ("matrix-market", {}),
    "tiny-values.mtx": ("matrix-market", {}),
    "tiny.dat": ("fimi", {}),
    "tiny.adj": ("adjacency", {}),
    "tiny-table.csv": ("table", {"format": "table"}),
    "tiny.cxt": ("cxt", {}),
    "tiny.parquet": ("parquet", {}),
    "tiny.arrow": ("arrow", {}),
}

TINY_EDGES = [(1, 1), (1, 2), (1, 10), (2, 2), (2, 2), (2, 10), (3, 3), (3, 10), (5, 1)]


@dataclass
class Graph:
    """What a run reads back: edges as pairs of labels, and the label tables."""

    left: list
    right: list
    edges: list
    duplicates: int


def read(source, folder: Path, **options) -> Graph:
    summary = ingest(source, IngestOptions(**options), folder)
    left, right = (pq.read_table(folder / name)["label"].to_pylist() for name in (LEFT_LABELS_FILE, RIGHT_LABELS_FILE))
    table = pq.read_table(folder / EDGES_FILE)
    pairs = list(zip(table["left"].to_pylist(), table["right"].to_pylist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert (summary.n_left, summary.n_right, summary.n_edges) == (len(left), len(right), len(pairs))
    return Graph(left, right, [(left[u], right[v]) for u, v in pairs], summary.duplicates)


def expected(edges: list) -> Graph:
    """The answer, by definition."""

    def key(label: int | str) -> int | bytes:
        return label.encode() if isinstance(label, str) else label

    left, right = (sorted({edge[k] for edge in edges}, key=key) for k in (0, 1))
    unique = sorted(set(edges), key=lambda edge: (key(edge[0]), key(edge[1])))
    return Graph(left, right, unique, len(edges) - len(unique))


@pytest.mark.parametrize("name", TINY)
def test_the_tiny_graph_in_every_format(name, tmp_path):
    format_name, options = TINY[name]
    assert options.get("format") or infer(FORMATS / name) == format_name
    edges = sorted(set(TINY_EDGES)) if format_name in ("table", "cxt") else TINY_EDGES  # a cell is one edge
    assert read(FORMATS / name, tmp_path, **options) == expected(edges)


def test_every_format_and_compression_has_a_tiny_file():
    assert {name for name, _ in TINY.values()} == {format.name for format in formats()}
    assert {Path(name).suffix for name in TINY} >= set(COMPRESSIONS)
    assert {path.name for path in FORMATS.iterdir()} == set(TINY)


def test_the_documentation_of_formats_is_complete_and_its_examples_run(tmp_path, monkeypatch, capsys):
    text = (Path(__file__).parents[3] / "docs" / "formats.md").read_text()
    table = re.findall(r"(?m)^\| `([a-z][a-z-]*)` \| (.*?) \|", text)
    assert [name for name, _ in table] == [format.name for format in formats()]
    for format, (_, shown) in zip(formats(), table, strict=True):
        assert all(pattern.strip("*") in shown for pattern in format.patterns if pattern != "out.*")
    for option in fields(IngestOptions):
        assert f"`--{option.name.replace('_', '-')}" in text or f"--{option.name} " in text
    monkeypatch.chdir(tmp_path)
    (weights,) = re.findall(r"(?s)```python\n(.*?)```", text)
    exec(weights, {})
    assert capsys.readouterr().out.split() == re.findall(r"# (\d+) bicliques", weights)


def tiny_objects() -> dict:
    edges = TINY_EDGES
    columns = {"user": [u for u, _ in edges], "item": [v for _, v in edges]}
    graph = nx.MultiGraph()
    graph.add_nodes_from({u for u, _ in edges}, bipartite=0)
    graph.add_nodes_from({1000 + v for _, v in edges}, bipartite=1)  # node names are one name space
    graph.add_edges_from((1000 + v, u) for u, v in edges)
    table = pa.table(columns)
    return {
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "polars-lazy": pl.LazyFrame(columns),
        "arrow": table,
        "arrow-batch": table.to_batches()[0],
        "arrow-reader": table.to_reader(),
        "scipy": scipy.sparse.coo_array((np.ones(len(edges)), (columns["user"], columns["item"]))),
        "scipy-matrix": scipy.sparse.coo_matrix((np.ones(len(edges)), (columns["user"], columns["item"]))),
        "networkx": graph,
    }


@pytest.mark.parametrize("kind", tiny_objects())
def test_the_tiny_graph_from_every_kind_of_object(kind, tmp_path):
    want = expected([(u, v + 1000 * (kind == "networkx")) for u, v in TINY_EDGES])
    assert read(tiny_objects()[kind], tmp_path) == want


# --- random graphs ---

INTEGERS = st.integers(1, 12) | st.integers(1, 2**63 - 1)
#: No line ends, and no surrogates, which UTF-8 cannot hold; anything else is a label.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), min_size=1, max_size=6)
#: Labels for columns between blanks; the first must not be a comment.
WORDS = TEXT.filter(lambda text: not set(text) & set(" \t") and text[0] not in "%#")
#: The first label decides that a column is text, and the blank line is one.
NAMES = TEXT.filter(lambda text: text.strip(" \t") and not text.strip(" \t").lstrip("-").isdigit())


def edges_of(labels: st.SearchStrategy) -> st.SearchStrategy:
    # Few labels, so that edges repeat and both sides share some.
    pool = st.lists(labels, min_size=1, max_size=6)
    return pool.flatmap(lambda some: st.lists(st.tuples(*[st.sampled_from(some)] * 2), min_size=1, max_size=20))


def lines(edges: list, separator: str = " ", head: str = "") -> str:
    return head + "".join(f"{u}{separator}{v}\n" for u, v in edges)


def as_csv(edges: list, delimiter: str = ",", header: bool = True) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerows([("user", "item")] * header + edges)
    return out.getvalue()


def round_trip(source, edges: list, **options) -> None:
    with TemporaryDirectory() as folder:
        assert read(source, Path(folder), **options) == expected(edges)


def round_trip_file(name: str, content: str | bytes, edges: list, **options) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        (Path(folder) / "out").mkdir()
        assert read(path, Path(folder) / "out", **options) == expected(edges)


@settings(max_examples=examples(25), deadline=None)
@given(edges_of(INTEGERS))
def test_integer_labels_in_every_text_format(edges):
    counts = f"% {len(edges)} {max(u for u, _ in edges)} {max(v for _, v in edges)}\n"
    round_trip_file("out.x", lines(edges, "\t", "% bip\n" + counts), edges)
    round_trip_file("x.el", lines(edges, "  "), edges, skip_lines=0)
    round_trip_file("x.csv", as_csv(edges, ";"), edges)
    round_trip_file("x.tsv", as_csv(edges, "\t", header=False), edges)
    size = 2**63 - 1
    header = f"%%MatrixMarket matrix coordinate pattern general\n{size} {size} {len(edges)}\n"
    round_trip_file("x.mtx", lines(edges, " ", header), edges)


def _is_no_table(rows: list[list[int]]) -> bool:
    """Whether there are items, and not both 0 and 1 alone with more than two in a line, as in a table of 0 and 1."""
    items = [item for row in rows for item in row]
    return bool(items) and (set(items) != {0, 1} or len(items) <= 2 * sum(map(bool, rows)))


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.lists(st.integers(0, 2) | INTEGERS, max_size=5), min_size=1, max_size=8).filter(_is_no_table))
def test_transactions(transactions):
    edges = [(number, item) for number, items in enumerate(transactions, 1) for item in items]
    text = "\n".join(" ".join(map(str, items)) for items in transactions)
    round_trip_file("x.dat", text, edges, format="fimi", skip_lines=0)
    round_trip_file("x.dat", text, [(u, str(v)) for u, v in edges], format="fimi", label_type="string", skip_lines=0)
    round_trip_file("x.adj", text, [(u - 1, v) for u, v in edges], skip_lines=0)
    round_trip_file("x.txt", text, [(u - 1, v) for u, v in edges], format="adjacency", skip_lines=0)


@settings(max_examples=examples(25), deadline=None)
@given(edges_of(INTEGERS), st.sampled_from(["int32", "uint32", "int64", "uint64"]))
def test_integer_labels_in_tables(edges, width):
    if "32" in width:
        edges = [(u % 2**31, v % 2**31) for u, v in edges]
    frame = pd.DataFrame(edges, columns=["user", "item"]).astype(width)
    for source in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        round_trip(source, edges)
    with TemporaryDirectory() as folder:
        frame.to_parquet(Path(folder) / "x.parquet")
        round_trip(Path(folder) / "x.parquet", edges)


@settings(max_examples=examples(25), deadline=None)
@given(edges_of(NAMES))
def test_text_labels_in_quoted_columns(edges):
    round_trip_file("x.csv", as_csv(edges), edges, header=True)
    round_trip_file("x.csv", as_csv(edges, "|", header=False), edges, header=False, delimiter="|", skip_lines=0)
    round_trip_file("x.tsv", as_csv(edges, "\t"), edges, left="user", right="item")
    round_trip_file("x.csv.xz", lzma.compress(as_csv(edges).encode()), edges, header=True)


@settings(max_examples=examples(25), deadline=None)
@given(edges_of(WORDS))
def test_text_labels_between_blanks(edges):
    text = lines(edges)
    own = {"label_type": "string", "skip_lines": 0}
    round_trip_file("out.x", text, edges, **own)
    round_trip_file("x.edges.gz", gzip.compress(text.encode()), edges, **own)
    round_trip_file("x.edges.bz2", bz2.compress(text.encode()), edges, **own)


@settings(max_examples=examples(25), deadline=None)
@given(edges_of(TEXT))
def test_text_labels_in_tables(edges):
    left, right = ([edge[k] for edge in edges] for k in (0, 1))
    table = pa.table({"l": left, "r": pa.array(right).dictionary_encode()})
    for source in (table, pl.from_arrow(table), pd.DataFrame({"l": left, "r": pd.Categorical(right)})):
        round_trip(source, edges)
    with TemporaryDirectory() as folder:
        pq.write_table(table.cast(pa.schema({"l": pa.large_string(), "r": pa.string()})), Path(folder) / "x.pq")
        round_trip(Path(folder) / "x.pq", edges)
        path = Path(folder) / "x.feather"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
        round_trip(path, edges)


@settings(max_examples=examples(25), deadline=None)
@given(edges_of(st.integers(0, 9)), edges_of(TEXT))
def test_matrices_and_graphs(numbered, named):
    entries = ([edge[k] for edge in numbered] for k in (0, 1))
    matrix = scipy.sparse.coo_array((np.ones(len(numbered)), tuple(entries)), shape=(10, 10))
    round_trip(matrix, numbered)
    round_trip(matrix.tocsr(), sorted(set(numbered)))  # summing duplicates is scipy's
    named = sorted({("l" + u, "r" + v) for u, v in named})
    graph = nx.Graph()
    graph.add_nodes_from((u for u, _ in named), bipartite=0)
    graph.add_nodes_from((v for _, v in named), bipartite=1)
    graph.add_edges_from(named)
    round_trip(graph, named)
