"""Folders, patterns, lists of files and standard input give what one file with all of their lines gives."""

import gzip
import io
import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.cli import main
from bicliques.pipeline.ingest.readers import columnar, open_source, several
from bicliques.pipeline.ingest.readers.files import find
from bicliques.pipeline.ingest.sources.at_hand import digest_of
from bicliques.pipeline.ingest.sources.names import recorded
from bicliques.pipeline.run.folder import RunFolder
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions, RunLimits, RunOptions
from tests.support.examples import examples
from tests.support.inputs import read_edges, write


def files(folder: Path, **contents: str | bytes | pa.Table) -> Path:
    """Files of these names, in which __ is a dot and ___ a slash."""
    for name, content in contents.items():
        path = folder / name.replace("___", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, content)
    return folder


EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12)


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(EDGES, min_size=1, max_size=4), st.sampled_from(["csv", "el", "parquet", "tsv.gz"]))
def test_edges_cut_into_files_are_the_edges_of_one_file(tmp_path_factory, parts, suffix):
    folder = tmp_path_factory.mktemp("cut")
    for k, edges in enumerate(parts):
        if suffix == "parquet":
            content: str | bytes | pa.Table = pa.table({"u": [u for u, _ in edges], "v": [v for _, v in edges]})
        else:
            between = {"csv": ",", "el": " ", "tsv.gz": "\t"}[suffix]
            head = f"u{between}v\n" if suffix != "el" else ""
            content = head + "".join(f"{u}{between}{v}\n" for u, v in edges)
            if suffix == "el":  # so that "2 2" cannot be the numbers of vertices or edges
                content = "# u v\n" + content
            content = gzip.compress(content.encode()) if suffix == "tsv.gz" else content
        name = folder / "in" / f"sub{k % 2}" / f"{k}.{suffix}"
        name.parent.mkdir(parents=True, exist_ok=True)
        write(name, content)
    every = [edge for edges in parts for edge in edges]
    named = sorted((folder / "in").rglob(f"*.{suffix}"))
    for source in (folder / "in", f"{folder}/in/**/*.{suffix}", f"{folder}/i?/*", named, [str(path) for path in named]):
        found, summary = read_edges(source, folder / "out")
        assert found == sorted(set(every))
        assert summary.duplicates == len(every) - len(set(every))
        assert summary.digest == digest_of(recorded(source))


def test_a_file_is_small_if_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text that is stored as differences from the row before may be of any size."""
    text = pa.table({"u": ["a" * 9, "b", "b"], "v": ["c", "c", "d"]})
    pq.write_table(text, tmp_path / "plain.parquet", use_dictionary=False)
    pq.write_table(text, tmp_path / "short.parquet", use_dictionary=False, column_encoding={"u": "DELTA_BYTE_ARRAY"})
    pq.write_table(pa.table({"u": [1], "v": [[2, 3]]}), tmp_path / "lists.parquet")

    def small(name: str) -> bool:
        return open_source(tmp_path / f"{name}.parquet", IngestOptions()).is_small

    assert [small(name) for name in ("plain", "short", "lists")] == [True, False, False]
    monkeypatch.setattr(columnar, "SMALL_BYTES", 30)
    assert not small("plain")


@pytest.mark.parametrize("small_rows", [0, 5, 1 << 20])
def test_files_of_parquet_are_read_side_by_side_in_their_order(tmp_path, monkeypatch, small_rows):
    """The first and the second are read at the same time, each of which waits for the other, unless it is too large."""
    tables = [pa.table({"u": range(k, k + 4 + k % 3), "v": [k] * (4 + k % 3)}) for k in range(9)]
    files(tmp_path / "in", **{f"{k}__parquet": table for k, table in enumerate(tables)})
    monkeypatch.setattr(several, "count_cores", lambda: 8)
    monkeypatch.setattr(columnar, "SMALL_ROWS", small_rows)
    meeting, chunks = threading.Barrier(2), columnar.ParquetTable.chunks

    def together(self: columnar.ParquetTable) -> Iterator[pa.RecordBatch]:
        if small_rows > 5 and self.path.stem in "01":
            meeting.wait(120)
        yield from chunks(self)

    monkeypatch.setattr(columnar.ParquetTable, "chunks", together)
    stream = open_source(find(str(tmp_path / "in"), ()), IngestOptions())
    read = pa.Table.from_batches(stream.chunks())
    assert read.to_pydict() == {
        "left": [u for table in tables for u in table["u"].to_pylist()],
        "right": [v for table in tables for v in table["v"].to_pylist()],
    }
    assert stream.digest() is not None


def test_the_first_file_with_an_error_is_named_however_many_are_read_at_a_time(tmp_path, monkeypatch):
    source = files(tmp_path / "in", **{f"{k}__parquet": pa.table({"u": [1, k - 3], "v": [2, 3]}) for k in range(6)})
    for cores in (1, 8):
        monkeypatch.setattr(several, "count_cores", lambda cores=cores: cores)
        with pytest.raises(InputError, match=r"0\.parquet, row 2: .*-3"):
            list(open_source(find(str(source), ()), IngestOptions()).chunks())


def test_the_order_of_files_is_that_of_their_names_and_hidden_ones_do_not_count(tmp_path: Path) -> None:
    folder = files(
        tmp_path / "in", b__el="1 1\n", a__el="1 2\n", _SUCCESS="", __crc="x", c___d__el="1 3\n", _tmp___e__el="1 9\n"
    )
    found = find(folder)
    assert found.names == ("a.el", "b.el", "c/d.el")
    assert read_edges(folder, tmp_path / "out")[0] == [(1, 1), (1, 2), (1, 3)]
    assert find([folder / "b.el", folder / "a.el"]).names == ("b.el", "a.el"), "a list is read in its own order"
    (folder / "c" / "back").symlink_to(folder)
    assert find(folder).names == found.names, "a link to a folder above is not entered again"


def test_the_digest_notices_that_a_file_came_went_changed_or_got_another_name(tmp_path: Path) -> None:
    folder = files(tmp_path / "in", a__el="1 2\n", b__el="3 4\n")
    seen = [find(folder).digest()]
    assert read_edges(folder, tmp_path / "out")[1].digest == seen[0]
    (folder / "c.el").write_text("5 6\n")
    seen.append(find(folder).digest())
    (folder / "a.el").write_text("1 3\n")
    seen.append(find(folder).digest())
    (folder / "c.el").rename(folder / "d.el")
    seen.append(find(folder).digest())
    (folder / "b.el").unlink()
    seen.append(find(folder).digest())
    assert len(set(seen)) == 5
    folder.rename(tmp_path / "elsewhere")
    assert find(tmp_path / "elsewhere").digest() == seen[-1], "the folder may be moved"


def test_lines_are_numbered_through_all_files(tmp_path: Path) -> None:
    folder = files(tmp_path / "in", a__dat="7\n\n8\n", b__dat="", c__dat="8 9", d__dat="5\n")
    assert read_edges(folder, tmp_path / "out")[0] == [(1, 7), (3, 8), (4, 8), (4, 9), (5, 5)]


def test_the_first_label_of_a_side_decides_as_in_one_file(tmp_path: Path) -> None:
    folder = files(tmp_path / "in", a__csv="u,v\n", b__csv="u,v\nann,1\n", c__csv="u,v\n7,2\n")
    assert read_edges(folder, tmp_path / "out")[0] == [("7", 2), ("ann", 1)]
    (folder / "c.csv").write_text("u,v\n7,x\n")
    with pytest.raises(InputError, match=r"c\.csv, line 2: the right label 'x' is not a plain integer, but the column"):
        read_edges(folder, tmp_path / "out")
    assert read_edges(folder, tmp_path / "out", label_type="string")[0] == [("7", "x"), ("ann", "1")]


def test_a_header_in_the_first_file_alone_needs_positions(tmp_path: Path) -> None:
    folder = files(tmp_path / "in", a__csv="user,item\n1,2\n", b__csv="3,4\n")
    with pytest.raises(InputError, match=r"b\.csv: the two columns are left and right, but those of .*a\.csv are user"):
        read_edges(folder, tmp_path / "out")
    assert read_edges(folder, tmp_path / "out", left=0, right=1)[0] == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        ({}, r"the folder .*in holds no files to read \(names that begin with _ or \. do not count\)"),
        (
            {"a__el": "1 2\n", "b__csv": "1,2\n"},
            r"the files of .* have two formats: .*a\.el is snap, and .*b\.csv is csv;",
        ),
        (
            {"a__el": "1 2\n", "b__md": "A text.\n"},
            r"neither the name nor the first line of .*b\.md tells its format.* or choose among the files",
        ),
        (
            {"a__csv": "u,v\n1,2\n", "b__csv": "v,u\n1,2\n"},
            r"b\.csv: the two columns are v and u, but those of .*a\.cs",
        ),
        ({"a__el": "1 2\n", "b__el": "3\n"}, r"b\.el, line 1: 1 column where"),
        ({"a__el": "", "b__el": ""}, r"a\.el is empty"),
        (
            {"a__parquet": pa.table({"u": [1], "v": [2]}), "b__parquet": pa.table({"u": ["x"], "v": [2]})},
            r"b\.parquet: the left labels are text, but those of .*a\.parquet are integers; take all as text",
        ),
        (
            {"out__a": "% bip\n% 1 1 1\n1 2\n", "out__b": "% bip\n% 2 1 2\n1 2\n"},
            r"out\.b, line 2: the header counts 2 ed",
        ),
    ],
)
def test_files_that_do_not_fit_each_other_are_refused(contents: dict, said: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(InputError, match=said):
        read_edges(files(tmp_path / "in", **contents), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_sentences_about_several_files_are_about_several(tmp_path: Path) -> None:
    """Whatever is named before the verb."""
    one, other = files(tmp_path, a__csv="user,film\n", b__csv="user,film\n") / "a.csv", tmp_path / "b.csv"
    with pytest.raises(InputError, match=r"^there are no edges in \S+a\.csv and \S+b\.csv; check the input and its"):
        read_edges([one, other], tmp_path / "out", header=True)
    files(tmp_path, a__csv="tea,milk\n" + 20 * "0,1\n", b__csv="tea,milk\n" + 20 * "1,0\n")
    with pytest.raises(InputError, match=r"^\S+a\.csv and \S+b\.csv: this looks like a table with"):
        read_edges([one, other], tmp_path / "out", header=True)


@pytest.mark.parametrize(("log", "kind"), [("_delta_log", "Delta"), (".hoodie", "Hudi")])
def test_a_table_with_a_log_is_refused(tmp_path: Path, log: str, kind: str) -> None:
    """Its folder also has files that do not count any more."""
    table = tmp_path / "in" / "table"
    files(table, a__parquet=pa.table({"u": [1], "v": [2]}))
    (table / log).mkdir()
    for source in (table, tmp_path / "in", f"{tmp_path}/in/*"):
        with pytest.raises(InputError, match=rf"table is a {kind} table, whose files also hold rows that were deleted"):
            read_edges(source, tmp_path / "out")


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["run.lock"], "is where a run is to be kept, so it cannot be read as edges"),
        (["options.json", "steps"], "is a run, and no"),
    ],
)
def test_a_folder_with_a_run_in_it_is_refused(tmp_path: Path, names: list[str], says: str) -> None:
    """A hidden folder and a pattern leave it out."""
    place = files(tmp_path / "in", a__csv="1,2\n")
    for run in ("OUT", "_out"):
        for name in names:
            (place / run / name).mkdir(parents=True)
    with pytest.raises(InputError, match=rf"^{place}/OUT {says}"):
        read_edges(place, tmp_path / "out")
    assert read_edges(f"{place}/*.csv", tmp_path / "out")[1].n_edges == 1
    (place / "OUT").rename(place / ".OUT")
    shutil.rmtree(tmp_path / "out")
    assert read_edges(place, tmp_path / "out")[1].n_edges == 1


def test_a_pattern_that_nothing_fits(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file fits .*x\*\.csv; check the pattern and its folder"):
        read_edges(f"{tmp_path}/x*.csv", tmp_path / "out")
    odd = write(tmp_path / "x[1].csv", "1,2\n")
    assert read_edges(odd, tmp_path / "out")[1].n_edges == 1, "a file of that very name is no pattern"


def test_integers_are_as_wide_as_the_widest_column(tmp_path: Path) -> None:
    narrow, wide = (pa.table({"u": pa.array([k], kind), "v": [k]}) for k, kind in ((1, pa.int32()), (2, pa.int64())))
    folder = files(tmp_path / "in", a__parquet=narrow, b__parquet=wide)
    assert read_edges(folder, tmp_path / "out")[1].left_label == "int64"
    assert read_edges([folder / "a.parquet"] * 2, tmp_path / "out")[1].left_label == "int32"


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_standard_input(tmp_path, monkeypatch, capsys, compress):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(compress(b"ann,1\nbob,2\n"))))
    out = tmp_path / "out"
    assert main.main(["mine", "-", "-o", str(out), "--format", "csv", "--no-header", "--quiet", "--no-report"]) == 0
    assert "input: standard input: 2 left, 2 right, 2 edges" in capsys.readouterr().out
    assert RunFolder(out).options().source == "-"
    assert not list(tmp_path.glob("bicliques-*"))


def test_what_is_wrong_with_standard_input_is_said_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def give(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    give("% bip\n1 2\nx 3\n")
    with pytest.raises(InputError, match=r"^standard input, line 3: the left label 'x' is not a plain integer"):
        read_edges("-", tmp_path / "out")
    give("")
    with pytest.raises(InputError, match=r"^standard input is empty; name a file that holds edges"):
        read_edges("-", tmp_path / "out")
    give("ann,bob\n")
    with pytest.raises(InputError, match=r"^neither the name nor the first line of standard input tells its format"):
        read_edges("-", tmp_path / "out")
    with pytest.raises(InputError, match=r"^- is given 2 times, but standard input can be read only once"):
        read_edges(["-", "-"], tmp_path / "out")
    monkeypatch.setattr(os, "isatty", lambda _: True)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    with pytest.raises(InputError, match=r"^standard input is a terminal; pipe the edges into the command"):
        read_edges("-", tmp_path / "out")


def test_standard_input_and_files_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"% bip\n1 2\n")))
    found, summary = read_edges(["-", write(tmp_path / "out.x", "3 4\n")], tmp_path / "out")
    assert found == [(1, 2), (3, 4)]
    assert summary.source.startswith("standard input and ")


def test_several_files_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = files(tmp_path / "in", a__el="1 2\n", b__el="1 3\n", c__el="2 2\n")
    words = [str(folder / name) for name in ("a.el", "b.el", "c.el")]
    out = tmp_path / "out"
    assert main.main(["mine", *words, "-o", str(out), "--quiet"]) == 0
    assert f"{words[0]}, {words[1]} and 1 more: 2 left, 2 right, 3 edges" in capsys.readouterr().out
    assert json.loads(RunFolder(out).options().source) == words
    assert main.main(["count", str(folder), "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("bicliques: 2\n")
    assert bq.count(words, progress=False).count == 2


def test_a_run_killed_before_it_read_goes_on_with_all_its_files(tmp_path, monkeypatch):
    folder = files(tmp_path / "in", a__el="1 2\n", b__el="1 3\n")
    for k, source in enumerate((str(folder), f"{folder}/*.el", [folder / "a.el", folder / "b.el"])):
        out = tmp_path / f"out{k}"
        out.mkdir()
        RunFolder(out).write_options(RunOptions(source=recorded(source)), RunLimits())
        assert steps.ingest(out, progress=False)["n_edges"] == 2
    (folder / "b.el").unlink()
    for k, source in enumerate((f"{folder}/c*.el", [folder / "a.el", folder / "b.el"], "-")):
        gone = tmp_path / f"gone{k}"
        gone.mkdir()
        RunFolder(gone).write_options(RunOptions(source=recorded(source)), RunLimits())
        with pytest.raises(InputError, match="cannot be read again"):
            steps.ingest(gone, progress=False)
