"""Every kind of bad input gives one sentence with the file, the line and the remedy, and writes nothing."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from bicliques.pipeline.ingest.readers import blocks
from bicliques.pipeline.ingest.readers.base import shorten
from bicliques.pipeline.ingest.step import ingest
from bicliques.pipeline.ingest.table import normalise, numbering
from bicliques.pipeline.run.names import EDGES_FILE
from bicliques.schemas.errors import InputError, ResourceError
from bicliques.schemas.options import IngestOptions
from tests.support.inputs import untouched_run, write

BANNER = "%%MatrixMarket matrix coordinate real general\n3 3 2\n"
SKIP = "leave such lines out with skip_bad_lines=True"
TEXT = "take the labels as text with label_type='string'"

#: What is wrong -> (file, content, options, line or None, words of the reason, words of the remedy).
BAD_FILES = {
    # nothing there
    "empty file": ("x.csv", "", {}, None, "is empty", "name a file that holds edges"),
    "empty gzip": ("x.csv.gz", gzip.compress(b""), {}, None, "is empty", "name a file"),
    "blank lines only": ("x.csv", "\n \n", {}, None, "blank lines only", "name a file"),
    "header only": ("x.csv", "left,right\n", {}, None, "no edges", "check the input and its format"),
    "comments only": ("out.x", "% bip unweighted\n", {}, None, "no edges", "check the input"),
    "zeros only": ("x.mtx", BANNER + "1 1 0\n2 2 0\n", {}, None, "no edges", "check the input"),
    "no items": ("x.dat", "\n\n", {}, None, "no edges", "check the input"),
    "bad lines only": (
        "x.el",
        "1\n2\n",
        {"skip_bad_lines": True},
        None,
        r"no edges in \S+ \(2 bad lines were left out\)",
        "ch",
    ),
    # columns
    "one column": ("x.csv", "user\n1\n2\n", {}, 1, r"1 column where 2 are needed \('user'\)", "delimiter"),
    "one column KONECT": ("out.x", "% bip\n1 2\n3\n", {}, 3, r"1 column where the first edge has 2 \('3'\)", SKIP),
    "one column SNAP": ("x.el", "# c\n12\n", {}, 2, "1 column where 2 to 4", "skip_lines=2 if it is no edge"),
    "one column matrix": ("x.mtx", BANNER + "1 1 1\n2\n", {}, 4, "1 column where line 1 promises 3", "mend the line"),
    "one column Parquet": (
        "x.parquet",
        pa.table({"a": [1]}),
        {},
        None,
        "1 column.* where 2 are needed",
        "give a table",
    ),
    "too few columns": ("x.csv", "a,b,c\n1,2,3\n4,5\n", {}, 3, "2 columns where the first line has 3", SKIP),
    "too many columns": ("out.x", "1 2 3 4 5\n", {}, 1, "5 columns where 2 to 4", "skip_lines=1 if it is no edge"),
    "commas in KONECT": ("out.x", "1,2\n", {}, 1, "1 column where", "say format='csv'"),
    "missing column": ("x.csv", "a,b\n1,2\n", {"left": "a", "right": "c"}, 1, "no column 'c'.*'a', 'b'", "name one"),
    "missing position": ("x.csv", "1,2\n", {"left": 0, "right": 2}, 1, "no column 2", "from 0 to 1"),
    "name without header": ("x.csv", "1,2\n", {"left": "a", "right": "b", "header": False}, None, "'a'", "position"),
    "text header or edge": (
        "x.csv",
        "a,b\nc,d\n",
        {},
        1,
        "may be column names or an edge",
        "header=True or header=False",
    ),
    # weights
    "text weight": ("out.x", "1 2 0.5\n2 3 heavy\n", {}, 2, "the weight 'heavy' is not a number", "remove the column"),
    "no weight": ("out.x", "1 2 0.5\n2 3 NA\n", {}, 2, "the weight 'NA' is not a number", SKIP),
    "text time": ("x.el", "1 2 1 1083\n2 3 1 May\n", {}, 2, "the time 'May' is not a number", SKIP),
    "text value": ("x.mtx", BANNER + "1 1 1.0\n2 2 x\n", {}, 4, "the value 'x' is not a number", SKIP),
    # labels
    "no label": ("x.csv", "a,b\n1,2\n,3\n", {}, 3, "the left label is empty", f"fill it in, or {SKIP}"),
    "no text label": ("x.csv", 'a,b\nx,1\n"",3\n', {}, 3, "the left label is empty", SKIP),
    "NA": ("x.csv", "a,b\n1,2\n3,NA\n", {}, 3, "the right label 'NA' is not a plain integer", TEXT),
    "null": ("x.parquet", pa.table({"a": [1, None], "b": [3, 4]}), {}, None, "row 2: the left label is null", SKIP),
    "negative": ("out.x", "1 2\n-1 2\n", {}, 2, "the left label '-1' is a negative integer", TEXT),
    "negative CSV": ("x.csv", "-1,2\n", {}, 1, "the left label '-1' is a negative integer", TEXT),
    "negative Arrow": ("x.arrow", pa.table({"a": [1], "b": [-4]}), {}, None, "row 1: the right label '-4'", TEXT),
    "huge": ("x.el", f"1 2\n1 {2**63}\n", {}, 2, rf"the right label '{2**63}' is larger than 2\*\*63 - 1", TEXT),
    "huge CSV": ("x.csv", "a,b\n1,1" + 30 * "0" + "\n", {}, 2, r"larger than 2\*\*63 - 1", TEXT),
    "zero in KONECT": ("out.x", "0 1\n", {}, 1, "the left label 0 is below 1", TEXT),
    "zero in a matrix": ("x.mtx", BANNER + "1 1 1\n3 0 1\n", {}, 4, "the right label 0 is below 1", SKIP),
    "outside the matrix": ("x.mtx", BANNER + "1 1 1\n4 3 1\n", {}, 4, r"\(4, 3\) is outside the 3 x 3 matrix", "mend"),
    "mixture": ("x.csv", "a,b\n1,2\n3,x\n", {}, 3, "'x' is not a plain integer, but the column holds integers", TEXT),
    "text SNAP": ("x.el", "ann tea\n", {}, 1, "the labels are text \\('ann tea'\\)", TEXT),
    "text item": ("x.dat", "1 2 4\n3 tea\n", {}, 2, "the right label 'tea' is not a plain integer", TEXT),
    "text for int": (
        "x.csv",
        "a,b\n1,x\n",
        {"label_type": "int"},
        2,
        "the right label 'x' is not a plain integer",
        SKIP,
    ),
    "quotes": (
        "x.csv",
        'a,b\n1,2\n"3,4\n',
        {},
        3,
        "has a quote out of place",
        "mend it .a label cannot hold a line break",
    ),
    "open quote": ("x.csv", 'l,r\na,b\nc,"d\n', {"header": True}, 3, "has a quote out of place", SKIP),
    "line break": ("x.csv", 'l,r\n1,"a\nb"\n', {"header": True}, 2, "has a quote out of place", SKIP),
    "stray quote": ("x.csv", 'l,r\n1,"a"b\n', {"header": True}, 2, "has a quote out of place", SKIP),
    # bytes
    "not UTF-8": (
        "x.csv",
        b"left,right\na,b\n\xe9,c\n",
        {},
        3,
        r"byte 1 is not UTF-8 \('\\xe9,c'\)",
        "convert .* with iconv",
    ),
    "UTF-16": ("x.csv", "1,2\n".encode("utf-16"), {}, None, "is UTF-16", "iconv"),
    "old Mac items": ("x.dat", "a\rb\n", {"label_type": "string"}, 1, "a carriage return inside", "Unix line ends"),
    "old Mac": ("x.el", "1 2\r3 4\r", {}, 1, "a carriage return inside the line", "Unix line ends"),
    "binary": ("x.el", b"\x00\x01\xff\n", {}, 1, "is not UTF-8", "iconv"),
    "truncated gzip": (
        "x.el.gz",
        gzip.compress(b"1 2\n" * 999)[:-9],
        {},
        None,
        "gzip stream .truncated",
        "copy or down",
    ),
    "truncated bzip2": ("x.el.bz2", bz2.compress(b"1 2\n" * 999)[:-9], {}, None, "bzip2 stream .truncated", "copy"),
    "truncated xz": ("x.el.xz", lzma.compress(b"1 2\n" * 999)[:-9], {}, None, "xz stream .truncated", "copy"),
    "truncated zstd": (
        "x.el.zst",
        pa.compress(b"1 2\n" * 999, "zstd", True)[:-3],
        {},
        None,
        "zstd .*truncated",
        "copy",
    ),
    "damaged gzip": ("x.el.gz", b"1 2\n", {}, None, "is not a whole gzip file", "copy it again, or rename"),
    "damaged bzip2": ("x.el.bz2", b"1 2\n" * 9, {}, None, "is not a whole bzip2 file", "rename"),
    "damaged xz": ("x.el.xz", b"1 2\n" * 9, {}, None, "is not a whole xz file", "rename"),
    "damaged zstd": ("x.el.zst", b"1 2\n" * 9, {}, None, "is not a whole zstd file", "rename"),
    # a program that writes streams side by side (pbzip2, pigz) makes many in one file
    "second gzip stream": ("x.el.gz", gzip.compress(b"1 2\n") + b"X1 3\n", {}, None, "is not a whole gzip", "copy it"),
    "second bzip2 stream": (
        "x.el.bz2",
        bz2.compress(b"1 2\n") + b"X1 3\n",
        {},
        None,
        "is not a whole bzip2",
        "copy it",
    ),
    "second xz stream": ("x.el.xz", lzma.compress(b"1 2\n") + b"X1 3\n" * 9, {}, None, "is not a whole xz", "copy it"),
    "second zstd stream": (
        "x.el.zst",
        pa.compress(b"1 2\n", "zstd", True) + b"X1 3\n",
        {},
        None,
        "is not a whole zstd",
        "copy it",
    ),
    "damaged Parquet": ("x.parquet", b"PAR1 and so on", {}, None, "is not a whole parquet file", "copy it again"),
    "damaged Arrow": ("x.arrow", b"ARROW1 and so on", {}, None, "is not a whole arrow file", "copy it again"),
    "empty Parquet": ("x.parquet", b"", {}, None, "is empty", "name a file"),
    "doubly compressed": ("x.parquet.gz", gzip.compress(b"PAR1"), {}, None, "compressed once more", "decompress it"),
    "line ends of old": ("x.csv", "1,2\r3,4\r", {}, 1, "a carriage return inside the line", "Unix line ends"),
    # headers
    "edge count": ("out.x", "% bip\n% 3 2 2\n1 1\n2 2\n", {}, 2, "counts 3 edges, but the file has 2", "download it"),
    "left count": (
        "out.x",
        "% bip\n% 2 3 2\n1 1\n2 2\n",
        {},
        2,
        "counts 3 left vertices, but the file has 2",
        "remove line 2",
    ),
    "right count": (
        "out.x",
        "% bip\n% 1 1 4\n1 5\n",
        {},
        2,
        r"4 right vertices, but the file has 1 \(largest 5\)",
        "remove",
    ),
    "one mode": ("out.x", "% sym unweighted\n1 2\n", {}, 1, "'sym', a network whose columns share one", "write bip"),
    "entry count": ("x.mtx", BANNER + "1 1 1\n", {}, 2, "says 2 entries, but the file has 1", "correct the number"),
    "more entries": ("x.mtx", BANNER + "1 1 1\n2 2 1\n3 3 1\n", {}, 2, "says 2 entries, but the file has 3", "corr"),
    "no banner": ("x.mtx", "3 3 1\n1 1\n", {}, 1, "'3 3 1' is not a Matrix Market header", "name another format"),
    "dense matrix": (
        "x.mtx",
        BANNER.replace("coordinate", "array"),
        {},
        1,
        "'array real general'",
        "write it as coord",
    ),
    "complex": (
        "x.mtx",
        BANNER.replace("real", "complex"),
        {},
        1,
        "'coordinate complex general'",
        "pattern or integer",
    ),
    "no sizes": (
        "x.mtx",
        "%%MatrixMarket matrix coordinate real general\n% c\n",
        {},
        None,
        "no line of sizes",
        "again",
    ),
    "bad sizes": ("x.mtx", BANNER.replace("3 3 2", "3 3"), {}, 2, "'3 3' is not a line of sizes", "must hold the numb"),
    "a size beyond 64 bits": (
        "x.mtx",
        BANNER.replace("3 3 2", "99999999999999999999 9 1") + "1 1 1\n",
        {},
        2,
        r"'99999999999999999999' is larger than 2\*\*63 - 1",
        "correct the header",
    ),
    "a size of many digits": (
        "x.mtx",
        BANNER.replace("3 3 2", "3 3 " + 5000 * "9"),
        {},
        2,
        r"'9+\.\.\.' is larger than 2\*\*63 - 1",
        "correct the header",
    ),
    "a count beyond 64 bits": (
        "out.x",
        f"% bip\n% {2**63} 1 1\n1 1\n",
        {},
        2,
        rf"'{2**63}' is larger than 2\*\*63 - 1",
        "correct the header",
    ),
    "a count of many digits": (
        "out.x",
        "% bip\n% 1 1 " + 5000 * "9" + "\n1 1\n",
        {},
        2,
        r"'9+\.\.\.' is larger than 2\*\*63 - 1",
        "correct the header",
    ),
    # options
    "unknown name": (
        "x.txt",
        "1 2\n",
        {},
        None,
        "neither the name nor the first line",
        "say format, one of konect, snap",
    ),
    "unknown format": ("x.txt", "1 2\n", {"format": "gml"}, None, "no format 'gml'", "choose one of konect, snap"),
    "option not used": (
        "out.x",
        "1 2\n",
        {"delimiter": ","},
        None,
        "delimiter separates columns, which",
        "leave the op",
    ),
    "one side": ("x.csv", "a,b\n1,2\n", {"left": "b"}, None, "only one of left and right", "name both"),
}

#: Messages about an option alone need not name the file.
ABOUT_OPTIONS = {"name without header", "unknown format", "option not used", "one side"}


@pytest.fixture
def folder(tmp_path):
    with untouched_run(tmp_path) as folder:
        yield folder


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files(case, tmp_path, folder):
    name, content, options, line, reason, remedy = BAD_FILES[case]
    path = write(tmp_path / name, content)
    with pytest.raises(InputError) as caught:
        ingest(path, IngestOptions(**options), folder)
    message = str(caught.value)
    assert re.search(reason, message), message
    assert re.search(remedy, message.partition(";")[2] or message), message
    assert "\n" not in message
    if line is not None:
        assert message.startswith(f"{path}, line {line}: ")
    elif case not in ABOUT_OPTIONS:
        assert str(path) in message


def test_a_line_without_end_is_refused(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(blocks, "LINE_BYTES", 1 << 20)
    path = write(tmp_path / "x.el", b"1 2\n" + b"1" * (3 << 20))
    with pytest.raises(InputError, match=r"x\.el, line 2: the line is longer than 1 MiB; .* format"):
        ingest(path, IngestOptions(), folder)


def test_an_object_with_nulls_and_one_of_mixed_types(folder):
    with pytest.raises(InputError, match=r"pandas\.DataFrame, row 2: the right label is null; fill it in"):
        ingest(pd.DataFrame({"a": ["x", "y"], "b": ["z", None]}), IngestOptions(), folder)
    with pytest.raises(InputError, match=r"mixes integers and strings \('x' at row 2\); convert the column"):
        ingest(pd.DataFrame({"a": [1, "x"], "b": [1, 2]}), IngestOptions(), folder)


def test_too_many_vertices(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(numbering, "MAX_VERTICES", 2)
    with pytest.raises(ResourceError, match="3 right labels are more than the 2 that 32-bit ids can number"):
        ingest(write(tmp_path / "x.csv", "1,2\n1,3\n1,4\n"), IngestOptions(), folder)


@pytest.mark.parametrize("when", ["labels", "edges"])
def test_a_disk_that_fills_up(tmp_path, folder, monkeypatch, when):
    def fill(self, path, threads=1):
        (path if when == "labels" else path / EDGES_FILE).write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(normalise.Labels if when == "labels" else normalise.EdgeTable, "write", fill)
    with pytest.raises(ResourceError, match=r"cannot write .*run \(No space left on device\); make room"):
        ingest(write(tmp_path / "x.csv", "1,2\n"), IngestOptions(), folder)


def test_a_folder_in_the_place_of_a_table_is_named(tmp_path):
    folder = tmp_path / "other"
    (folder / "edges" / "edges.parquet").mkdir(parents=True)
    with pytest.raises(ResourceError, match=r"cannot write .*edges/edges\.parquet \(Is a directory\)"):
        ingest(write(tmp_path / "x.csv", "1,2\n"), IngestOptions(), folder)


def test_an_interrupt_while_writing(tmp_path, folder, monkeypatch):
    def interrupt(self, path):
        raise KeyboardInterrupt

    monkeypatch.setattr(normalise.EdgeTable, "write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ingest(write(tmp_path / "x.csv", "1,2\n"), IngestOptions(), folder)


def test_a_failure_while_moving(tmp_path, monkeypatch):
    """Nothing of ours stays; files of an earlier attempt are only replaced by whole new ones."""
    folder = tmp_path / "run"
    folder.mkdir()
    replace = Path.replace

    def fail_on_edges(self, target):
        if Path(target).name == EDGES_FILE.name:
            raise OSError(5, "Input/output error")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail_on_edges)
    with pytest.raises(ResourceError, match="Input/output error"):
        ingest(write(tmp_path / "x.csv", "1,2\n"), IngestOptions(), folder)
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"gone cannot be written into \(No such file or directory\); choose another"):
        ingest(write(tmp_path / "x.csv", "1,2\n"), IngestOptions(), tmp_path / "gone")


def test_a_line_is_quoted_with_its_bytes() -> None:
    """A backslash of the line is doubled, as in Python, so that it is not taken for the beginning of a byte."""
    assert [shorten(line) for line in (b"\xe9,b", "é\t".encode(), b"\\xe9 \\udce9", b"\\\xff")] == [
        r"'\xe9,b'",
        r"'é\t'",
        r"'\\xe9 \\udce9'",
        r"'\\\xff'",
    ]
    assert shorten(b"\xff" * 90) == "'" + 57 * r"\xff" + "...'"
