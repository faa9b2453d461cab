"""How much bicliques overlap, against sets of edges."""

import numpy as np
import pytest

from bicliques.pipeline.results.report.listed import common_members, repeated, shares_of


def random_rows(seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    draw = np.random.default_rng(seed)
    n, sides = int(draw.integers(1, 30)), []
    for _ in range(2):
        most = int(draw.integers(1, 60))
        sizes = draw.integers(1, most + 1, n)
        sides.append([np.sort(draw.permutation(most)[:size]) for size in sizes])
    return sides[0], sides[1]


def edges_of(left: np.ndarray, right: np.ndarray) -> set[tuple[int, int]]:
    return {(a, b) for a in left.tolist() for b in right.tolist()}


@pytest.mark.parametrize("seed", range(40))
def test_shares_and_repeats_are_those_of_the_sets_of_edges(seed):
    left, right = random_rows(seed)
    edges = [edges_of(a, b) for a, b in zip(left, right, strict=True)]
    shares = shares_of(common_members(left), common_members(right))
    wanted = [[len(one & other) / len(one) for other in edges] for one in edges]
    assert np.allclose(shares, wanted, rtol=1e-12)
    order, most = np.random.default_rng(seed).permutation(len(edges)), (0.2, 0.5, 0.8)[seed % 3]
    kept = []
    for k, other in zip(order.tolist(), repeated(shares, order, most).tolist(), strict=True):
        own = {j: len(edges[k] & edges[j]) / len(edges[k]) for j in kept}
        if own and max(own.values()) > most:
            assert own[other] == max(own.values())
        else:
            assert other == -1
            kept.append(k)


def test_exactly_the_limit_is_no_repetition():
    ten, eight = np.arange(10), np.append(np.arange(8), [10, 11])
    shares = shares_of(common_members([ten, eight]), common_members([np.array([0])] * 2))
    assert repeated(shares, np.array([0, 1]), 0.8).tolist() == [-1, -1]
    assert repeated(shares, np.array([0, 1]), 0.79).tolist() == [-1, 0]


def test_no_rows():
    assert common_members([]).shape == (0, 0)
    assert repeated(np.zeros((0, 0)), np.zeros(0, np.int64), 0.8).tolist() == []
