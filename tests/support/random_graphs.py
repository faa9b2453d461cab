"""Random graphs in plain Python, whose integers have no size: a second implementation."""

from decimal import Decimal
from fractions import Fraction
from math import gcd
from typing import Any

import numpy as np

from bicliques.pipeline.synthetic.drawing import power_law, usual_largest
from bicliques.pipeline.synthetic.wanted import Wanted, wanted

STEP, WORD = 0x9E3779B97F4A7C15, 2**64
NOT_GIVEN = ("left_exponent", "right_exponent", "max_left_degree", "max_right_degree")


def graph_of(**options: Any) -> Wanted:
    usual = {"plant": [], "noise": 0, "labels": "integers", "seed": 0}
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


CASES = {
    "sparse": {"n_left": 200, "n_right": 90, "edges": 900},
    "one": {"n_left": 1, "n_right": 1, "edges": 1},
    "wide": {"n_left": 3, "n_right": 400, "edges": 700},
    "tall": {"n_left": 333, "n_right": 7, "edges": 800},
    "long rows": {"n_left": 3, "n_right": 400, "edges": 1200},
    "full": {"n_left": 13, "n_right": 11, "edges": 143},
    "nearly full": {"n_left": 30, "n_right": 20, "edges": 590, "seed": 2**64 - 1},
    "planted": {"n_left": 150, "n_right": 120, "edges": 1500, "plant": [(9, 12), (1, 3), (20, 5)], "seed": 7},
    "noisy": {"n_left": 60, "n_right": 50, "edges": 900, "plant": [(15, 20), (7, 9)], "noise": "0.3", "seed": 3},
}
