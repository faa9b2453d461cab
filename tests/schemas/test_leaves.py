"""Leaves add up in any grouping, go through JSON, and a changed entry is noticed."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.jobs import AllSizes, job_of
from bicliques.schemas.leaves import Leaves, bounds_of, mixes
from bicliques.schemas.search import Search

KINDS = st.lists(st.tuples(*[st.integers(0, 3)] * 4, st.integers(1, 9)), max_size=8)


def leaves(kinds: list[tuple[int, ...]]) -> Leaves:
    table = np.array(kinds, np.int64).reshape(-1, 5)
    mix = sum(int(m) * n for m, n in zip(mixes(table[:, :4]), table[:, 4].tolist(), strict=True))
    return Leaves.of(table[:, :4], table[:, 4], mix)


@given(KINDS, KINDS, KINDS)
def test_leaves_add_up_in_any_grouping(a, b, c):
    x, y, z = map(leaves, (a, b, c))
    whole = leaves(a + b + c)
    assert (x + y) + z == x + (y + z) == z + y + x == whole
    assert Leaves.from_json(json.loads(json.dumps(whole.to_json()))) == whole
    assert whole + Leaves.none() == whole
    assert whole.is_whole


@given(KINDS)
def test_all_sizes_together_are_the_sum_of_each(kinds):
    own = leaves(kinds)
    each = {(p, q): own.bicliques((p, p), (q, q)) for p in range(1, 7) for q in range(1, 7)}
    assert own.bicliques((1, None), (1, None)) == sum(each.values())
    assert own.bicliques((2, 2), (3, None)) == sum(n for (p, q), n in each.items() if p == 2 and q >= 3)
    assert own.bicliques((1, 2), (2, 4)) == sum(n for (p, q), n in each.items() if p <= 2 and 2 <= q <= 4)


def test_an_entry_that_is_changed_by_one_is_noticed():
    """Also in a leaf of which the degrees and wedges of the input say nothing."""
    whole = leaves([(0, 3, 0, 4, 1), (3, 2, 5, 0, 7)])
    for k, by in ((0, 1), (1, 1), (1, -1)):
        wrong = Leaves(whole.keys, whole.number + by * (np.arange(2) == k), whole.mix)
        assert not wrong.is_whole
        with pytest.raises(IncompleteError, match="do not have their checksum"):
            Leaves.from_json(wrong.to_json())
    for column in range(4):
        keys = whole.keys.copy()
        keys[1, column] += 1
        assert not Leaves(keys, whole.number, whole.mix).is_whole
    with pytest.raises(IncompleteError, match="do not have their checksum"):
        Leaves.from_json(whole.to_json() | {"count": 2})
    with pytest.raises(IncompleteError, match="cannot be read"):
        Leaves.from_json(whole.to_json() | {"leaves": "none"})


@pytest.mark.parametrize("pq", ["", "4", "4x", "0x2", "x", "ALL", "2x2x2", "-1x3", "1.5x2", "2x1000000000", "2x²"])
def test_sizes_that_are_none_are_refused(pq):
    with pytest.raises(InputError, match="must be two numbers from 1 to 999999999, as 4x4, or the word all"):
        bounds_of(pq)


def test_the_job_of_all_sizes_takes_no_thresholds():
    assert isinstance(job_of(Search("count", pq="4x4")), AllSizes)
    for wrong in (
        Search("count", pq="all", min_left=2),
        Search("count", pq="all", max_right=2),
        Search("count", pq="all", containing_left=("a",)),
        Search("count", pq="all", sizes=True),
        Search("list", pq="all"),
        Search("count", pq="all", per_vertex=True),
    ):
        with pytest.raises(InputError, match="pq counts"):
            job_of(wrong)
