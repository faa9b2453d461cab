"""Results are read when asked for: frames, datasets, the largest ones, and the queries of the documentation."""

import re

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import bicliques as bq
from bicliques.pipeline.output import part_writer, stretch
from bicliques.pipeline.proof import selection, summary
from bicliques.pipeline.proof.selection import MEASURES
from bicliques.pipeline.results import results as results_module
from bicliques.pipeline.run.folder import RunFolder
from bicliques.schemas.bicliques import biclique_schema
from bicliques.schemas.errors import IncompleteError, InputError
from tests.support.runs import QUIET, ROOT, random_edges, write_edges

EDGES = random_edges(60, 40, 0.3, 1)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    source = write_edges(folder / "g.parquet", EDGES, strings=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretch, "GROUP_MEMBERS", 3000)  # many row groups
        patch.setattr(part_writer, "PART_BYTES", 5000)  # and parts
        bq.mine(source, folder / "out", workers=0, slice_seconds=0.05, progress=False, report=False)
    return folder / "out"


@pytest.fixture
def results(out):
    return bq.open_run(out)


def test_the_schema_is_the_one_that_is_promised(results):
    assert results.schema.equals(biclique_schema(pa.string(), pa.string()))
    assert results.to_arrow().schema.equals(results.schema)
    assert len(results.files) > 2


def test_labels_have_the_types_of_the_input(tmp_path):
    edges = pl.DataFrame({"u": EDGES[:, 0] * 5, "v": EDGES[:, 1].astype(np.int64)})
    found = bq.mine(edges, tmp_path / "out", **QUIET)
    assert found.schema.equals(biclique_schema(pa.int32(), pa.int64()))
    assert bq.verify(found.path, progress=False).count == len(found) > 1000
    rows = (
        pl.from_arrow(found.to_arrow()).with_row_index("row").explode("left").join(edges, left_on="left", right_on="u")
    )
    pairs = rows.filter(pl.col("right").list.contains(pl.col("v")))
    expected = pl.from_arrow(found.to_arrow(columns=["n_left", "n_right"])).select(pl.col("n_left") * pl.col("n_right"))
    assert len(pairs) == expected.sum().item()


def test_columns_and_rows_can_be_chosen(results):
    is_wide = (pc.field("n_left") >= 4) & (pc.field("n_right") >= 3)
    wide = results.to_arrow(columns=["n_left", "n_right"], filter=is_wide)
    assert wide.column_names == ["n_left", "n_right"]
    frame = results.to_pandas(columns=["left", "n_left", "n_right"])
    assert wide.num_rows == ((frame.n_left >= 4) & (frame.n_right >= 3)).sum() > 0
    assert isinstance(results.dataset(), ds.Dataset)
    assert results.dataset().count_rows() == len(results)


def test_a_column_that_is_not_there_is_named_with_those_that_are(results):
    for call in (results.to_arrow, results.to_pandas, results.batches):
        with pytest.raises(InputError, match="no column 'lft'; the columns are id, left, right, n_left, n_right, root"):
            call(columns=["left", "lft"])


def test_opening_reads_no_rows(out, monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("a part was opened")

    monkeypatch.setattr("pyarrow.parquet.ParquetFile.__init__", refuse)
    opened = bq.open_run(out)
    assert len(opened) == opened.manifest.count > 1000
    assert "maximal bicliques" in repr(opened)
    with pytest.raises(AssertionError, match="a part was opened"):
        opened.top()


@pytest.mark.parametrize("by", ["edges", "balance", "left", "right"])
@pytest.mark.parametrize("known", [True, False], ids=["of the summary", "of the rows"])
def test_the_largest_are_the_largest(results, by, known, monkeypatch):
    read = []
    real = results_module.largest
    monkeypatch.setattr(results_module, "largest", lambda *arguments: read.append("rows") or real(*arguments))
    if not known:
        monkeypatch.setattr(summary, "LARGEST_FILE", "nothing.parquet")
    frame = results.to_pandas(columns=["n_left", "n_right"])
    frame["edges"] = frame.n_left * frame.n_right
    frame["balance"] = frame[["n_left", "n_right"]].min(axis=1)
    frame = frame.rename(columns={"n_left": "left", "n_right": "right"})
    ordered = frame.sort_values([by, "edges", "left"], ascending=False).head(20)
    top = results.top(20, by)
    assert top["n_left"].to_pylist() == ordered["left"].tolist()
    assert top["n_right"].to_pylist() == ordered["right"].tolist()
    assert [len(x) for x in top["left"].to_pylist()] == top["n_left"].to_pylist()
    assert top.schema.equals(results.schema)
    assert read == ([] if known else ["rows"])


def test_the_summary_knows_the_largest_by_every_measure(results):
    folder = RunFolder(results.path)
    for by in MEASURES:
        expected = selection.largest(results.files, 300, by)
        assert summary.read_largest(folder, results.manifest, by, 300) == expected
        assert summary.read_largest(folder, results.manifest, by, 7) == expected[:7]
        assert summary.read_largest(folder, results.manifest, by, 301) is None


def test_top_gives_all_rows_when_asked_for_more(results):
    assert results.top(10**6).num_rows == len(results)


def test_top_refuses_zero_rows_and_an_unknown_order(results):
    with pytest.raises(InputError, match="at least 1, not 0"):
        results.top(0)
    with pytest.raises(InputError, match="by edges, vertices, balance, left, right or surprise, not by 'size'"):
        results.top(3, "size")


def test_an_incomplete_run_has_rows_but_no_manifest(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    results = bq.mine(source, tmp_path / "out", max_results=50, **QUIET)
    assert len(results.to_pandas()) == len(results) == 50
    assert not results.complete
    with pytest.raises(
        IncompleteError, match="is not complete, and so has no manifest yet; resume it without its limit"
    ):
        _ = results.manifest


def test_the_queries_of_the_documentation_run(out, monkeypatch):
    text = (ROOT / "docs" / "output.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(programs) >= 4
    for library in ("import pandas", "import polars", "import duckdb", "import bicliques"):
        assert any(library in program for program in programs), library
    monkeypatch.chdir(out.parent)
    (out.parent / "OUT").symlink_to(out.name)
    for program in programs:
        exec(program, {})


def test_what_people_call_on_results_is_there_or_says_what_to_call(results, tmp_path):
    verified = results.verify(sample=3)
    assert (verified.count, verified.sampled) == (len(results), 3)
    assert results.report().read_text().startswith("<!doctype html>")
    results.to_csv(tmp_path / "a.csv")
    results.export("csv", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    for name, advice in (("to_parquet", "results.files"), ("fingerprint", "results.manifest.fingerprint")):
        with pytest.raises(AttributeError, match=advice):
            getattr(results, name)
    with pytest.raises(AttributeError, match=r"call open_run\(folder\).plot\(\)"):
        getattr(bq, "plot")  # noqa: B009
