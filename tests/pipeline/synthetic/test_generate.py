"""`bicliques.generate`: the same graph everywhere, the folder that it is in, and what the miner finds there."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.run.files import temporary_name
from bicliques.pipeline.run.names import UNFINISHED_FILE
from bicliques.pipeline.synthetic import generating
from bicliques.pipeline.synthetic.generating import PLANTED_FILE, TRUTH_FILE, Generated, remove_graph
from bicliques.schemas.errors import IncompleteError, InputError, ResourceError
from bicliques.schemas.hashes import mixed
from tests.support.emulated import runnable
from tests.support.runs import environment

SMALL: dict[str, Any] = {"n_left": 300, "n_right": 200, "edges": 3000, "plant": [(9, 12), (20, 5)], "seed": 1}

#: What `estimate` wants to be told, too.
USUAL: dict[str, Any] = {"plant": [], "noise": 0, "labels": "integers", "seed": 0}
USUAL |= dict.fromkeys(("left_exponent", "right_exponent", "max_left_degree", "max_right_degree"))

#: Fingerprints. They follow from integers alone, so they are the same on any machine and with any version of a library.
GOLDEN: dict[int, dict[str, Any]] = {
    0: SMALL,
    1: SMALL | {"noise": "0.25", "seed": 2**64 - 1, "left_exponent": 2.1, "max_right_degree": 60},
    2: {"n_left": 64_415, "n_right": 87_678, "edges": 3_200_000, "left_exponent": "2.2", "right_exponent": "2.2"},
}


def generate(place: Path, **options: Any) -> Generated:
    return bq.generate(place, **({"progress": False, "threads": 1} | options))


def edges_of(place: Path) -> pa.Table:
    return pq.ParquetDataset(sorted(place.glob("part-*.parquet"))).read()


def content(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir()}


@pytest.mark.parametrize("case", GOLDEN)
def test_a_seed_gives_the_same_graph_on_any_machine(case: int, tmp_path: Path) -> None:
    expected = (16456922949415668445, 8110136942441212408, 8326922437727198263)[case]
    assert generate(tmp_path / "g", **GOLDEN[case]).fingerprint == expected


def test_the_truth_is_what_the_files_hold(tmp_path: Path) -> None:
    graph = generate(tmp_path / "g", **SMALL, part_edges=500)
    parts = graph.truth["parts"]
    assert len(parts) > 4
    assert sorted(content(tmp_path / "g")) == sorted([TRUTH_FILE, PLANTED_FILE, *(part["file"] for part in parts)])
    for part in parts:
        table = pq.read_table(tmp_path / "g" / part["file"])
        left, right = (column.to_numpy().astype(np.uint64) for column in table.columns)
        assert len(table) == part["edges"] <= 700
        assert int(mixed(left, right).sum()) == int(part["fingerprint"])
    assert sum(int(part["fingerprint"]) for part in parts) % 2**64 == graph.fingerprint
    edges = edges_of(tmp_path / "g")
    assert len(edges) == graph.edges == len(set(zip(*edges.to_pydict().values(), strict=True)))
    for side, n in (("left", 300), ("right", 200)):
        degrees = np.bincount(edges[side].to_numpy(), minlength=n)
        found = {"vertices": n, "with_edges": int((degrees > 0).sum()), "largest_degree": int(degrees.max())}
        assert graph.truth[side] == found
        assert len(degrees) == n


def test_parts_and_threads_do_not_change_the_graph(tmp_path: Path) -> None:
    one = generate(tmp_path / "one", **SMALL)
    many = generate(tmp_path / "many", **SMALL, part_edges=64, threads=5)
    again = generate(tmp_path / "again", **SMALL, part_edges=64, threads=2)
    assert len(many.truth["parts"]) > 20
    assert one.fingerprint == many.fingerprint
    assert edges_of(one.path).equals(edges_of(many.path))
    assert content(many.path) == content(again.path)


def test_text_labels_have_20_bytes_and_the_same_numbers(tmp_path: Path) -> None:
    numbers, text = generate(tmp_path / "n", **SMALL), generate(tmp_path / "t", **SMALL, labels="text")
    assert numbers.fingerprint == text.fingerprint
    for side in ("left", "right"):
        labels = edges_of(text.path)[side].to_pylist()
        assert {len(label.encode()) for label in labels} == {20}
        assert {label[: len(side) + 1] for label in labels} == {f"{side}-"}
        assert [int(label[len(side) + 1 :]) for label in labels] == edges_of(numbers.path)[side].to_pylist()
    counts = [bq.count(each.path, progress=False) for each in (numbers, text)]
    assert counts[0].count == counts[1].count
    assert text.planted[0]["left"][0].startswith("left-0000000000000")


def test_planted_bicliques_are_found_above_thresholds(tmp_path: Path) -> None:
    plant = [(20, 15), (12, 25), (16, 16)]
    graph = generate(tmp_path / "g", n_left=4000, n_right=3000, edges=30_000, plant=plant, seed=3)
    found = bq.mine(graph.path, tmp_path / "out", min_left=12, min_right=15, progress=False, report=False)
    rows = [
        (set(left), set(right)) for left, right in zip(*(found.to_pandas()[s] for s in ("left", "right")), strict=True)
    ]
    for each in graph.planted:
        assert (each["n_left"], each["n_right"]) in plant
        assert any(set(each["left"]) <= left and set(each["right"]) <= right for left, right in rows)
    assert len(rows) == len(plant)


def test_noise_removes_exactly_its_share_and_nothing_puts_it_back(tmp_path: Path) -> None:
    graph = generate(tmp_path / "g", n_left=60, n_right=50, edges=1400, plant=[(20, 25)], noise=0.1, seed=4)
    edges = set(zip(*edges_of(graph.path).to_pydict().values(), strict=True))
    [planted] = graph.planted
    inside = [(u, v) for u in planted["left"] for v in planted["right"] if (u, v) in edges]
    assert len(inside) == planted["edges"] == 450
    assert len(edges) == 1400
    per_vertex = [sum(u == left for u, _ in inside) for left in planted["left"]]
    assert set(per_vertex) == {22, 23}


@pytest.mark.parametrize("engine", ["reference", "cpu", "bitmatrix"])
def test_engines_count_the_same_from_both_sides(engine: Any, tmp_path: Path) -> None:
    graph = generate(tmp_path / "g", n_left=60, n_right=50, edges=350, plant=[(6, 7)], seed=5)
    expected, fingerprints = 327, set()
    with runnable(engine):
        for side in ("left", "right"):
            how = {"engine": engine, "root_side": side, "workers": 0, "progress": False}
            found = bq.count(graph.path, fingerprint=True, **how)
            fingerprints.add(found.fingerprint)
            assert found.count == expected
    [fingerprint] = fingerprints
    assert fingerprint is not None


@pytest.mark.parametrize("engine", ["cpu", "bitmatrix"])
def test_engines_find_the_same_above_thresholds_from_both_sides(engine: Any, tmp_path: Path) -> None:
    """Thresholds leave a core of 23,649 edges, in which the kernels of the sieve search."""
    graph = generate(
        tmp_path / "g", n_left=4000, n_right=3000, edges=30_000, left_exponent=2.3, plant=[(14, 12)], seed=7
    )
    with runnable(engine):
        for side in ("left", "right"):
            how = {"engine": engine, "root_side": side, "workers": 0, "progress": False}
            found = bq.count(graph.path, min_left=4, min_right=4, fingerprint=True, **how)
            assert (found.count, found.fingerprint) == (326, 14806845386997189162)


def test_a_million_edges_count_the_same_from_both_sides(tmp_path: Path) -> None:
    graph = generate(tmp_path / "g", n_left=200_000, n_right=150_000, edges=10**6, plant=[(60, 60)], seed=6)
    least = {"min_left": 20, "min_right": 20}
    found = [
        bq.count(graph.path, engine="cpu", root_side=side, fingerprint=True, progress=False, **least)
        for side in ("left", "right")
    ]
    assert found[0].count == found[1].count
    assert found[0].fingerprint == found[1].fingerprint is not None
    assert found[0].count >= 1


def test_the_same_call_returns_what_is_there_and_another_is_refused(tmp_path: Path) -> None:
    graph = generate(tmp_path / "g", **SMALL)
    before = {path.name: path.stat().st_mtime_ns for path in graph.path.iterdir()}
    assert generate(tmp_path / "g", **SMALL, threads=3).fingerprint == graph.fingerprint
    assert {path.name: path.stat().st_mtime_ns for path in graph.path.iterdir()} == before
    with pytest.raises(InputError, match=r"holds a graph with seed=1, not 2; .*overwrite=True"):
        generate(tmp_path / "g", **SMALL | {"seed": 2})
    assert {path.name: path.stat().st_mtime_ns for path in graph.path.iterdir()} == before
    other = generate(tmp_path / "g", **SMALL | {"seed": 2, "plant": []}, overwrite=True, part_edges=1000)
    assert other.fingerprint != graph.fingerprint
    assert other.planted == []


def test_what_a_killed_process_left_is_no_graph_and_is_begun_anew(tmp_path: Path) -> None:
    whole = content(generate(tmp_path / "whole", **SMALL, part_edges=500).path)
    place = tmp_path / "g"
    place.mkdir()
    left_over = {"part-00000.parquet": b"half", "part-00099.parquet": b"x", temporary_name("part-00001.parquet"): b"y"}
    for name, data in left_over.items():
        (place / name).write_bytes(data)
    with pytest.raises(IncompleteError):
        Generated(place)
    assert content(generate(place, **SMALL, part_edges=500).path) == whole


KILLED = """
import os, signal, sys, bicliques as bq
bq.generate(sys.argv[1], n_left=300, n_right=200, edges=3000, seed=1, part_edges=500, threads=1, overwrite=True,
                  progress=lambda _: os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.mark.parametrize("before", ["nothing", "another graph"])
@pytest.mark.first(1)
def test_what_is_left_of_a_kill_is_refused_until_the_same_call_is_made_again(before: str, tmp_path: Path) -> None:
    place = tmp_path / "g"
    if before != "nothing":
        generate(place, n_left=300, n_right=200, edges=2000, part_edges=100)
    ended = subprocess.run([sys.executable, "-c", KILLED, str(place)], env=environment(), check=False)
    assert ended.returncode == -signal.SIGKILL
    assert list(place.glob("part-*.parquet")) != []
    says = "has only a part of a graph, because generating it has not ended; give the same `bicliques generate` again"
    for source in (place, tmp_path, place / "*.parquet", tmp_path / "*" / "part-*", [place]):
        with pytest.raises(InputError, match=says):
            bq.count(source, engine="cpu", progress=False)
    options = {"n_left": 300, "n_right": 200, "edges": 3000, "seed": 1, "part_edges": 500}
    whole = content(generate(tmp_path / "other" / "whole", **options).path)
    assert content(generate(place, **options).path) == whole
    assert bq.count(place, engine="cpu", progress=False).count > 0


def test_a_kill_just_before_the_end_leaves_a_graph_that_the_same_call_finishes(tmp_path: Path) -> None:
    place = generate(tmp_path / "g", **SMALL).path
    whole = content(place)
    (place / UNFINISHED_FILE).write_text("{}")
    with pytest.raises(InputError, match="has only a part of a graph"):
        bq.count(place, progress=False)
    before = (place / "part-00000.parquet").stat().st_mtime_ns
    assert content(generate(place, **SMALL).path) == whole
    assert (place / "part-00000.parquet").stat().st_mtime_ns == before


def test_overwriting_removes_first_what_says_that_the_graph_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, gone = generate(tmp_path / "g", **SMALL, part_edges=500).path, []
    unlink, iterdir = Path.unlink, Path.iterdir

    def mark_first(path: Path) -> Iterator[Path]:
        """In an order that a file system may have."""
        return iter(sorted(iterdir(path), key=lambda own: own.name != UNFINISHED_FILE))

    def note(path: Path, missing_ok: bool = False) -> None:
        if path.exists():
            gone.append(path.name)
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", note)
    monkeypatch.setattr(Path, "iterdir", mark_first)
    remove_graph(place)
    assert (gone[0], gone[-1]) == (TRUTH_FILE, UNFINISHED_FILE)
    assert list(place.iterdir()) == []


def test_an_error_in_the_middle_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ResourceError("the disk is full")

    monkeypatch.setattr(generating, "_write_planted", fail)
    with pytest.raises(ResourceError):
        generate(tmp_path / "g", **SMALL)
    assert not (tmp_path / "g").exists()


def test_an_error_while_parts_are_under_way_waits_for_them(tmp_path: Path) -> None:
    """Else a thread would write its part into the folder that was cleared."""

    def stop(_: Any) -> None:
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt) as ended:
        generate(tmp_path / "g", **SMALL | {"edges": 30_000}, part_edges=3000, threads=4, progress=stop)
    assert not (tmp_path / "g").exists()
    assert threading.active_count() == before, ended  # while the error holds all that was under way


@pytest.mark.parametrize("name", ["notes.txt", "part-x.parquet", "_truth.txt", ".part-00000.parquet.bak"])
def test_a_folder_with_other_files_is_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        generate(tmp_path, **SMALL, overwrite=True)
    assert content(tmp_path) == {name: b"mine"}


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    (generate(tmp_path / "g", **SMALL).path / "part-00000.parquet").unlink()
    with pytest.raises(IncompleteError, match=r"part-00000.parquet is missing"):
        generate(tmp_path / "g", **SMALL)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"edges": 60_001}, "have room for"),
        ({"edges": 59_999}, "beside the planted ones do not fit"),
        ({"plant": [(200, 9), (101, 1)]}, "need 301 left vertices, and there are 300"),
        ({"plant": [(2, 201)]}, "need 201 right vertices"),
        ({"plant": [(100, 100)]}, "10,000 edges, more than all 3,000"),
        ({"plant": [(0, 3)]}, "0 x 3"),
        ({"max_left_degree": 190}, "largest left degree is 190, .* 1 to 188"),
        ({"max_right_degree": 301}, "largest right degree is 301"),
        ({"max_left_degree": 5}, "300 left vertices with at most 5 edges"),
        ({"edges": 400}, "192 of the 400 edges are not planted, too few for 300 left vertices"),
        ({"edges": 290, "plant": []}, "290 edges are too few for 300 left vertices"),
        ({"left_exponent": 1}, "left_exponent is 1"),
        ({"right_exponent": "two"}, "right_exponent is two"),
        ({"seed": -1}, "seed is -1"),
        ({"n_left": 300.0}, "n_left is 300.0; it has to be a whole number"),
        ({"seed": True}, "seed is True; it has to be a whole number"),
        ({"plant": (6, 4)}, "plant: 6 is not of the form 60x40, left by right vertices, and no pair of numbers"),
        ({"plant": [(9, 12.5)]}, "plant is 12.5; it has to be a whole number"),
        ({"threads": "2"}, "threads is '2'; it has to be a whole number"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_written(options: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        generate(tmp_path / "g", **SMALL | options)
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize("given", ["9x12", ["9X12"], [(9, 12)]])
def test_sizes_to_plant_may_be_text(given: Any, tmp_path: Path) -> None:
    assert generate(tmp_path / "g", **SMALL | {"plant": given}).truth["options"]["plant"] == [[9, 12]]


def test_whole_numbers_may_be_those_of_numpy(tmp_path: Path) -> None:
    options = SMALL | {"max_left_degree": 40, "part_edges": 1000, "threads": 1}
    given = {name: np.int64(value) for name, value in options.items() if name != "plant"}
    made = generate(tmp_path / "g", **given, plant=np.array(SMALL["plant"]))
    assert made.fingerprint == generate(tmp_path / "same", **options).fingerprint


PEAK = """
import json, sys, bicliques as bq
from tests.support.own_memory import OwnMemory
bq.generate(sys.argv[1] + "-small", n_left=200, n_right=150, edges=2000, progress=False)  # imports what it needs
memory = OwnMemory()
bq.generate(sys.argv[1], **json.loads(sys.argv[2]), progress=False)
print(memory.peak())
"""


#: What is told before of files that are mapped: libraries.
FILES_BYTES = 110 << 20


@pytest.mark.exhaustive
def test_memory_does_not_follow_the_edges_and_is_told_before(tmp_path: Path) -> None:
    generate(tmp_path / "first", **SMALL)  # else the first child compiles
    dense = {"n_left": 20_000, "n_right": 20_000, "part_edges": 1 << 16, "threads": 2}
    graphs = [
        dense | {"edges": 400_000},
        dense | {"edges": 6_000_000},
        {"n_left": 2_000_000, "n_right": 2_000_000, "edges": 2_200_000, "threads": 1},  # mostly vertices with one edge
    ]
    peaks, told = [], []
    for graph in graphs:
        command = [sys.executable, "-c", PEAK, str(tmp_path / str(graph["edges"])), json.dumps(graph)]
        ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300, check=True)
        peaks.append(int(ended.stdout))
        told.append(generating.estimate(**USUAL | graph).memory_bytes)
        assert peaks[-1] < told[-1] - FILES_BYTES
    assert peaks[1] - peaks[0] < 12 << 20  # the edges are 45 MB more, and their right ends 22
    assert peaks[2] - peaks[0] < told[2] - told[0]  # whatever the process itself takes
    assert json.loads((tmp_path / "6000000" / TRUTH_FILE).read_text())["edges"] == 6_000_000


def test_an_estimate_says_what_it_is_of() -> None:
    found = generating.estimate(**USUAL | {"n_left": 9000, "n_right": 9000, "edges": 60_000, "threads": 1})
    assert (found.edges, found.threads) == (60_000, 1)
    assert found.disk_bytes < 60_000 * 16 < found.memory_bytes
    assert 0 < found.seconds < 1
