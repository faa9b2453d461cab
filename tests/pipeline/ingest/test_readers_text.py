"""Text formats: layouts that must not matter, what a label is, and the fast pass against the slow one."""

import csv
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.pipeline.ingest.readers import blocks, infer, open_source, text
from bicliques.pipeline.ingest.readers.text import TextStream, tidy
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions
from tests.support.examples import examples
from tests.support.text_files import SEPARATORS, edges_of, files, outcome


@pytest.fixture
def edges_in(tmp_path):
    """Write a file and read it. Returns its edges in order (and the number of lines left out, if that is allowed)."""

    def read(name: str, content: str | bytes, **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        stream = open_source(path, IngestOptions(**options))
        edges = edges_of(stream)
        return (edges, stream.skipped) if options.get("skip_bad_lines") else edges

    return read


# --- layouts ---

KONECT = "% bip unweighted\n% 3 2 9\n1 7\n2 8\n1 9\n"


@pytest.mark.parametrize(
    "content",
    [
        KONECT,
        KONECT.replace("\n", "\r\n"),
        KONECT.rstrip("\n"),
        KONECT.rstrip("\n").replace("\n", "\r\n") + "\r",
        "\ufeff" + KONECT,
        KONECT.replace(" ", "\t"),
        KONECT.replace("1 7", "1 \t  7").replace("2 8", "  2 8 \t"),
        KONECT.replace("\n", "\n\n"),
        KONECT.replace("2 8", " \t \n2 8\n% a comment\n"),
    ],
    ids=["plain", "crlf", "no-end", "crlf-no-end", "bom", "tabs", "runs", "blank-lines", "comments"],
)
def test_layouts_of_a_konect_file(edges_in, content):
    assert edges_in("out.x", content) == [(1, 7), (2, 8), (1, 9)]


CSV = 'user,item\nann,"tea, green"\nbob,"5"" pipe"\n'


@pytest.mark.parametrize(
    "content",
    [CSV, CSV.replace("\n", "\r\n"), CSV.rstrip("\n"), "\ufeff" + CSV, CSV.replace("\n", "\n\n"), "\n \n" + CSV],
    ids=["plain", "crlf", "no-end", "bom", "blank-lines", "blank-first"],
)
def test_layouts_of_a_csv_file(edges_in, content):
    assert edges_in("x.csv", content) == [("ann", "tea, green"), ("bob", '5" pipe')]


@pytest.mark.parametrize("size", [1, 7, 64])
def test_where_blocks_are_cut_does_not_matter(edges_in, monkeypatch, size):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
    assert edges_in("out.x", "\ufeff" + KONECT.replace("\n", "\r\n")) == [(1, 7), (2, 8), (1, 9)]
    assert edges_in("x.csv", CSV) == [("ann", "tea, green"), ("bob", '5" pipe')]
    assert edges_in("x.dat", "1 2\n\n3") == [(1, 1), (1, 2), (3, 3)]
    with pytest.raises(InputError, match=r"out\.x, line 5: .*'x'"):
        edges_in("out.x", KONECT.replace("1 9", "1 x"))


def test_a_bad_line_is_found_far_down(edges_in):
    lines = [f"{k} {k}" for k in range(1, 300_001)]
    lines[212_345] = "5 five"
    with pytest.raises(InputError, match=r"x\.el, line 212346: the right label 'five'"):
        edges_in("x.el", "\n".join(lines))
    edges, skipped = edges_in("x.el", "\n".join(lines), skip_bad_lines=True)
    assert (len(edges), skipped) == (299_999, 1)


def test_a_bad_line_that_is_long(edges_in):
    items = " ".join(map(str, range(1, 20_000)))
    content = f"1\n{items}\n{items} x\n7\n"
    with pytest.raises(InputError, match=r"x\.dat, line 3: the right label 'x'"):
        edges_in("x.dat", content)
    edges, skipped = edges_in("x.dat", content, skip_bad_lines=True)
    assert (edges[0], edges[-1], len(edges), skipped) == ((1, 1), (4, 7), 20_001, 1)


# --- what is a label ---


@pytest.mark.parametrize("text", ["007", "+7", "0x7", "7.0", "1e3", "7_0", "\u0667"])
def test_only_plain_decimals_are_integers(edges_in, text):
    assert edges_in("x.csv", f"a,b\n{text},1\n") == [(text, 1)]
    with pytest.raises(InputError, match=r"x\.el, line 2: the left label .* label_type='string'"):
        edges_in("x.el", f"1 1\n{text} 2\n")
    assert edges_in("x.el", f"1 1\n{text} 2\n", label_type="string") == [("1", "1"), (text, "2")]


def test_labels_are_never_altered(edges_in):
    rows = [("secret service", "x"), ("secret_service", "X"), (" a", "a "), ("NA", "null"), ("nan", "None")]
    assert edges_in("x.csv", "left,right\n" + "".join(f"{u},{v}\n" for u, v in rows)) == rows


def test_blanks_around_an_integer_are_not_part_of_it(edges_in):
    assert edges_in("x.csv", "1, 2\n3 ,\t4\n") == [(1, 2), (3, 4)]


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_label_may_be_longer_than_the_default_limit_of_csv(edges_in, quote):
    """The defaults are 128 KiB in Python's reader, and 1 MiB per row in Arrow's."""
    long = "x" * (2 << 20)
    text = f"{quote}{long}{quote}"
    assert edges_in("x.csv", f"l,r\na,b\n{text},c\n", header=True) == [("a", "b"), (long, "c")]
    assert edges_in("y.csv", f"{text},c\n", header=False) == [(long, "c")]
    assert csv.field_size_limit() == 128 << 10


def test_a_column_that_starts_with_text_is_text(edges_in):
    assert edges_in("x.csv", "user,item\nb7,1\n7,2\n-3,3\n") == [("b7", 1), ("7", 2), ("-3", 3)]


def test_label_type_string_takes_integers_as_text(edges_in):
    assert edges_in("x.csv", "u,v\n1,2\nx,-5\n", label_type="string") == [("1", "2"), ("x", "-5")]
    assert edges_in("out.x", "1 2\n0 -5\n", label_type="string") == [("1", "2"), ("0", "-5")]


def test_snap_has_ids_from_zero(edges_in):
    assert edges_in("x.txt", "# nodes\n0\t7\n7\t0\n") == [(0, 7), (7, 0)]


# --- the first lines of a CSV ---


@pytest.mark.parametrize("delimiter", list(",;|\t:\u00a7"))
def test_delimiters(edges_in, delimiter):
    options = {"delimiter": delimiter} if delimiter in ":\u00a7" else {}
    content = f"a b{delimiter}c d\n1{delimiter}2\n3{delimiter}4\n"
    assert edges_in("x.csv", content, **options) == [(1, 2), (3, 4)]


def test_commas_in_labels_do_not_hide_the_semicolon(edges_in):
    assert edges_in("x.csv", "user;item\nMiller, A;1\nSmith;2\n") == [("Miller, A", 1), ("Smith", 2)]


@pytest.mark.parametrize(
    ("content", "options", "edges"),
    [
        ("a,b\n1,2\n", {}, [(1, 2)]),
        ("1,2\n3,4\n", {}, [(1, 2), (3, 4)]),
        ("x,1\ny,2\n", {}, [("x", 1), ("y", 2)]),
        ("x,y,weight\na,b,0.5\n", {}, [("a", "b")]),
        ("User,Item\nann,tea\n", {}, [("ann", "tea")]),
        ("buyer_id,item_id\nann,tea\n", {}, [("ann", "tea")]),
        ("user,film\nann,alien\n", {}, [("ann", "alien")]),
        ("CustomerID, product \nann,tea\n", {}, [("ann", "tea")]),
        ("tag,package\nweb,curl\n", {}, [("web", "curl")]),
        ("ann,tea\nbob,tea\n", {}, [("ann", "tea"), ("bob", "tea")]),
        ("a,x\n7,y\na,z\n", {}, [("a", "x"), ("7", "y"), ("a", "z")]),
        ("x,note,Item,user\na,b,c,d\n", {"left": 3, "right": 2}, [("d", "c")]),
        ("2019,2020\n1,2\n", {"header": True}, [(1, 2)]),
        ("ann,tea\nbob,milk\n", {"header": False}, [("ann", "tea"), ("bob", "milk")]),
        ("ann,tea\nbob,milk\n", {"header": True}, [("bob", "milk")]),
        ("a,b,c\n1,2,3\n", {"left": "c", "right": "a"}, [(3, 1)]),
        ("a,b,c\n1,2,3\n", {"left": 2, "right": 1}, [(3, 2)]),
        ("1,2,3\n", {"left": 2, "right": 0, "header": False}, [(3, 1)]),
        ("p,q,r\nx,y,z\n", {"left": "p", "right": "r"}, [("x", "z")]),
    ],
)
def test_headers_and_columns(edges_in, content, options, edges):
    assert edges_in("x.csv", content, **options) == edges


def test_an_unclear_header_must_be_given_by_an_option(edges_in):
    with pytest.raises(InputError, match=r"x\.csv, line 1: 'ann,tea' may be column names or an edge.*header=False"):
        edges_in("x.csv", "ann,tea\nbob,milk\n")


# --- Matrix Market and FIMI ---

BANNER = "%%MatrixMarket matrix coordinate {} {}\n% a comment\n\n3 3 3\n"


def test_a_stored_zero_is_not_an_edge(edges_in):
    content = BANNER.format("real", "general") + "1 2 0.0\n2 3 -1e-300\n3 1 0\n"
    assert edges_in("x.mtx", content) == [(2, 3)]


def test_a_stored_zero_counts_as_an_entry_where_lines_are_read_one_by_one(edges_in):
    """They are where a bad line is skipped."""
    content = BANNER.format("real", "general") + "1 2 0.0\n2 3 1\n3 x 1\n"
    assert edges_in("x.mtx", content, skip_bad_lines=True) == ([(2, 3)], 1)


@pytest.mark.parametrize("symmetry", ["symmetric", "skew-symmetric"])
def test_a_symmetric_file_stands_for_the_whole_matrix(edges_in, symmetry):
    content = BANNER.format("integer", symmetry) + "2 1 5\n3 3 1\n3 2 0\n"
    assert sorted(edges_in("x.mtx", content)) == [(1, 2), (2, 1), (3, 3)]


def test_matrix_market_words_in_capitals(edges_in):
    assert edges_in("x", "%%MatrixMarket MATRIX Coordinate Pattern GENERAL\n2 2 1\n2 2\n") == [(2, 2)]


def test_a_matrix_may_have_very_long_comments(edges_in):
    comment = "% " + "what this matrix is " * 50 + "\n"
    content = BANNER.format("pattern", "general").replace("% a comment\n", comment * 1200) + "1 1\n2 3\n3 2\n"
    assert edges_in("x.mtx", content) == [(1, 1), (2, 3), (3, 2)]


def test_many_blank_lines_may_be_above_a_table(edges_in):
    assert edges_in("x.csv", "\n" * (3 << 20) + "user,item\n1,2\n") == [(1, 2)]


def test_a_blank_line_is_a_transaction_without_items(edges_in):
    assert edges_in("x.dat", "\n7 8 \n\t\n 7") == [(2, 7), (2, 8), (4, 7)]


# --- leaving lines out ---


@pytest.mark.parametrize(
    ("name", "content", "edges", "skipped"),
    [
        ("out.x", "1 2\n3\n1 2 x\n4 5 1 2 3\n0 1\n-1 2\n6 7\n", [(1, 2), (6, 7)], 5),
        (
            "x.csv",
            'a,b\n1,2\nx,3\n,4\n5\n6,7,8\n"9,1\n"9"1,1\n-1,1\n99999999999999999999,1\n1,9\n',
            [(1, 2), (1, 9)],
            8,
        ),
        ("x.csv", b"left,right\na,b\n\xff,c\nd,e\rf,g\nh,i\n", [("a", "b"), ("h", "i")], 2),
        ("x.mtx", BANNER.format("real", "general") + "1 2 x\n1 9 1\n3 3 1\n", [(3, 3)], 2),
        ("x.dat", "1 2\n3 x\n4\n", [(1, 1), (1, 2), (3, 4)], 1),
    ],
)
def test_bad_lines_are_left_out_and_counted(edges_in, name, content, edges, skipped):
    assert edges_in(name, content, skip_bad_lines=True) == (edges, skipped)


def test_lines_left_out_count_as_edges_of_a_konect_header(edges_in):
    """The header counts good and bad lines. The vertices of bad lines are not known."""
    content = "% bip unweighted\n% 3 3 3\n1 1\n2 x\n3 3\n"
    assert edges_in("out.x", content, skip_bad_lines=True) == ([(1, 1), (3, 3)], 1)
    with pytest.raises(InputError, match=r"counts 4 edges, but the file has 3"):
        edges_in("out.x", content.replace("% 3 3", "% 4 3"), skip_bad_lines=True)


def test_the_largest_label_is_a_label_for_the_slow_pass_too(edges_in):
    content = f"5,6\n{2**63 - 1},7\n8,{2**63 - 1}\n{2**63},9\nx,9\n"
    assert edges_in("x.csv", content, skip_bad_lines=True) == ([(5, 6), (2**63 - 1, 7), (8, 2**63 - 1)], 2)


# --- the fast pass against the slow one ---


def slow(patch: pytest.MonkeyPatch) -> None:
    for reader in TextStream.__subclasses__():
        patch.setattr(reader, "parse_block", lambda self, block: None)


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(sorted(SEPARATORS)), st.data())
def test_fast_and_slow_pass_agree(format, data):
    content = data.draw(files(SEPARATORS[format]))
    if format == "matrix-market":
        field = data.draw(st.sampled_from(["pattern", "real"]))
        content = f"%%MatrixMarket matrix coordinate {field} general\n20 20 3\n" + content
    options = IngestOptions(
        format=format,
        header=data.draw(st.booleans()) if format in ("csv", "tsv") else None,
        label_type="auto" if format == "matrix-market" else data.draw(st.sampled_from(["auto", "string"])),
        skip_bad_lines=data.draw(st.booleans()),
    )
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "x"
        path.write_bytes(content.encode())
        patch.setattr(text, "LARGE_BYTES", data.draw(st.sampled_from([0, 1 << 40])))
        fast = outcome(path, options)
        slow(patch)
        assert fast == outcome(path, options)


def test_the_fast_pass_is_taken(tmp_path, monkeypatch):
    """Otherwise the comparison above would compare the slow pass with itself."""

    def refuse(self, block):
        raise AssertionError("the slow pass ran")

    monkeypatch.setattr(TextStream, "parse_lines", refuse)
    for name, content in {
        "out.x": KONECT.replace(" ", "\t\t").replace("\n", " \r\n"),
        "x.el": " 1 2 0.5\n# c\n\n3 4 0.5\n",
        "y.el": "1 2 0.5\n3  4 0.5\n5 6 0.5 \n",
        "x.csv": CSV,
        "y.csv": "1, 2\n3, 4\n",
        "x.mtx": BANNER.format("real", "symmetric") + "1 1 1\n2 1 1\n3 1 0\n",
        "x.dat": "1 2  3\n\n4\n",
    }.items():
        path = tmp_path / name
        path.write_text(content, newline="")
        assert edges_of(open_source(path, IngestOptions()))


# --- names ---


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("OUT.Movies", "1 2\n", "konect"),
        ("out.edges", "% bip\n", "konect"),
        ("out.csv", "1,2\n", "csv"),
        ("graph.TSV", "1\t2\n", "tsv"),
        ("graph.txt", "%%MatrixMarket matrix\n", "matrix-market"),
        ("graph.txt", "\ufeff% bip\n", "konect"),
        ("graph", "# c\n", "snap"),
        ("graph", "PAR1...", "parquet"),
        ("graph.dat", "1 2\n", "fimi"),
    ],
)
def test_the_format_is_inferred(tmp_path, name, content, format):
    path = tmp_path / name
    path.write_text(content)
    assert infer(path) == format


@given(st.text(" \tab%\n", max_size=40))
def test_a_tidy_text_has_its_columns_and_no_other_blanks(text: str) -> None:
    columns = [line.replace("\t", " ").split() for line in f"{text}\n".split("\n") if not line.startswith("%")]
    lines = [" ".join(line) for line in columns if line]
    assert tidy(f"{text}\n".encode(), b"%") == "".join(f"{line}\n" for line in lines).encode()
