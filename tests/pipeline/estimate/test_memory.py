"""Memory is the graph and a bounded workspace: a run with millions of rows peaks where one with few does."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import distributed
import numpy as np
import pytest

import bicliques as bq
from bicliques.kernels import engines
from bicliques.pipeline.api import steps
from bicliques.pipeline.cli.cards import dry_run_card
from bicliques.pipeline.estimate.memory import PROCESS_BYTES, memory_bound, preparing_bound
from bicliques.pipeline.prepare.weights import weights_of
from bicliques.pipeline.run.accounts import peak_rss
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import size
from bicliques.pipeline.slices import worker
from bicliques.schemas.options import RunLimits, RunOptions
from bicliques.schemas.search import Search
from bicliques.schemas.work import Subtrees
from tests.support.emulated import runnable
from tests.support.engines import TOY_GPU, registered, toy_kind
from tests.support.own_memory import PROCESS_FILES
from tests.support.runs import QUIET, environment, prepared_run, random_edges, write_edges

EDGES = random_edges(300, 90, 0.35, 7)
ROWS = 4_884_077
#: What the lists of these rows would take in memory, with 64-bit labels.
LISTS_BYTES = 500 << 20

PROGRAM = """
import sys
import bicliques as bq
import pyarrow as pa
from bicliques.kernels import engines
from bicliques.pipeline.api import runs
from tests.support.own_memory import OwnMemory
peaks = {}
def watch(progress):
    peaks[progress.step] = memory.peak()
engines.compile_engine("cpu")
engines.compile_proof()
pa.array([1])  # imports pandas
memory = OwnMemory()
before = memory.peak()
results = bq.mine(sys.argv[1], sys.argv[2], max_results=int(sys.argv[3]), engine="cpu", workers=0, progress=watch)
print(len(results), before, peaks["mine"], memory.peak())
"""


def peaks(source: Path, out: Path, most: int) -> tuple[int, int, int]:
    """Peak memory in bytes of a process of its own: before its first slice, until the end of mining, and at the end."""
    command = [sys.executable, "-c", PROGRAM, str(source), str(out), str(most)]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=True)
    rows, before, mining, whole = map(int, ended.stdout.split())
    assert rows == min(most, ROWS)
    return before, mining, whole


@pytest.mark.exhaustive
def test_the_peak_is_below_the_bound_and_does_not_follow_the_results(tmp_path):
    engines.compile_engine("cpu")  # else the first child does, and compiling is not part of the bound
    engines.compile_proof()
    source = write_edges(tmp_path / "g.parquet", EDGES)
    few, many = [], []
    for name in ("once", "again"):
        few.append(peaks(source, tmp_path / f"few-{name}", 2_500_000)[1])  # more than a writer collects
        before, peak, whole = peaks(source, tmp_path / name, 10**9)
        many.append(peak)
        bound = memory_bound(Run.at(tmp_path / name))
        assert 32 << 20 < before < bound.process - PROCESS_FILES
        assert whole - before < bound.shared + bound.workspace + bound.writing < LISTS_BYTES
        if min(many) - max(few) < LISTS_BYTES / 8:
            break  # else again: processes that do the same differ by up to 100 MB, which the allocators keep
    assert min(many) - max(few) < LISTS_BYTES / 8


@pytest.mark.parametrize("mode", ["list", "count"])
def test_the_bound_is_made_of_what_it_says(tmp_path, mode):
    source = write_edges(tmp_path / "g.parquet", random_edges(40, 30, 0.3, 4), strings=True)
    steps.start(source, tmp_path / "out", RunOptions(source=str(source), search=Search(mode=mode)), RunLimits(), False)
    steps.prepare(tmp_path / "out", False)
    bound = memory_bound(Run.at(tmp_path / "out"))
    assert bound.worker == PROCESS_BYTES + bound.workspace + bound.writing
    assert (bound.workspace > 30 << 20) == (mode == "list"), (
        "buffers for rows; stacks and bit rows suit the small graph"
    )
    assert bound.workspace > 60 * 40, "at least what each root needs"
    assert (bound.writing > 200 << 20) == (mode == "list")
    assert bound.total(4) - bound.total(3) == bound.worker
    assert bound.shared > 1000


@pytest.mark.parametrize("search", [Search(), Search(largest=1, by="edges")], ids=["all", "in bands"])
def test_what_is_kept_of_the_roots_is_told_once_for_each_who_deals(tmp_path, search):
    source = write_edges(tmp_path / "g.parquet", random_edges(60, 50, 0.4, 4))
    steps.start(source, tmp_path / "out", RunOptions(source=str(source), search=search), RunLimits(), False)
    steps.prepare(tmp_path / "out", False)
    run = Run.at(tmp_path / "out")
    kept = [weights_of(run.job, graph) for _, graph in run.bands]
    assert (len(kept) > 1) == (search.largest is not None)
    for weights, (_, graph) in zip(kept, run.bands, strict=True):
        weights.of(Subtrees.of_roots(np.arange(graph.n_roots, dtype=np.int32)))
    arrays = {id(each): each.nbytes for weights in kept for each in arrays_in(vars(weights).values())}
    alone, shared = memory_bound(run), memory_bound(run, shares=True)
    assert alone.weights == shared.weights == sum(arrays.values()) > 0
    assert shared.worker - alone.worker == alone.weights
    assert alone.total(0) == alone.shared + alone.worker + alone.weights
    assert alone.total(4) == alone.shared + 4 * alone.worker + alone.process + alone.writing + alone.weights


def arrays_in(values: Iterable[object]) -> Iterator[np.ndarray]:
    for value in values:
        if isinstance(value, tuple):
            yield from arrays_in(value)
        elif isinstance(value, np.ndarray):
            yield value


def test_a_dry_run_tells_of_threads_that_share_slices(tmp_path):
    source = write_edges(tmp_path / "g.parquet", random_edges(40, 30, 0.3, 4))
    told = {}
    for threads in (1, 2):
        with distributed.LocalCluster(
            1, threads_per_worker=threads, processes=False, dashboard_address="127.0.0.1:0"
        ) as theirs:
            dry = bq.dry_run(source, engine="cpu", scheduler=theirs, sample_time=0.1, progress=False)
        told[threads] = (dry.workers, dry.memory.worker)
    assert (told[1][0], told[2][0]) == (1, 2)
    assert told[2][1] - told[1][1] == dry.memory.weights > 0


@pytest.mark.parametrize("free", [1 << 40, 1 << 29, 1 << 27])
def test_what_is_told_of_a_device_fits_into_what_is_free(tmp_path, free):
    source = write_edges(tmp_path / "g.parquet", random_edges(40, 30, 0.3, 4))
    with registered(toy_kind(replace(TOY_GPU, free_bytes=lambda: free))):
        dry = bq.dry_run(source, engine="bitmatrix", workers=0, sample_time=0.1, progress=False)
        worker.forget()
    told = dry.memory
    assert 1 << 20 < told.device < free
    assert (told.device > 1 << 29) == (free == 1 << 40)
    assert told.scratch == int(0.6 * (free - told.device))
    assert told.free == free
    assert f"; reading and building may take all {size(free)} that are free\n" in dry_run_card(dry)
    assert f"and up to {size(told.scratch)} for the search" in dry_run_card(dry)


@pytest.mark.parametrize(("engine", "has_device"), [("bitmatrix", True), ("cpu", False)])
def test_device_memory_is_told_before_a_run_and_recorded_after_it(tmp_path, engine, has_device):
    source = write_edges(tmp_path / "g.parquet", random_edges(40, 30, 0.3, 4))
    with runnable(engine):
        dry = bq.dry_run(source, engine=engine, workers=0, sample_time=0.1, progress=False)
        results = bq.mine(source, tmp_path / "out", engine=engine, **QUIET)
    assert (dry.memory.device > 0) == ("GPU memory: " in dry_run_card(dry)) == has_device
    assert ("; reading and building may take all that is free\n" in dry_run_card(dry)) == has_device
    most = max(dry.preparing.reading, dry.preparing.building)
    words = f"reading and building took {size(dry.peak_rss)}, and take at most {size(most)}; mining takes at most"
    assert words in dry_run_card(dry)
    assert dry.memory.scratch == 0, "the emulated device has no bound"
    # Linux counts pages in batches, so a peak may be told smaller later
    assert 50 << 20 < dry.peak_rss < 1.1 * peak_rss()
    [worker] = results.manifest.mining["workers"].values()
    assert (worker.get("device_bytes", 0) > 0) == has_device


def test_rows_that_are_repeated_take_memory_while_they_are_read(tmp_path):
    bounds = []
    for times in (1, 10):
        (folder := tmp_path / str(times)).mkdir()
        bounds.append(preparing_bound(Run(prepared_run(folder, np.repeat(EDGES, times, 0)))))
    once, repeated = bounds
    assert repeated.reading - once.reading >= 9 * len(EDGES) * np.dtype(np.int32).itemsize * 2
