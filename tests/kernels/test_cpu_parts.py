"""Functions of the CPU engine that can be called alone do what their definitions say."""

from functools import reduce
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit, types
from numba.extending import intrinsic

import bicliques.kernels.compiled.making  # noqa: F401  # tells Numba what parts are
from bicliques.kernels.compiled.searching import splitmix64 as splitmix64_of_one
from bicliques.kernels.cpu.constants import MAX_ROWS, PADDING
from bicliques.kernels.cpu.leaf import MAX_BITS, closed_subsets, intersections
from bicliques.kernels.cpu.rows import covered, distinct_by_size, keep_widest
from bicliques.kernels.cpu.sieve import pack_row
from bicliques.kernels.cpu.simd import extract_bits, extract_one_by_one, popcount, trailing_zeros
from bicliques.kernels.cpu.workspace import addresses
from bicliques.schemas.hashes import splitmix64

WORDS = st.integers(0, 2**64 - 1)


@intrinsic
def uint64s(typing, address):
    """The words at an address."""
    words = types.CPointer(types.uint64)
    return words(types.int64), lambda context, builder, _, args: builder.inttoptr(
        args[0], context.get_value_type(words)
    )


@njit
def _call(address, n, t, which):
    rows = uint64s(address)
    if which == 0:
        return np.int64(covered(rows, 0, n, t))
    if which == 1:
        return distinct_by_size(rows, 0, n)
    if which == 2:
        return keep_widest(rows, 0, n)
    out = uint64s(address + 8 * (n + PADDING))
    return intersections(rows, 0, n, out)


def on_rows(rows, which, t=0):
    memory = np.zeros(2 * len(rows) + 2**MAX_ROWS + 2 * PADDING, dtype=np.uint64)
    memory[: len(rows)] = rows
    return _call(addresses((memory,))[0], len(rows), np.uint64(t), which), memory


@njit
def _bits(x, mask):
    return popcount(x), trailing_zeros(x), extract_bits(x, mask), extract_one_by_one(x, mask), splitmix64_of_one(x)


@given(WORDS, WORDS)
def test_bit_instructions_equal_their_definitions(x, mask):
    ones, zeros, extracted, one_by_one, mixed = _bits(np.uint64(x), np.uint64(mask))
    assert ones == x.bit_count()
    assert zeros == (x & -x).bit_length() - 1 if x else zeros == 64
    positions = [i for i in range(64) if mask >> i & 1]
    assert extracted == sum((x >> p & 1) << k for k, p in enumerate(positions))
    assert one_by_one == extracted
    assert mixed == int(splitmix64(np.array([x], dtype=np.uint64))[0])


@given(st.lists(WORDS, max_size=40), WORDS)
def test_covered_only_reads_its_range(rows, t):
    assert on_rows(rows, 0, t)[0] == any(r & t == t for r in rows)
    memory = on_rows([*rows, 2**64 - 1], 0)[1]  # a word behind the range contains everything
    assert _call(addresses((memory,))[0], len(rows), np.uint64(t), 0) == any(r & t == t for r in rows)


@given(st.lists(st.integers(0, 2**9 - 1), max_size=60))
def test_distinct_rows_are_sorted_by_size_and_then_by_value(rows):
    n, memory = on_rows(rows, 1)
    assert memory[:n].tolist() == sorted(set(rows), key=lambda r: (r.bit_count(), r))


@given(st.lists(st.integers(1, 2**9 - 1), max_size=60))
def test_only_rows_that_lie_in_no_other_row_are_kept(rows):
    n, memory = on_rows(rows, 2)
    assert set(memory[:n].tolist()) == {r for r in rows if not any(r & s == r and r != s for s in rows)}
    assert len(set(memory[:n].tolist())) == n


@given(st.lists(st.integers(1, 2**8 - 1), min_size=1, max_size=MAX_ROWS, unique=True))
def test_intersections_of_all_choices_of_rows_are_found_once(rows):
    n, memory = on_rows(rows, 3)
    found = memory[len(rows) + PADDING :][:n].tolist()
    expected = {reduce(int.__and__, c) for k in range(2, len(rows) + 1) for c in combinations(rows, k)}
    assert found[: len(rows)] == rows
    assert set(found[len(rows) :]) == expected - {0} - set(rows)
    assert len(set(found)) == n


@njit
def _closed_subsets(excluded, candidates, k):
    return closed_subsets(excluded, candidates, k)


@given(st.integers(1, MAX_BITS), st.data())
def test_closed_subsets_are_intersections_in_no_excluded_set(k, data):
    subset = st.integers(1, max(1, 2**k - 2))
    candidates = data.draw(st.sets(subset, min_size=1)) if k > 1 else set()
    excluded = data.draw(st.sets(subset)) if k > 1 else set()
    closed = int(
        _closed_subsets(np.uint64(sum(1 << e for e in excluded)), np.uint64(sum(1 << c for c in candidates)), k)
    )
    expected = set(candidates)
    while True:
        larger = expected | {a & b for a in expected for b in candidates}
        if larger == expected:
            break
        expected = larger
    expected = {s for s in expected if s and not any(s & e == s for e in excluded)}
    assert {s for s in range(64) if closed >> s & 1} == expected


@njit
def _pack(row, mask, packed, words):
    pack_row(uint64s(row), 0, 1, uint64s(mask), words, 0, 1)
    for w in range(words):
        packed[w] = uint64s(row)[w]


@given(st.integers(1, 6), st.floats(0, 1), st.randoms(use_true_random=False))
def test_rows_are_packed_in_place_without_losing_bits(n, density, random):
    """Masks have bits at random, so the bits of a word mostly go to two words."""
    words = [[sum((random.random() < d) << i for i in range(64)) for d in (0.5, density)] for _ in range(n)]
    row, mask = (np.array(column, dtype=np.uint64) for column in zip(*words, strict=True))
    packed = np.zeros(n, np.uint64)
    bits = [x >> i & 1 for x, m in words for i in range(64) if m >> i & 1]
    _pack(*addresses((row, mask)), packed, n)
    joined = sum(int(word) << 64 * w for w, word in enumerate(packed[: -(-len(bits) // 64)]))
    assert joined == sum(bit << k for k, bit in enumerate(bits))
