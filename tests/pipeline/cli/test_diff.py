"""The command ``diff``: a short table, JSON, and lines that hostile labels cannot break."""

import json
import tempfile

import pytest

import bicliques as bq
from bicliques.pipeline.cli.comparing import share_of
from bicliques.pipeline.cli.main import main
from tests.support.compared import maximal_bicliques, night

#: One edge of user "c" goes, and user "e" comes.
OLD = {(user, film) for user in "abcd" for film in ("x", "y")} | {("c", "z")}
NEW = OLD - {("c", "z")} | {("e", "x"), ("e", "w")}


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    place = tmp_path_factory.mktemp("nights")
    return night(place / "old", OLD), night(place / "new", NEW)


def test_the_table(nights, tmp_path, capsys):
    assert main(["diff", *map(str, nights), "--output", str(tmp_path / "diff"), "--quiet"]) == 0
    was, now = maximal_bicliques(OLD), maximal_bicliques(NEW)
    assert (len(was), len(now), len(was - now), len(now - was)) == (2, 3, 1, 2)
    assert capsys.readouterr().out.splitlines() == [
        f"old        2  {nights[0]}",
        "gone       1  50 % of old",
        "new ones   2  66.7 % of new",
        "unchanged  1",
        f"new        3  {nights[1]}",
        "proven: old - gone + new ones = new, in number and fingerprint, and for every vertex",
        f"files: {tmp_path / 'diff'}",
        "",
        "the largest new ones:",
        "# left right edges  members",
        "1    5     1     5  {a, b, c, d, e} x {x}",
        "2    1     2     2  {e} x {w, x}",
        "",
        "the vertices that changed most:",
        "before  after  gone  new  side   vertex",
        "     2      3     1    2  right  x",
        "     2      2     1    1  left   c",
        "     0      2     0    2  left   e",
        "     1      2     0    1  left   a",
        "     1      2     0    1  left   b",
    ]


def test_without_a_folder_nothing_is_kept(nights, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert main(["diff", *map(str, nights), "--quiet"]) == 0
    assert "files:" not in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_json(nights, tmp_path, capsys):
    assert main(["diff", *map(str, nights), "--output", str(tmp_path / "diff"), "--json", "--quiet"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["gone"]["count"], told["new"]["count"], told["unchanged"], told["share"]) == (1, 2, 1, 0.75)
    assert int(told["old_run"]["found"]["fingerprint"]) == bq.open_run(nights[0]).manifest.fingerprint
    assert told["old_run"]["folder"] == str(nights[0])
    assert [row["left"] for row in told["largest_new"]] == [["a", "b", "c", "d", "e"], ["e"]]
    assert told["most_changed"][0] == {"side": "right", "label": "x", "before": 2, "after": 3, "gone": 1, "new": 2}
    on_disk = json.loads((tmp_path / "diff" / "diff.json").read_text())
    assert {key: told[key] for key in on_disk if key != "crc32"} == {k: v for k, v in on_disk.items() if k != "crc32"}


def test_labels_cannot_break_lines_or_move_the_cursor(tmp_path, capsys):
    labels = ["a\nb", "\x1b[2J", "<script>", "=HYPERLINK(1)", "x" * 500]
    edges = {(a, b) for a in labels for b in labels if a != b}
    runs = night(tmp_path / "old", edges), night(tmp_path / "new", edges - {(labels[0], labels[1])})
    assert main(["diff", *map(str, runs), "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.isprintable() and len(line) <= 200 for line in lines[5:])
    assert any(repr(labels[1]) in line for line in lines[-5:])
    assert main(["diff", *map(str, runs), "--quiet", "--full"]) == 0
    assert labels[4] in capsys.readouterr().out


def test_nothing_has_changed(nights, capsys):
    assert main(["diff", str(nights[0]), str(nights[0]), "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[1:4] == ["gone       0  0 % of old", "new ones   0  0 % of new", "unchanged  2"]


def test_errors_are_one_sentence(nights, tmp_path, capsys):
    assert main(["diff", str(nights[0]), str(tmp_path), "--quiet"]) == 2
    words = "holds no files to read (names that begin with _ or . do not count); name another"
    assert capsys.readouterr().err == f"bicliques: the folder {tmp_path} {words}\n"


@pytest.mark.parametrize(
    ("part", "of", "words"),
    [(0, 0, "0 %"), (1, 3, "33.3 %"), (3, 3, "100 %"), (1, 10**7, "less than 0.001 %"), (999_999, 10**6, "99.9999 %")],
)
def test_shares(part, of, words):
    assert share_of(part, of) == words


def test_of_two_edge_lists_nothing_says_how_many_bicliques_they_have(tmp_path, capsys):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("user,film\nann,up\nann,her\nbob,up\nbob,her\n")
    new.write_text(old.read_text() + "bob,jaws\n")
    (tmp_path / "added.csv").write_text("user,film\nbob,jaws\n")
    assert main(["diff", str(old), str(new), "--quiet", "--min-right", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    words = [line.split()[:-1] for line in lines[:5]]
    assert lines[0].startswith("old        not counted")
    assert lines[3] == "unchanged  not counted"
    assert ["new", "ones"] in words
    assert lines[5] == "proven: each has a changed edge, or is what one with a changed edge leaves"
    assert any("{bob} x {her, jaws, up}" in line for line in lines)
    assert main(["diff", str(old), "--added", str(tmp_path / "added.csv"), "--quiet", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["new"]["count"], told["gone"]["count"], told["unchanged"], told["share"]) == (1, 0, None, None)
