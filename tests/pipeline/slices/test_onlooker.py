"""What is known of every vertex adds up in any grouping, and is what sorting all bicliques says."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bicliques.kernels.compiled.lists import keep_largest
from bicliques.kernels.compiled.searching import BALANCE
from bicliques.pipeline.slices.slice_search import Onlooker
from bicliques.schemas.bicliques import Bicliques, emit_to
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.jobs import EveryVertex
from bicliques.schemas.search import Search
from bicliques.schemas.totals import Found, PerVertex
from bicliques.schemas.vertices import LARGEST_BY, LargestOfEach, SideTotals
from tests.support.batches import hashes_of
from tests.support.oracles import graph_of

SIDES = st.lists(st.integers(0, 8), min_size=1, max_size=4, unique=True)
ROWS = st.lists(st.tuples(SIDES, SIDES), max_size=12)
JOB = EveryVertex(Search("fingerprint", per_vertex=True))
#: With as many vertices as the rows of these tests have. Which edges it has does not matter.
GRAPH = graph_of(np.array([[0, 0], [40, 40]], np.int32))


def total_of(*batches: list[Any]) -> PerVertex:
    onlooker = Onlooker(GRAPH, None)
    for rows in batches:
        onlooker(Bicliques.from_pairs(rows))
    every = Bicliques.from_pairs([row for rows in batches for row in rows])
    found = Found(len(every), int(np.add.reduce(hashes_of(every), dtype=np.uint64)))
    return JOB.total_of(found, onlooker.left, onlooker.right)


def by_sorting(rows: list[Any], side: int) -> dict[int, tuple[Any, ...]]:
    """By vertex: the number of rows with it, and sizes and hash of the largest by edges and by balance."""
    hashes = hashes_of(Bicliques.from_pairs(rows)).tolist()
    signed = [h - (1 << 64 if h >> 63 else 0) for h in hashes]
    found = {}
    every = [(row, (len(row[0]), len(row[1]), s, h)) for row, s, h in zip(rows, signed, hashes, strict=True)]
    for vertex in {v for row in rows for v in row[side]}:
        own = [known for row, known in every if vertex in row[side]]
        keys = {"edges": lambda x, y: x * y, "balance": min}
        best = [max(own, key=lambda b: (keys[by](b[0], b[1]), b[0] * b[1], b[0], b[2])) for by in LARGEST_BY]
        found[vertex] = (len(own), *((b[0], b[1], b[3]) for b in best))
    return found


def as_dictionary(side: SideTotals) -> dict[int, tuple[Any, ...]]:
    best = [np.stack([own.n_left, own.n_right, own.hash.astype(object)]) for own in side.largest.values()]
    return {
        int(v): (int(side.count[v]), *((int(b[0, v]), int(b[1, v]), int(b[2, v])) for b in best))
        for v in np.flatnonzero(side.count)
    }


@given(ROWS, ROWS, ROWS)
def test_they_are_those_of_all_rows_in_any_grouping(a: list[Any], b: list[Any], c: list[Any]) -> None:
    x, y, z = (total_of(rows) for rows in (a, b, c))
    whole = total_of(a + b + c)
    assert (x + y) + z == x + (y + z) == z + y + x == whole == total_of(a, [], b, c)
    assert JOB.zero + whole == whole
    for k, side in enumerate((whole.left, whole.right)):
        assert as_dictionary(side) == by_sorting(a + b + c, k)
    assert JOB.read_total(json.loads(json.dumps(whole.to_json()))) == whole


@given(ROWS)
def test_adding_changes_neither_of_both(rows: list[Any]) -> None:
    half = len(rows) // 2
    x, y = total_of(rows[:half]), total_of(rows[half:])
    _ = x + y
    assert (x, y) == (total_of(rows[:half]), total_of(rows[half:]))


def test_of_equally_large_bicliques_the_hash_decides_whatever_comes_first() -> None:
    rows = [([0, k], [k]) for k in range(1, 40)]
    one, other = total_of(rows), total_of(rows[::-1])
    assert one == other
    hashes = hashes_of(Bicliques.from_pairs(rows))
    assert one.left.largest["edges"].hash[0] == hashes[np.argmax(hashes.view(np.int64))]


def test_measures_of_more_than_32_bits() -> None:
    kept = LargestOfEach.none("balance", 1)
    for left, right in ((2**30, 2**30), (2**30, 2**30 + 1), (2**30 - 1, 2**30 + 5)):
        sizes = np.array([left], np.int64), np.array([right], np.int64)
        ids, hashes = np.zeros(1, np.int32), np.array([7], np.uint64)
        keep_largest(BALANCE, ids, np.array([0, 1], np.int64), sizes, hashes, (kept.n_left, kept.n_right), kept.hash)
    assert (kept.n_left[0], kept.n_right[0], kept.hash[0]) == (2**30, 2**30 + 1, 7)


def test_bicliques_are_handed_on_if_they_are_wanted() -> None:
    taken: list[Bicliques] = []
    batch = Bicliques.from_pairs([([0], [1])])
    Onlooker(GRAPH, emit_to(taken.append))(batch)
    assert taken == [batch]


def test_a_vertex_that_the_graph_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="does not have"):
        Onlooker(GRAPH, None)(Bicliques.from_pairs([([0], [41])]))


@pytest.mark.parametrize(
    "damage",
    [{"count": 1}, {"vertices": {"left": "AAAA", "right": "AAAA"}}, {"vertices": {}}, {"vertices": None}],
    ids=str,
)
def test_damaged_numbers_are_refused(damage: dict[str, Any]) -> None:
    data = total_of([([0], [1]), ([0, 2], [1])]).to_json() | damage
    with pytest.raises((IncompleteError, TypeError, KeyError)):
        PerVertex.from_json(data)


def test_numbers_of_no_vertices_are_refused() -> None:
    side = SideTotals.none(2)
    side.count[:] = 1
    good = side.pack()
    assert SideTotals.unpack(good) == side
    side.count[1] = -1
    with pytest.raises(IncompleteError, match="numbers of vertices are damaged"):
        SideTotals.unpack(side.pack())
