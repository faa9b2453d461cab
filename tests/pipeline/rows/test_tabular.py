"""Rows as a table: which contain a vertex, which have a size, their shape, and frames."""

import itertools
from typing import Any

import numpy as np
import pytest

import bicliques as bq
from bicliques.pipeline.rows import tabular
from bicliques.schemas.errors import InputError
from tests.support.oracles import cliques, random_edges
from tests.support.runs import OWN, QUIET


@pytest.fixture(scope="module", params=["text", "integers"])
def mined(request, tmp_path_factory):
    """Results, and their rows by another search. The right labels are text on one graph, and integers on the other."""
    edges = random_edges(np.random.default_rng(7), 9, 8, 0.6)
    name = "r{}".format if request.param == "text" else lambda v: v + 100
    pairs = [(f"l{a}", name(b)) for a, b in edges.tolist()]
    results = bq.mine(pairs, tmp_path_factory.mktemp("tabular") / "out", **QUIET)
    return results, [([f"l{a}" for a in left], [name(b) for b in right]) for left, right in cliques(edges)]


def plain(table) -> list[Any]:
    return sorted((sorted(row["left"]), sorted(row["right"])) for row in table.to_pylist())


def test_rows_that_contain_a_vertex_are_found_on_either_side(mined, monkeypatch):
    results, rows = mined
    monkeypatch.setitem(tabular.FEW_AT_A_TIME, "batch_size", 3)
    for label in {member for sides in rows for side in sides for member in side}:
        assert label in results
        assert plain(results.containing(label)) == sorted(row for row in rows if label in row[0] or label in row[1])
    assert "nobody" not in results
    assert results[0] in results
    assert tuple(results[1]) in results
    assert (["nobody"], []) not in results


def test_the_best_rows_that_have_some_members_are_ranked_as_all_are(mined):
    results, rows = mined
    everyone = results.top(len(results), "balance").to_pylist()
    for left, right in (
        ([], []),
        (["l3"], []),
        (["l1", "l4"], []),
        ([], [rows[0][1][0]]),
        ([rows[3][0][0]], [rows[3][1][0]]),
    ):
        own = [row for row in everyone if {*left} <= {*row["left"]} and {*right} <= {*row["right"]}]
        found = results.top(3, "balance", containing_left=left, containing_right=right)
        assert found.to_pylist() == own[:3]
        [best, *others] = results.top(9, "balance", 0.0, containing_left=left, containing_right=right).to_pylist()
        assert best == own[0]
        assert all(row in own for row in others)
        assert others == [] or not left or not right  # two that have both share an edge


def test_a_label_that_no_vertex_has_is_refused_with_what_is_near(mined):
    results, _ = mined
    with pytest.raises(InputError, match=r"no vertex of .* has the label 'L3'; near it are 'l3'"):
        results.containing("L3")
    with pytest.raises(InputError, match=r"no left vertex of .* has the label 'L3'; near it are 'l3'.*containing"):
        results.top(containing_left="L3")
    with pytest.raises(
        InputError, match=r"'l3' is a left label of .*, not a right one|right labels of .* are whole numbers"
    ):
        results.top(containing_right="l3")


def test_a_label_that_no_side_can_have_is_refused(mined):
    results, rows = mined
    if isinstance(rows[0][1][0], int):
        assert 5 not in results
        with pytest.raises(InputError, match="right members are integers, not 'r1'; give a label as"):
            results.filter(containing_right="r1")
    else:
        with pytest.raises(InputError, match="right members are text, not 5; give a label as in the column right"):
            assert 5 in results
    for odd in (1.5, True, None):
        with pytest.raises(InputError, match="members are "):
            results.containing(odd)


def test_sizes_and_members_of_both_sides_choose_rows(mined):
    results, rows = mined
    left, right = (sorted({member for row in rows for member in row[side]}) for side in (0, 1))
    sizes = [(0, None), (2, None), (0, 3), (3, 4)]
    for (least, most), (low, high) in itertools.product(sizes, sizes):
        for own, other in (([], []), (left[:1], []), (left[:2], right[3:4])):
            found = results.filter(
                min_left=least,
                max_left=most,
                min_right=low,
                max_right=high,
                containing_left=own,
                containing_right=other[0] if other else (),
            )
            assert plain(found) == sorted(
                (a, b)
                for a, b in rows
                if least <= len(a) <= (most or 99)
                and low <= len(b) <= (high or 99)
                and {*own} <= {*a}
                and {*other} <= {*b}
            )
    with pytest.raises(InputError, match="min_left"):
        results.filter(min_left=1.5)


def test_shape_columns_description_and_frames(mined):
    results, rows = mined
    assert results.shape == (len(rows), len(results.columns))
    assert results.columns[:3] == ["id", "left", "right"]
    told = results.describe()
    assert told.loc["max", "edges"] == max(len(a) * len(b) for a, b in rows)
    assert told.loc["count", "n_left"] == len(rows)
    assert results.to_polars().shape == results.shape
    ids = results.to_pandas(id_type="string")["id"]
    assert ids.tolist() == [str(id) for id in results.to_arrow()["id"].to_pylist()]
    with pytest.raises(InputError, match="ids become int64 or string in a frame, not 'text'"):
        results.to_pandas(id_type="text")


def test_a_row_stands_for_its_id_and_none_for_the_largest(mined):
    results, _ = mined
    row, best = results[1], results.top(1).to_pylist()[0]
    assert results.members(row) == row
    assert results.explain(row).biclique.id == row.id
    assert results.explain().biclique.id == results.explain(best).biclique.id == best["id"]
    assert "svg" in str(results.plot()._repr_html_())


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("resume", r"bicliques\.resume\(results\.path\)"),
        ("to_json", r"results\.export\('jsonl', path\)"),
        ("verfy", ""),
    ],
)
def test_what_is_elsewhere_is_said(mined, name, advice):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'{f'; call {advice}' if advice else ''}$"):
        getattr(mined[0], name)
    assert not hasattr(mined[0], "_ipython_display_")


def test_calls_without_a_folder_say_what_takes_none():
    with pytest.raises(
        TypeError, match=r"mine\(\) needs output, .*; bicliques\.maximal_bicliques and bicliques\.count"
    ):
        bq.mine([(1, 2)])
    with pytest.raises(AttributeError, match="no attribute 'load'; call open_run"):
        bq.load  # noqa: B018


def test_what_calls_return_is_shown_in_a_few_lines(mined):
    results, rows = mined
    count = bq.count([("a", 1), ("b", 1)], **OWN)
    assert repr(count).startswith("<1 maximal biclique, in ")
    assert repr(bq.status(results.path)).endswith(f"{len(rows)} maximal bicliques>")
    first, *sizes = repr(results.sizes()).splitlines()
    assert first.startswith(f"<{len(rows):,} bicliques of ")
    assert 1 < len(sizes) <= 10
    dry = repr(bq.dry_run([(a, b) for a in range(30) for b in range(30) if (a * b) % 7], **OWN))
    assert dry.startswith("<dry run: about ")
    assert "--" not in dry
    assert len(dry) < 2000
