"""The largest near-bicliques, end to end: mined, resumed, certified, and verified by counting."""

import numpy as np
import pytest

import bicliques as bq
from bicliques.pipeline.proof.certificate import count_above
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.bands import Reach, bands_of, corners_of, gap_in
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.search import MEASURES, Search
from bicliques.schemas.totals import Best
from tests.kernels.suite_near import largest_of
from tests.support.emulated import runnable
from tests.support.near import near_pairs
from tests.support.oracles import random_edges
from tests.support.runs import QUIET

EDGES = random_edges(np.random.default_rng(3), 10, 10, 0.75)
ASKED = [
    {"missing_pairs": 2, "min_left": 3, "min_right": 3},
    {"missing_each": 1, "min_left": 3, "min_right": 3},
    {"missing_left": 1, "missing_right": 2, "min_left": 5, "min_right": 3, "max_left": 6},
]


def pairs_of(results: bq.Results) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    return {(tuple(left), tuple(right)) for left, right in results}


@pytest.mark.parametrize(
    ("by", "top", "asked", "engine"),
    [
        ("edges", 1, ASKED[1], "reference"),
        ("edges", 4, ASKED[0], "bitmatrix"),
        *((by, (1, 4)[k % 2], ASKED[k % 3], "cpu") for k, by in enumerate((*MEASURES, "edges"))),
    ],
)
def test_they_are_the_first_of_all_near_bicliques(by, top, asked, engine, tmp_path):
    with runnable(engine):
        found = bq.largest(EDGES, tmp_path / "out", top=top, by=by, engine=engine, **asked, **QUIET)
    expected = largest_of(EDGES, Search(largest=top, by=by, **asked))
    assert pairs_of(found) == {*expected.rows.to_pairs()}
    assert (found.has_holes, found.manifest.certificate["key"]) == (True, expected.least)
    verified = bq.verify(tmp_path / "out")
    assert any("by counting, without a bound" in words for words in verified.proven)
    assert any("misses as many pairs as it states" in words for words in verified.proven)


@pytest.mark.parametrize(("left", "right"), [((2, 7), ()), ((), (3,)), ((5,), (0,))], ids=str)
def test_they_are_the_first_of_those_with_given_members(left, right, tmp_path):
    """A part of the graph that has none of the given members has the largest of all."""
    apart = [(u, v) for u in range(10, 17) for v in range(10, 17)]
    edges = np.concatenate([EDGES, np.array(apart, EDGES.dtype)])
    members = {"containing_left": left, "containing_right": right}
    found = bq.largest(edges, tmp_path / "out", **members, **ASKED[0], **QUIET)
    pairs = [pair for pair in near_pairs(EDGES, Search(**ASKED[0])) if {*left} <= {*pair[0]} and {*right} <= {*pair[1]}]
    assert pairs_of(found) == {*largest_of(EDGES, Search(largest=1, **ASKED[0]), set(pairs)).rows.to_pairs()}
    assert any("by counting, without a bound" in words for words in bq.verify(tmp_path / "out").proven)


def test_a_search_that_was_stopped_goes_on_to_the_same_largest(tmp_path):
    edges = random_edges(np.random.default_rng(4), 12, 12, 0.8)
    asked = {"missing_pairs": 1, "min_left": 3, "min_right": 3, "top": 5}
    how = {**QUIET, "slice_seconds": 0.02}
    begun = bq.largest(edges, tmp_path / "out", engine="reference", time_limit=0.05, **asked, **how)
    assert not begun.complete
    found = bq.resume(tmp_path / "out", time_limit=None, **how).top(5)
    assert found.drop(["root"]).equals(bq.largest(edges, tmp_path / "other", **asked, **QUIET).top(5).drop(["root"]))


@pytest.mark.parametrize(("more", "rows"), [({"top": 2}, 1), ({"top": 1, "max_left": 3}, 0)], ids=str)
def test_bicliques_are_no_bound_where_they_are_parts_of_one_or_none(more, rows, tmp_path):
    """All of 4 x 4 without two pairs is the only near-biclique, and has several bicliques."""
    edges = np.array([(u, v) for u in range(4) for v in range(4) if (u, v) not in {(0, 0), (1, 1)}])
    found = bq.largest(edges, tmp_path / "out", missing_pairs=2, min_left=3, min_right=3, **more, **QUIET)
    assert (len(found), found.manifest.certificate["first_bound"]) == (rows, 0)
    assert bq.verify(tmp_path / "out").count == rows


@pytest.mark.parametrize("by", ["edges", "balance"])
def test_verify_finds_by_counting_that_a_larger_one_is_there(by, tmp_path):
    """The rows are those that rank behind the right ones, as if an engine had pruned too much."""
    asked = {"missing_pairs": 2, "min_left": 3, "min_right": 3}
    bq.largest(EDGES, tmp_path / "out", top=3, by=by, **asked, **QUIET)
    run = Run.with_holes(tmp_path / "out")
    best = largest_of(EDGES, Search(largest=999, by=by, **asked)).rows
    right, wrong = (Best(3, by, 9, best.pick(np.arange(k, k + 3))) for k in (0, 3))
    assert right.least is not None
    done = count_above(run, right, 60.0, lambda progress: None)
    assert done.corners == done.done > 0
    last = next(k for k in range(3, len(best)) if Best(1, by, 9, best.pick(np.array([k]))).least < right.least)
    wrong = Best(3, by, 9, best.pick(np.arange(last, last + 3)))
    with pytest.raises(IncompleteError, match="the rows are not the largest"):
        count_above(run, wrong, 60.0, lambda progress: None)


@pytest.mark.parametrize("asked", ASKED, ids=["pairs", "each", "two numbers"])
def test_bands_hold_rows_with_more_members_than_any_vertex_has_neighbours(asked):
    search, reach = Search(largest=1, **asked), Reach(6, 5)
    near = search.near
    sizes = (min(6 + near.right, search.max_left or 99), 5 + near.left)
    for bound in (1, 20, 30):
        bands = bands_of(search, bound, reach)
        assert gap_in(bands, search, bound, reach) is None
        assert any(band.first <= sizes[0] <= band.last and band.min_right <= sizes[1] for band in bands)
        assert corners_of(search, bound, reach)[-1].last == sizes[0]
