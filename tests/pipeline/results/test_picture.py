"""The picture of one biclique shows the edges, the holes and the overlaps that there are, and no label is code."""

import json
from xml.etree.ElementTree import Element

import numpy as np
import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.pipeline.cli.main import main
from bicliques.pipeline.results import picture
from bicliques.schemas.errors import InputError, ResourceError
from tests.support.notebook import HOSTILE
from tests.support.runs import QUIET, random_edges, write_edges
from tests.support.svg import SVG, parsed, squares


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("picture")
    return bq.mine(write_edges(folder / "g.parquet", random_edges(40, 30, 0.3, 1)), folder / "run", **QUIET)


def test_squares_are_the_edges_among_the_vertices_that_are_drawn(results):
    row = results.top(1, by="balance").to_pylist()[0]
    found = results.explain(row["id"], missing=2, n=5)
    root = parsed(results.plot(row["id"], missing=2, n=5).svg)
    n_left, n_right = len(row["left"]), len(row["right"])
    near_left, near_right = (found.near[side].num_rows for side in ("left", "right"))
    assert near_left == near_right == 5
    own, hole = squares(root, "own"), squares(root, "hole")
    assert len(own) == n_left * n_right + 1, "one is in the legend"
    ground = {(round(x + 3, 1), round(y + 3, 1)) for x, y in squares(root, "ground")}
    assert len({(round(x, 1), round(y, 1)) for x, y in hole} - ground) <= 1, "a hole is a place without an edge"
    missing = sum(len(one) for side in ("left", "right") for one in found.near[side]["missing"].to_pylist())
    assert len(hole) == missing + 1
    assert len(squares(root, "near")) == near_left * n_right + near_right * n_left - missing + 1
    between = [
        (a, b) for a in found.near["left"]["label"].to_pylist() for b in found.near["right"]["label"].to_pylist()
    ]
    edges = set(map(tuple, pa.parquet.read_table(results.path.parent / "g.parquet").to_pandas().to_numpy().tolist()))
    assert len(squares(root, "other")) == len(edges.intersection(between)) + 1 > 1
    overlaps = sum(row.as_py() for name in ("shared_left", "shared_right") for row in found.overlapping[name])
    near = [set(found.near[side]["label"].to_pylist()) for side in ("left", "right")]
    overlaps += sum(
        len(near[k] & set(other[side]))
        for k, side in enumerate(("left", "right"))
        for other in found.overlapping.to_pylist()
    )
    assert len(squares(root, "in")) == overlaps + 1
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    for label in (*row["left"], *row["right"], *near[0], *near[1]):
        assert any(text.endswith(str(label)) for text in texts), label
    for other in found.overlapping["id"].to_pylist():
        assert any(text.endswith(f"id {other}") for text in texts)
    title = next(text for text in texts if " x " in text)
    assert title == f"{n_left} user x {n_right} item"


def test_of_many_members_some_are_drawn_and_the_number_is_said(tmp_path):
    edges = np.argwhere(np.ones((500, 3), int))
    results = bq.mine(write_edges(tmp_path / "g.parquet", edges), tmp_path / "run", **QUIET)
    drawn = results.plot(results[0].id)
    root = parsed(drawn.svg)
    assert len(squares(root, "own")) == 30 * 3 + 1
    assert "30 of 500 user x 3 item" in drawn.svg
    assert "no" not in {path.get("class") for path in root.iter(f"{SVG}path")}
    assert squares(root, "hole") == squares(root, "in") == set(), (
        "nobody else is there, and the legend says nothing of it"
    )


def test_labels_are_text_in_the_picture(tmp_path):
    labels = [*HOSTILE, "a\nb", "\x1b[31m", "東京" * 30, " "]
    edges = [(label, film) for label in labels for film in ("<i>1</i>", "]]>")] + [("only", "]]>")]
    table = pa.table(dict(zip(("<b>user</b>", "fi\nlm"), map(list, zip(*edges, strict=True)), strict=True)))
    results = bq.mine(table, tmp_path / "run", **QUIET)
    drawn = results.plot(str(results.top(1)["id"][0].as_py()))
    root = parsed(drawn.svg)
    assert {node.tag.removeprefix(SVG) for node in root.iter()} == {"svg", "style", "title", "text", "path"}
    texts = [text.text or "" for text in root.iter(f"{SVG}title")]
    assert any(text.startswith("<script>alert(1)</script>") for text in texts)
    assert drawn._repr_html_() == drawn._repr_svg_() == drawn.svg


def test_a_run_with_dense_ids_is_drawn_too(results, tmp_path):
    source = results.path.parent / "g.parquet"
    dense = bq.mine(source, tmp_path / "dense", ids="dense", **QUIET)
    id = results.top(1)["id"][0].as_py()
    for name in ("own", "near", "hole", "in"):
        counts = [len(squares(parsed(one.plot(id).svg), name)) for one in (results, dense)]
        assert counts[0] == counts[1] > 0


def test_it_is_saved_as_svg_or_refused(results, tmp_path, monkeypatch):
    drawn = results.plot(results[0].id)
    assert drawn.save(tmp_path / "one.svg") == tmp_path / "one.svg"
    assert (tmp_path / "one.svg").read_text() == drawn.svg
    for name, words in (("one.gif", "ends in .svg or .png"), ("no/one.svg", "there is no folder")):
        with pytest.raises(InputError, match=words):
            drawn.save(tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == ["one.svg"]
    with pytest.raises(ResourceError):
        drawn.save("/proc/one.svg")


def test_axes_of_matplotlib_show_the_same_edges_and_holes(results, tmp_path):
    drawn = results.plot()
    axes, root = drawn.on(), parsed(drawn.svg)
    cells = np.asarray(axes.images[0].get_array())
    for value, name in ((3, "own"), (2, "near"), (1, "other")):
        assert (cells == value).sum() == len(squares(root, name)) - has_sign(root, name)
    assert len(axes.collections[0].get_offsets()) == len(squares(root, "hole")) - has_sign(root, "hole")
    labels = [[tick.get_text() for tick in axis.get_ticklabels()] for axis in (axes.yaxis, axes.xaxis)]
    assert labels == [[line.label for line in lines] for lines in drawn.matrix.lines]
    assert drawn.on(axes) is axes
    assert drawn.save(tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def has_sign(root: Element, name: str) -> bool:
    """Whether the legend has a square of a class: all classes that occur."""
    return len(squares(root, name)) > 0


def test_without_matplotlib_a_sentence_says_so_before_anything_is_written(results, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(picture, "find_spec", lambda name: None)
    drawn = results.plot()
    for call in (drawn.on, lambda: drawn.save(tmp_path / "one.png")):
        with pytest.raises(ResourceError, match="needs Matplotlib, which is not installed"):
            call()
    assert main(["plot", str(results.path), "--output", str(tmp_path / "one.png")]) == 1
    assert "save it as SVG" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_marks_are_bounded(results, monkeypatch):
    monkeypatch.setattr(picture, "_MEMBERS", 3)
    row = results.top(1, by="balance").to_pylist()[0]
    assert len(squares(parsed(results.plot(row["id"]).svg), "own")) == 10


def test_as_text_a_picture_is_a_few_words():
    matrix = picture.Matrix("", ("left", "right"), ([], []), np.zeros((0, 0), bool))
    assert repr(picture.Picture("<svg>" + "ü" * 1000, matrix)) == "<picture of a biclique, SVG of 2.0 kB>"


def test_the_command_draws_the_same(results, tmp_path, capsysbinary):
    id, file = results[0].id, tmp_path / "one.svg"
    assert main(["plot", str(results.path), "--id", str(id), "--missing", "2", "-n", "3", "--output", str(file)]) == 0
    assert capsysbinary.readouterr().out.decode() == f"biclique {id} in {file}\n"
    assert file.read_text() == results.plot(id, missing=2, n=3).svg
    assert main(["plot", str(results.path), "--id", str(id)]) == 0
    assert capsysbinary.readouterr().out.decode() == results.plot(id).svg + "\n"
    assert main(["plot", str(results.path), "--json", "-o", str(file)]) == 0
    largest = results.top(1)["id"][0].as_py()
    assert json.loads(capsysbinary.readouterr().out) == {"file": str(file), "id": str(largest), "replaced": True}
    assert file.read_text() == results.plot(largest).svg
    assert main(["plot", str(results.path), "-o", str(file)]) == 0
    told = capsysbinary.readouterr().out.decode()
    assert told == f"biclique {largest} in {file}, in place of the file that was there\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ["--output", "one.gif"],
            "one.gif cannot be written, because the picture is SVG or PNG; name a file that ends in .svg or .png",
        ),
        (["--output", "no/one.svg"], "no/one.svg cannot be written, because there is no folder no; make it"),
        (["--json"], "the picture goes to standard output, where --json prints, too; name a file with --output"),
        (["--id", "seven"], "an id is a whole number as in the column id, not 'seven'"),
        (["--id", "7"], "has no biclique with the id 7; the column id of its rows has all ids"),
        (["--missing", "-1"], "argument --missing: "),
        (["-n", "0"], "the number of bicliques and vertices to show must be at least 1, not 0"),
    ],
)
def test_what_the_command_cannot_draw_is_said_in_a_sentence(words, why, results, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["plot", str(results.path), *words]) == 2
    told = capsys.readouterr()
    assert why in told.err + told.out
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_bicliques_has_none_to_draw(results, tmp_path, capsys):
    source = results.path.parent / "g.parquet"
    none = bq.mine(source, tmp_path / "none", min_left=29, min_right=19, **QUIET)
    assert len(none) == 0
    assert main(["plot", str(none.path)]) == 2
    assert capsys.readouterr().err == f"bicliques: {none.path} has no biclique to plot\n"
