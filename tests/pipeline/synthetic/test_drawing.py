"""Both models against a second implementation in plain Python, whose integers have no size."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import gcd
from typing import Any

import numpy as np
import pytest

from pipeline.synthetic.degrees import power_law, usual_largest
from pipeline.synthetic.models import random_graph
from pipeline.synthetic.planting import Planted
from pipeline.synthetic.wanted import Wanted, wanted
from schemas.errors import InputError

STEP, WORD = 0x9E3779B97F4A7C15, 2**64
NOT_GIVEN = ("left_exponent", "right_exponent", "max_left_degree", "max_right_degree", "quadrants")


def graph_of(**options: Any) -> Wanted:
    usual = {"model": "chung-lu", "plant": [], "noise": 0, "labels": "integers", "seed": 0}
    return wanted(**(dict.fromkeys(NOT_GIVEN) | usual | options))


def mix(x: int) -> int:
    x = (x + STEP) % WORD
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)


def key(seed: int, *purpose: str | int) -> int:
    found = mix(seed)
    for each in purpose:
        found = mix(found ^ (int.from_bytes(each.encode(), "little") if isinstance(each, str) else each))
    return found


def word(stream: int, k: int) -> int:
    return mix((stream + k * STEP) % WORD)


def line(n: int, stream: int) -> tuple[int, int]:
    factor, shift = word(stream, 0) % n, word(stream, 1) % n
    while gcd(factor, n) != 1:
        factor += 1
    return factor, shift


def planted(graph: Wanted) -> dict[int, tuple[set[int], set[int]]]:
    """By left vertex: the right members of its biclique, and those that noise takes."""
    found, taken_left, taken_right = {}, 0, 0
    (a, b), (c, d) = (line(n, key(graph.seed, "planted", side)) for side, n in sides(graph))
    for k, (p, q) in enumerate(graph.plant):
        right = [(c * v + d) % graph.n_right for v in range(taken_right, taken_right + q)]
        gone = int(Fraction(graph.noise) * p * q + Fraction(1, 2))
        for i in range(p):
            n = (i + 1) * gone // p - i * gone // p
            by_word = sorted(range(q), key=lambda j, i=i, q=q, k=k: word(key(graph.seed, "noise", k), i * q + j))
            left = (a * (taken_left + i) + b) % graph.n_left
            found[left] = set(right), {right[j] for j in by_word[:n]}
        taken_left, taken_right = taken_left + p, taken_right + q
    return found


def sides(graph: Wanted) -> list[tuple[str, int]]:
    return [("left", graph.n_left), ("right", graph.n_right)]


def stub_owners(n: int, edges: int, exponent: str, limit: int, given: int | None) -> list[int]:
    degrees = power_law("left", n, edges, Decimal(exponent), given or usual_largest(edges, n, limit))
    each = np.repeat(degrees.degrees, degrees.counts).tolist()
    return [v for v, degree in enumerate(each) for _ in range(degree)]


def by_stubs(graph: Wanted) -> dict[int, set[int]]:
    n, q = graph.drawn_edges, max((q for _, q in graph.plant), default=0)
    left = stub_owners(graph.n_left, n, graph.left_exponent, graph.n_right - q, graph.max_left_degree)
    right = stub_owners(graph.n_right, n, graph.right_exponent, graph.n_left, graph.max_right_degree)
    height = next(h for h in range(1, n + 1) if h * h >= n)
    width = -(-n // height)
    keys = [key(graph.seed, "stubs", k) for k in range(4)]

    def leads_to(x: int) -> int:
        i, j = divmod(x, width)
        for k in (0, 2):
            i = (i + ((mix(keys[k] ^ j) >> 32) * height >> 32)) % height
            j = (j + ((mix(keys[k + 1] ^ i) >> 32) * width >> 32)) % width
        return leads_to(i * width + j) if i * width + j >= n else i * width + j

    special, found, drawn = planted(graph), {v: set() for v in range(graph.n_left)}, dict.fromkeys(left, 0)
    for stub, u in enumerate(left):
        own, avoid = mix(key(graph.seed, "rows") ^ u), special.get(u, (set(), set()))[0]
        v, first = right[leads_to(stub)], drawn[u]
        while v in found[u] | avoid:
            w = word(own, drawn[u])
            drawn[u] += 1
            if drawn[u] - first > 64:
                v = free((w >> 32) * graph.n_right >> 32, found[u] | avoid, graph.n_right)
            else:
                v = right[w % n]
        found[u].add(v)
    return found


def free(v: int, taken: set[int], n: int) -> int:
    while v in taken:
        v = (v + 1) % n
    return v


def by_quadrants(graph: Wanted) -> dict[int, set[int]]:
    whole = 2**24
    a, b, c = (int(Fraction(share) * whole) for share in graph.quadrants[:3])
    halves = a * whole // max(a + b, 1), c * whole // max(whole - a - b, 1), a + c
    most = graph.n_right - max((q for _, q in graph.plant), default=0)
    counts: dict[int, int] = {}
    bits: dict[int, list[int]] = {}

    def divide(first: int, size: int, level: int, count: int, path: list[int]) -> None:
        if size == 1:
            counts[first], bits[first] = count, path
            return
        w = mix(mix(key(graph.seed, "split") ^ first) ^ level)
        half = (size + 1) // 2
        here = max(min((count * (a + b) + (w >> 40)) >> 24, half * most), count - (size - half) * most)
        divide(first, half, level + 1, here, [*path, 0])
        divide(first + half, size - half, level + 1, count - here, [*path, 1])

    divide(0, graph.n_left, 0, graph.drawn_edges, [])
    special, found = planted(graph), {}
    for u, count in counts.items():
        own, avoid = mix(key(graph.seed, "rows") ^ u), special.get(u, (set(), set()))[0]
        found[u], drawn = set(), 0
        for _ in range(count):
            for tries in range(1, 66):
                v, size, level = 0, graph.n_right, 0
                while size > 1:
                    w = word(own, drawn * 16 + level // 2)
                    part = w >> 40 if level % 2 == 0 else (w >> 16) % whole
                    half = (size + 1) // 2
                    chance = halves[bits[u][level]] if level < len(bits[u]) else halves[2]
                    v, size = (v, half) if part < chance else (v + half, size - half)
                    level += 1
                drawn += 1
                if tries > 64:
                    v = free(v, found[u] | avoid, graph.n_right)
                if v not in found[u] | avoid:
                    break
            found[u].add(v)
    return found


CASES = {
    "sparse": {"n_left": 200, "n_right": 90, "edges": 900},
    "one": {"n_left": 1, "n_right": 1, "edges": 1},
    "wide": {"n_left": 3, "n_right": 400, "edges": 700},
    "tall": {"n_left": 333, "n_right": 7, "edges": 800},
    "full": {"n_left": 13, "n_right": 11, "edges": 143},
    "nearly full": {"n_left": 30, "n_right": 20, "edges": 590, "seed": 2**64 - 1},
    "planted": {"n_left": 150, "n_right": 120, "edges": 1500, "plant": [(9, 12), (1, 3), (20, 5)], "seed": 7},
    "noisy": {"n_left": 60, "n_right": 50, "edges": 900, "plant": [(15, 20), (7, 9)], "noise": "0.3", "seed": 3},
}


def edges_of(graph: Wanted, part_edges: int) -> list[tuple[int, int]]:
    drawn = random_graph(graph)
    found = [drawn.drawn(drawn.rows(part)) for part in drawn.parts(part_edges)]
    pairs = [
        pair
        for each in found
        for pair in zip(np.repeat(each.vertices, np.diff(each.indptr)).tolist(), each.right.tolist(), strict=True)
    ]
    return pairs


@pytest.mark.parametrize("model", ["chung-lu", "rmat"])
@pytest.mark.parametrize("case", CASES)
def test_a_graph_is_that_of_plain_python_in_parts_of_any_size(case: str, model: str) -> None:
    graph = graph_of(model=model, **CASES[case])
    expected = by_stubs(graph) if model == "chung-lu" else by_quadrants(graph)
    for u, (members, gone) in planted(graph).items():
        expected.setdefault(u, set()).update(members - gone)
    pairs = [(u, v) for u in sorted(expected) for v in sorted(expected[u])]
    assert len(pairs) == graph.edges
    for part_edges in (1 << 22, 97, 1):
        assert edges_of(graph, part_edges) == pairs


@pytest.mark.parametrize("quadrants", [("0.1", "0.1", "0.1", "0.7"), ("0", "0", "0", "1"), ("1", "0", "0", "0")])
@pytest.mark.parametrize("edges", [100, 140])
def test_what_does_not_fit_into_a_half_goes_to_the_other(edges: int, quadrants: tuple[str, ...]) -> None:
    graph = graph_of(model="rmat", n_left=13, n_right=11, edges=edges, quadrants=quadrants)
    expected = by_quadrants(graph)
    assert edges_of(graph, 30) == [(u, v) for u in sorted(expected) for v in sorted(expected[u])]


@pytest.mark.parametrize("model", ["chung-lu", "rmat"])
def test_parts_have_about_as_many_edges_as_they_may(model: str) -> None:
    drawn = random_graph(graph_of(model=model, n_left=5000, n_right=4000, edges=60_000))
    parts = drawn.parts(1000)
    assert [part.first for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == 5000
    degrees = [drawn.degrees(part)[1] for part in parts]
    assert [int(each.sum()) for each in degrees] == [part.edges for part in parts]
    assert sum(int(each.sum()) for each in degrees) == 60_000
    assert max(int(each.sum() - each.max()) for each in degrees) <= 1000
    assert len(parts) <= 120


def test_planted_vertices_are_those_of_plain_python() -> None:
    graph = graph_of(**CASES["noisy"])
    members, expected = Planted(graph), planted(graph)
    rows = {int(u): set(own.tolist()) for left, own in zip(members.left, members.right, strict=True) for u in left}
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


def test_quadrants_get_their_shares() -> None:
    graph = graph_of(model="rmat", n_left=4096, n_right=1024, edges=40_000, quadrants=("0.4", "0.3", "0.2", "0.1"))
    pairs = np.array(edges_of(graph, 1 << 20))
    shares = np.bincount((pairs[:, 0] >= 2048) * 2 + (pairs[:, 1] >= 512), minlength=4) / len(pairs)
    assert shares == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=0.01)
