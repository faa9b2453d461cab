"""Bands cover every size that can reach a bound, and measures are inverted exactly."""

from dataclasses import replace

import numpy as np
import pytest

from bicliques.schemas.bands import Band, Reach, bands_of, corners_of, gap_in
from bicliques.schemas.search import MEASURES, TOO_MANY, By, Search, fewest_left, fewest_right, measure
from bicliques.schemas.totals import measured


@pytest.mark.parametrize("by", MEASURES)
def test_the_fewest_that_reach_a_measure(by):
    for least in range(30):
        for other in range(12):
            left, right = fewest_left(by, least, other), fewest_right(by, least, other)
            assert min(left, right) >= 0
            assert [n for n in range(40) if measure(by, n, other) >= least] == list(range(min(left, 40), 40))
            assert [n for n in range(40) if measure(by, other, n) >= least] == list(range(min(right, 40), 40))
    assert fewest_left("balance", 5, 4) == fewest_left("right", 5, 4) == fewest_left("edges", 5, 0) == TOO_MANY


@pytest.mark.parametrize("by", MEASURES)
def test_the_measure_of_arrays(by):
    left, right = np.array([1, 5, 7]), np.array([9, 5, 2])
    assert measured(left, right, by).tolist() == [
        measure(by, one, other) for one, other in zip(left.tolist(), right.tolist(), strict=True)
    ]


@pytest.mark.parametrize("by", MEASURES)
def test_every_size_that_can_reach_the_bound_is_in_one_band(by):
    rng = np.random.default_rng(MEASURES.index(by))
    for _ in range(300):
        search, bound, reach = random_search(rng, by)
        bands, most = bands_of(search, bound, reach), reach.within(search)
        assert gap_in(bands, search, bound, reach) is None
        for left in range(search.min_left, most.left + 1):
            for right in range(search.min_right, most.right + 1):
                if measure(by, left, right) >= bound:
                    assert sum(b.first <= left <= b.last and right >= b.min_right for b in bands) == 1


@pytest.mark.parametrize("by", MEASURES)
def test_a_gap_is_seen(by):
    """Every band that is needed and taken away, cut shorter or begun too high leaves a gap."""
    rng, seen = np.random.default_rng([MEASURES.index(by), 1]), 0
    for _ in range(200):
        search, bound, reach = random_search(rng, by)
        bands, most = list(bands_of(search, bound, reach)), reach.within(search)
        for k, band in enumerate(bands):
            without = bands[:k] + bands[k + 1 :]
            is_needed = measure(by, band.last, most.right) >= bound
            assert (gap_in(without, search, bound, reach) is not None) == is_needed
            higher = [*bands[:k], replace(band, min_right=band.min_right + 1), *bands[k + 1 :]]
            assert gap_in(higher, search, bound, reach) is not None
            if is_needed and band.last > band.first:
                shorter = [*bands[:k], replace(band, last=band.last - 1), *bands[k + 1 :]]
                assert gap_in(shorter, search, bound, reach) is not None
            twice = [*bands[:k], band, band, *bands[k + 1 :]]
            assert "overlap" in (gap_in(twice, search, bound, reach) or "")
            seen += is_needed
    assert seen > 100


@pytest.mark.parametrize("by", MEASURES)
def test_corners_hold_what_reaches_the_bound_and_nothing_else(by):
    rng = np.random.default_rng([MEASURES.index(by), 2])
    for _ in range(300):
        search, bound, reach = random_search(rng, by)
        corners, most = corners_of(search, bound, reach), reach.within(search)
        for left in range(search.min_left, most.left + 1):
            for right in range(search.min_right, most.right + 1):
                within = sum(c.first <= left <= c.last and right >= c.min_right for c in corners)
                assert within == (measure(by, left, right) >= bound)


def test_bands_that_need_the_same_are_one():
    assert bands_of(Search(by="balance", largest=1, min_left=2), 4, Reach(100, 9)) == (Band(4, 100, 4),)
    assert bands_of(Search(by="edges", largest=1), 0, Reach(100, 9)) == (Band(1, 100, 1),)
    assert bands_of(Search(by="edges", largest=1), 101, Reach(10, 10)) == ()
    assert [band.first for band in bands_of(Search(by="edges", largest=1, min_left=3), 1267, Reach(583, 737))] == [
        *(3, 5, 8, 13, 21, 34, 55, 88, 141, 226, 362)
    ], "the factor of 1.6"


def random_search(rng: np.random.Generator, by: By) -> tuple[Search, int, Reach]:
    """Any limits, a bound that may be out of reach, and degrees."""
    left, right = (int(n) for n in rng.integers(1, 6, 2))
    most = [None if rng.random() < 0.5 else int(rng.integers(least, 40)) for least in (left, right)]
    search = Search(min_left=left, min_right=right, max_left=most[0], max_right=most[1], largest=1, by=by)
    reach = Reach(*(int(n) for n in rng.integers(1, 40, 2)))
    return search, int(rng.integers(0, measure(by, reach.left, reach.right) + 2)), reach
