"""What was found wrong in nine existing programs, each as a test of this one."""

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.dealing.schedule import Finish, Policy, Scheduler, Start
from bicliques.schemas.manifest import PLAN
from tests.support.known import NOT_HERE, known_graph
from tests.support.runs import ROOT, environment

SHIPPED = ROOT / "examples/debian12_package_tag.parquet"
SHIPPED_COUNT = 56_688


def count(source: Any, **options: Any) -> int:
    found = bq.count(source, engine="cpu", progress=False, **({"workers": 0} | options))
    assert found.complete
    return found.count


def edges(left: np.ndarray, right: np.ndarray) -> pa.Table:
    return pa.table({"left": left, "right": right})


def golden(name: str) -> Path:
    file = known_graph(name)
    if file is None:
        pytest.skip(f"{name}.parquet is not here: {NOT_HERE}")
    return file


# 1. AdaMBE counts too many with any order of the roots but its own: it is not maximal what it reports.


@pytest.mark.values
@pytest.mark.parametrize("root_side", ["left", "right"])
@pytest.mark.parametrize("order", ["degree", "two-hop", "unilateral", "id"])
def test_every_order_and_both_sides_give_the_same_count(order: str, root_side: str) -> None:
    assert count(SHIPPED, order=order, root_side=root_side) == SHIPPED_COUNT


@pytest.mark.golden
@pytest.mark.parametrize(("name", "expected"), [("ucforum", 16_261), ("escorts", 49_538), ("marvel", 206_135)])
@pytest.mark.parametrize("order", ["two-hop", "unilateral", "id"])
def test_the_graphs_it_was_seen_on(name: str, expected: int, order: str) -> None:
    assert count(golden(name), order=order) == expected


# 2. AdaMBE-BIT forgets the size bounds once it has gone over to bit maps.


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> bq.Results:
    return bq.mine(SHIPPED, tmp_path_factory.mktemp("all"), workers=0, engine="cpu", progress=False, report=False)


@pytest.mark.parametrize("bounds", [(2, 2), (3, 3), (5, 2), (2, 5), (70, 1), (1, 12)])
def test_bounds_hold_at_every_depth_and_width(bounds: tuple[int, int], everything: bq.Results) -> None:
    left, right = bounds
    sizes = everything.to_pandas(columns=["n_left", "n_right"])
    expected = int(((sizes.n_left >= left) & (sizes.n_right >= right)).sum())
    assert 0 < expected < SHIPPED_COUNT
    assert count(SHIPPED, min_left=left, min_right=right) == expected


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "bounds", "expected"),
    [
        ("ucforum", (2, 2), 15_216),
        ("marvel", (2, 2), 197_892),
        ("marvel", (3, 3), 172_069),
        ("marvel", (5, 2), 137_404),
        ("marvel", (2, 5), 147_913),
    ],
)
def test_counts_with_bounds_that_other_programs_agree_on(name: str, bounds: tuple[int, int], expected: int) -> None:
    assert count(golden(name), min_left=bounds[0], min_right=bounds[1]) == expected


# 3. ParAdaMBE with one thread waits for workers that do not exist, once its queue is full.


def test_one_worker_goes_through_any_number_of_slices() -> None:
    n = 100_000
    machine = Scheduler(Policy(max_nodes=16), total_weight=float(n))
    machine.add_source(PLAN, np.ones(n), [(0, n)], is_plan=True)
    waiting: list[Start | Finish] = machine.set_slots(1)
    slices = nodes = 0
    while isinstance(start := waiting.pop(), Start):
        assert not waiting
        taken = sum(stop - first for _, first, stop in start.took)
        waiting = machine.returned(start.slice, 0.001, 0, np.ones(3 if slices % 5 == 0 else 0))
        slices, nodes = slices + 1, nodes + taken
    assert start == Finish("complete")
    assert slices > 2 * 960
    assert nodes > n


def test_one_worker_process_is_enough() -> None:
    assert count(SHIPPED, workers=1, slice_seconds=0.1) == SHIPPED_COUNT


# 4. eclat loses some closed sets, not the same every time, and leaves out the item that is in every transaction.


def test_a_vertex_that_is_joined_to_all_has_its_biclique(tmp_path: Path) -> None:
    everywhere = edges(np.array([0, 1, 2, 3, 0, 1]), np.array([9, 9, 9, 9, 5, 6]))
    rows = bq.mine(everywhere, tmp_path / "out", workers=0, engine="cpu", progress=False, report=False).to_pandas()
    found = {(tuple(sorted(row.left)), tuple(sorted(row.right))) for row in rows.itertuples()}
    assert found == {((0, 1, 2, 3), (9,)), ((0,), (5, 9)), ((1,), (6, 9))}


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "expected"),
    [("dbpedia_writers", 57_222), ("marvel", 206_135), ("debian12_package_depends", 335_827)],
)
def test_the_counts_are_the_same_every_time(name: str, expected: int) -> None:
    first, again = (bq.count(golden(name), fingerprint=True, workers=0, progress=False) for _ in range(2))
    assert first.count == expected
    assert (first.count, first.fingerprint) == (again.count, again.fingerprint)


# 5. MBET's recursion runs over the stack on deep graphs.


def staircase(n: int) -> pa.Table:
    """Left k is joined to right k, k + 1, ... n - 1: every right vertex closes a biclique inside the next one's."""
    left, right = np.triu_indices(n)
    return edges(left, right)


def crown(n: int) -> pa.Table:
    """Everybody but the one opposite: depth n, and a biclique for every choice of some but not all."""
    left, right = np.nonzero(~np.eye(n, dtype=bool))
    return edges(left, right)


COUNT = """
import sys
import pyarrow.parquet as pq
import bicliques as bq
for path in sys.argv[1:]:
    print(bq.count(pq.read_table(path), engine="cpu", workers=0, progress=False).count)
"""


def test_deep_graphs_need_no_deep_stack(tmp_path: Path) -> None:
    files = []
    for name, table in {"stairs": staircase(1500), "crown": crown(14)}.items():
        files.append(str(tmp_path / f"{name}.parquet"))
        pq.write_table(table, files[-1])

    def small_stack() -> None:
        resource.setrlimit(resource.RLIMIT_STACK, (512 << 10, 512 << 10))

    ended = subprocess.run(
        [sys.executable, "-c", COUNT, *files],
        env=environment(),
        preexec_fn=small_stack,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.split() == ["1500", str(2**14 - 2)]


# 6. FCbO runs out of its arrays on a large sparse graph.  7. The R package has 16-bit ids and a table of all pairs.


def test_many_vertices_and_large_labels() -> None:
    n = 200_000
    left = np.arange(n) + 2**40
    assert count(edges(left, np.arange(n) // 2 + 2**33)) == n // 2
    assert count(edges(left, np.arange(n))) == n


# 8. A parallel In-Close3 writes fewer lines with two threads than with one.


@pytest.mark.exhaustive  # two workers find everything in `tests/pipeline/workers/test_dask_pool.py`, too
def test_two_workers_write_what_one_writes(tmp_path: Path, everything: bq.Results) -> None:
    both = bq.mine(SHIPPED, tmp_path / "out", workers=2, slice_seconds=0.1, engine="cpu", progress=False, report=False)
    assert [len(results.to_arrow(columns=["root"])) for results in (both, everything)] == [SHIPPED_COUNT] * 2
    assert both.manifest.fingerprint == everything.manifest.fingerprint
    assert len(both.manifest.parts) > len(everything.manifest.parts)


# 9. LCM counts the empty set, and FCbO the concepts with an empty side.


def test_nothing_has_an_empty_side(tmp_path: Path) -> None:
    apart = edges(np.array([1, 2, 3]), np.array([1, 2, 2]))
    results = bq.mine(apart, tmp_path / "out", workers=0, engine="cpu", progress=False, report=False)
    assert len(results) == 2
    assert results.to_pandas()[["n_left", "n_right"]].min().tolist() == [1, 1]


# A trap in published data: blanks in labels made underscores, which merges two of them.


def test_labels_are_not_tidied(tmp_path: Path) -> None:
    table = pa.table({"left": ["a", "a", "b"], "right": ["secret service", "secret_service", "secret_service"]})
    results = bq.mine(table, tmp_path / "out", workers=0, engine="cpu", progress=False, report=False)
    assert sorted(label for row in results.to_pandas().right for label in row) == [
        "secret service",
        "secret_service",
        "secret_service",
    ]
