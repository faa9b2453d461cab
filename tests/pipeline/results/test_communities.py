"""Communities of bicliques: by the lattice and by all pairs, known numbers, files, the page, and what is refused."""

import itertools
import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.kernels.compiled import joining
from bicliques.pipeline.results import communities
from bicliques.pipeline.results.communities import find_communities
from bicliques.pipeline.results.edges import Parts
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.errors import IncompleteError, InputError, UnknownIdError
from bicliques.schemas.hashes import hashes_of_ids, splitmix64
from tests.support.commands import run
from tests.support.examples import examples
from tests.support.known import NOT_HERE, dense_edges, known_graph
from tests.support.oracles import cliques, random_edges
from tests.support.runs import OWN, QUIET, write_edges


class InMemory(Parts):
    """Rows in memory as row groups of a few rows each."""

    def __init__(self, pairs: list[Any], n_vertices: tuple[int, int], together: int):
        self._batches = [
            Bicliques.from_pairs([(list(left), list(right)) for left, right in pairs[k : k + together]])
            for k in range(0, len(pairs), together)
        ]
        self.n_vertices, self.n_files = n_vertices, 1

    def groups(self, parts=None) -> list[Any]:
        return [(0, k, None) for k in range(len(self._batches))]

    def rows(self, part: int, group: int) -> Bicliques:
        return self._batches[group]


def by_all_pairs(pairs: list[Any], least: tuple[int, int]) -> set[frozenset[Any]]:
    """The communities by the definition: every two bicliques are compared, and both sides have to be shared."""
    large = [pair for pair in pairs if len(pair[0]) >= least[0] and len(pair[1]) >= least[1]]
    groups = [{pair} for pair in large]
    for one, other in itertools.combinations(large, 2):
        if all(len(set(a) & set(b)) >= n for a, b, n in zip(one, other, least, strict=True)):
            (first,), (second,) = ([g for g in groups if pair in g] for pair in (one, other))
            if first is not second:
                first |= second
                groups.remove(second)
    return {frozenset(group) for group in groups}


def found_in(edges: np.ndarray, pairs: list[Any], sizes: tuple[int, int], least: tuple[int, int]):
    ends = np.ascontiguousarray(edges[:, 0], np.int32), np.ascontiguousarray(edges[:, 1], np.int32)
    return find_communities(InMemory(pairs, sizes, 5), hashes_of_ids(*sizes), [ends], least)


def ids_of(pairs: list[Any]) -> dict[Any, int]:
    batch = Bicliques.from_pairs([(list(left), list(right)) for left, right in pairs])
    return dict(zip(pairs, batch.ids.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(examples(20)))
@pytest.mark.first(3)
def test_the_lattice_gives_what_all_pairs_give(seed):
    rng = np.random.default_rng(seed)
    joined = 0
    for _ in range(50):
        sizes = int(rng.integers(1, 11)), int(rng.integers(1, 11))
        edges = random_edges(rng, *sizes, rng.uniform(0.1, 0.9))
        pairs = sorted(cliques(edges))
        least = int(rng.integers(1, 5)), int(rng.integers(1, 5))
        settings, fingerprint, found, of_bicliques = found_in(edges, pairs, sizes, least)
        ids = ids_of(pairs)
        expected = by_all_pairs(pairs, least)
        joined += len(of_bicliques) - len(expected)
        rows = {}
        for id, community in zip(*of_bicliques.to_pydict().values(), strict=True):
            rows.setdefault(community, set()).add(id)
        assert {frozenset(own) for own in rows.values()} == {frozenset(ids[pair] for pair in own) for own in expected}
        order = sorted((-len(own), min(own)) for own in rows.values())
        assert list(zip((-found.root).tolist(), found.ids.tolist(), strict=True)) == order
        sums = [sum(ids[pair] for pair in own) % 2**64 for own in expected]
        assert fingerprint == int(np.add.reduce(splitmix64(np.array(sums, np.uint64)), dtype=np.uint64))
        for setting in settings:
            each = [len(own) for own in by_all_pairs(pairs, (setting["left"], setting["right"]))]
            assert [*setting.values()][2:] == [sum(each), len(each), max(each, default=0)]
        by_id = {id: pair for pair, id in ids.items()}
        for own, sides in zip(found.ids.tolist(), found.to_pairs(), strict=True):
            for side in (0, 1):
                assert set(sides[side]) == {vertex for id in rows[own] for vertex in by_id[id][side]}
                assert len(sides[side]) == len(set(sides[side]))
    assert joined > 50


def test_at_1x1_communities_are_the_connected_components():
    edges = np.array([[0, 0], [1, 0], [1, 1], [2, 2], [3, 3], [3, 4]])
    found = found_in(edges, sorted(cliques(edges)), (4, 5), (1, 1))[2]
    assert sorted(found.to_pairs()) == [((0, 1), (0, 1)), ((2,), (2,)), ((3,), (3, 4))]


def test_rows_that_are_read_again_bits_and_threads_change_nothing(monkeypatch):
    edges = random_edges(np.random.default_rng(5), 30, 30, 0.4)
    pairs = sorted(cliques(edges))
    expected = found_in(edges, pairs, (30, 30), (3, 3))
    assert 1 < len(expected[2]) < len(expected[3])
    for kept, room, cores in ((40, 4, 5), (0, 0, 1), (2000, 0.2, 3)):  # some vertices have 10 neighbours or more
        monkeypatch.setattr(communities, "_KEPT_MEMBERS", kept)
        monkeypatch.setattr(communities, "_ROOM_FOR_BITS", room)
        monkeypatch.setattr(communities, "count_cores", lambda cores=cores: cores)
        found = found_in(edges, pairs, (30, 30), (3, 3))
        assert found[:2] == expected[:2]
        assert found[2].to_pairs() == expected[2].to_pairs()
        assert found[3].equals(expected[3])


def test_threads_join_the_same_rows(monkeypatch):
    edges, sizes = random_edges(np.random.default_rng(5), 60, 60, 0.4), (60, 60)
    ends = np.ascontiguousarray(edges[:, 0], np.int32), np.ascontiguousarray(edges[:, 1], np.int32)
    asked = InMemory(sorted(cliques(edges)), sizes, 1000), hashes_of_ids(*sizes), [ends], (4, 4)
    expected = find_communities(*asked)
    monkeypatch.setattr(communities, "count_cores", lambda: 8)
    for _ in range(20):
        assert find_communities(*asked)[:2] == expected[:2]


def test_sets_are_joined_although_another_thread_joins_one_of_them_first(monkeypatch):
    up, times = np.arange(4, dtype=np.int32), []

    def replaced(rows, k, old, new):
        times.append(k)
        if len(times) == 1:
            rows[k] = 0  # what the other thread does
        was_old = rows[k] == old
        rows[k] = new if was_old else rows[k]
        return was_old

    join, top = joining._join.function, joining._top.function
    monkeypatch.setattr(joining, "_replaced", replaced)
    monkeypatch.setattr(joining, "_top", top)
    assert join(up, 0, 1, 3)
    assert [top(up, 0, row) for row in range(4)] == [0, 0, 2, 0]
    assert not join(up, 0, 0, 3)


def test_either_side_gives_the_same_communities():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        edges = random_edges(rng, 12, 9, 0.5)
        turned = np.array(sorted(edges[:, ::-1].tolist())).reshape(-1, 2)
        pairs = sorted(cliques(edges))
        found = found_in(edges, pairs, (12, 9), (2, 3))[2].to_pairs()
        other = found_in(turned, [(right, left) for left, right in pairs], (9, 12), (3, 2))[2].to_pairs()
        assert sorted(found) == sorted((left, right) for right, left in other)


def test_a_missing_row_is_noticed():
    edges = random_edges(np.random.default_rng(3), 12, 12, 0.6)
    pairs = sorted(cliques(edges))
    noticed = 0
    for k in range(0, len(pairs), 3):
        try:
            found_in(edges, pairs[:k] + pairs[k + 1 :], (12, 12), (1, 1))
        except IncompleteError as error:
            noticed += "is missing; verify the run" in str(error)
    assert noticed > len(pairs) // 6


def test_a_row_that_is_there_twice_or_has_other_members_is_noticed(monkeypatch):
    edges = random_edges(np.random.default_rng(3), 12, 12, 0.6)
    pairs = sorted(cliques(edges))
    with pytest.raises(IncompleteError, match=r"another row has the members of -?\d+; verify the run"):
        found_in(edges, [*pairs, pairs[3]], (12, 12), (1, 1))
    wrong = Bicliques.from_pairs([([0, 1], [2])], ids=np.array([17]))
    monkeypatch.setattr(InMemory, "rows", lambda self, part, group: wrong)
    with pytest.raises(IncompleteError, match="17 is not the id of the members of its row; verify the run"):
        found_in(edges, pairs[:1], (12, 12), (1, 1))


#: Graph, setting, bicliques, communities, the most bicliques of one, and the fingerprint of dense ids, all of which
#: another program has found by the lattice and by all pairs.
KNOWN = [
    ("debian12_package_tag", (5, 5), 11_869, 1_543, 10_229, 0x2D386E0D45DF445C),
    ("debian12_package_tag", (10, 10), 17, 11, 7, 0x60922AB5B196F77F),
    *(
        pytest.param(*row, marks=pytest.mark.golden)
        for row in (
            ("ucforum", (2, 2), 15_216, 843, 14_369, 0xD64ADD7DEEDE91F9),
            ("ucforum", (3, 3), 6_127, 2_025, 4_067, 0x0D865273513091B7),
            ("escorts", (3, 3), 16_611, 4_329, 10_223, 0xE9487061E2E124B6),
            ("dblp4_paper_author", (2, 2), 5_650, 2_959, 422, 0x111F393B08D6D2DE),
            ("dblp4_paper_author", (3, 3), 776, 577, 48, 0xCF5C661D774CFE79),
            ("dbpedia_writers", (2, 2), 6_605, 4_675, 109, 0x6E240B49B90E8876),
            ("marvel", (5, 5), 100_349, 2_426, 94_881, 0x6BB5335FF16469FE),
            ("marvel", (8, 8), 17_709, 1_643, 15_454, 0x4A75218D442C4C64),
        )
    ),
    *(
        pytest.param(*row, marks=[pytest.mark.golden, pytest.mark.exhaustive])
        for row in (
            ("marvel", (3, 3), 172_069, 1_944, 169_333, 0xB075F8BFC67FE23C),
            ("youtube", (7, 7), 368_624, 30_966, 233_600, 0xD1DA4FF7C2F3F32C),
        )
    ),
]


@pytest.mark.parametrize(("name", "least", "bicliques", "number", "largest", "fingerprint"), KNOWN)
def test_known_communities(name, least, bicliques, number, largest, fingerprint, tmp_path):
    if (path := known_graph(name)) is None:
        pytest.skip(f"{name}.parquet is not here: {NOT_HERE}")
    edges = dense_edges(path)
    source = pa.table([edges[:, 0], edges[:, 1]], ["left", "right"])
    options = {"min_left": least[0], "min_right": least[1], **QUIET}
    found = bq.mine(source, tmp_path / "out", **options).communities(*least)
    assert list(found.settings[0].values()) == [*least, bicliques, number, largest]
    assert found.fingerprint == fingerprint
    assert len(found) == number == len(found.table)
    assert len(found.of_bicliques) == bicliques


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("communities")
    edges = [(f"<b>{u}</b>", f"=r{v}") for u, v in random_edges(np.random.default_rng(5), 30, 30, 0.4).tolist()]
    table = pa.table(dict(zip(("<b>who</b>", "what"), zip(*edges, strict=True), strict=True)))
    pq.write_table(table, folder / "g.parquet")
    bq.mine(folder / "g.parquet", folder / "out", min_left=2, min_right=2, **OWN)
    return folder / "out"


def test_the_files_have_each_community_and_each_biclique(out):
    results = bq.open_run(out)
    found = results.communities(3, 3)
    table, rows = found.table, found.of_bicliques
    assert found.path == out / "communities"
    assert table.column_names == ["id", "left", "right", "n_left", "n_right", "bicliques"]
    sizes = {row["id"]: row for row in results.to_arrow(["id", "n_left", "n_right", "left", "right"]).to_pylist()}
    large = {id for id, row in sizes.items() if min(row["n_left"], row["n_right"]) >= 3}
    assert set(rows["id"].to_pylist()) == large
    assert len(rows) == len(large)
    assert Counter(rows["community"].to_pylist()) == dict(
        zip(*table.select(["id", "bicliques"]).to_pydict().values(), strict=False)
    )
    for row in table.to_pylist():
        own = [sizes[each["id"]] for each in rows.to_pylist() if each["community"] == row["id"]]
        assert row["id"] == min(each["id"] for each in own)
        for side in ("left", "right"):
            assert set(row[side]) == {label for each in own for label in each[side]}
            assert len(row[side]) == row[f"n_{side}"]
    pairs = results.memberships("right", by="community")
    assert pairs.column_names == ["community", "right"]
    assert len(pairs) == sum(table["n_right"].to_pylist())
    with pytest.raises(InputError, match="by biclique or by community, not by 'area'"):
        results.memberships(by="area")


def test_the_largest_are_shown_with_their_community(out):
    results = bq.open_run(out)
    found = results.communities(3, 3)
    known = dict(zip(*found.of_bicliques.to_pydict().values(), strict=True))
    shown = results.top(len(results), community=True)
    assert {row["community"] for row in shown.to_pylist()} == {None, *known.values()}
    assert all(row["community"] == known.get(row["id"]) for row in shown.to_pylist())
    own = found.table["id"][0].as_py()
    expected = [row["id"] for row in results.top(len(results), "balance").to_pylist() if known.get(row["id"]) == own]
    assert results.top(4, "balance", community=own)["id"].to_pylist() == expected[:4]
    with pytest.raises(UnknownIdError, match="no community with the id 5"):
        results.top(community=5)
    distinct = results.top(len(results), "balance", 0.5, community=own)["id"].to_pylist()
    assert distinct[0] == expected[0]
    assert 1 < len(distinct) < len(expected)
    assert {*distinct} < {*expected}


def test_the_command_writes_files_for_show_and_for_the_page(out, capsys):
    code, text, _ = run(capsys, "communities", out, "--at", "3x2", "--json")
    told = json.loads(text)
    assert code == 0
    assert [told["settings"][0]["left"], told["settings"][0]["right"]] == [3, 2]
    assert told["fingerprint"] == str(bq.open_run(out).communities().fingerprint)
    assert '<section id="communities">' not in (out / "report.html").read_text()
    assert run(capsys, "report", out)[0] == 0
    assert len(bq.open_run(out).communities()) == told["settings"][0]["communities"]
    page = (out / "report.html").read_text()
    section = page[page.index('<section id="communities">') :].partition("</section>")[0]
    assert f"{told['settings'][0]['bicliques']:,}" in section
    assert "share of the largest" in section
    assert "<b>who</b>" not in page
    assert "&lt;b&gt;who&lt;/b&gt;" in section
    code, text, _ = run(capsys, "communities", out, "--at", "3x3")
    assert code == 0
    assert "4x4" in text
    code, text, _ = run(capsys, "show", out, "-n", "3", "--community")
    own = bq.open_run(out).communities(3, 3).table["id"][0].as_py()
    assert code == 0
    assert str(own) in text
    code, text, _ = run(capsys, "show", out, "-n", "3", "--community", str(own))
    assert code == 0
    assert text.count("\n") == 4
    assert bq.verify(out).count == len(bq.open_run(out))  # the files are no strangers


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"min_left": 4}, "has only those with at least 4 left members; mine again for all of them"),
        ({"min_right": 4}, "has only those with at least 4 right members; mine again for all of them"),
        ({"max_left": 4}, "has only those with at most 4 left members; mine again for all of them"),
        ({"max_right": 4}, "has only those with at most 4 right members; mine again for all of them"),
        ({"containing_right": [1]}, "has only those with on the right 1; mine again for all of them"),
        ({"count_only": True}, "only counted"),
        ({"max_results": 3}, "is not complete"),
    ],
)
def test_a_run_that_may_lack_bicliques_is_refused(options, why, tmp_path):
    source = write_edges(tmp_path / "g.parquet", random_edges(np.random.default_rng(5), 20, 20, 0.4))
    results = bq.mine(source, tmp_path / "out", **QUIET, **options)
    with pytest.raises((InputError, IncompleteError), match=why):
        results.communities(3, 3)
    assert not (tmp_path / "out" / "communities").exists()


def test_the_largest_alone_have_no_communities(tmp_path):
    source = write_edges(tmp_path / "g.parquet", random_edges(np.random.default_rng(5), 20, 20, 0.4))
    bq.largest(source, tmp_path / "out", top=3, **QUIET)
    with pytest.raises(InputError, match="has only the 3 largest; mine again for all of them"):
        bq.open_run(tmp_path / "out").communities(3, 3)


@pytest.mark.parametrize("at", ["3", "0x3", "3x0", "3x", "3x3x3", "-1x2", "3X3", "2.5x1", "x", ""])
def test_a_setting_that_is_none_is_refused(at, out, capsys):
    code, _, errors = run(capsys, "communities", out, f"--at={at}")
    assert code == 2
    assert errors.count("\n") == 1
    few = re.search(r"members to share must be at least 1, not (0|-1)$", errors.strip())
    assert few or f"--at must be two numbers as 3x4, not '{at}'" in errors


def test_no_communities_yet(tmp_path, capsys):
    source = write_edges(tmp_path / "g.parquet", random_edges(np.random.default_rng(5), 9, 9, 0.4))
    results = bq.mine(source, tmp_path / "out", **QUIET)
    with pytest.raises(InputError, match="keeps no communities; find those of one setting first, as of 3x3"):
        results.communities()
    code, _, errors = run(capsys, "show", tmp_path / "out", "--community")
    assert code == 2
    assert "keeps no communities" in errors
    found = results.communities(9, 9)
    assert len(found) == 0 == len(found.table)
    assert found.settings[0]["bicliques"] == 0


def test_communities_of_other_bicliques_or_in_a_damaged_file_are_none(tmp_path):
    source = write_edges(tmp_path / "g.parquet", random_edges(np.random.default_rng(5), 20, 20, 0.4))
    results = bq.mine(source, tmp_path / "out", **QUIET)
    file = results.communities(3, 3).path / "communities.parquet"
    assert results.communities().settings[0]["left"] == 3
    whole = file.read_bytes()
    file.write_bytes(whole[:-50] + bytes(50))
    with pytest.raises(InputError, match="keeps no communities"):
        results.communities()
    file.write_bytes(whole[:8] + bytes(60) + whole[68:])
    with pytest.raises(IncompleteError, match=r"communities.parquet cannot be read"):
        _ = results.communities().table
    file.write_bytes(whole)
    other = bq.mine(source, tmp_path / "other", min_left=2, **QUIET)
    (tmp_path / "other" / "communities").mkdir()
    (tmp_path / "other" / "communities" / "communities.parquet").write_bytes(whole)
    with pytest.raises(InputError, match="keeps no communities"):
        other.communities()


def test_communities_go_with_the_run_that_takes_the_place(tmp_path):
    source = write_edges(tmp_path / "g.parquet", random_edges(np.random.default_rng(5), 20, 20, 0.4))
    options = QUIET
    assert bq.mine(source, tmp_path / "out", **options).communities(3, 3).path.is_dir()
    bq.publish(tmp_path / "out", tmp_path / "there")
    assert (tmp_path / "there" / "communities" / "communities.parquet").is_file()
    bq.mine(source, tmp_path / "out", overwrite=True, min_left=2, **options)
    assert not list((tmp_path / "out").glob("communities/*"))
