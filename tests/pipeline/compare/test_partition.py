"""Which rows only one run has, where ids collide and where buckets are small."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.pipeline.compare import diffing, rows
from bicliques.pipeline.compare.diffing import Partition, divide
from bicliques.pipeline.compare.rows import Marks, _sums
from bicliques.pipeline.run import labels
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.errors import IncompleteError, ResourceError
from bicliques.schemas.hashes import hashes_of_ids, vertex_hashes
from tests.support.compared import maximal_bicliques, night, rows_of
from tests.support.runs import random_edges

Keys = list[tuple[int, int]]


def changed(folder: Path, old: Keys, new: Keys, pieces: int = 3) -> list[tuple[set[int], int]]:
    """Numbers and fingerprint of the rows that only the one and only the other run has."""
    folder.mkdir()
    made = Partition(folder, len(old) + len(new))
    for is_new, keys in enumerate((old, new)):
        ids, hashes = (np.array(own, np.uint64) for own in zip(*keys, strict=True)) if keys else ([], [])
        for part in np.array_split(np.arange(len(keys)), pieces):
            first = int(part[0]) if len(part) else 0
            own = [np.asarray(column, np.uint64)[part] for column in (ids, hashes)]
            made.add(divide(own[0], own[1], first, bool(is_new), made.n_buckets))
    found: list[tuple[set[int], int]] = [(set(), 0), (set(), 0)]
    for both in made.changed():
        for k, part_of in enumerate(both):
            assert not found[k][0] & set(part_of.rows.tolist())
            found[k] = found[k][0] | set(part_of.rows.tolist()), (found[k][1] + part_of.fingerprint) % 2**64
    assert list(folder.iterdir()) == []
    return found


#: Bits that ids and hashes have: all; ids that collide; hashes that collide; both.
BITS = [(64, 64), (3, 64), (64, 3), (6, 6)]


@pytest.mark.parametrize(("id_bits", "hash_bits"), BITS)
@pytest.mark.parametrize("bucket", [1, 4, 1 << 21])
def test_it_is_the_difference_of_sets(tmp_path, monkeypatch, id_bits, hash_bits, bucket):
    monkeypatch.setattr(diffing, "_BUCKET", bucket)
    rng = np.random.default_rng(id_bits + hash_bits)
    for k in range(40):
        n = int(rng.integers(0, 60))
        drawn = rng.integers(0, 2**64, (n, 2), np.uint64) >> np.array([64 - id_bits, 64 - hash_bits], np.uint64)
        keys = sorted({(int(a), int(b)) for a, b in drawn})
        rng.shuffle(keys)
        a, b = np.sort(rng.integers(0, len(keys) + 1, 2)).tolist()
        old, new = keys[:b], keys[a:]
        rng.shuffle(new)
        gone, came = changed(tmp_path / str(k), old, new)
        assert {old[row] for row in gone[0]} == set(old) - set(new)
        assert {new[row] for row in came[0]} == set(new) - set(old)
        assert gone[1] == sum(key[0] for key in set(old) - set(new)) % 2**64
        assert came[1] == sum(key[0] for key in set(new) - set(old)) % 2**64


@pytest.mark.parametrize(("old", "new"), [([5, 5], []), ([], [5, 5]), ([5, 5], [5]), ([5], [5, 5]), ([5, 5], [5, 5])])
def test_a_row_that_a_run_has_twice_is_an_error(tmp_path: Path, old: list[int], new: list[int]) -> None:
    with pytest.raises(IncompleteError, match=r"the row with id 5 is in one of the runs twice; .* bicliques.verify"):
        changed(tmp_path / "a", [(k, 7) for k in old], [(k, 7) for k in new])


def test_a_row_that_a_run_has_twice_on_both_sides_of_the_other(tmp_path: Path) -> None:
    made = Partition(tmp_path, 3)
    key = np.array([5], np.uint64)
    for first, is_new in ((0, False), (0, True), (1, False)):
        made.add(divide(key, key, first, is_new, 1))
    with pytest.raises(IncompleteError, match="the row with id 5 is in one of the runs twice"):
        list(made.changed())


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 1000])
def test_marks_are_those_that_were_set(n: int) -> None:
    rng, marks = np.random.default_rng(n), Marks(n)
    expected = rng.random(n) < 0.4
    for own in np.array_split(rng.permutation(np.flatnonzero(expected)), 3):
        marks.add(own)
    cuts = [0, *np.sort(rng.integers(0, n + 1, 9)).tolist(), n]
    found = [marks.of(start, stop - start) for start, stop in itertools.pairwise(cuts)]
    assert np.array_equal(np.concatenate(found), expected)


def few_bits(bits: int) -> Callable[..., np.ndarray]:
    return lambda labels, side: vertex_hashes(labels, side) % np.uint64(1 << bits)


@pytest.mark.parametrize("bits", [1, 2])
def test_equal_ids_with_other_members_are_told_apart(tmp_path, monkeypatch, bits):
    """Hashes of labels have so few bits that ids collide; what is the same is found by the members all the same."""
    monkeypatch.setattr(labels, "vertex_hashes", few_bits(bits))
    edges = {(int(a), int(b)) for a, b in random_edges(10, 10, 0.5, 3)}
    less = edges - set(sorted(edges)[::9])
    old, new = night(tmp_path / "old", edges), night(tmp_path / "new", less)
    ids = [set(bq.open_run(path).to_arrow(columns=["id"])["id"].to_pylist()) for path in (old, new)]
    was, now = maximal_bicliques(edges), maximal_bicliques(less)
    assert len(ids[0]) < len(was) - 3, "ids do not collide"
    assert len(ids[0] - ids[1]) < len(was - now), "nothing that is gone has the id of something that is there"
    found = bq.diff(old, new, tmp_path / "diff", progress=False)
    assert (rows_of(found.gone), rows_of(found.new)) == (was - now, now - was)


def test_second_hashes_that_collide_do_no_harm_where_ids_do_not(tmp_path, monkeypatch):
    def few(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (left % 2).view(np.uint64), (right % 2).view(np.uint64)

    monkeypatch.setattr("bicliques.pipeline.compare.diffing.second_hashes", few)
    edges = {(int(a), int(b)) for a, b in random_edges(10, 10, 0.5, 3)}
    less = edges - {max(edges)}
    runs = night(tmp_path / "old", edges), night(tmp_path / "new", less)
    found = bq.diff(*runs, tmp_path / "diff", progress=False)
    was, now = maximal_bicliques(edges), maximal_bicliques(less)
    assert (rows_of(found.gone), rows_of(found.new)) == (was - now, now - was)


def test_second_hashes_have_nothing_to_do_with_ids() -> None:
    numbers = np.arange(1000)
    second = rows.second_hashes(numbers, numbers)
    first = [vertex_hashes(pa.array(numbers), side) for side in ("left", "right")]
    assert len(set(np.concatenate([*second, *first]).tolist())) == 4000


def test_a_full_temporary_folder_gives_a_sentence(tmp_path: Path) -> None:
    made = Partition(tmp_path / "not there", 10)
    words = np.arange(3, dtype=np.uint64)
    with pytest.raises(ResourceError, match="make room for 240 bytes there, or name another place in "):
        made.add(divide(words, words, 0, False, made.n_buckets))


@pytest.mark.parametrize("at", [0, 1])
def test_a_row_with_a_member_that_no_vertex_is_has_no_hash(at: int) -> None:
    rows = Bicliques.from_pairs([([0, 1], [0])])
    rows.left[at] = 7
    with pytest.raises(IncompleteError, match="part has a row with the id 7, which no vertex has"):
        list(_sums(Path("part"), rows, hashes_of_ids(7, 1)))
