"""One biclique by its id: its members, and all that an explanation says, as plain Python finds it on a small graph."""

import itertools
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.kernels.compiled.searching import find_texts
from bicliques.pipeline.results.edges import _long_enough, degrees_of
from bicliques.pipeline.results.listing import columns_of
from bicliques.pipeline.results.results import Results
from bicliques.pipeline.run import labels
from bicliques.pipeline.run.names import EDGES_FILE
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.errors import IncompleteError, InputError, UnknownIdError
from bicliques.schemas.search import MEASURES
from tests.support.commands import run
from tests.support.notebook import HOSTILE, Cells
from tests.support.runs import QUIET, random_edges, write_edges

EDGES = random_edges(40, 30, 0.3, 1)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A run of several parts, whose labels are text."""
    folder = tmp_path_factory.mktemp("explaining")
    source = write_edges(folder / "g.parquet", EDGES, strings=True)
    bq.mine(source, folder / "out", max_results=200, **QUIET)
    for most in (500, None):  # each session writes parts of its own
        bq.resume(folder / "out", max_results=most, **QUIET)
    return folder / "out"


@pytest.fixture
def results(out):
    return bq.open_run(out)


@pytest.mark.parametrize("command", ["explain", "plot", "verify"])
def test_machine_code_that_cannot_be_kept_is_no_damage_of_the_run(command, out, monkeypatch, capsys, tmp_path):
    """With more labels, all of these commands search texts by compiled code."""
    monkeypatch.setattr(labels, "_MANY", 0)
    monkeypatch.setattr(labels, "_TABLE", 0)
    monkeypatch.setattr(find_texts, "loaded", {})
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "folder"))
    words = [out, "--quiet"] if command == "verify" else [out]
    code, _, told = run(capsys, command, *words)
    assert code == 1
    assert re.fullmatch(r"bicliques: machine code cannot be kept in \S+ \(Not a directory\); see .*_DIR\n", told)


def test_members_are_those_of_the_row_with_the_id(results):
    rows = results.to_arrow()
    assert len(results.files) > 2
    assert len(rows) > 900, "more than the summary has"
    for row in rows.to_pylist()[::7]:
        found = results.members(row["id"])
        assert (found.left, found.right, found.id) == (row["left"], row["right"], row["id"])
    assert results.members(str(row["id"])) == results.members(np.int64(row["id"])) == found


@pytest.mark.parametrize("ids", ["labels", "dense"])
def test_members_are_named_as_in_the_rows(tmp_path, ids):
    results = bq.mine(write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "out", ids=ids, **QUIET)
    last = list(results)[-1]
    assert results.members(last.id) == last
    explained = results.explain(last.id)
    assert explained.biclique == last
    assert explained.members["left"]["label"].to_pylist() == last.left
    top = results.top(1).to_pylist()[0]
    assert results.members(top["id"]).right == top["right"]


def test_an_id_that_no_biclique_has_is_a_key_error_in_a_sentence(results):
    known = set(results.to_arrow(["id"])["id"].to_pylist())
    unknown = next(k for k in itertools.count(1) if k not in known)
    for ask in (results.members, results.explain):
        with pytest.raises(KeyError) as ended:
            ask(unknown)
        assert isinstance(ended.value, InputError)
        assert (
            str(ended.value)
            == f"{results.path} has no biclique with the id {unknown}; the column id of its rows has all ids"
        )
        for wrong in ("x", "1_0", "0x10", "", 1.5, None, [1]):
            with pytest.raises(InputError, match="an id is a whole number as in the column id, not"):
                ask(cast(int, wrong))
        with pytest.raises(InputError, match="64 bits"):
            ask(2**63)
    with pytest.raises(InputError, match="at least 1, not 0"):
        results.explain(unknown, n=0)
    with pytest.raises(InputError, match="at least 0, not -1"):
        results.explain(unknown, missing=-1)


def noted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The columns that are read of each row group."""
    read = []
    for name in ("read_row_group", "read_row_groups", "iter_batches"):
        real = getattr(pq.ParquetFile, name)
        monkeypatch.setattr(
            pq.ParquetFile, name, lambda *args, real=real, **how: read.append(how.get("columns")) or real(*args, **how)
        )
    return read


def test_of_a_large_one_no_ids_are_read_and_of_others_only_these(results, monkeypatch):
    large = results.top(300, by="balance")["id"][299].as_py()
    rows = results.to_arrow(["id", "n_left", "n_right"]).to_pylist()
    known = {id for by in MEASURES for id in results.top(300, by)["id"].to_pylist()}
    small = next(row["id"] for row in rows[::-1] if row["id"] not in known)
    first = next(row["id"] for row in rows if row["id"] not in known)
    read = noted(monkeypatch)
    results.members(large)
    assert read == [None], "the row group of the row"
    read.clear()
    results.members(small)
    assert read[-1] is None
    assert read[:-1] == [["id"]] * (len(read) - 1)
    assert len(read) > 3
    monkeypatch.setattr("bicliques.pipeline.proof.selection.count_cores", lambda: 1)
    read.clear()
    results.members(first)
    assert read == [["id"], None], "it stops where the row is"


class Plain:
    """What plain Python knows of the graph and the bicliques of a run."""

    def __init__(self, results: Results):
        source = pq.read_table(results.path.parent / "g.parquet")
        pairs = list(zip(*(column.to_pylist() for column in source.columns), strict=True))
        self.neighbours = [{}, {}]
        for left, right in pairs:
            self.neighbours[0].setdefault(left, set()).add(right)
            self.neighbours[1].setdefault(right, set()).add(left)
        self.rows = results.to_arrow().to_pylist()
        self.counts = [Counter(label for row in self.rows for label in row[side]) for side in ("left", "right")]

    def members(self, k: int, row: dict[str, Any]) -> list[dict[str, Any]]:
        return [self._known(k, label) for label in row[("left", "right")[k]]]

    def near(self, k: int, row: dict[str, Any], missing: int) -> list[dict[str, Any]]:
        own, others = row[("left", "right")[k]], row[("right", "left")[k]]
        found = []
        for label, there in self.neighbours[k].items():
            misses = sorted(set(others) - there)
            if label not in own and len(misses) <= missing and len(misses) < len(others):
                found.append(self._known(k, label) | {"missing": misses})
        return sorted(found, key=lambda one: (len(one["missing"]), one["degree"], one["label"]))

    def _known(self, k: int, label) -> dict[str, Any]:
        return {"label": label, "degree": len(self.neighbours[k][label]), "bicliques": self.counts[k][label]}

    def overlapping(self, row: dict[str, Any], n: int) -> list[dict[str, Any]]:
        found = []
        for other in self.rows:
            left, right = (len(set(row[side]) & set(other[side])) for side in ("left", "right"))
            if other["id"] != row["id"] and left * right:
                share = left * right / (row["n_left"] * row["n_right"])
                found.append(
                    {"share": share, "shared_edges": left * right, "shared_left": left, "shared_right": right} | other
                )
        found.sort(key=lambda one: (one["shared_edges"], one["n_left"] * one["n_right"], one["n_left"], one["id"]))
        return found[::-1][:n]


def measure(row: dict[str, Any], by: str) -> int:
    n, m = row["n_left"], row["n_right"]
    return {"edges": n * m, "vertices": n + m, "balance": min(n, m), "left": n, "right": m}[by]


def test_an_explanation_is_what_plain_python_finds(results):
    plain = Plain(results)
    best = results.top(len(results), "surprise")
    surprise = dict(zip(best["id"].to_pylist(), best["surprise"].to_pylist(), strict=True))
    near = 0
    for number, row in enumerate(plain.rows[::53]):
        missing, n = number % 4, (1, 3, 20, 5000)[number // 4 % 4]
        found = results.explain(row["id"], missing, n)
        assert (found.biclique.left, found.biclique.right) == (row["left"], row["right"])
        assert (found.count, found.missing, found.run) == (len(plain.rows), missing, results.path)
        for k, side in enumerate(("left", "right")):
            assert found.members[side].to_pylist() == plain.members(k, row)
            expected = plain.near(k, row, missing)
            near += len(expected)
            assert found.n_near[side] == len(expected)
            assert found.near[side].to_pylist() == expected[:n]
        assert found.overlapping.to_pylist() == plain.overlapping(row, n)
        for by in MEASURES:
            own = measure(row, by)
            place = 1 + sum(measure(other, by) > own for other in plain.rows)
            others = sum(measure(other, by) == own for other in plain.rows) - 1
            assert found.standings[by] == (place, others)
        assert found.surprise == surprise[row["id"]], "to the last bit"
    assert near > 100
    assert number > 15


def test_row_groups_that_cannot_overlap_as_much_are_not_read(results, tmp_path, monkeypatch):
    """The same rows in one file with small row groups, the largest first, as runs write them."""
    table = results.top(len(results), by="left")
    pq.write_table(table.replace_schema_metadata(results.schema.metadata), tmp_path / "a.parquet", row_group_size=7)

    class Elsewhere(Results):
        @property
        def files(self) -> list[Path]:
            return [tmp_path / "a.parquet"]

        def _place(self, id: int):
            return (0, *divmod(table["id"].to_pylist().index(id), 7))

    monkeypatch.setattr("bicliques.pipeline.results.candidates.count_cores", lambda: 1)
    elsewhere = Elsewhere(Run.at(results.path))
    for id in table["id"].to_pylist()[50::280]:
        assert elsewhere.explain(id, n=3).overlapping.equals(results.explain(id, n=3).overlapping)
    id = table["id"][0].as_py()
    expected = results.explain(id, 30, n=3)
    read = noted(monkeypatch)
    monkeypatch.setattr(Results, "dataset", lambda _: pytest.fail("all rows were read together"))
    found = elsewhere.explain(id, 30, n=3)
    assert found.overlapping.equals(expected.overlapping)
    groups = -(-len(table) // 7)
    sizes, whole = read.count(["n_left", "n_right"]), read.count(None)
    assert whole < sizes + 6
    assert sizes < groups / 3, "a small part of the row groups"
    assert read.count(["left", "right"]) == 2, "the edges, twice"


def test_edges_are_read_over_as_many_rows_as_there_are_vertices(tmp_path):
    """Otherwise a large graph with many row groups would take the product of both."""
    table = pa.table({"left": EDGES[:, 0].astype(np.int32), "right": EDGES[:, 1].astype(np.int32)})
    (tmp_path / EDGES_FILE).parent.mkdir()
    pq.write_table(table, tmp_path / EDGES_FILE, row_group_size=3)
    n_left, n_right = (int(n) + 1 for n in EDGES.max(axis=0))
    there = SimpleNamespace(edge_files=lambda: [tmp_path / EDGES_FILE])
    opened = SimpleNamespace(folder=there, input={"n_left": n_left, "n_right": n_right})
    found = degrees_of(cast(Run, opened))
    assert [own.tolist() for own in found] == [np.bincount(column).tolist() for column in EDGES.T]
    metadata = pq.read_metadata(tmp_path / EDGES_FILE)
    groups = list(_long_enough(metadata, 5))
    assert [group for some in groups for group in some] == list(range(metadata.num_row_groups))
    assert {len(some) for some in groups[:-1]} == {2}


def test_a_run_that_is_not_complete_is_explained_as_far_as_it_is(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    part = bq.mine(source, tmp_path / "part", max_results=100, **QUIET)
    id = part[7].id
    found = part.explain(id)
    assert found.count == len(part) == 100
    assert found.members["left"]["bicliques"].null_count == len(found.biclique.left)
    assert found.overlapping.num_rows == 20
    assert str(found).count("\n") > 30
    assert "place among 100:" in found._repr_html_()
    none = bq.mine(source, tmp_path / "none", min_left=40, **QUIET)
    with pytest.raises(UnknownIdError, match=f"no biclique with the id {id}"):
        none.members(id)
    counted = bq.mine(source, tmp_path / "counted", count_only=True, **QUIET)
    for ask in (counted.members, counted.explain):
        with pytest.raises(InputError, match="holds no bicliques"):
            ask(id)


def test_without_its_summary_a_run_is_explained_too(out, tmp_path):
    shutil.copytree(out, tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "summary")
    id = bq.open_run(out).top(1)["id"][0].as_py()
    found, whole = (bq.open_run(path).explain(id) for path in (tmp_path / "out", out))
    assert found.standings == whole.standings
    assert found.members["right"]["bicliques"].null_count == len(found.biclique.right)
    assert found.members["right"].drop(["bicliques"]).equals(whole.members["right"].drop(["bicliques"]))
    for file in (tmp_path / "out" / "edges").iterdir():
        file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(IncompleteError, match="cannot be read"):
        bq.open_run(tmp_path / "out").explain(id)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Labels and names with quotes, tags, line breaks, formulas, and characters of two columns or of none."""
    labels = [*HOSTILE, "a\nb", "\x1b[31mred", "東京" * 30, "\u202eabc", " "]
    edges = [(label, film) for label in labels for film in ("<i>1</i>", "2\r\n3")] + [("only", "<i>1</i>")]
    table = pa.table(dict(zip(("<b>user</b>", "fi\nlm"), map(list, zip(*edges, strict=True)), strict=True)))
    return bq.mine(table, tmp_path_factory.mktemp("hostile") / "<u>run", **QUIET)


@pytest.mark.parametrize("width", [60, 80, 120, 300])
def test_text_fits_the_lines_and_breaks_none(hostile, width):
    found = hostile.explain(hostile.top(1)["id"][0].as_py())
    assert len(hostile) == 2
    lines = found.text(width).split("\n")
    assert all(line.isprintable() for line in lines)
    headings = [line for line in lines if " members" in line or "biclique " in line]
    assert [line for line in lines if columns_of(line) > max(width, 80) and line not in headings] == []
    assert len(headings) == 5
    text = found.text(None)
    assert all(line.isprintable() for line in text.split("\n"))
    assert "東京" * 30 in text
    assert repr("a\nb") in text


def test_one_of_a_kind_is_told_in_the_singular(hostile):
    text = hostile.explain(hostile.top(1)["id"][0].as_py(), n=1).text()
    assert "the one that shares most of its edges" in text
    assert ", the one with fewest neighbours" in text
    assert "fewest neighbours" not in hostile.explain(hostile.top(1)["id"][0].as_py(), n=50).text(), "all are there"
    smaller = hostile.top(2)["id"][1].as_py()
    assert "the one that shares most of its edges" in hostile.explain(smaller, n=1).text()


def test_no_label_is_code_in_a_notebook(hostile):
    shown = Cells(hostile.explain(hostile.top(1)["id"][0].as_py())._repr_html_())
    assert shown.tags == {"div", "p", "b", "br", "table", "tr", "th", "td"}
    assert "<script>alert(1)</script>" in shown.texts
    assert any("<u>run" in text for text in shown.texts)


def test_the_command_prints_text_or_json(hostile, capsys):
    largest = hostile.top(1)["id"][0].as_py()
    code, output, _ = run(capsys, "explain", hostile.path, "--json")
    found = json.loads(output)
    assert (code, found["id"]) == (0, largest)
    assert found == json.loads(json.dumps(hostile.explain(largest).to_json()))
    assert found["left"] == hostile.members(largest).left
    (other,) = (row["id"] for row in found["overlapping"])
    for words in (["--id", str(other)], [f"--id={other}"]):
        code, output, _ = run(capsys, "explain", hostile.path, *words, "--full")
        assert (code, output) == (0, hostile.explain(other).text(None) + "\n")
    code, output, _ = run(capsys, "explain", hostile.path, "--missing", "0", "-n", "1")
    assert "at most 0 of the" in output
    code, _, error = run(capsys, "explain", hostile.path, "--id", "17")
    assert (code, error) == (
        2,
        f"bicliques: {hostile.path} has no biclique with the id 17; the column id of its rows has all ids\n",
    )


def test_a_run_without_bicliques_has_none_to_explain(tmp_path, capsys):
    none = bq.mine(write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "none", min_left=40, **QUIET)
    code, _, error = run(capsys, "explain", none.path)
    assert (code, error) == (2, f"bicliques: {none.path} has no biclique to explain\n")


def test_ids_are_shown_when_they_are_asked_for(results, capsys):
    ids = [str(id) for id in results.top(5)["id"].to_pylist()]
    for command in ("show", "cover", "sample"):
        _, plain, _ = run(capsys, command, results.path, "-n", "5")
        _, output, _ = run(capsys, command, results.path, "-n", "5", "--ids")
        found = [line.split()[-1] for line in re.findall(r"(?m)^(.*?)  \{", output)]
        assert len(found) == 5
        assert all(results.members(id).left for id in found)
        assert found[0] not in plain
    _, output, _ = run(capsys, "show", results.path, "-n", "5", "--ids")
    assert [line.split()[4] for line in output.splitlines()[1:]] == ids
