"""A file may have gigabytes of blank lines. They are passed over in blocks, and none of them is parsed by itself."""

from pathlib import Path
from typing import Any

import pytest

from bicliques.pipeline.ingest.readers import blocks, open_source
from bicliques.pipeline.ingest.readers.blocks import Block
from bicliques.schemas.options import IngestOptions
from tests.support.text_files import edges_of

LINES = 300_000
#: By format: the name of a file, what stands before blank lines, and behind them.
FILES = {
    "konect": ("out.x", "% bip unweighted\n1 2\n1 3\n", "2 2\n"),
    "snap": ("x.el", "1 2\n1 3\n", "2 2\n"),
    "csv": ("x.csv", "user,item\na,x\na,y\n", "b,x\n"),
    "tsv": ("x.tsv", "user\titem\na\tx\na\ty\n", "b\tx\n"),
    "matrix-market": ("x.mtx", "%%MatrixMarket matrix coordinate pattern general\n9 9 3\n1 2\n1 3\n", "2 2\n"),
    "fimi": ("x.dat", "1 2\n1 3\n", "2\n"),
    "adjacency": ("x.adj", "1 2\n1 3\n", "2\n"),
    "table": ("x.csv", "row,a,b\nx,1,0\n", "y,1,1\n"),
    "cxt": ("x.cxt", "B\n\n2\n2\n\na\nb\nx\ny\nXX\nX.\n", ""),
}


def read(path: Path, format: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], int]:
    """The edges of a file, and the number of lines that were parsed one by one."""
    stream, parsed = open_source(path, IngestOptions(format=format)), [0]
    parse = type(stream).parse_line

    def counting(self: Any, number: int, line: str) -> Any:
        parsed[0] += 1
        return parse(self, number, line)

    monkeypatch.setattr(type(stream), "parse_line", counting)
    return edges_of(stream), parsed[0]


@pytest.mark.values
@pytest.mark.parametrize("blank", ["\n", "  \t\n", "\r\n"], ids=["empty", "blanks", "crlf"])
@pytest.mark.parametrize("format", FILES)
def test_blank_lines_are_passed_over_in_blocks(tmp_path, format, blank, monkeypatch):
    name, before, behind = FILES[format]
    path = tmp_path / name
    path.write_text(before + behind, newline="")
    expected, _ = read(path, format, monkeypatch)
    path.write_text(before + blank * LINES + behind, newline="")
    found, parsed = read(path, format, monkeypatch)
    assert parsed < LINES / 10
    if format in ("fimi", "adjacency"):  # a blank line has a number, too
        assert [right for _, right in found] == [right for _, right in expected]
        assert [left for left, _ in found][-1] == expected[-1][0] + LINES
    else:
        assert found == expected


@pytest.mark.parametrize("format", ["csv", "snap", "table"])
def test_blank_lines_before_the_first_edge_are_no_edges(tmp_path, format, monkeypatch):
    name, *text = FILES[format]
    path = tmp_path / name
    path.write_text("".join(text))
    expected, _ = read(path, format, monkeypatch)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 14)
    path.write_text("\n" * LINES + "".join(text))
    found, parsed = read(path, format, monkeypatch)
    assert found == expected
    assert parsed < LINES / 10


class Looked(bytes):
    """Bytes that count how often a line end is looked for."""

    looks = 0

    def find(self, *arguments: Any) -> int:
        type(self).looks += 1
        return super().find(*arguments)


def test_the_lines_of_a_block_before_the_first_are_not_looked_at_one_by_one() -> None:
    data = b"\n" * 1000 + b"a\nb\n"
    for first in (1, 5, 6, 1000, 1005, 1006):
        found = Block(5, data).starting_at(first)
        assert found.data == b"".join(data.splitlines(keepends=True)[max(first - 5, 0) :])
        assert found.number == (5 if first < 5 else first)
    Looked.looks = 0
    for first in (1007, 10**9):
        assert Block(5, Looked(data)).starting_at(first) == Block(first, b"")
    assert Looked.looks == 0
