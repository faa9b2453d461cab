"""Rows are put into blocks with the largest first, and chunks begin with blocks."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bicliques.schemas import bicliques


@given(
    keys=st.lists(st.integers(0, 6), max_size=60),
    holes=st.integers(0, 5),
    block=st.integers(1, 70),
    dtype=st.sampled_from([np.uint32, np.uint64, np.int64]),
)
def test_no_block_has_a_larger_row_than_the_one_before(keys, holes, block, dtype):
    all_keys = np.random.default_rng(len(keys)).permutation([*(key + 1 for key in keys), *[0] * holes]).astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bicliques, "BLOCK_ROWS", block)
        order = bicliques.block_order(all_keys, len(keys))
    assert order.dtype == np.int32
    assert sorted(order) == np.flatnonzero(all_keys).tolist()
    own = [order[start : start + block] for start in range(0, len(keys), block)]
    assert all((np.diff(rows) > 0).all() for rows in own)
    assert all(all_keys[rows].min() >= all_keys[later].max() for rows, later in pairwise(own))


@pytest.mark.parametrize(
    ("rows", "cuts"),
    [
        ([], []),
        ([120, 250], [100, 200]),
        ([120, 180, 250], [100, 180, 200]),  # a block of very large rows is cut
        ([20, 99, 100, 101], [20, 99, 100, 101]),
    ],
)
def test_chunks_begin_with_blocks(monkeypatch, rows, cuts):
    monkeypatch.setattr(bicliques, "BLOCK_ROWS", 100)
    assert bicliques.cuts_between_blocks(rows) == cuts
