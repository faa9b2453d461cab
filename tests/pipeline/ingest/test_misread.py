"""Inputs that were once misread, each after a public report or file: the right count, or advice that leads to it."""

import io
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
import scipy.io

import bicliques as bq
from bicliques.schemas.errors import InputError, Voice, speaking
from tests.pipeline.ingest.advice import Advice, advised
from tests.pipeline.ingest.dialect_graphs import number_of_bicliques

ORDERS = [("ann", "tea"), ("ann", "milk"), ("bob", "tea"), ("cyd", "milk"), ("cyd", "jam"), ("bob", "jam")]
BOUGHT = [*(("a", "x"),) * 2, ("a", "y"), ("b", "x"), *(("b", "z"),) * 3, *(("c", "y"),) * 2, *(("d", "w"),) * 2]

VISITS = "plant,bee,fly,wasp\nsage,3,0,1\nmint,0,2,5\nrose,1,1,0\n"
CONTEXT = "animal,swims,flies,runs\nfrog,X,,X\nduck,X,X,X\nhen,X,,X\n"
YES_NO = "animal,swims,flies,runs\nfrog,yes,no,yes\nduck,yes,yes,yes\nhen,no,yes,yes\n"
YEARS = "plant,insect,2019,2020\nsage,bee,3,1\nmint,bee,0,2\nmint,fly,1,1\n"
KNOWN = "user,item,2019\nann,tea,3\nann,milk,1\nbob,tea,2\n"
FRAME = "0,1,kind\nrose,bee,wild\nsage,bee,wild\nsage,fly,tame\n"
AGAIN = "user,item\nann,tea\nuser,item\nbob,tea\nbob,milk\n"
NAMES = "3\t3\t5\nu1\tv1\nu1\tv2\nu2\tv2\nu2\tv3\nu3\tv3\n"
NUMBERS = "3 3 5\n0 0\n0 1\n1 1\n1 2\n2 2\n"
PLAIN = "1 11\n1 12\n2 11\n2 13\n3 12\n"
PLAYS = "userID\tartistID\tweight\n1\t11\t5\n1\t12\t3\n2\t11\t4\n2\t13\t2\n3\t12\t1\n"
LISTS = "1 10 11 12\n2 10 12\n3 11\n"
STARS = "1::1193::5::978300760\n1::661::3::978302109\n2::1193::4::978301968\n"
SPMF = "@CONVERTED_FROM_TEXT\n@ITEM=1=tea\n@ITEM=2=milk\n@ITEM=3=jam\n1 2\n2 3\n1 3 2\n"
COMMA = "# exported by tool, 2026-11-01\nuser,item\nann,tea\nann,milk\nbob,tea\n"
COMMENT = "# exported 2026\nuser,item\nann,tea\nbob,tea\n"
EXCEL = "sep=;\nuser;item\nann;tea\nbob;tea\n"
NETWORKX = "0 10 {}\n0 11 {}\n1 10 {'weight': 3}\n"
POND = "B\n\n3\n3\n\nfrog\nduck\nhen\nswims\nflies\nruns\nX.X\nXXX\n.XX\n"

#: Name of the file, its text, what the user says, and the right count.
FILES: list[tuple[str, str, dict[str, Any], int]] = [
    ("visits.csv", VISITS, {}, 6),
    ("visits.csv", VISITS, {"header": True}, 6),
    ("context.csv", CONTEXT, {"header": True}, 2),
    ("yesno.csv", YES_NO, {"header": True}, 4),
    ("years.csv", YEARS, {}, 2),
    ("known.csv", KNOWN, {}, 2),
    ("frame.csv", FRAME, {}, 2),
    ("frame.csv", FRAME, {"label_type": "string"}, 2),
    ("frame.csv", FRAME, {"header": True}, 2),
    ("again.csv", AGAIN, {}, 2),
    ("numbers.el", NUMBERS, {}, 4),
    ("names.el", NAMES, {}, 4),
    ("names.el", NAMES, {"label_type": "string"}, 4),
    ("plain.dat", PLAIN, {}, 4),
    ("plays.dat", PLAYS, {}, 4),
    ("plays.dat", PLAYS, {"label_type": "string"}, 4),
    ("shop.dat", "1,2\n2,3\n", {}, 3),
    ("shop.dat", "1,2\n2,3\n", {"label_type": "string"}, 3),
    ("shop.dat", "1,2\n2,3\n", {"delimiter": ","}, 3),
    ("stars.dat", STARS, {}, 2),
    ("stars.dat", STARS, {"label_type": "string"}, 2),
    ("stars.dat", STARS, {"format": "csv", "delimiter": "::"}, 2),
    ("stars.dat", STARS, {"format": "csv", "delimiter": ":", "left": 0, "right": 2}, 2),
    ("tea.dat", SPMF, {}, 4),
    ("tea.dat", SPMF, {"label_type": "string"}, 4),
    ("comment.csv", COMMENT, {}, 1),
    ("comment.csv", COMMENT, {"skip_bad_lines": True}, 1),
    ("comma.csv", COMMA, {"header": True}, 2),
    ("excel.csv", EXCEL, {"header": True}, 1),
    ("nx.edgelist", NETWORKX, {}, 2),
    ("pond.cxt", POND, {}, 4),
    ("pond.cxt", POND, {"format": "csv"}, 4),
]


def frames() -> list[Any]:
    orders = pd.DataFrame([(u, i, 2) for u, i in ORDERS], columns=["customer_no", "sku", "n"])
    long = pd.DataFrame(BOUGHT, columns=["u", "i"])
    wide = pl.DataFrame(BOUGHT, schema=["u", "i"], orient="row").pivot(
        "i", index="u", values="i", aggregate_function="len"
    )
    baskets = [["milk", "bread", "jam"], ["milk", "jam"], ["bread", "jam", "tea"]]
    numbered = orders.set_axis([1, 2, 3], axis=1)  # as read_csv(header=None, usecols=[1, 2, 3]) does
    both = orders.assign(currency="eur").set_index(["customer_no", "sku"])
    return [
        pytest.param(numbered, {"left": 1, "right": 2}, 6, id="integer names"),
        pytest.param(both, {}, 6, id="index of both sides"),
        pytest.param(both, {"left": "customer_no", "right": "sku"}, 6, id="index of both sides, by name"),
        pytest.param(pd.crosstab(long.u, long.i), {}, 5, id="crosstab"),
        pytest.param(wide.fill_null(0), {}, 5, id="pivot"),
        pytest.param(pd.DataFrame(baskets), {}, 5, id="baskets"),
    ]


def counted(source: Any, options: dict[str, Any], voice: Voice = "python") -> int | str:
    """The count, or the sentence of a refusal."""
    try:
        return bq.count(source, engine="cpu", progress=False, **options).count
    except InputError as error:
        with speaking(voice):
            return str(error)


def followed(advice: Advice, source: Any, options: dict[str, Any], folder: Path) -> int | str:
    """What comes of one piece of advice: beside what was said before, or instead of it if that is refused."""
    if advice.command:
        return piped(advice.command, folder)
    try:
        given, added = advice.applied(source, options)
    except InputError as error:
        return str(error)
    if hasattr(given, "count") and isinstance(given.count, int):
        return given.count
    found = counted(given, added)
    return counted(given, advice.options) if isinstance(found, str) else found


def piped(command: str, folder: Path) -> int | str:
    """The count that a command line prints."""
    program = f'bicliques() {{ "{sys.executable}" -m bicliques "$@"; }}\n'
    done = subprocess.run(["bash", "-c", program + command], cwd=folder, capture_output=True, text=True)
    numbers = [word.replace(",", "") for word in done.stdout.split() if word[0].isdigit()]
    return int(numbers[0]) if done.returncode == 0 and numbers else done.stderr


def assert_right(
    source: Any,
    options: dict[str, Any],
    right: int,
    folder: Path,
    leads: bool = True,
    other: int | None = None,
    voice: Voice = "python",
) -> None:
    """The right count; or a refusal of which no advice gives another count, and some advice the right one.

    The advice may be a choice that the user has to make, "--header or --no-header", or with an "if" each.
    `other` is the count of a second reading, which the refusal may offer, too.
    """
    found = counted(source, options, voice)
    if isinstance(found, int):
        assert found == right
        return
    offered = list(advised(found))
    outcomes = {advice.text: followed(advice, source, options, folder) for advice in offered}
    # one of two readings is wrong; the user is asked which one it is
    choices = {advice.text for advice in offered if " if " in advice.text or {*advice.options} == {"header"}}
    shown = f"{found}\n" + "\n".join(f"  {text!r} gives {outcome}" for text, outcome in outcomes.items())
    assert all(
        isinstance(outcome, str) or outcome in (right, other) or (text in choices and len(choices) > 1)
        for text, outcome in outcomes.items()
    ), shown
    assert right in outcomes.values() or not leads, shown


def ids(cases: Iterable[tuple[str, str, dict[str, Any], int]]) -> list[str]:
    return [f"{name} {' '.join(f'{key}={value}' for key, value in said.items())}".strip() for name, _, said, _ in cases]


@pytest.mark.values
@pytest.mark.parametrize("voice", ["shell", "python"])
@pytest.mark.parametrize(("name", "text", "options", "right"), FILES, ids=ids(FILES))
def test_file_is_read_as_meant_or_its_advice_leads_there(name, text, options, right, voice, tmp_path):
    (tmp_path / name).write_text(text)
    # two numbers between commas may also be an edge
    other = number_of_bicliques([("1", "2"), ("2", "3")]) if name == "shop.dat" else None
    assert_right(tmp_path / name, options, right, tmp_path, other=other, voice=voice)


@pytest.mark.parametrize(("frame", "options", "right"), frames())
def test_frame_is_read_as_meant_or_its_advice_leads_there(frame, options, right, tmp_path):
    assert_right(frame, options, right, tmp_path)


def test_edge_without_a_header_is_not_dropped_as_a_comment(tmp_path):
    (tmp_path / "jam.csv").write_text("#1,jam\nann,tea\nbob,milk\n")
    assert_right(tmp_path / "jam.csv", {"header": False}, 3, tmp_path, other=2)


def test_neighbours_are_not_read_as_weights(tmp_path):
    (tmp_path / "lists.edgelist").write_text(LISTS)
    assert_right(tmp_path / "lists.edgelist", {}, 3, tmp_path, leads=False, voice="shell")


def test_index_in_parquet_is_the_left_side(tmp_path):
    path = tmp_path / "one.parquet"
    orders = pd.DataFrame([(u, i, 2) for u, i in ORDERS], columns=["customer_no", "sku", "n"])
    orders[["customer_no", "sku"]].set_index("customer_no").to_parquet(path)
    try:
        results = bq.mine(path, tmp_path / "out", engine="cpu", progress=False, report=False)
    except InputError as error:
        outcomes = [followed(advice, path, {}, tmp_path) for advice in advised(str(error))]
        assert outcomes
        assert set(outcomes) == {6}
        return
    labels = pq.read_table(results.path / "labels" / "left.parquet")["label"].to_pylist()
    assert labels == ["ann", "bob", "cyd"]


@pytest.mark.parametrize("options", [{}, {"format": "csv"}], ids=["by its name", "as csv"])
@pytest.mark.skipif(shutil.which("unzip") is None, reason="unzip is not installed")
@pytest.mark.first(1)
def test_zip_is_named_and_its_advice_leads_on(options, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("edges.csv", "1,2\n1,3\n")
    path = tmp_path / "edges.csv.zip"
    path.write_bytes(packed.getvalue())
    assert "zip" in str(counted(path, options)).lower().replace(path.name, "")
    assert_right(path, options, 1, tmp_path, voice="shell")


def test_nan_in_matrix_market_is_what_it_is_in_scipy(tmp_path):
    path = tmp_path / "m.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 nan\n1 2 0.0\n2 2 -1.5\n")
    of_file, of_matrix = counted(path, {}), counted(scipy.io.mmread(path), {})
    assert [isinstance(found, int) for found in (of_file, of_matrix)] in ([True] * 2, [False] * 2), of_file
    assert isinstance(of_file, str) or of_file == of_matrix
    assert isinstance(of_file, int) or "nan" in of_file.lower()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("time_limit", "5", ("number of seconds", "'5'")), ("min_left", pd.NA, ("min_left", "NA"))],
    ids=["text", "NA"],
)
def test_limit_that_is_no_number_is_named(name, value, words):
    sentence = counted([("a", "x"), ("b", "x")], {name: value})
    assert isinstance(sentence, str)
    assert all(word in sentence.replace("smallest left size", "min_left") for word in words), sentence
    assert "above 0" not in sentence


def test_timedelta_is_a_limit_or_is_refused_as_one():
    found = counted([("a", "x"), ("b", "x")], {"time_limit": pd.Timedelta(seconds=500).to_pytimedelta()})
    assert found == 1 or "number of seconds" in str(found)


@pytest.mark.parametrize("suffix", ["csv", "el"])
@pytest.mark.parametrize(("first", "edges"), [("ann 7", 3), ("ann 9", None)])
def test_a_word_next_to_a_number_is_no_header_without_a_question(tmp_path, suffix, first, edges):
    """Ids that are numbers in all lines but one. A number that comes again below is a label."""
    between = "," if suffix == "csv" else " "
    source = tmp_path / f"g.{suffix}"
    source.write_text(f"{first}\n12 7\n13 5\n".replace(" ", between))
    if edges is not None:
        assert bq.look(source, label_type="string").n_edges == edges
        return
    with pytest.raises(InputError, match=rf"line 1: '{first.replace(' ', between)}' may be .* or an edge; say "):
        bq.look(source, label_type="string")


@pytest.mark.parametrize("text", ["milk,,\ntea,jam,honey\ntea,bread,rice\n", "milk,\ntea,jam\nhoney,bread\n"])
def test_a_basket_of_one_item_is_no_header(tmp_path: Path, text: str) -> None:
    (tmp_path / "g.csv").write_text(text)
    with pytest.raises(InputError):
        bq.look(tmp_path / "g.csv")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "g.adj",
            "3 4 12\n1 2 5 6\n7 8 9 10\n2 5 7 9\n",
            "line 1: '3 4 12' may be the numbers of vertices and edges, or a list",
        ),
        ("out.g", "% sym unweighted\n1 2\n1 3\n", "line 1: the header says 'sym'"),
        ("g.el", f"20 30 12\n{''.join(f'{k} {k % 5} 1' + chr(10) for k in range(12))}", "may be the numbers of vertic"),
    ],
)
def test_what_a_first_line_says_is_believed_by_each_of_its_numbers(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words):
        bq.count(tmp_path / name, workers=0, progress=False)


def test_counts_that_are_left_out_are_a_doubt(tmp_path: Path) -> None:
    (tmp_path / "g.el").write_text("3 3 5\n0 1\n1 1\n1 2\n2 2\n2 0\n")
    seen = bq.look(tmp_path / "g.el")
    assert seen.n_edges == 5
    assert [doubt.text for doubt in seen.reading.doubts] == [
        "line 1 ('3 3 5') counts vertices and edges, and no edge is made of it"
    ]


def test_a_column_whose_name_is_blank_is_named_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("user,item, ,price\nann,tea,1,2\nbob,tea,3,4\nbob,jam,5,6\n")
    assert bq.look(tmp_path / "g.csv").reading.not_read == ("column 2", "price")


@pytest.mark.parametrize(("name", "format"), [("g.dat", "fimi"), ("g.adj", "adjacency"), ("out.g", "konect")])
def test_what_a_file_was_read_as_is_its_format(tmp_path: Path, name: str, format: str) -> None:
    (tmp_path / name).write_text("1 2\n2 3 4 5 6\n1 3\n3 4\n".replace(" 4 5 6" if name == "out.g" else "?", ""))
    assert bq.look(tmp_path / name).reading.format == format


def test_a_missing_item_makes_no_cross_table_of_a_list(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("user,item,city\nann,tea,Oslo\nbob,,Rome\ncyd,jam,Oslo\n")
    assert bq.look(tmp_path / "g.csv", skip_bad_lines=True).n_edges == 2


def test_a_third_column_with_words_of_its_own_makes_no_basket() -> None:
    frame = pd.DataFrame([("ann", "tea", "Oslo"), ("bob", "tea", "Rome"), ("bob", "jam", "Rome")])
    assert bq.look(frame).n_edges == 3


def test_lines_above_transactions_are_said(tmp_path: Path) -> None:
    (tmp_path / "g.dat").write_text("# baskets\n# of May\n1 2 3\n2 3 4 5\n1\n")
    assert bq.look(tmp_path / "g.dat").reading.lines_above == 2


@pytest.mark.parametrize(("label_type", "kind"), [("auto", "int64"), ("string", "string"), ("int", "int64")])
def test_integers_of_a_table_are_labels_of_the_type_that_is_asked_for(label_type: str, kind: str) -> None:
    edges = pd.DataFrame({"user": [10, 9, 9], "item": [1, 1, 2]})
    found = bq.count(edges, label_type=label_type, workers=0, progress=False)  # type: ignore[arg-type]
    assert (found.input["left_label"], found.input["n_left"], found.input["n_right"]) == (kind, 2, 2)
