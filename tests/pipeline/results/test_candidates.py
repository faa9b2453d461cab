"""The best, the cover, the surprising and the covering rows are those that plain Python finds on small graphs."""

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bicliques.pipeline.results import candidates, interesting
from bicliques.pipeline.results.candidates import Score, SizeScore, best_rows
from bicliques.pipeline.results.edges import Parts, degrees_of
from bicliques.pipeline.results.interesting import cover_rows, distinct_rows
from bicliques.pipeline.results.report.listed import common_members, repeated, shares_of
from bicliques.pipeline.results.surprise import UNIT, Surprise
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.search import MEASURES, Search
from tests.support.examples import examples
from tests.support.oracles import cliques, random_edges

#: A row: left members, right members, id, and place.
Row = tuple[frozenset[int], frozenset[int], int, tuple[int, int, int]]
SHARES = (0.0, 0.25, 0.5, 0.75, 0.8, 1.0)


class InMemory(Parts):
    """Row groups in memory. Ids are few, so that many are equal. Statistics say the largest sizes, or nothing."""

    def __init__(self, rng: np.random.Generator, edges: np.ndarray):
        self.edges = edges
        self.n_vertices = int(edges[:, 0].max()) + 1, int(edges[:, 1].max()) + 1
        pairs = [(list(left), list(right)) for left, right in sorted(cliques(edges))]
        pairs = [pairs[k] for k in rng.permutation(len(pairs))]
        if rng.random() < 0.5:  # as files that are sorted by size
            pairs.sort(key=lambda pair: -len(pair[0]))
        self._groups = {}
        group_rows, part_groups = int(rng.integers(1, 8)), int(rng.integers(1, 4))
        for number, begin in enumerate(range(0, len(pairs), group_rows)):
            rows = _rows(pairs[begin : begin + group_rows])
            self._groups[divmod(number, part_groups)] = rows
        self._says = rng.random() < 0.8
        self.read = 0

    def groups(self) -> list[tuple[int, int, tuple[int, int] | None]]:
        found = []
        for (part, group), rows in self._groups.items():
            largest = int(np.diff(rows.left_indptr).max()), int(np.diff(rows.right_indptr).max())
            found.append((part, group, largest if self._says else None))
        return found

    def sizes(self, part: int, group: int) -> tuple[np.ndarray, np.ndarray]:
        rows = self._groups[part, group]
        return np.diff(rows.left_indptr), np.diff(rows.right_indptr)

    def rows(self, part: int, group: int) -> Bicliques:
        self.read += 1
        return self._groups[part, group]

    def plain(self) -> list[Row]:
        return [
            (frozenset(left), frozenset(right), _id(left, right), (*place, k))
            for place, rows in self._groups.items()
            for k, (left, right) in enumerate(rows.to_pairs())
        ]


def _rows(pairs: list[tuple[list[int], list[int]]]) -> Bicliques:
    return Bicliques.from_pairs(pairs, ids=np.array([_id(left, right) for left, right in pairs], np.int64))


def _id(left: Sequence[int], right: Sequence[int]) -> int:
    return (sum(left) + 2 * sum(right)) % 3 - 1


def _rank(row: Row, score: int) -> tuple[int, ...]:
    left, right, own, place = row
    return (score, len(left) * len(right), len(left), own, *place)


def _measure(row: Row, by: str) -> int:
    n, m = len(row[0]), len(row[1])
    return {"edges": n * m, "vertices": n + m, "balance": min(n, m), "left": n, "right": m}[by]


def _surprise(row: Row, edges: np.ndarray) -> int:
    """The definition of the documentation, in units."""
    of_left, of_right = (np.bincount(side).tolist() for side in edges.T)
    total = 0
    for d in (of_left[u] for u in row[0]):
        for e in (of_right[v] for v in row[1]):
            total += round(-math.log2(-math.expm1(-d * e / len(edges))) * UNIT)
    for n, k in ((len(of_left), len(row[0])), (len(of_right), len(row[1]))):
        total -= round(math.log2(math.comb(n, k)) * UNIT)
    return total


def _distinct(ordered: list[Row], n: int, most: float) -> list[Row]:
    kept = []
    for row in ordered:
        shares = [len(row[0] & a) * len(row[1] & b) / (len(row[0]) * len(row[1])) for a, b, _, _ in kept]
        if len(kept) < n and all(share <= most for share in shares):
            kept.append(row)
    return kept


def _cover(rows: list[Row], n: int) -> list[tuple[tuple[int, ...], int]]:
    covered = set()
    chosen = []
    for _ in range(n):
        rank, row = max((_rank(row, len(set(itertools.product(*row[:2])) - covered)), row) for row in rows)
        if rank[0] == 0:
            break
        covered |= set(itertools.product(*row[:2]))
        chosen.append((row[3], rank[0]))
    return chosen


@pytest.fixture(autouse=True)
def small_rounds(monkeypatch):
    """Rounds of a few rows, row after row in another way, and few members at a time."""
    sizes = itertools.cycle([1, 2, 5, 3, 1, 40])

    def rounds(n: int) -> Iterator[int]:
        return (next(sizes) for _ in itertools.count())

    monkeypatch.setattr(interesting, "rounds", rounds)
    monkeypatch.setattr(interesting, "rounds", rounds)
    monkeypatch.setattr(candidates, "MOST_MEMBERS", 25)
    monkeypatch.setattr(candidates, "count_cores", lambda: 1)


def _graphs(seed: int, n: int) -> Iterator[tuple[np.random.Generator, InMemory]]:
    for k in range(n):
        rng = np.random.default_rng([seed, k])
        edges = random_edges(rng, *rng.integers(1, 9, 2), rng.choice([0.2, 0.5, 0.8]))
        edges = np.column_stack([np.unique(side, return_inverse=True)[1] for side in edges.T])
        yield rng, InMemory(rng, edges)


def _scores(parts: InMemory, folder: Path) -> dict[str, tuple[Score, Any]]:
    """By name the score, and the plain function of a row."""
    (folder / "edges").mkdir(exist_ok=True)
    columns = {name: pa.array(parts.edges[:, k], pa.int32()) for k, name in enumerate(("left", "right"))}
    pq.write_table(pa.table(columns), folder / "edges" / "edges.parquet", row_group_size=7)
    n_left, n_right = parts.n_vertices
    there = SimpleNamespace(edge_files=lambda: [folder / "edges" / "edges.parquet"])
    asked = SimpleNamespace(search=Search())
    run = SimpleNamespace(
        folder=there, input={"n_left": n_left, "n_right": n_right, "n_edges": len(parts.edges)}, options=asked
    )
    found = {"surprise": (Surprise(run, degrees_of(run)), lambda row: _surprise(row, parts.edges))}
    for by in MEASURES:
        found[by] = SizeScore(by), lambda row, by=by: _measure(row, by)
    return found


@pytest.mark.parametrize("threads", [1, 3])
def test_best_and_distinct_rows_are_those_of_plain_python(tmp_path, threads, monkeypatch):
    monkeypatch.setattr(candidates, "count_cores", lambda: threads)
    for rng, parts in _graphs(threads, examples(400 if threads == 1 else 60)):
        by, (score, plain) = list(_scores(parts, tmp_path).items())[rng.integers(6)]
        n, most = int(rng.integers(1, 12)), float(rng.choice(SHARES))
        ordered = sorted(parts.plain(), key=lambda row: _rank(row, plain(row)), reverse=True)
        expected = [list(_rank(row, plain(row))) for row in ordered]
        assert best_rows(parts, score, n, hold=False).ranks.tolist() == expected[:n], by
        found = distinct_rows(parts, score, n, most)
        assert found.tolist() == [list(_rank(row, plain(row))) for row in _distinct(ordered, n, most)], (by, most)


def test_distinct_rows_are_those_that_the_page_shows():
    for rng, parts in _graphs(11, examples(100)):
        most = float(rng.choice(SHARES))
        rows = parts.plain()
        ordered = sorted(rows, key=lambda row: _rank(row, _measure(row, "edges")), reverse=True)
        sides = [common_members([np.array(sorted(row[k])) for row in ordered]) for k in (0, 1)]
        kept = repeated(shares_of(*sides), np.arange(len(ordered)), most) < 0
        found = distinct_rows(parts, SizeScore("edges"), len(rows), most)
        assert found[:, 4:].tolist() == [list(ordered[k][3]) for k in np.flatnonzero(kept)]


def test_no_score_exceeds_the_bound_of_its_sizes_or_of_larger_ones(tmp_path):
    for _, parts in _graphs(7, examples(150)):
        for score, _ in _scores(parts, tmp_path).values():
            for part, group, _ in parts.groups():
                sizes = parts.sizes(part, group)
                found = score.of(parts.rows(part, group), np.arange(len(sizes[0])))
                assert (found <= score.bounds(*sizes)).all()
                assert found.max() <= score.most(*(int(side.max()) for side in sizes))


#: A cover of graphs with so few vertices on a side has a bit per pair, and of others a bit per vertex and biclique.
FEW_VERTICES = pytest.mark.parametrize("few", [0, interesting._FEW_VERTICES])


@FEW_VERTICES
def test_a_cover_is_the_greedy_one_of_plain_python(few, monkeypatch):
    monkeypatch.setattr(interesting, "_FEW_VERTICES", few)
    ended_early = 0
    for rng, parts in _graphs(2, examples(300)):
        n = int(rng.integers(1, 12))
        found = cover_rows(parts, n)
        assert [(one.place, one.new) for one in found] == _cover(parts.plain(), n)
        ended_early += len(found) < n
    assert ended_early > examples(20)


@pytest.mark.values
@FEW_VERTICES
@pytest.mark.parametrize("sides", [(260, 150), (70, 280)])
def test_a_cover_of_more_than_a_word_of_bicliques_ends_with_all_edges(few, sides, monkeypatch):
    monkeypatch.setattr(interesting, "_FEW_VERTICES", few)
    rng = np.random.default_rng(3)
    parts = InMemory(rng, random_edges(rng, *sides, 0.02))
    found = cover_rows(parts, 1000)
    assert 64 < len(found) < 1000
    assert sum(one.new for one in found) == len(parts.edges)
    assert [(one.place, one.new) for one in found] == _cover(parts.plain(), 1000)


def test_a_candidate_that_is_larger_than_all_that_is_held_is_held_alone():
    rng = np.random.default_rng(4)
    parts = InMemory(rng, np.argwhere(np.ones((30, 30), int)))
    assert [one.new for one in cover_rows(parts, 3)] == [900]
    assert distinct_rows(parts, SizeScore("edges"), 3, 0.5)[:, 0].tolist() == [900]


def test_row_groups_that_are_too_small_are_not_read():
    rng = np.random.default_rng(5)
    parts = InMemory(rng, random_edges(rng, 14, 12, 0.4))
    pairs = sorted((pair for rows in parts._groups.values() for pair in rows.to_pairs()), key=lambda p: -len(p[0]))
    parts._groups = {(0, k): _rows([(list(a), list(b))]) for k, (a, b) in enumerate(pairs)}
    parts._says = True
    assert len(best_rows(parts, SizeScore("left"), 3, hold=False).ranks) == 3
    assert parts.read <= 6 < len(pairs)
    parts.read = 0
    cover_rows(parts, 1)
    assert parts.read < len(pairs)


def test_a_cover_reads_no_row_group_that_added_too_little_before(monkeypatch):
    rng = np.random.default_rng(6)
    parts = InMemory(rng, random_edges(rng, 24, 18, 0.4))
    pairs = [pair for rows in parts._groups.values() for pair in rows.to_pairs()]
    parts._groups = {(0, k): _rows([(list(a), list(b))]) for k, (a, b) in enumerate(pairs)}
    monkeypatch.setattr(interesting, "rounds", lambda n: itertools.repeat(5))
    found, n_read = cover_rows(parts, 12), parts.read
    monkeypatch.setattr(interesting, "best_rows", lambda *given, known, **how: best_rows(*given, **how))
    parts.read = 0
    assert cover_rows(parts, 12) == found
    assert n_read < 0.8 * parts.read
