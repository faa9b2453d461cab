"""Totals of slices add up to the same, however they are grouped; so do statistics; and jobs say what they are."""

import json
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bicliques.kernels import engines
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.graph.prepare import prepare
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.schemas.bicliques import Bicliques, emit_to
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.jobs import JOBS, AllMaximal, EveryVertex, LargestFew, LargestNear, Marked, NearMaximal, job_of
from bicliques.schemas.options import BuildOptions, RunOptions
from bicliques.schemas.search import MEASURES, Limits, Search, measure
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.stats import EngineStats
from bicliques.schemas.totals import Best, Found, keys_of
from bicliques.schemas.work import Subtrees
from tests.support.batches import hashes_of
from tests.support.oracles import cliques, random_edges

SIDES = st.lists(st.integers(0, 8), min_size=1, max_size=4, unique=True)
ROWS = st.lists(st.tuples(SIDES, SIDES), max_size=12)


def found(rows: list[Any]) -> Found:
    sizes = SizeCounts.of(*(np.array([len(row[k]) for row in rows], np.int32) for k in (0, 1)))
    return Found(len(rows), int(np.add.reduce(hashes_of(Bicliques.from_pairs(rows)), dtype=np.uint64)), sizes)


@given(ROWS, ROWS, ROWS)
def test_found_adds_up_in_any_grouping(a, b, c):
    x, y, z = (found(rows) for rows in (a, b, c))
    whole = found(a + b + c)
    assert (x + y) + z == x + (y + z) == z + y + x == whole
    assert Found.from_json(json.loads(json.dumps(whole.to_json()))) == whole


def test_what_was_not_counted_has_no_sum():
    assert (Found(1, 5) + Found(2)).fingerprint is None
    assert (Found(1, 5, SizeCounts.empty()) + Found(2, 6)).sizes is None
    assert Found(1, 2**64 - 1) + Found(1, 3) == Found(2, 2)


@given(ROWS, ROWS, ROWS, st.integers(1, 6), st.sampled_from(MEASURES))
def test_the_largest_add_up_in_any_grouping(a, b, c, k, by):
    x, y, z = (Best.of(k, by, Bicliques.from_pairs(rows)) for rows in (a, b, c))
    whole = Best.of(k, by, Bicliques.from_pairs(a + b + c))
    assert (x + y) + z == x + (y + z) == z + y + x == whole
    assert (whole.count, whole.seen) == (min(k, len(a + b + c)), len(a + b + c))
    assert Best.from_json(json.loads(json.dumps(whole.to_json())), k, by) == whole


@given(ROWS, st.integers(1, 6), st.sampled_from(MEASURES))
def test_what_is_below_a_bound_does_not_change_the_largest(rows, k, by):
    whole = Best.of(k, by, Bicliques.from_pairs(rows))
    assert Best.of(k, by, Bicliques.from_pairs(rows), whole.least) == whole


@given(ROWS, st.integers(1, 6), st.sampled_from(MEASURES))
def test_the_largest_are_in_order(rows, k, by):
    best = Best.of(k, by, Bicliques.from_pairs(rows))
    keys = [tuple(key) for key in keys_of(best.rows, by).T.tolist()]
    others = [tuple(key) for key in keys_of(Bicliques.from_pairs(rows), by).T.tolist()]
    assert keys == sorted(others, reverse=True)[:k]


@given(ROWS, st.integers(1, 6), st.sampled_from(MEASURES))
def test_the_most_is_the_measure_of_the_largest(rows, k, by):
    most = max((measure(by, len(left), len(right)) for left, right in rows), default=None)
    assert Best.of(k, by, Bicliques.from_pairs(rows)).most == most


def test_the_largest_by_another_measure_have_no_sum():
    none = Best.of(3, "edges", Bicliques.from_pairs([]))
    with pytest.raises(ValueError, match="have no sum"):
        none + replace(none, by="left")


@pytest.mark.parametrize(
    "damage", [{"count": 1}, {"fingerprint": "3"}, {"rows": "AAAA"}, {"seen": -1}, {"rows": None}], ids=str
)
def test_damaged_largest_are_refused(damage):
    data = Best.of(3, "edges", Bicliques.from_pairs([([0], [1]), ([0, 2], [1])])).to_json() | damage
    with pytest.raises((IncompleteError, TypeError, ValueError)):
        Best.from_json(data, 3, "edges")


@given(st.lists(st.tuples(st.floats(0.01, 9), st.floats(0, 1), st.integers(0, 9)), min_size=1, max_size=6))
def test_statistics_add_up_and_ratios_stay_ratios(calls):
    each = [EngineStats(kernel_s=s, busy_kernel_s=s * r, launches=n, counters={"tests": n}) for s, r, n in calls]
    total = reduce(add, each)
    assert 0 <= total.busy_ratio <= 1 + 1e-9
    assert min(e.busy_ratio for e in each) - 1e-9 <= total.busy_ratio <= max(e.busy_ratio for e in each) + 1e-9
    assert total.launches == total.counters.get("tests", 0) == sum(n for *_, n in calls)
    assert EngineStats().busy_ratio == 1.0


def test_the_job_of_a_search():
    names = ("all", "cliques", "vertices", "largest", "near-largest", "marked", "near", "pq")
    assert {name: job.name for name, job in JOBS.items()} == {name: name for name in names}
    assert isinstance(job_of(Search()), AllMaximal)
    assert isinstance(job_of(Search(largest=3)), LargestFew)
    assert isinstance(job_of(Search(marked=True)), Marked)
    assert isinstance(job_of(Search(missing_pairs=1)), NearMaximal)
    assert isinstance(job_of(Search(missing_pairs=1, largest=2)), LargestNear)
    assert isinstance(job_of(Search(missing_pairs=0, missing_each=0)), AllMaximal)
    assert isinstance(job_of(Search("count", per_vertex=True)), EveryVertex)
    assert job_of(Search("count", pq="all")).name == "pq"
    assert job_of(Search("count", pq="cliques")).name == "cliques"
    with pytest.raises(InputError, match="leave one of both out"):
        job_of(Search(largest=3, per_vertex=True))
    assert [job_of(Search(mode)).rows for mode in ("count", "fingerprint", "list")] == ["none", "none", "slices"]
    with pytest.raises(InputError, match="leave count_only and sizes out"):
        job_of(Search("count", largest=3))
    with pytest.raises(InputError, match="top must be at least 1"):
        RunOptions(source="x", search=Search(largest=0))
    with pytest.raises(InputError, match="the largest go by edges, vertices, balance, left, right, not by 'size'"):
        RunOptions(source="x", search=Search(largest=1, by="size"))


def test_engines_say_which_jobs_they_can_do():
    able = {kind.name for kind in engines.kinds() if kind.lacks(Search(largest=3)) is None}
    assert able == {"bitmatrix", "cpu", "reference"}
    assert engines.kind("cumbe").lacks(Search(largest=3)) == "it cannot do the job 'largest'"
    able = {kind.name for kind in engines.kinds() if kind.lacks(Search(marked=True)) is None}
    assert able == {"bitmatrix", "cpu", "reference"}
    assert engines.kind("cumbe").lacks(Search(marked=True)) == "it cannot do the job 'marked'"
    able = {kind.name for kind in engines.kinds() if kind.lacks(Search(missing_pairs=1)) is None}
    assert able == {"bitmatrix", "cpu", "reference"}
    assert all(kind.lacks(Search()) is None for kind in engines.kinds())


@pytest.mark.parametrize("engine", [ReferenceEngine, CpuEngine])
@pytest.mark.parametrize("by", MEASURES)
def test_the_largest_of_an_enumeration_by_definition(engine, by):
    rng = np.random.default_rng(5)
    for k in (1, 3, 8):
        edges = random_edges(rng, 11, 9, 0.45)
        expected = Best.of(k, by, Bicliques.from_pairs([(list(a), list(b)) for a, b in sorted(cliques(edges))]))
        n_left, n_right = (int(side.max()) + 1 for side in edges.T)
        graph, _ = prepare(*np.ascontiguousarray(edges.T), n_left, n_right, BuildOptions())
        work, total = Subtrees.of_roots(np.arange(graph.n_roots)), job_of(Search(largest=k, by=by)).zero
        while len(work):
            limits = Limits(rows=7, bound=job_of(Search(largest=k, by=by)).bound(total))
            part = engine().mine(graph, work, Search(largest=k, by=by), limits, emit_to(refuse))
            total, work = total + part.total, part.left_over
        assert isinstance(total, Best)
        assert total.rows.to_pairs() == expected.rows.to_pairs()


def refuse(batch: Bicliques):
    raise AssertionError("the rows of this job are in its total")


@pytest.mark.parametrize("reductions", [(), ("core",), ("twins",)], ids=str)
def test_a_graph_that_is_not_reduced_has_the_same_bicliques(reductions):
    rng = np.random.default_rng(3)
    for _ in range(20):
        edges = random_edges(rng, 9, 8, 0.5)
        sides = (*np.ascontiguousarray(edges.T), *(int(side.max()) + 1 for side in edges.T))
        search = Search("fingerprint", min_left=2, min_right=2)
        whole, part = (
            prepare(*sides, BuildOptions(), 2, 2, chosen)[0]
            for chosen in (job_of(search).reductions, frozenset(reductions))
        )
        answers = []
        for graph in (whole, part):
            roots = Subtrees.of_roots(np.arange(graph.n_roots))
            slice_ = CpuEngine().mine(graph, roots, search, Limits(), emit_to(refuse))
            answers.append((slice_.count, slice_.fingerprint))
        assert answers[0] == answers[1]
        if "twins" not in reductions:
            assert len(part.base_members) == len(part.base_indptr) - 1
