"""The graph is built where the input was read, and on the CPU, said so, where that fails."""

import sys
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bicliques as bq
from bicliques.kernels.gpu import buffers, device
from bicliques.kernels.graph import pieces as in_pieces
from bicliques.kernels.graph import sorting
from bicliques.kernels.graph.pieces import PIECE_BYTES
from bicliques.kernels.graph.sorting import VERTEX_BYTES
from bicliques.pipeline.api import preparing, steps
from bicliques.pipeline.cli.cards import dry_run_card
from bicliques.pipeline.prepare import build
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.progress import size
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions, CallOptions, RunLimits, RunOptions
from bicliques.schemas.search import Search
from tests.support.host_arrays import HostArrays
from tests.support.runs import random_edges, write_edges


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    toy = types.SimpleNamespace(free=1 << 30, released=0)
    monkeypatch.setattr(build, "MANY_EDGES", 0)  # compiled code builds on the CPU
    monkeypatch.setattr("bicliques.pipeline.output.cudf_parquet.why_no_cudf", lambda: None)
    monkeypatch.setattr("bicliques.pipeline.ingest.gpu.cudf_arrays.CudfArrays", HostArrays)
    monkeypatch.setattr(device, "why_no_gpu", lambda: None)
    monkeypatch.setattr(device, "CudaDevice", lambda: types.SimpleNamespace(free_bytes=lambda: toy.free))
    monkeypatch.setattr(device, "release_memory", lambda: setattr(toy, "released", toy.released + 1))
    monkeypatch.setattr(buffers, "Staging", lambda cupy: types.SimpleNamespace(upload=np.copy, download=np.copy))
    monkeypatch.setitem(sys.modules, "cupy", np)
    return toy


def graph(tmp_path: Path, on: str, least: int = 1) -> tuple[RunFolder, MiningGraph]:
    source = write_edges(tmp_path / "g.parquet", random_edges(40, 30, 0.2, 3))
    options = RunOptions(source=str(source), search=Search(min_left=least, min_right=least))
    steps.start(source, tmp_path / on, options, RunLimits(), False, CallOptions(ingest_on=on))  # type: ignore[arg-type]
    steps.prepare(tmp_path / on, False)
    folder = RunFolder(tmp_path / on)
    return folder, MiningGraph.open(folder.graph)


def test_the_graph_is_the_same(tmp_path: Path, gpu: types.SimpleNamespace) -> None:
    host, wanted = graph(tmp_path, "cpu")
    folder, made = graph(tmp_path, "gpu")
    assert (folder.need("build")["built_on"], host.need("build")["built_on"]) == ("gpu", "cpu")
    assert folder.need("build")["profile"] == host.need("build")["profile"]
    assert gpu.released == 1
    for file in host.graph.iterdir():
        assert file.read_bytes() == (folder.graph / file.name).read_bytes(), file.name
    assert made.n_edges == wanted.n_edges


def test_the_edges_that_ingest_left_on_the_gpu_are_not_read_again(
    tmp_path: Path, gpu: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, _ = graph(tmp_path, "cpu")
    monkeypatch.setattr(build, "read_edges", None)
    source = tmp_path / "g.parquet"
    options = RunOptions(source=str(source), engine="cpu")
    with steps.started(source, tmp_path / "kept", options, RunLimits(), False, CallOptions(ingest_on="gpu")) as run:
        preparing.build(run, lambda _: None)
        assert run.take_edges() is None
    assert run.built["built_on"] == "gpu"
    for file in host.graph.iterdir():
        assert file.read_bytes() == (run.folder.graph / file.name).read_bytes(), file.name


@pytest.mark.parametrize("pieces", [1, 2, 7, 40])
@pytest.mark.parametrize("least", [1, 7])
def test_the_graph_is_the_same_in_any_number_of_pieces(
    tmp_path: Path, gpu: types.SimpleNamespace, caplog: pytest.LogCaptureFixture, pieces: int, least: int
) -> None:
    host, _ = graph(tmp_path, "cpu", least)
    n_edges, n_vertices = host.need("ingest")["n_edges"], max(host.need("ingest")[f"n_{s}"] for s in ("left", "right"))
    gpu.free = VERTEX_BYTES * n_vertices + PIECE_BYTES * -(-n_edges // pieces)
    folder, _ = graph(tmp_path, "gpu", least)
    built, expected = (each.need("build") for each in (folder, host))
    assert (built["built_on"], built["pieces"]) == ("gpu", pieces)
    differ = {"built_on", "pieces", "seconds"}
    assert {k: built[k] for k in built.keys() - differ} == {k: expected[k] for k in expected.keys() - differ}
    for file in host.graph.iterdir():
        assert file.read_bytes() == (folder.graph / file.name).read_bytes(), file.name
    said = f"the GPU has no room for all {n_edges} edges at once: the graph is built in {pieces} pieces"
    assert (said in caplog.text) == (pieces > 1)


def test_a_dry_run_tells_of_pieces(tmp_path: Path, gpu: types.SimpleNamespace) -> None:
    source = write_edges(tmp_path / "g.parquet", random_edges(40, 30, 0.2, 3))
    for free, row in ((1 << 30, ""), (VERTEX_BYTES * 40 + PIECE_BYTES * 50, "edges read in 1, graph built in 6")):
        gpu.free = free
        dry = bq.dry_run(source, engine="cpu", ingest_on="gpu", sample_time=0.01, progress=False)
        assert ("GPU pieces: " in dry_run_card(dry)) == bool(row)
        assert row in dry_run_card(dry)
        assert f"GPU memory: reading and building may take all {size(free)} that are free\n" in dry_run_card(dry)


@pytest.mark.parametrize("least", [1, 7])
@pytest.mark.parametrize("are_held", [False, True])
def test_a_whole_that_runs_out_of_memory_is_built_in_pieces_and_says_so(
    tmp_path: Path,
    gpu: types.SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    least: int,
    are_held: bool,
) -> None:
    """The device says that it has much free memory, and refuses arrays of more than half of the edges."""
    host, _ = graph(tmp_path, "cpu", least)
    n_edges = host.need("ingest")["n_edges"]

    def limited(array: np.ndarray) -> np.ndarray:
        if len(array) > -(-n_edges // 2):
            raise MemoryError(f"no room for {len(array)} numbers")
        return np.copy(array)

    def used_up(xp: object, read: Callable[[], tuple[np.ndarray, np.ndarray]], *rest: object, **how: object) -> None:
        limited(read()[0])

    monkeypatch.setattr(buffers, "Staging", lambda cupy: types.SimpleNamespace(upload=limited, download=np.copy))
    if are_held:  # they need not be copied to the GPU, so the attempt ends later
        monkeypatch.setattr(sorting, "prepare_on", used_up)
    source, search = tmp_path / "g.parquet", Search(min_left=least, min_right=least)
    options = RunOptions(source=str(source), search=search, engine="cpu")
    with steps.started(source, tmp_path / "gpu", options, RunLimits(), False, CallOptions(ingest_on="gpu")) as run:
        if not are_held:
            run.take_edges()
        preparing.build(run, lambda _: None)
    assert (run.built["built_on"], run.built["pieces"]) == ("gpu", 2)
    assert f"all {n_edges} edges at once should have had room on the GPU, but: no room for " in caplog.text
    assert "the graph is built in 2 pieces" in caplog.text
    assert gpu.released == 2  # between the attempts, and at the end
    for file in host.graph.iterdir():
        assert file.read_bytes() == (run.folder.graph / file.name).read_bytes(), file.name


@pytest.mark.parametrize("trouble", ["room", "memory", "memory in pieces"])
def test_without_room_on_the_gpu_the_cpu_builds_and_says_so(
    tmp_path: Path,
    gpu: types.SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    trouble: str,
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise MemoryError("out of memory")

    if trouble == "room":
        gpu.free = 100
    else:  # as a whole and then in pieces, or in pieces from the beginning
        gpu.free = 1 << 30 if trouble == "memory" else VERTEX_BYTES * 40 + PIECE_BYTES * 50
        monkeypatch.setattr(sorting, "prepare_on", fail)
        monkeypatch.setattr(in_pieces, "prepare_in_pieces", fail)
    folder, _ = graph(tmp_path, "gpu")
    assert folder.need("build")["built_on"] == "cpu"
    assert "the graph is built on the CPU: " in caplog.text


def test_small_graphs_are_built_without_the_compiler_into_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("compiled", "small"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(build, "MANY_EDGES", 0)
    compiled, _ = graph(tmp_path / "compiled", "cpu")
    monkeypatch.setattr(build, "MANY_EDGES", 1 << 30)
    with monkeypatch.context() as without:
        without.setattr("bicliques.kernels.graph.prepare.prepare", None)
        small, _ = graph(tmp_path / "small", "cpu")
    for file in compiled.graph.iterdir():
        assert file.read_bytes() == (small.graph / file.name).read_bytes(), file.name


@pytest.mark.parametrize(
    ("engine", "n_edges", "order", "compiles"),
    [
        ("cpu", build.MANY_EDGES - 1, "degree", False),
        ("cpu", build.MANY_EDGES, "degree", True),
        ("cpu", 10, "two-hop", True),
        ("cpu", 10, "id", False),
        ("bitmatrix", build.MANY_EDGES, "degree", False),
        ("bitmatrix", build.MANY_WITHOUT_COMPILER, "degree", True),
    ],
)
def test_the_compiler_is_loaded_where_it_pays(engine: str, n_edges: int, order: str, compiles: bool) -> None:
    options = RunOptions(source="g", engine=engine, build=BuildOptions(order=order))  # type: ignore[arg-type]
    run = types.SimpleNamespace(options=options)
    assert build.compiles(run, n_edges) == compiles  # type: ignore[arg-type]
