"""What changed between two runs, against sets of Python."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.compare import diffing
from bicliques.pipeline.output import part_writer, stretch
from bicliques.pipeline.proof import read_back
from tests.support.compared import QUIET, changes, maximal_bicliques, night, rows_of
from tests.support.examples import examples
from tests.support.runs import ROOT, random_edges

Edges = set[tuple[Any, Any]]


def check(old: Path, new: Path, was: set[Any], now: set[Any], place: Path) -> bq.Difference:
    """The difference is that of the sets, for rows, numbers, fingerprints and vertices."""
    shares = [0.0]
    found = bq.diff(old, new, place, progress=lambda progress: shares.append(progress.share))
    assert shares == sorted(shares)
    assert shares[-1] <= 1
    assert rows_of(found.gone) == was - now
    assert rows_of(found.new) == now - was
    assert (len(found.gone), len(found.new), found.unchanged) == (len(was - now), len(now - was), len(was & now))
    assert found.share == pytest.approx(len(was ^ now) / max(len(was | now), 1))
    for side, expected in changes(was, now).items():
        table = found.vertices[side]
        assert table.column_names == ["label", "before", "after", "gone", "new"]
        assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == expected
    for rows, counted in ((found.gone, found.record.gone), (found.new, found.record.new)):
        ids = rows.to_arrow(columns=["id"])["id"].to_numpy().view(np.uint64)
        assert counted.fingerprint == int(ids.sum()) % 2**64
        assert counted.count == len(rows)
    return found


def changed(edges: Edges, rng: np.random.Generator, n: int, n_left: int, n_right: int) -> Edges:
    """The edges with `n` pairs of vertices joined that were not, or parted that were."""
    pairs = {(int(a), int(b)) for a, b in zip(rng.integers(0, n_left, n), rng.integers(0, n_right, n), strict=True)}
    return edges ^ pairs or {(0, 0)}


def test_pairs_of_random_graphs_one_by_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    edges, last = {(0, 0)}, None
    for k in range(examples(25)):
        n_left, n_right = int(rng.integers(1, 8)), int(rng.integers(1, 8))
        if k % 3 == 0:  # otherwise a few edges change
            edges = {(int(a), int(b)) for a, b in random_edges(n_left, n_right, rng.random(), k)}
        edges = changed(edges, rng, int(rng.integers(0, 4)), n_left, n_right)
        now = night(tmp_path / f"run{k}", edges), maximal_bicliques(edges)
        assert rows_of(bq.open_run(now[0])) == now[1]
        if last is not None:
            check(last[0], now[0], last[1], now[1], tmp_path / f"diff{k}")
        last = now


def test_thousands_of_pairs_of_random_graphs_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bicliques of a disjoint union are those of its graphs, so one comparison is one of every pair."""
    monkeypatch.setattr(diffing, "_BUCKET", 1 << 12)
    rng, graphs, names = np.random.default_rng(8), 2000, "user {}".format
    edges: list[Edges] = [set(), set()]
    bicliques: list[set[Any]] = [set(), set()]
    for k in range(graphs):
        n_left, n_right = int(rng.integers(1, 7)), int(rng.integers(1, 7))
        was = {(int(a), int(b)) for a, b in random_edges(n_left, n_right, 0.3 + 0.5 * rng.random(), k)}
        now = changed(was, rng, k % 4, n_left, n_right)
        for own, found, total in ((was, bicliques[0], edges[0]), (now, bicliques[1], edges[1])):
            named = {(names(10 * k + a), 10 * k + b) for a, b in own}
            total |= named
            found |= maximal_bicliques(named)
    old, new = (night(tmp_path / name, own) for name, own in (("old", edges[0]), ("new", edges[1])))
    found = check(old, new, *bicliques, tmp_path / "diff")
    assert min(len(found.gone), len(found.new), found.unchanged) > 1000


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[tuple[Any, Any]], tuple[str, str], Path, set[Any]]:
    """The pairs of a real graph, the names of its sides, its run and what that found."""
    table = pq.read_table(ROOT / "examples" / "debian12_package_tag.parquet")
    pairs = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    left, right = table.column_names
    old = night(tmp_path_factory.mktemp("real") / "old", set(pairs), (left, right))
    return pairs, (left, right), old, rows_of(bq.open_run(old))


@pytest.mark.exhaustive  # thousands of pairs at once: see above
@pytest.mark.parametrize("n", [1, 10_000])
def test_a_real_graph_with_changed_edges(real: Any, tmp_path: Path, n: int) -> None:
    """Half of the changed edges go, and as many others come."""
    pairs, names, old, was = real
    rng, rights = np.random.default_rng(n), sorted({right for _, right in pairs})
    edges = {pairs[k] for k in rng.permutation(len(pairs))[n // 2 :]}
    while len(edges) < len(pairs) - n // 2 + (n + 1) // 2:
        edges.add((pairs[rng.integers(len(pairs))][0], rights[rng.integers(len(rights))]))
    new = night(tmp_path / "new", edges, names)
    found = check(old, new, was, rows_of(bq.open_run(new)), tmp_path / "diff")
    assert len(found.new) > 0
    assert found.record.notes == ()


def test_files_have_the_layout_of_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, number in (
        (stretch, "STRETCH_MEMBERS", 100),
        (part_writer, "PART_BYTES", 1500),
        (read_back, "PIECE_BYTES", 1000),
    ):
        monkeypatch.setattr(module, name, number)
    edges = {(int(a), int(b)) for a, b in random_edges(18, 16, 0.5, 1)}
    less = set(sorted(edges)[:-40])
    old, new = night(tmp_path / "old", edges), night(tmp_path / "new", less)
    found = check(old, new, maximal_bicliques(edges), maximal_bicliques(less), tmp_path / "diff")
    part, *others = bq.open_run(new).files
    assert len(others) > 1, "rows are numbered through several parts"
    for rows, path in ((found.gone, old), (found.new, new)):
        assert rows.schema.equals(pq.read_schema(part))
        metadata, options = rows.schema.metadata, json.loads((path / "options.json").read_text())
        assert metadata[b"bicliques.run"].decode() == options["origin"]["run"]
        assert (metadata[b"bicliques.left"], metadata[b"bicliques.right"]) == (b"user", b"film")
    file = pq.ParquetFile(found.gone.path)
    assert file.num_row_groups > 1
    assert file.metadata.row_group(0).sorting_columns
    first = file.read_row_group(0)["n_left"].to_pylist()
    assert first == sorted(first, reverse=True)
    assert found.gone.top(3, "left")["n_left"][0].as_py() == found.gone.to_pandas(["n_left"])["n_left"].max()
    assert {path.name for path in found.path.iterdir()} == {
        *("gone.parquet", "new.parquet", "vertices_left.parquet", "vertices_right.parquet", "diff.json")
    }


def test_nothing_changed_and_everything_changed(tmp_path: Path) -> None:
    one, other = {(1, 1), (1, 2), (2, 2)}, {(5, 7)}
    runs = [night(tmp_path / str(k), edges) for k, edges in enumerate((one, other))]
    rows = [maximal_bicliques(edges) for edges in (one, other)]
    same = check(runs[0], runs[0], rows[0], rows[0], tmp_path / "same")
    assert (same.share, same.most_changed()) == (0.0, [])
    found = check(runs[0], runs[1], rows[0], rows[1], tmp_path / "all")
    assert found.share == 1.0
    assert repr(found) == f"<{len(rows[0])} gone, 1 new, 0 unchanged, in {tmp_path / 'all'}>"


def test_runs_without_bicliques(tmp_path: Path) -> None:
    edges = {(1, 1), (2, 1)}
    some, none = night(tmp_path / "some", edges), night(tmp_path / "none", edges, min_right=2)
    found = check(none, some, set(), maximal_bicliques(edges), tmp_path / "diff")
    assert "min_right was 2 and is 1" in found.record.notes[0]
    check(none, none, set(), set(), tmp_path / "nothing")
    assert bq.diff(none, none, tmp_path / "again", progress=False).share == 0.0


def test_dense_ids_are_written_as_labels(tmp_path: Path) -> None:
    edges = {(int(a) * 3 + 40, int(b) * 7 + 100) for a, b in random_edges(9, 8, 0.5, 2)}
    less = edges - {min(edges)}
    dense, labels = night(tmp_path / "dense", edges, ids="dense"), night(tmp_path / "labels", less)
    check(dense, labels, maximal_bicliques(edges), maximal_bicliques(less), tmp_path / "one")
    check(labels, dense, maximal_bicliques(less), maximal_bicliques(edges), tmp_path / "other")


def test_the_engine_and_the_root_side_do_not_matter(tmp_path: Path) -> None:
    edges = {(int(a), int(b)) for a, b in random_edges(9, 12, 0.5, 2)}
    old = night(tmp_path / "old", edges, engine="reference", root_side="left")
    new = night(tmp_path / "new", edges, engine="cpu", root_side="right", order="id")
    rows = maximal_bicliques(edges)
    check(old, new, rows, rows, tmp_path / "diff")


def test_labels_that_grow_beyond_32_bits(tmp_path: Path) -> None:
    old, new = tmp_path / "old.csv", tmp_path / "new.parquet"
    edges = {(1, 5), (2, 5), (2, 6)}
    old.write_text("user,film\n" + "".join(f"{a},{b}\n" for a, b in sorted(edges)))
    runs = [bq.mine(old, tmp_path / "old", **QUIET).path]
    more = edges | {(2**40, 6), (3, 5)}
    runs.append(night(tmp_path / "new", more))
    assert new.exists()
    check(*runs, maximal_bicliques(edges), maximal_bicliques(more), tmp_path / "diff")


HOSTILE = [
    "a\nb",
    '"quoted", with a comma',
    "<script>alert(1)</script>",
    "=HYPERLINK(1)",
    "\x1b[2J",
    "é" * 300,
    " ",
    "'",
]


def test_hostile_labels(tmp_path: Path) -> None:
    edges = {(a, b) for i, a in enumerate(HOSTILE) for j, b in enumerate(HOSTILE) if (i * j) % 3 != 1}
    less = edges - {(HOSTILE[2], HOSTILE[0]), (HOSTILE[5], HOSTILE[3])}
    runs = night(tmp_path / "old", edges), night(tmp_path / "new", less)
    check(*runs, maximal_bicliques(edges), maximal_bicliques(less), tmp_path / "diff")
