"""A look at an input: what it is read as, its first edges, its fullest vertices and every doubt. Nothing is written."""

import json

import pandas as pd
import pytest

import bicliques as bq
from bicliques.pipeline.api import looking
from bicliques.pipeline.cli import cards
from bicliques.schemas.errors import InputError
from tests.support.commands import run
from tests.support.runs import OWN, QUIET, bicliques, random_edges, rewrite_record

TEXT = "user,item,year,rating\nann,milk,2001,3\nbob,milk,2002,4\nAnn,tea,2001,5\nann,milk,2003,1\n"
READ_AS = "CSV with a header, left = user (text), right = item (text); not read: year, rating"
DOUBT = "1 user label differs from another one only in blanks or capitals, such as 'Ann' and 'ann'; they are not merged"


@pytest.fixture
def source(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.csv").write_text(TEXT)
    return tmp_path / "in" / "x.csv"


def test_the_command_shows_the_reading_edges_vertices_and_doubts(capsys, source, monkeypatch):
    monkeypatch.chdir(source.parent)
    code, output, error = run(capsys, "look", "x.csv")
    assert (code, error) == (0, "")
    assert output.splitlines() == [
        "source: x.csv",
        f"read as: {READ_AS}",
        "header: the two names are usual ones",
        "columns: the first two",
        "looked at: all 4 edges: 3 left, 2 right, 3 distinct edges",
        "",
        "first edges:",
        *("  user  item", "  ann   milk", "  bob   milk", "  Ann   tea", "  ann   milk"),
        "",
        "most edges, left (user):",
        *("  Ann  1", "  ann  1", "  bob  1"),
        "",
        "most edges, right (item):",
        *("  milk  2", "  tea   1"),
        "",
        "doubts:",
        f"  variants: {DOUBT}",
    ]
    assert [path.name for path in source.parent.iterdir()] == ["x.csv"]


def test_json_has_the_same(capsys, source):
    found = json.loads(run(capsys, "look", source, "--json")[1])
    assert found["reading"]["columns"] == ["user", "item"]
    assert found["reading"]["doubts"] == [{"kind": "variants", "text": DOUBT}]
    assert found["edges"][2] == ["Ann", "tea"]
    assert found["fullest"][1] == [["milk", 2], ["tea", 1]]
    assert (found["n_rows"], found["is_all"], found["n_edges"]) == (4, True, 3)


def test_a_large_input_is_looked_at_in_part(capsys, tmp_path, monkeypatch):
    """By whole batches: what is looked at is said."""
    monkeypatch.setattr(looking, "_SAMPLE", 2)
    for k in range(3):
        (tmp_path / f"{k}.csv").write_text(f"user,item\na{k},x\nb{k},x\n")
    seen = bq.look(tmp_path)
    assert (seen.n_rows, seen.is_all, seen.n_left, seen.n_right, seen.n_edges) == (2, False, 2, 1, 2)
    assert "looked at: the first 2 edges: 2 left, 1 right, 2 distinct edges (--all: all)" in str(seen)
    assert bq.look(tmp_path, all=True).n_rows == 6
    assert "looked at: all 6 edges: 6 left" in run(capsys, "look", tmp_path, "--all")[1]
    monkeypatch.setattr(looking, "_SAMPLE", 6)
    assert bq.look(tmp_path).is_all


def test_what_a_part_looks_like_is_no_refusal(tmp_path, monkeypatch):
    """Cells of 0 and 1 in the first file. The others have more."""
    monkeypatch.setattr(looking, "_SAMPLE", 2)
    (tmp_path / "0.csv").write_text("name,milk,tea\na,1,0\nb,0,1\n")
    (tmp_path / "1.csv").write_text("name,milk,tea\nc,7,9\nd,5,3\na,7,9\n")
    seen = bq.look(tmp_path)
    assert (seen.is_all, seen.reading.doubts[0].kind) == (False, "a column per vertex")
    assert bq.look(tmp_path, all=True, left="name", right="milk").n_rows == 5


def test_a_look_agrees_with_what_is_read(tmp_path):
    edges = [(f"u{a}", f"i{b}") for a, b in random_edges(30, 20, 0.3, 5)]
    path = tmp_path / "x.csv"
    path.write_text("".join(f"{a},{b}\n" for a, b in [("user", "item"), *edges]))
    seen, counted = bq.look(path), bq.count(path, **OWN)
    told = tuple(counted.input[f"n_{what}"] for what in ("left", "right", "edges"))
    assert (seen.n_left, seen.n_right, seen.n_edges) == told
    degrees = pd.Series([b for _, b in edges]).value_counts()
    assert [n for _, n in seen.fullest[1]] == degrees.tolist()[:5]
    assert all(degrees[label] == n for label, n in seen.fullest[1])


def test_of_a_refused_file_the_first_lines_are_shown(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    path = tmp_path / "x.csv"
    path.write_text("a,b\n\x1b[31mx,y\n" + "long" * 100 + ",z\n" + "u,v\n" * 20)
    code, output, error = run(capsys, "look", path)
    lines = output.splitlines()
    assert (code, lines[:3]) == (2, ["the first lines:", " 1  a,b", r" 2  '\x1b[31mx,y'"])
    assert (len(lines), max(map(len, lines)), lines[3][-3:]) == (11, 120, "...")
    assert error.count("\n") == 1
    assert "may be column names or an edge; say --header or --no-header" in error
    with pytest.raises(InputError, match="say header=True or header=False") as raised:
        bq.look(path)
    assert raised.value.__notes__[0] == " 1  a,b"


def test_lines_of_standard_input_are_shown_too():
    ended = bicliques("look", "-", "--format", "csv", input="ab\nx,y\n")
    assert (ended.returncode, ended.stdout.splitlines()[1]) == (2, " 1  ab")


def test_a_binary_file_has_no_lines_to_show(capsys, tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1\0\0\x1b[31m")
    code, output, _ = run(capsys, "look", tmp_path / "x.parquet")
    assert (code, output) == (2, "")
    code, output, error = run(capsys, "look", tmp_path / "none.csv")
    assert (code, output, error.count("\n")) == (2, "", 1)


def test_the_folder_of_a_run_is_no_input_to_look_at(source, tmp_path):
    bq.mine(source, tmp_path / "out", **QUIET)
    with pytest.raises(InputError, match="is a run, which has read its input already; see: bicliques status"):
        bq.look(tmp_path / "out")


@pytest.mark.parametrize("command", ["look", "count", "largest", "mine", "mine --dry-run"])
def test_strict_makes_doubts_an_error_and_nothing_is_written(capsys, source, tmp_path, command):
    output = ["-o", tmp_path / "out"] if command in ("largest", "mine") else []
    code, text, error = run(capsys, *command.split(), source, *output, "--strict")
    assert (code, text) == (2, "")
    said = f"{source} is doubtful: {DOUBT}; mend it, or leave --strict out if it is as it should be"
    assert error.splitlines()[-1] == f"bicliques: {said}"
    assert not (tmp_path / "out").exists()
    source.write_text(TEXT.replace("Ann", "cy"))
    assert run(capsys, *command.split(), source, *output, "--strict")[0] == 0


def test_strict_is_no_part_of_the_identity_of_a_run(source, tmp_path):
    """Without it a run with doubts is made, with it refused, and it stays as it is."""
    out, given = tmp_path / "out", QUIET
    made = bq.mine(source, out, **given)
    manifest = (out / "manifest.json").read_bytes()
    with pytest.raises(InputError, match="they are not merged; mend it, or leave strict out if it is"):
        bq.mine(source, out, strict=True, **given)
    assert (out / "manifest.json").read_bytes() == manifest
    with pytest.raises(InputError, match="is doubtful"):
        bq.count(out, strict=True, **OWN)
    source.write_text(TEXT.replace("Ann", "cy"))
    strict = bq.mine(source, tmp_path / "strict", strict=True, **given)
    again = bq.mine(source, tmp_path / "strict", **given)
    assert (len(strict), strict.manifest) == (len(again), again.manifest)
    assert len(made) == 2


def test_strict_also_holds_for_a_run_that_had_not_read_its_input(source, tmp_path):
    out, given = tmp_path / "out", QUIET
    bq.mine(source, out, **given)
    for path in (out / "manifest.json", *(out / "steps").iterdir()):
        path.unlink()
    with pytest.raises(InputError, match="is doubtful"):
        bq.mine(source, out, strict=True, **given)
    assert not (out / "manifest.json").exists()
    assert bq.mine(source, out, **given).complete


def test_cards_and_the_page_say_what_the_input_was_read_as(capsys, source, tmp_path):
    line = f"read as: {READ_AS}"
    for words in (["mine", source, "-o", tmp_path / "out"], ["count", source], ["mine", source, "--dry-run"]):
        code, output, _ = run(capsys, *words, "--quiet")
        assert (code, output.splitlines().count(line)) == (0, 1)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["input"]["reading"]["not_read"] == ["year", "rating"]
    assert READ_AS in (tmp_path / "out" / "report.html").read_text()


def test_a_run_of_an_earlier_version_has_no_reading_and_is_shown(source, tmp_path):
    made = bq.mine(source, tmp_path / "out", **QUIET)
    facts = {key: value for key, value in made.manifest.input.items() if key != "reading"}
    rewrite_record(made.path / "manifest.json", input=facts)
    card = cards.run_card(bq.open_run(made.path))
    assert "input: " in card
    assert "read as" not in card


def test_an_input_without_edges_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("user,item,year\n")
    with pytest.raises(InputError, match=r"there are no edges in \S+x.csv; check the input and its format"):
        bq.look(tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"there are no edges in .*; give one with edges"):
        bq.look(pd.DataFrame({"user": [], "item": []}, dtype=str))
