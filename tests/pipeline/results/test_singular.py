"""What users see of a graph with one of everything says "1 biclique", and not "1 bicliques"."""

import re

import pytest

import bicliques as bq
from bicliques.pipeline.cli.main import main

PLURAL = re.compile(
    r"(?<![\d,.])1 (?:maximal |left |right |bad )?"
    r"(?:bicliques|cells|columns|dimensions|edges|entries|files|lines|nodes|roots|rows|runs|slices|subtrees|threads|"
    r"vertices|workers)\b"
)


def test_a_run_and_its_page(tmp_path, capsys):
    out = tmp_path / "out"
    (tmp_path / "g.csv").write_text("left,right\nann,tea\n")
    for command in (
        ["mine", str(tmp_path / "g.csv"), "-o", str(out), "--workers", "0"],
        ["show", str(out)],
        ["explain", str(out)],
        ["status", str(out)],
        ["verify", str(out)],
        ["diff", str(out), str(out), "-o", str(tmp_path / "changes")],
        ["export", str(out), "--format", "csv", "-o", str(tmp_path / "x.csv")],
        ["prune", str(tmp_path), "--keep", "1"],
        ["count", str(out)],
        ["mine", str(tmp_path / "g.csv"), "--dry-run"],
    ):
        assert main(command) == 0
    told = capsys.readouterr()
    results = bq.open_run(out)
    for text in (told.out, told.err, (out / "report.html").read_text(), results._repr_html_(), repr(results)):
        assert not PLURAL.findall(text)
    assert "1 biclique in 1 cell" in (out / "report.html").read_text()
    assert "It is on this page." in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.csv", "ann\n", "1 column where 2 are needed"),
        ("out.x", "% bip\n% 1 1 2\n1 1\n1 2\n", "the header counts 1 edge, but the file has 2"),
        ("out.x", "% bip\n% 2 1 2\n1 1\n2 2\n", "the header counts 1 left vertex, but the file has 2"),
        ("x.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1\n2 2\n", "says 1 entry, but the file"),
    ],
)
def test_what_is_refused(name, text, says, tmp_path, capsys):
    (tmp_path / name).write_text(text)
    assert main(["count", str(tmp_path / name)]) == 2
    assert says in capsys.readouterr().err
