"""Bicliques with given members are those of the whole graph that contain them, whatever engine, order or slices.

The truth is a full enumeration, filtered: by subsets on small graphs, and by the reference engine on larger ones.
"""

from typing import NamedTuple

import numpy as np
import pytest

from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.cpu.workspace import Sizes
from bicliques.kernels.graph.members import restrict
from bicliques.kernels.graph.prepare import prepare
from bicliques.kernels.graph.sorting import prepare_on
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.schemas.bicliques import Bicliques, fingerprint
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Engine
from tests.emulation.device import why_not
from tests.support.emulated import bitmatrix, cumbe
from tests.support.oracles import closed_pairs, graph_of, random_edges, run

Rows = set[tuple[tuple[int, ...], tuple[int, ...]]]

TIGHT = Sizes(hub_bits=0, hub_list=0, hub_frame_bits=0, word_stack=0, rows=2, members=4)
ENGINES = {"reference": ReferenceEngine, "cpu": CpuEngine, "cpu, tight": lambda: CpuEngine(TIGHT)}
EMULATED = {"bitmatrix": bitmatrix("tight"), "cumbe": cumbe("tight")}


class Case(NamedTuple):
    """A graph, given members, thresholds, and how it is searched."""

    edges: np.ndarray
    n_left: int
    n_right: int
    given: tuple[np.ndarray, np.ndarray]
    search: Search
    options: BuildOptions
    limits: Limits


def case_of(rng: np.random.Generator) -> Case:
    """A small random graph: sparse or dense, with or without twins."""
    n_left, n_right = rng.integers(1, 10, 2)
    adjacent = rng.random((n_left, n_right)) < rng.uniform(0.4, 0.97)
    if rng.random() < 0.5:  # some rows and columns again, so that there are twins, of given members, too
        adjacent = adjacent[rng.integers(0, n_left, n_left)][:, rng.integers(0, n_right, n_right)]
    adjacent[0, 0] |= not adjacent.any()
    given = tuple(rng.permutation(n)[: rng.choice([0, 0, 1, 1, 2, 3])].astype(np.int32) for n in (n_left, n_right))
    least = rng.integers(1, 4, 2) if rng.random() < 0.4 else (1, 1)
    most = [None if rng.random() < 0.8 else int(low + rng.integers(0, 4)) for low in least]
    return Case(
        edges=np.argwhere(adjacent).astype(np.int32),
        n_left=int(n_left),
        n_right=int(n_right),
        given=given,
        search=Search("list", min_left=int(least[0]), min_right=int(least[1]), max_left=most[0], max_right=most[1]),
        options=BuildOptions(
            root_side=("left", "right", "auto")[rng.integers(3)], order=("degree", "two-hop", "id")[rng.integers(3)]
        ),
        limits=(Limits(), Limits(seconds=0.0), Limits(rows=1), Limits(rows=3))[rng.integers(4)],
    )


def columns(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1])


def filtered(rows: Rows, given: tuple[np.ndarray, np.ndarray], search: Search) -> Rows:
    """The definition: those of all rows that contain the members, and have the sizes that are asked for."""
    a, b = (set(side.tolist()) for side in given)
    return {
        (left, right)
        for left, right in rows
        if a <= set(left)
        and b <= set(right)
        and search.min_left <= len(left) <= (search.max_left or len(left))
        and search.min_right <= len(right) <= (search.max_right or len(right))
    }


def graph_with(case: Case, sorted_by_numpy: bool = False) -> MiningGraph:
    """The graph that an engine gets."""
    kept = restrict(*columns(case.edges), case.n_left, case.n_right, *case.given)
    least = case.search.min_left, case.search.min_right
    rest = case.n_left, case.n_right, case.options, *least
    if sorted_by_numpy:
        return prepare_on(np, lambda: (kept.left, kept.right), *rest)[0]
    return prepare(kept.left, kept.right, *rest)[0]


def check(engine: Engine, case: Case, rng: np.random.Generator, truth: Rows):
    outcome = run(engine, graph_with(case, bool(rng.random() < 0.5)), case.search, case.limits, shuffle=rng)
    assert sorted(outcome.rows) == sorted(truth), case
    rows = Bicliques.from_pairs(sorted(truth))
    assert outcome.fingerprint == (fingerprint(rows) if truth else 0), "ids are those of the whole graph"


def all_rows(case: Case) -> Rows:
    closed = closed_pairs({(int(u), int(v)) for u, v in case.edges})
    return {(tuple(sorted(left)), tuple(sorted(right))) for left, right in closed}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 6))])
def test_they_are_those_of_all_that_contain_the_members(engine, seed):
    """250 small graphs each, by an enumeration of all subsets."""
    rng, subject, found = np.random.default_rng([seed, *engine.encode()]), ENGINES[engine](), 0
    for _ in range(250):
        case = case_of(rng)
        if engine == "reference":
            case = case._replace(limits=Limits(rows=case.limits.rows))  # in no time it does nothing
        truth = filtered(all_rows(case), case.given, case.search)
        found += len(truth)
        check(subject, case, rng, truth)
    assert found > 200, "rows are compared, and not only that there are none"


@pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")
@pytest.mark.parametrize("engine", EMULATED)
def test_the_engines_of_gpus_find_them_too(engine):
    rng, subject = np.random.default_rng([7, *engine.encode()]), EMULATED[engine]()
    for _ in range(60):
        case = case_of(rng)
        case = case._replace(limits=Limits(rows=case.limits.rows))
        check(subject, case, rng, filtered(all_rows(case), case.given, case.search))


@pytest.mark.parametrize("seed", range(3))
def test_on_larger_graphs_they_are_those_of_the_reference_engine(seed):
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, 40, 30, 0.3)
    n_left, n_right = (int(side.max()) + 1 for side in columns(edges))
    whole = set(run(ReferenceEngine(), graph_of(edges), Search("list")).rows)
    for k in range(40):
        left, right = list(whole)[rng.integers(len(whole))]  # members that have a biclique
        given = tuple(rng.permutation(side)[: rng.integers(0, 3)].astype(np.int32) for side in (left, right))
        search = Search("list", min_left=int(rng.integers(1, 4)), min_right=int(rng.integers(1, 4)))
        case = Case(edges, n_left, n_right, given, search, BuildOptions(), Limits())
        truth = filtered(whole, case.given, search)
        assert truth or k, "the first case has thresholds that leave some"
        check(CpuEngine(), case, rng, truth)


@pytest.mark.parametrize("seed", range(2))
def test_the_pairs_that_are_no_edges_are_counted_and_the_first_is_one(seed):
    rng = np.random.default_rng(seed)
    some = 0
    for _ in range(1000):
        case = case_of(rng)
        edges = {(int(u), int(v)) for u, v in case.edges}
        missing = [(int(a), int(b)) for a in case.given[0] for b in case.given[1] if (int(a), int(b)) not in edges]
        kept = restrict(*columns(case.edges), case.n_left, case.n_right, *case.given)
        assert (kept.missing, kept.first_missing) == (len(missing), missing[0] if missing else None)
        assert not missing or not len(kept.left)
        some += bool(missing)
    assert some > 50


def test_without_members_nothing_changes():
    left, right = columns(random_edges(np.random.default_rng(1), 9, 7, 0.5))
    none = np.empty(0, np.int32)
    kept = restrict(left, right, 9, 7, none, none)
    assert (kept.left.tolist(), kept.right.tolist(), kept.missing) == (left.tolist(), right.tolist(), 0)
