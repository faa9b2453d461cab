"""Which columns are read, the names of the sides, and which tables are refused or doubted."""

import itertools
import json
import logging
import re
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.pipeline.ingest import doubts
from bicliques.pipeline.ingest.readers import open_source
from bicliques.pipeline.ingest.readers.labels import INTEGER, TEXT
from bicliques.pipeline.ingest.readers.look import are_shared
from bicliques.pipeline.ingest.readers.sieve import kinds_of
from bicliques.pipeline.ingest.step import IngestSummary, ingest
from bicliques.pipeline.proof.read_back import read_part
from bicliques.pipeline.results.facts import input_words
from bicliques.pipeline.run.folder import RunFolder
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions
from tests.support.host_arrays import HostArrays

COLUMNS = {"user": [1, 2, 2], "item": [7, 7, 8], "when": [3, 4, 5]}


def summary_of(source: Any, folder: Path, on: str = "cpu", **options: Any) -> IngestSummary:
    folder.mkdir(exist_ok=True)
    return ingest(source, IngestOptions(**options), folder, on)  # type: ignore[arg-type]


def text(columns: dict[str, list], delimiter: str = ",") -> str:
    rows = [columns.keys(), *zip(*columns.values(), strict=True)]
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows)


def stored(name: str, columns: dict[str, list], folder: Path) -> Path:
    """The table in a file, whose format follows from the name."""
    path, table = folder / name, pa.table(columns)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    else:
        path.write_text(text(columns, "\t" if path.suffix == ".tsv" else ","))
    return path


FILES = ("x.csv", "x.tsv", "x.parquet", "x.arrow")
OBJECTS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "lazy": pl.LazyFrame, "table": pa.table}


@pytest.fixture(params=[*FILES, *OBJECTS])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Put columns where a reader finds them: into a file, or into an object of a library."""
    if request.param in FILES:
        return lambda columns: stored(request.param, columns, tmp_path)
    return OBJECTS[request.param]


# --- names ---


def test_the_two_columns_are_named(store: Any, tmp_path: Path) -> None:
    for options, names in (({}, ("user", "item")), ({"left": "when", "right": 0}, ("when", "user"))):
        summary = summary_of(store(COLUMNS), tmp_path / "out", **options)
        assert (summary.left_name, summary.right_name) == names


def test_a_device_gives_the_same_names_and_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bicliques.pipeline.output.cudf_parquet.why_no_cudf", lambda: None)
    monkeypatch.setattr("bicliques.pipeline.ingest.gpu.cudf_arrays.CudfArrays", HostArrays)
    columns = {"user": ["Ann", "ann", "b", "b", "b", "b"], "item": ["1.0"] * 6}
    for name in FILES:
        source = stored(name, columns, tmp_path)
        host, device = (summary_of(source, tmp_path / on, on, label_type="auto") for on in ("cpu", "gpu"))
        for fact in ("left_variants", "right_variants", "notes", "reading"):
            assert getattr(host, fact) == getattr(device, fact)
        assert len(host.notes) == 3


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("out.x", "1 2\n"),
        ("x.el", "1 2\n"),
        ("x.dat", "1 2\n"),
        ("x.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n"),
        ("x.csv", "1,2\n"),
        ("x.csv", " ,\n1,2\n3,4\n"),
    ],
)
def test_without_names_the_sides_are_called_left_and_right(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    summary = summary_of(tmp_path / name, tmp_path, header=True if content.startswith(" ") else None)
    assert (summary.left_name, summary.right_name) == ("left", "right")


def test_objects_without_names_have_the_sides_called_left_and_right(tmp_path: Path) -> None:
    graph = nx.Graph([(1, "a")])
    nx.set_node_attributes(graph, {1: 0, "a": 1}, "bipartite")
    for source in (graph, scipy.sparse.eye_array(3), pd.DataFrame([[1, 2], [3, 4]])):
        summary = summary_of(source, tmp_path)
        assert (summary.left_name, summary.right_name) == ("left", "right")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (" user\tname ", "user name"),
        ("\x1b[2Juser", "\ufffd[2Juser"),
        ("u" * 70, "u" * 57 + "..."),
        ("Käufer", "Käufer"),
    ],
)
def test_a_column_name_is_made_safe_to_show(tmp_path: Path, name: str, shown: str) -> None:
    assert summary_of(pa.table({name: [1], "x": [2]}), tmp_path).left_name == shown


def test_the_card_says_which_column_is_which_side() -> None:
    facts = {"source": "r.csv", "n_left": 4009, "n_right": 7601, "n_edges": 55484, "duplicates": 0, "skipped_lines": 2}
    words = "55,484 edges, 2 bad lines left out"
    assert input_words(facts) == f"r.csv: 4,009 left, 7,601 right, {words}", "a run of an earlier version"
    facts |= {"left_name": "user", "right_name": "item", "notes": []}
    assert input_words(facts) == f"r.csv: 4,009 user (left), 7,601 item (right), {words}"
    assert input_words(facts | {"notes": ["it is odd"]}).endswith(f"{words}; note: it is odd")
    assert input_words(facts | {"left_name": "left", "right_name": "right"}).startswith(
        "r.csv: 4,009 left, 7,601 right"
    )


@pytest.mark.parametrize("ids", ["labels", "dense"])
def test_the_column_names_are_on_the_card_page_manifest_and_parts(tmp_path, ids, capsys):
    out = tmp_path / "out"
    (tmp_path / "x.csv").write_text(text(COLUMNS))
    assert main.main(["mine", str(tmp_path / "x.csv"), "-o", str(out), "--ids", ids, "--workers", "0", "--quiet"]) == 0
    assert "2 user (left), 2 item (right), 3 edges" in capsys.readouterr().out
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["input"]["left_name"], manifest["input"]["right_name"]) == ("user", "item")
    results = bq.open_run(out)
    wanted = {b"bicliques.left": b"user", b"bicliques.right": b"item"}
    for file in results.files:
        assert wanted.items() <= pq.ParquetFile(file).metadata.metadata.items()
    assert wanted.items() <= results.schema.metadata.items()
    page = re.sub(r"<(script|style).*?</\1>", "", (out / "report.html").read_text(), flags=re.DOTALL)
    assert re.search(r"2 . 2<small>user . item</small>", page)
    heads = re.findall(r"<th[^>]*>(?:<button[^>]*>)?(user|item|left|right)<", page)
    assert heads == ["user", "item", "user", "item"]


def test_parts_with_other_metadata_are_read(tmp_path: Path) -> None:
    """The facts of a run of an earlier version have no names."""
    results = bq.mine(pa.table(COLUMNS), tmp_path / "out", workers=0, progress=False, report=False)
    (part,) = results.files
    rows = pq.read_table(part)
    pq.write_table(rows.replace_schema_metadata({"bicliques.schema": "2"}), part)
    batches = list(read_part(part, (pa.array([1, 2]), pa.array([7, 8]))))
    assert sum(map(len, batches)) == len(results) == 2
    assert len(bq.open_run(tmp_path / "out").to_arrow()) == 2
    facts = RunFolder(tmp_path / "out").step_file("ingest")
    old = {
        key: value
        for key, value in json.loads(facts.read_text()).items()
        if "_name" not in key and key not in ("notes", "crc32")
    }
    facts.write_text(json.dumps(old))
    assert bq.open_run(tmp_path / "out").schema.metadata[b"bicliques.left"] == b"left"


# --- a pair that is not the first two ---


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (
            ("rating", "user", "item"),
            "'rating' and 'user', but 'user' and 'item' look like .*; give left='user', right",
        ),
        (("date", "price", "Customer_ID", "ProductId"), "give left='Customer_ID', right='ProductId', or left='date'"),
        (("n", "from", "to"), "'from' and 'to' look like the two sides"),
        (
            ("n", "movie id", "user id"),
            "'user id' and 'movie id' look .* left='user id', right='movie id', or left='n'",
        ),
        (("user", "n", "item"), "'user' and 'n', but 'user' and 'item' look"),
    ],
)
def test_columns_known_as_the_two_sides_are_not_skipped(store: Any, names: tuple[str, ...], said: str) -> None:
    columns = {name: [1, 2] for name in names}
    with pytest.raises(InputError, match=f"the first two columns are .*{said}"):
        open_source(store(columns), IngestOptions())
    open_source(store(columns), IngestOptions(left=names[0], right=names[1]))


@pytest.mark.parametrize(
    "names",
    [
        ("user", "item", "source", "target"),
        ("item", "user", "n"),
        ("user_id", "ITEM", "left", "right"),
        ("a", "b", "user", "price"),
        ("package", "tag"),
    ],
)
def test_the_first_two_columns_are_read_where_no_other_pair_is_known(store: Any, names: tuple[str, ...]) -> None:
    assert open_source(store({name: [1, 2] for name in names}), IngestOptions()).reading.is_guess


def test_columns_that_no_option_can_name_are_given_by_position() -> None:
    table = pa.table([[1], [2], [3], [4]], names=["n", "user", "item", "user"])
    with pytest.raises(InputError, match=r"give left=1, right='item', or left='n', right=1 for the first two$"):
        open_source(table, IngestOptions())
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=[0, "0", "user", "item"])
    with pytest.raises(InputError, match=r"or left=0, right=1 for the first two$"):
        open_source(frame, IngestOptions())


def test_the_documentation_lists_the_pairs() -> None:
    from bicliques.pipeline.ingest.readers.columns import _PAIRS

    documented = (Path(__file__).parents[3] / "docs" / "formats.md").read_text()
    assert all(f"{left}/{right}" in documented for left, right in _PAIRS)


# --- a table of 0 and 1 ---

CROSSED = {"user": ["ann", "bob", "eve"], "a": [1, 1, 0], "b": [0, 1, 1], "c": [1, 1, 1]}


@pytest.mark.parametrize("kind", [int, float, bool])
def test_a_table_of_0_and_1_is_no_list_of_edges(store: Any, tmp_path: Path, kind: type) -> None:
    columns = {name: values if name == "user" else list(map(kind, values)) for name, values in CROSSED.items()}
    (tmp_path / "out").mkdir()
    said = r"a table with a column per vertex, .*[23] of its columns have (only 0 and 1|only numbers|marks)"
    source = store(columns)
    header = True if isinstance(source, Path) and source.suffix in (".csv", ".tsv") else None
    with pytest.raises(InputError, match=said):
        ingest(source, IngestOptions(header=header), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    if kind is int:
        assert ingest(store(columns), IngestOptions(left="user", right="a"), tmp_path / "out").n_edges == 3


def test_a_crosstab_is_no_list_of_edges(tmp_path: Path) -> None:
    frame = pd.crosstab(["ann", "ann", "bob"], ["tea", "milk", "tea"])
    with pytest.raises(InputError, match=r"^pandas\.DataFrame: this looks like a table with a column per vertex"):
        ingest(pd.crosstab(["ann", "ann", "bob"], ["tea", "milk", "rice"]), IngestOptions(), tmp_path)
    with pytest.raises(InputError, match="looks like a table with a column per vertex"):
        ingest(frame, IngestOptions(), tmp_path)


@pytest.mark.parametrize(
    "columns",
    [
        {"user": [1, 2, 3], "item": [0, 1, 0], "rating": [5, 3, 0]},
        {"user": [1, 2, 3], "item": [1, 1, 1], "weight": [1, 1, 1]},
        {"user": [1, 2, 3], "item": [0, 1, 2], "flag": [0, 1, 1]},
        {"user": [1, 2, 3], "item": [0, 1, 0], "note": ["a", "b", "c"]},
    ],
)
def test_zeros_and_ones_on_the_right_may_be_two_vertices(store: Any, tmp_path: Path, columns: dict[str, list]) -> None:
    assert summary_of(store(columns), tmp_path / "out").n_left == 3


def test_unreadable_other_columns_do_not_matter(tmp_path: Path) -> None:
    path = stored("x.arrow", {"user": [1, 2], "item": [0, 1], "flag": [0, 1]}, tmp_path)
    stream = open_source(path, IngestOptions())
    path.write_bytes(b"ARROW1 and so on")
    stream.check(pa.array([1, 2]), pa.array([0, 1]), 4)


def test_other_columns_with_equal_names_are_not_read(tmp_path: Path) -> None:
    table = pa.table([[1, 2], [0, 1], [0, 1], [0, 1]], names=["user", "item", "flag", "flag"])
    pq.write_table(table, tmp_path / "x.parquet")
    assert summary_of(tmp_path / "x.parquet", tmp_path / "out").n_edges == 2


# --- doubts ---


def test_more_than_half_duplicates_is_doubted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    columns = {"rating": [1, 2] * 500, "shop": [3, 4] * 500}
    summary = summary_of(pa.table(columns), tmp_path / "out")
    (note,) = summary.notes
    assert note == (
        "998 of 1,000 rows are duplicates; are rating and shop the columns you mean? the options left and right name "
        "others"
    )
    assert caplog.record_tuples == [("bicliques.pipeline.ingest.step", logging.WARNING, f"{summary.source}: {note}")]
    named = summary_of(pa.table(columns), tmp_path / "out", left="rating", right="shop")
    assert named.notes == ("998 of 1,000 rows are duplicates",)
    half = pa.table({"a": [1, 2, 1, 2], "b": [1, 2, 1, 2]})
    assert summary_of(half, tmp_path / "out").notes == (), "half is not more"


def test_the_note_on_duplicates_names_no_option_for_an_edge_list(tmp_path: Path) -> None:
    (tmp_path / "x.el").write_text("1 2\n" * 3)
    assert summary_of(tmp_path / "x.el", tmp_path).notes == ("2 of 3 rows are duplicates",)


def test_labels_that_differ_in_blanks_or_capitals_are_counted(tmp_path: Path) -> None:
    users = ["Ann", "ann", " ann ", "Bob Ross", "BobRoss", "\u00c9va", "\u00e9va", "x", "y"]
    summary = summary_of(pa.table({"user": users, "item": range(9)}), tmp_path / "out", label_type="auto")
    assert (summary.left_variants, summary.right_variants) == (4, 0)
    (note,) = summary.notes
    assert note.startswith(
        "4 user labels differ from another one only in blanks or capitals, such as ' ann ' and 'Ann'; "
    )


def test_labels_that_differ_in_blanks_or_capitals_are_found() -> None:
    found = doubts.variants_of(pa.array(["a b", "c", "A\u00a0B"], pa.large_string()))
    assert found == doubts.Variants(1, ("A\u00a0B", "a b"))
    assert (found.doubt("tag") or "").startswith("1 tag label differs from another one only in")
    assert doubts.variants_of(pa.array(["a b", "c", "a-b"], pa.large_string())) == doubts.Variants(0)
    assert doubts.variants_of(pa.array([1, 2])) == doubts.Variants(0)


def test_the_example_of_labels_that_differ_in_blanks_does_not_depend_on_their_order() -> None:
    """A GPU has them in another order than a CPU, and their facts of a run are compared."""
    labels = ["b ", "%", " %", "B", "c", "b"]
    for order in itertools.permutations(labels):
        assert doubts.variants_of(pa.array(order, pa.large_string())) == doubts.Variants(3, (" %", "%"))


def test_too_many_labels_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = pa.array(["a", "A", "b"], pa.large_string())
    monkeypatch.setattr(doubts, "MOST_LABELS", 2)
    assert doubts.variants_of(labels) is None
    monkeypatch.setattr(doubts, "MOST_LABELS", 3)
    monkeypatch.setattr(doubts, "SLICE", 2)
    assert doubts.variants_of(labels) == doubts.Variants(1, ("A", "a")), "wherever slices are cut"
    monkeypatch.setattr(doubts, "MOST_BYTES", 20)
    assert doubts.variants_of(labels) is None


@pytest.mark.parametrize(
    ("label_type", "kinds"), [("auto", (INTEGER, TEXT)), ("int", (INTEGER, INTEGER)), ("string", (TEXT, TEXT))]
)
def test_the_kinds_of_labels_follow_the_option(label_type: Any, kinds: tuple[pa.DataType, pa.DataType]) -> None:
    names = ["user", "item"]
    assert kinds_of(pa.schema(list(zip(names, (pa.int16(), pa.string()), strict=True))), label_type) == kinds
    real = pa.schema(list(zip(names, (pa.float64(), pa.int64()), strict=True)))
    assert kinds_of(real, label_type)[0] is None


def test_blank_cells_are_no_words_that_columns_share() -> None:
    columns = [["a", " "], ["b", "c"], [" ", "d"], ["e", "f"]]
    assert not are_shared(columns)
    assert are_shared([*columns[:2], ["a", "d"], columns[3]])
    assert are_shared([*columns[:3], ["e", " "]]), "of a list that is padded"
