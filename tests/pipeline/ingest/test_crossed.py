"""Tables with a column per right vertex: recognised as edges, read as tables, and made edges of in Python."""

from pathlib import Path

import pyarrow as pa
import pytest

from bicliques.pipeline.ingest.step import ingest
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions
from tests.support.inputs import read_edges, write

ONLY_FLAGS = "1 0\n0 1\n1 1\n0 0\n1 0\n"
TABLES = {
    "two columns of csv": ("x.csv", ONLY_FLAGS.replace(" ", ","), "2 of its columns have only 0 and 1, in 5 rows"),
    "the same with a header": (
        "x.csv",
        "a,b\n" + ONLY_FLAGS.replace(" ", ","),
        "2 of its columns have only 0 and 1, in 5 rows",
    ),
    "blanks": ("x.el", ONLY_FLAGS, "2 of its columns have only 0 and 1, in 5 rows; in Python, give bq.from_table"),
    "three columns": ("x.el", ONLY_FLAGS.replace("\n", " 1\n"), "2 of its columns have only 0 and 1, in 5 rows"),
    "a wide table with blanks": (
        "x.el",
        "1 0 0 1 1\n",
        r"5 columns where 2 to 4 .*; if it is a table of 0 and 1, in Python, give bq.from_table",
    ),
    "more columns of csv": (
        "x.csv",
        "1,0,1\n0,1,1\n1,1,0\n",
        "a column per vertex, .*: 2 of its columns have only 0 and 1; in Python",
    ),
    "transactions": (
        "x.dat",
        "1 0 1 1 1\n0 0 0 1 0\n",
        "its lines hold nothing else, 10 times in 2 lines; in Python, give bq.from_table",
    ),
    "neighbours": ("x.adj", "1 0 1\n0 0 1\n", "its lines hold nothing else, 6 times in 2 lines"),
    "parquet": (
        "x.parquet",
        pa.table({"a": [1, 0, 1, 1, 0], "b": [0, 1, 1, 0, 0]}),
        "2 of its columns have only 0 and 1, in 5 rows",
    ),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("folders", [False, True])
def test_tables_of_0_and_1_are_recognised(tmp_path: Path, name: str, folders: bool) -> None:
    file, content, said = TABLES[name]
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    source = write(tmp_path / "in" / file, content)
    if folders:
        write(tmp_path / "in" / f"more_{file}", content)
    for once, twice in (("5 rows", "10 rows"), ("10 times in 2", "20 times in 4"), ("6 times in 2", "12 times in 4")):
        said = said.replace(once, twice) if folders else said
    with pytest.raises(InputError, match=said):
        ingest(tmp_path / "in" if folders else source, IngestOptions(), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_few_edges_between_0_and_1_are_edges(tmp_path: Path) -> None:
    assert ingest(write(tmp_path / "x.el", "1 0\n0 1\n1 1\n0 0\n"), IngestOptions(), tmp_path).n_edges == 4
    assert ingest(write(tmp_path / "x.dat", "0 1\n1\n0\n"), IngestOptions(), tmp_path).n_edges == 4
    named = IngestOptions(left=0, right=1)
    assert ingest(write(tmp_path / "x.csv", ONLY_FLAGS.replace(" ", ",")), named, tmp_path).n_edges == 4


# --- read as tables ---

VISITS = {("sage", "bee"), ("sage", "fly"), ("mint", "bee"), ("mint", "moth")}
WRITTEN = {
    "counts": "plant,bee,fly,moth\nsage,3,1,0\nmint,2,0,7\n",
    "marks": "plant;bee;fly;moth\nsage;X;x;.\nmint;X;;X\n",
    "words": "plant\tbee\tfly\tmoth\nsage\tyes\tYes\tno\nmint\tyes\tno\tYES\n",
    "no corner": "bee,fly,moth\nsage,3,1,0\nmint,2,0,7\n",
    "comments": "# visits\nplant,bee,fly,moth\nsage,3,1,0\n\nmint,2,0,7\n",
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_table_of_text_is_read(tmp_path: Path, kind: str) -> None:
    found, summary = read_edges(write(tmp_path / "x.csv", WRITTEN[kind]), tmp_path / "out", format="table")
    assert set(found) == VISITS
    assert summary.format == "table"


def test_a_smallest_weight_is_that_of_a_cell(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", WRITTEN["counts"])
    found, summary = read_edges(path, tmp_path / "out", format="table", min_weight=2)
    assert set(found) == {("sage", "bee"), ("mint", "bee"), ("mint", "moth")}
    assert summary.light_rows == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("plant,bee,bee\nsage,1,0\n", "line 1: two columns are called 'bee'; rename one"),
        ("plant,bee\nsage,1\nsage,0\n", "line 3: the row is called 'sage', as line 2 is; rename one"),
        ("plant,bee,fly\nsage,1\n", "line 2: 1 cell where there are 2 columns of them"),
        ("plant,bee\nsage,maybe\n", "line 2: the cell 'maybe' is neither a number nor a mark"),
        ("7,0,1\n8,1,0\n", "line 1: the first row may name the columns.*header=True or header=False"),
        ("plant\nsage\n", "1 column where 2 are needed"),
    ],
)
def test_a_bad_table_is_refused_in_one_sentence(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_edges(write(tmp_path / "x.csv", content), tmp_path / "out", format="table")


def test_a_table_without_a_header_numbers_its_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "7,0,1\n8,1,0\n")
    assert set(read_edges(path, tmp_path / "out", format="table", header=False)[0]) == {(7, 2), (8, 1)}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("A\n\n1\n1\n\na\nb\nX\n", "is no context of Burmeister"),
        ("B\n\n2\n2\n\na\nb\n", "fewer names than the 4"),
        ("B\n\n1\n2\n\na\nb\nb\nX.\n", "two attributes are called 'b'"),
        ("B\n\n1\n2\n\na\nb\nc\nX.X\n", "line 9: 'X.X' is not one of 1 rows of 2 X and ."),
        ("B\n\n1\n2\n\na\nb\nc\nX?\n", "is not one of 1 rows"),
    ],
)
def test_a_bad_context_is_refused_in_one_sentence(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_edges(write(tmp_path / "x.cxt", content), tmp_path / "out")
