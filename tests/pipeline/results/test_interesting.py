"""Distinct and surprising rows, and covers, of whole runs: from Python and on the command line."""

import itertools
import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.pipeline.results import surprise
from bicliques.pipeline.run.names import EDGES_FILE
from bicliques.pipeline.run.tables import read_table
from bicliques.schemas.errors import IncompleteError, InputError
from tests.support.runs import QUIET, random_edges, write_edges

EDGES = random_edges(40, 30, 0.3, 1)


def _pairs(table: pa.Table) -> list[tuple[set[Any], set[Any]]]:
    sides = table["left"].to_pylist(), table["right"].to_pylist()
    return [(set(left), set(right)) for left, right in zip(*sides, strict=True)]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interesting")
    source = write_edges(folder / "g.parquet", EDGES, strings=True)
    bq.mine(source, folder / "out", max_results=200, **QUIET)
    for most in (500, None):  # each session writes parts of its own
        bq.resume(folder / "out", max_results=most, **QUIET)
    return folder / "out"


@pytest.fixture
def results(out):
    return bq.open_run(out)


def test_distinct_rows_are_those_of_the_whole_order(results):
    by = "balance"
    assert len(results.files) > 2
    everything = results.top(len(results), by)
    for most in (0.3, 0.8):
        kept = []
        pairs = _pairs(everything)
        for k, (left, right) in enumerate(pairs):
            shares = [len(left & pairs[i][0]) * len(right & pairs[i][1]) for i in kept]
            if max(shares, default=0) <= most * len(left) * len(right):
                kept.append(k)
        assert 7 < len(kept) < len(pairs)
        assert results.top(7, by, most).equals(everything.take(kept[:7]))
        assert results.top(len(pairs), by, most).equals(everything.take(kept))
    assert results.top(50, by, 1.0).equals(everything.slice(0, 50))


def test_surprise_is_in_bits_and_of_the_degrees_of_the_whole_input(results, tmp_path):
    edges = read_table(results.path / EDGES_FILE)
    of_left, of_right = (Counter(edges[side].to_pylist()) for side in ("left", "right"))
    table = results.top(len(results), "surprise")
    labels = [
        read_table(results.path / "labels" / f"{side}.parquet")["label"].to_pylist() for side in ("left", "right")
    ]
    ids = [{label: k for k, label in enumerate(own)} for own in labels]
    expected = []
    for left, right in _pairs(table):
        degrees = [of_left[ids[0][u]] for u in left], [of_right[ids[1][v]] for v in right]
        bits = sum(-math.log2(1 - math.exp(-d * e / len(edges))) for d, e in itertools.product(*degrees))
        bits -= math.log2(math.comb(len(labels[0]), len(left))) + math.log2(math.comb(len(labels[1]), len(right)))
        expected.append(bits)
    assert table.num_rows == len(results)
    assert table["surprise"].to_pylist() == pytest.approx(expected, abs=1e-4)
    assert table["surprise"].to_pylist() == sorted(table["surprise"].to_pylist(), reverse=True)
    assert results.top(9, "surprise").equals(table.slice(0, 9))
    few = bq.mine(results.path, tmp_path / "few", min_left=4, min_right=3, **QUIET)
    [best] = few.top(1, "surprise")["surprise"].to_pylist()
    sizes = zip(table["n_left"].to_pylist(), table["n_right"].to_pylist(), strict=True)
    assert best == max(
        bits for bits, (a, b) in zip(table["surprise"].to_pylist(), sizes, strict=True) if a > 3 and b > 2
    )


def test_the_surprise_of_many_degrees_is_worked_out_in_pieces(results, monkeypatch):
    at_once = results.top(len(results), "surprise")
    explained = bq.open_run(results.path).explain(at_once["id"][0].as_py()).surprise
    monkeypatch.setattr(surprise, "_CHUNK", 4)
    in_pieces = bq.open_run(results.path)
    assert in_pieces.top(len(results), "surprise").equals(at_once)
    assert in_pieces.explain(at_once["id"][0].as_py()).surprise == explained


def test_rows_are_the_same_in_another_order_of_the_search(results, tmp_path):
    other = bq.mine(
        results.path, tmp_path / "other", order="id", root_side="right", workers=0, slice_seconds=0.02, progress=False
    )
    for ours, theirs in (
        (results.top(20, "surprise", 0.5), other.top(20, "surprise", 0.5)),
        (results.top(20, "edges", 0.5), other.top(20, "edges", 0.5)),
        (results.cover(20), other.cover(20)),
    ):
        assert _pairs(ours) == _pairs(theirs)
        for name in set(ours.column_names) - {"left", "right", "root"}:
            assert ours[name].equals(theirs[name]), name


def test_a_cover_of_a_run_explains_all_edges_in_the_end(results):
    table = results.cover(len(results))
    n_edges = results.manifest.input["n_edges"]
    assert table.column_names == ["rank", "edges", "new_edges", "covered", *results.schema.names]
    seen = set()
    for k, (left, right) in enumerate(_pairs(table)):
        own = set(itertools.product(left, right))
        assert table["rank"][k].as_py() == k + 1
        assert table["edges"][k].as_py() == len(own)
        assert table["new_edges"][k].as_py() == len(own - seen) > 0
        seen |= own
        assert table["covered"][k].as_py() == pytest.approx(len(seen) / n_edges)
    assert len(seen) == n_edges
    assert 5 < table.num_rows < len(results)
    assert results.cover(5).equals(table.slice(0, 5))


def test_rows_of_dense_ids_are_the_same_ones(results, tmp_path):
    dense = bq.mine(results.path, tmp_path / "dense", ids="dense", **QUIET)
    for ours, theirs in (
        (results.top(9, "surprise", 0.5), dense.top(9, "surprise", 0.5)),
        (results.cover(9), dense.cover(9)),
    ):
        assert pa.types.is_integer(theirs.schema.field("left").type.value_type)
        for name in set(ours.column_names) - {"left", "right", "root"}:
            assert ours[name].equals(theirs[name]), name


def test_the_largest_and_a_run_that_is_not_complete_have_interesting_rows(results, tmp_path):
    largest = bq.largest(results.path, tmp_path / "largest", top=30, **QUIET)
    assert largest.top(5, "edges", 0.4).num_rows == 5
    assert largest.cover(4)["new_edges"].to_pylist() == sorted(largest.cover(4)["new_edges"].to_pylist())[::-1]
    begun = bq.mine(results.path, tmp_path / "begun", max_results=60, **QUIET)
    assert not begun.complete
    assert begun.top(100, "surprise").num_rows == 60
    assert 0 < begun.top(100, "left", 0.3).num_rows < 60
    assert 0 < begun.cover(100)["covered"][-1].as_py() < 1
    none = bq.mine(results.path, tmp_path / "none", min_left=39, min_right=29, **QUIET)
    assert (len(none), none.cover(3).num_rows, none.top(3, "surprise", 0.5).num_rows) == (0, 0, 0)


def test_what_cannot_be_answered_is_refused(results, tmp_path):
    counted = bq.mine(results.path, tmp_path / "counted", count_only=True, **QUIET)
    for ask in (counted.cover, lambda: counted.top(3, "surprise"), lambda: counted.top(3, distinct=0.5)):
        with pytest.raises(InputError, match="holds no bicliques"):
            ask()
    for share in (-0.1, 1.01, math.nan):
        with pytest.raises(InputError, match=f"from 0 to 1, not {share}"):
            results.top(3, distinct=share)
    with pytest.raises(InputError, match="at least 1, not 0"):
        results.cover(0)
    with pytest.raises(InputError, match="or surprise, not by 'size'"):
        results.top(3, "size", 0.5)


def test_a_damaged_part_is_an_error(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    found = bq.mine(source, tmp_path / "out", **QUIET)
    found.files[0].write_bytes(b"")
    for ask in (found.cover, lambda: found.top(3, "surprise"), lambda: found.top(3, distinct=0.5)):
        with pytest.raises(IncompleteError, match="cannot be read"):
            ask()


def test_the_command_line_prints_and_writes_them(out, results, tmp_path, capsys):
    def run(*words) -> tuple[int, str, str]:
        code = main.main([str(word) for word in words])
        return code, *capsys.readouterr()

    file = tmp_path / "cover.parquet"
    file.write_text("another file, which is replaced")
    code, output, _ = run("cover", out, "--top", 4, "--output", file)
    assert code == 0
    assert [line.split()[0] for line in output.splitlines()] == ["#", "1", "2", "3", "4"]
    assert output.splitlines()[0].split()[3:] == ["edges", "new", "covered", "members"]
    assert f"{results.cover(4)['covered'][3].as_py():.1%}" in output.splitlines()[4]
    assert pq.read_table(file).equals(results.cover(4))
    code, output, _ = run("cover", out, "--top", 2, "--json")
    assert [(row["rank"], row["covered"]) for row in json.loads(output)] == [
        (k + 1, results.cover(2)["covered"][k].as_py()) for k in range(2)
    ]
    code, output, _ = run("show", out, "-n", 3, "--by", "surprise", "--distinct", "0.4", "--json")
    assert [row["surprise"] for row in json.loads(output)] == results.top(3, "surprise", 0.4)["surprise"].to_pylist()
    code, output, _ = run("show", out, "-n", 3, "--by", "surprise")
    assert output.splitlines()[0].split()[3:] == ["edges", "bits", "members"]
    for target, words in ((tmp_path / "no" / "c.parquet", "there is no folder"), (tmp_path, "is a folder")):
        code, output, error = run("cover", out, "--output", target)
        assert (code, output, error.count("\n")) == (2, "", 1)
        assert words in error
    code, _, error = run("cover", out, "--output", "s3://bucket/c.parquet")
    assert (code, "s3://bucket/c.parquet is a URL" in error) == (2, True)


def test_labels_that_no_terminal_should_see_stay_what_they_are(tmp_path, capsys):
    hostile = [
        'a"b',
        "line\nbreak",
        "<script>alert(1)</script>",
        "=HYPERLINK(1)",
        "\x1b[31mred",
        "\u202eabc",
        "a,b",
        "'",
    ]
    edges = np.argwhere(np.random.default_rng(2).random((8, 8)) < 0.6)
    table = pa.table({side: [hostile[k] for k in edges[:, column]] for column, side in enumerate(("u", "v"))})
    found = bq.mine(table, tmp_path / "out", **QUIET)
    file = tmp_path / "c.parquet"
    assert main.main(["cover", str(tmp_path / "out"), "--top", "30", "--full", "--output", str(file)]) == 0
    printed = capsys.readouterr().out
    cover = pq.read_table(file)
    assert len(printed.splitlines()) == cover.num_rows + 1
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    explained = set().union(*(itertools.product(*pair) for pair in _pairs(cover)))
    assert explained == set(zip(table["u"].to_pylist(), table["v"].to_pylist(), strict=True))
    assert found.top(5, "surprise", 0.5)["surprise"][0].as_py() == found.top(1, "surprise")["surprise"][0].as_py()
