"""Random graphs against a second implementation in plain Python, whose integers have no size."""

from decimal import Decimal

import numpy as np
import pytest

from bicliques.pipeline.synthetic.drawing import RandomGraph, power_law, usual_largest
from bicliques.pipeline.synthetic.wanted import Wanted
from bicliques.schemas.errors import InputError
from tests.support.random_graphs import CASES, by_stubs, graph_of, planted


def edges_of(graph: Wanted, part_edges: int) -> list[tuple[int, int]]:
    drawn = RandomGraph(graph)
    vertices = np.argsort(drawn.labels_of(np.arange(graph.n_left), "left"))  # those with the numbers 0, 1, ...
    found = [drawn.drawn(part) for part in drawn.parts(part_edges)]
    return [pair for each in found for pair in zip(vertices[each.left].tolist(), each.neighbours.tolist(), strict=True)]


@pytest.mark.parametrize("case", CASES)
def test_a_graph_is_that_of_plain_python_in_parts_of_any_size(case: str) -> None:
    graph = graph_of(**CASES[case])
    expected = by_stubs(graph)
    for u, (members, gone) in planted(graph).items():
        expected.setdefault(u, set()).update(members - gone)
    pairs = [(u, v) for u in sorted(expected) for v in sorted(expected[u])]
    assert len(pairs) == graph.edges
    for part_edges in (1 << 22, 97, 1):
        assert edges_of(graph, part_edges) == pairs


def test_parts_have_about_as_many_edges_as_they_may() -> None:
    drawn = RandomGraph(graph_of(n_left=5000, n_right=4000, edges=60_000))
    parts = drawn.parts(1000)
    assert [part.first for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == 5000
    edges = [drawn.drawn(part) for part in parts]
    assert [len(each.neighbours) for each in edges] == [part.edges for part in parts]
    assert sum(part.edges for part in parts) == 60_000
    assert max(len(each.neighbours) - each.largest_degree for each in edges) <= 1000
    assert len(parts) <= 120


def test_planted_vertices_are_those_of_plain_python() -> None:
    graph = graph_of(**CASES["noisy"])
    members, expected = RandomGraph(graph).planted, planted(graph)
    rows = {
        int(u): set(own.tolist()) for left, own in zip(members["left"], members["right"], strict=True) for u in left
    }
    assert rows == {u: own for u, (own, _) in expected.items()}
    assert sum(len(gone) for _, gone in expected.values()) == sum(graph.removed) == 109


@pytest.mark.parametrize(
    ("n", "edges", "exponent", "largest"),
    [
        (1000, 9000, "2.5", 95),
        (64_415, 3_200_000, "2.1", 1788),
        (10_000_000, 1_000_000_000, "2.1", 1_000_000),
        (10, 999, "2.5", 100),
        (5, 5, "3", 1),
        (7, 700, "1.5", 100),
        (9, 1000, "1.01", 600),
    ],
)
def test_degrees_descend_to_at_least_one_and_have_the_sum(n: int, edges: int, exponent: str, largest: int) -> None:
    found = power_law("left", n, edges, Decimal(exponent), largest)
    assert (found.counts.sum(), found.stubs[-1], found.vertices[-1]) == (n, edges, n)
    assert (np.diff(found.degrees) < 0).all()
    assert (found.counts > 0).all()
    assert found.degrees[-1] >= 1
    assert found.degrees[0] == largest


@pytest.mark.parametrize("exponent", [2.1, 2.5, 3.0])
@pytest.mark.first(1)
def test_degrees_fall_as_the_exponent_says(exponent: float) -> None:
    """Beyond the bend, ten times the degree is had by ``10**(1 - exponent)`` as many vertices."""
    found = power_law("left", 10**8, 10**9, Decimal(str(exponent)), 10**6)
    tail = [int(found.counts[found.degrees >= k].sum()) for k in (1000, 10_000)]
    assert tail[0] > 500
    assert tail[1] / tail[0] == pytest.approx(10 ** (1 - exponent), rel=0.1)


@pytest.mark.parametrize(("edges", "says"), [(999, "too few for 900"), (90_001, "fewer than 90,001")])
def test_degrees_that_are_not_there_are_refused(edges: int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        power_law("left", 900, edges, Decimal(2), 101 if edges == 999 else 100)


@pytest.mark.parametrize(("first", "stop"), [(0, 1000), (0, 1), (3, 400), (999, 1000)])
def test_degrees_of_a_range_are_those_of_all(first: int, stop: int) -> None:
    found = power_law("left", 1000, 9000, Decimal("2.5"), 95)
    every = np.repeat(found.degrees, found.counts)
    stubs, degrees = found.of(first, stop)
    assert degrees.tolist() == every[first:stop].tolist()
    assert stubs.tolist() == (np.cumsum(every) - every)[first:stop].tolist()


def test_right_degrees_are_near_the_expected_ones() -> None:
    """The largest lose a few per cent to pairs that are repeated; no vertex is left out."""
    graph = graph_of(n_left=50_000, n_right=40_000, edges=600_000, seed=5)
    expected = power_law("right", 40_000, 600_000, Decimal("2.5"), usual_largest(600_000, 40_000, 50_000))
    wished = np.repeat(expected.degrees, expected.counts)
    found = np.bincount([v for _, v in edges_of(graph, 1 << 20)], minlength=40_000)
    assert found.min() >= 1
    assert found[:400].sum() == pytest.approx(wished[:400].sum(), rel=0.05)
    assert found[20_000:].sum() == pytest.approx(wished[20_000:].sum(), rel=0.02)
    assert np.corrcoef(found, wished)[0, 1] > 0.99
