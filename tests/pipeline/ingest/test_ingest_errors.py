"""Every kind of bad input gives one sentence with the file, the line and the remedy, and writes nothing."""

import bz2
import gzip
import lzma
import re
from pathlib import Path
from typing import Any

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


def bad(file: str, content: Any, reason: str, remedy: str, at: int | None = None, **options: Any) -> tuple[Any, ...]:
    """A file, its options, the line that is named, and words of the sentence."""
    return file, content, options, at, reason, remedy


#: By what is wrong; more are in tests/data/sentences.txt.
BAD_FILES = {
    # nothing there
    "empty gzip": bad("x.csv.gz", gzip.compress(b""), "is empty", "name a file"),
    "header only": bad("x.csv", "left,right\n", "no edges", "check the input and its format"),
    "comments only": bad("out.x", "% bip unweighted\n", "no edges", "check the input"),
    "zeros only": bad("x.mtx", BANNER + "1 1 0\n2 2 0\n", "no edges", "check the input"),
    "no items": bad("x.dat", "\n\n", "no edges", "check the input"),
    "bad lines only": bad(
        "x.el", "1\n2\n", r"no edges in \S+ \(2 bad lines were left out\)", "ch", skip_bad_lines=True
    ),
    # columns
    "one column KONECT": bad("out.x", "% bip\n1 2\n3\n", r"1 column where the first edge has 2 \('3'\)", SKIP, at=3),
    "one column SNAP": bad("x.el", "# c\n12\n", "1 column where 2 to 4", "skip_lines=2 if it is no edge", at=2),
    "one column matrix": bad("x.mtx", BANNER + "1 1 1\n2\n", "1 column where line 1 promises 3", "mend the line", at=4),
    "one column Parquet": bad("x.parquet", pa.table({"a": [1]}), "1 column.* where 2 are needed", "give a table"),
    "too many columns": bad("out.x", "1 2 3 4 5\n", "5 columns where 2 to 4", "skip_lines=1 if it is no edge", at=1),
    "missing column": bad("x.csv", "a,b\n1,2\n", "no column 'c'.*'a', 'b'", "name one", at=1, left="a", right="c"),
    "missing position": bad("x.csv", "1,2\n", "no column 2", "from 0 to 1", at=1, left=0, right=2),
    "text SNAP": bad("x.el", "ann tea\n", r"the labels are text \('ann tea'\)", TEXT, at=1),
    "commas in KONECT": bad("out.x", "1,2\n", "1 column where", "say format='csv'", at=1),
    "name without header": bad("x.csv", "1,2\n", "'a'", "position", left="a", right="b", header=False),
    "text header or edge": bad(
        "x.csv", "a,b\nc,d\n", "may be column names or an edge", "header=True or header=False", at=1
    ),
    # weights
    "text weight": bad(
        "out.x", "1 2 0.5\n2 3 heavy\n", "the weight 'heavy' is not a number", "remove the column", at=2
    ),
    "no weight": bad("out.x", "1 2 0.5\n2 3 NA\n", "the weight 'NA' is not a number", SKIP, at=2),
    "text time": bad("x.el", "1 2 1 1083\n2 3 1 May\n", "the time 'May' is not a number", SKIP, at=2),
    "text value": bad("x.mtx", BANNER + "1 1 1.0\n2 2 x\n", "the value 'x' is not a number", SKIP, at=4),
    # labels
    "no text label": bad("x.csv", 'a,b\nx,1\n"",3\n', "the left label is empty", SKIP, at=3),
    "NA": bad("x.csv", "a,b\n1,2\n3,NA\n", "the right label 'NA' is not a plain integer", TEXT, at=3),
    "null": bad("x.parquet", pa.table({"a": [1, None], "b": [3, 4]}), "row 2: the left label is null", SKIP),
    "negative": bad("out.x", "1 2\n-1 2\n", "the left label '-1' is a negative integer", TEXT, at=2),
    "negative Arrow": bad("x.arrow", pa.table({"a": [1], "b": [-4]}), "row 1: the right label '-4'", TEXT),
    "huge": bad("x.el", f"1 2\n1 {2**63}\n", rf"the right label '{2**63}' is larger than 2\*\*63 - 1", TEXT, at=2),
    "huge CSV": bad("x.csv", "a,b\n1,1" + 30 * "0" + "\n", r"larger than 2\*\*63 - 1", TEXT, at=2),
    "zero in KONECT": bad("out.x", "0 1\n", "the left label 0 is below 1", TEXT, at=1),
    "zero in a matrix": bad("x.mtx", BANNER + "1 1 1\n3 0 1\n", "the right label 0 is below 1", SKIP, at=4),
    "mixture": bad("x.csv", "a,b\n1,2\n3,x\n", "'x' is not a plain integer, but the column holds integers", TEXT, at=3),
    "text item": bad("x.dat", "1 2 4\n3 tea\n", "the right label 'tea' is not a plain integer", TEXT, at=2),
    "text for int": bad(
        "x.csv", "a,b\n1,x\n", "the right label 'x' is not a plain integer", SKIP, at=2, label_type="int"
    ),
    "open quote": bad("x.csv", 'l,r\na,b\nc,"d\n', "has a quote out of place", SKIP, at=3, header=True),
    "line break": bad("x.csv", 'l,r\n1,"a\nb"\n', "has a quote out of place", SKIP, at=2, header=True),
    "stray quote": bad("x.csv", 'l,r\n1,"a"b\n', "has a quote out of place", SKIP, at=2, header=True),
    # bytes
    "old Mac items": bad("x.dat", "a\rb\n", "a carriage return inside", "Unix line ends", at=1, label_type="string"),
    "old Mac": bad("x.el", "1 2\r3 4\r", "a carriage return inside the line", "Unix line ends", at=1),
    "binary": bad("x.el", b"\x00\x01\xff\n", "is not UTF-8", "iconv", at=1),
    "truncated gzip": bad("x.el.gz", gzip.compress(b"1 2\n" * 999)[:-9], "gzip stream .truncated", "copy or down"),
    "truncated bzip2": bad("x.el.bz2", bz2.compress(b"1 2\n" * 999)[:-9], "bzip2 stream .truncated", "copy"),
    "truncated xz": bad("x.el.xz", lzma.compress(b"1 2\n" * 999)[:-9], "xz stream .truncated", "copy"),
    "truncated zstd": bad("x.el.zst", pa.compress(b"1 2\n" * 999, "zstd", True)[:-3], "zstd .*truncated", "copy"),
    "damaged gzip": bad("x.el.gz", b"1 2\n", "is not a whole gzip file", "copy it again, or rename"),
    "damaged bzip2": bad("x.el.bz2", b"1 2\n" * 9, "is not a whole bzip2 file", "rename"),
    "damaged xz": bad("x.el.xz", b"1 2\n" * 9, "is not a whole xz file", "rename"),
    "damaged zstd": bad("x.el.zst", b"1 2\n" * 9, "is not a whole zstd file", "rename"),
    # a program that writes streams side by side (pbzip2, pigz) makes many in one file
    "second gzip stream": bad("x.el.gz", gzip.compress(b"1 2\n") + b"X1 3\n", "is not a whole gzip", "copy it"),
    "second bzip2 stream": bad("x.el.bz2", bz2.compress(b"1 2\n") + b"X1 3\n", "is not a whole bzip2", "copy it"),
    "second xz stream": bad("x.el.xz", lzma.compress(b"1 2\n") + b"X1 3\n" * 9, "is not a whole xz", "copy it"),
    "second zstd stream": bad(
        "x.el.zst", pa.compress(b"1 2\n", "zstd", True) + b"X1 3\n", "is not a whole zstd", "copy it"
    ),
    "empty Parquet": bad("x.parquet", b"", "is empty", "name a file"),
    "doubly compressed": bad("x.parquet.gz", gzip.compress(b"PAR1"), "compressed once more", "decompress it"),
    # headers
    "left count": bad(
        "out.x", "% bip\n% 2 3 2\n1 1\n2 2\n", "counts 3 left vertices, but the file has 2", "remove line 2", at=2
    ),
    "right count": bad(
        "out.x", "% bip\n% 1 1 4\n1 5\n", r"4 right vertices, but the file has 1 \(largest 5\)", "remove", at=2
    ),
    "no banner": bad("x.mtx", "3 3 1\n1 1\n", "'3 3 1' is not a Matrix Market header", "name another format", at=1),
    "no sizes": bad("x.mtx", "%%MatrixMarket matrix coordinate real general\n% c\n", "no line of sizes", "again"),
    "bad sizes": bad(
        "x.mtx", BANNER.replace("3 3 2", "3 3"), "'3 3' is not a line of sizes", "must hold the numb", at=2
    ),
    "a size beyond 64 bits": bad(
        "x.mtx",
        BANNER.replace("3 3 2", "99999999999999999999 9 1") + "1 1 1\n",
        r"'99999999999999999999' is larger than 2\*\*63 - 1",
        "correct the header",
        at=2,
    ),
    "a size of many digits": bad(
        "x.mtx",
        BANNER.replace("3 3 2", "3 3 " + 5000 * "9"),
        r"'9+\.\.\.' is larger than 2\*\*63 - 1",
        "correct the header",
        at=2,
    ),
    "a count beyond 64 bits": bad(
        "out.x", f"% bip\n% {2**63} 1 1\n1 1\n", rf"'{2**63}' is larger than 2\*\*63 - 1", "correct the header", at=2
    ),
    "a count of many digits": bad(
        "out.x",
        "% bip\n% 1 1 " + 5000 * "9" + "\n1 1\n",
        r"'9+\.\.\.' is larger than 2\*\*63 - 1",
        "correct the header",
        at=2,
    ),
    # options
}

#: Messages about an option alone need not name the file.
ABOUT_OPTIONS = {"name without header"}


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
