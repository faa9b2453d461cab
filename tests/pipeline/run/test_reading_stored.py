"""Readers of a run in a store: what they bring, and that they leave alone what a driver of the machine works on."""

import fcntl
import os
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.run import bucket, bucket_cache
from bicliques.pipeline.run.lock import holder
from bicliques.pipeline.run.opened import Run, driven, here
from bicliques.pipeline.run.store import store_at
from bicliques.pipeline.slices.worker import forget, open_in_worker
from bicliques.schemas.errors import IncompleteError, InputError, ResourceError
from tests.support.runs import answer
from tests.support.stored import EDGES, Machines


def mine(machines: Machines, source: Path, **options: int | bool | None) -> bq.Results:
    return bq.mine(source, machines.url, workers=0, progress=False, report=False, **options)  # type: ignore[arg-type]


def another_process(machines: Machines) -> None:
    """From now on the test is in another process of the same machine."""
    machines.patch.setattr(bucket_cache, "_held", {})
    forget()
    machines.bucket.well()


def brought(machines: Machines) -> set[str]:
    """The folders from which something was asked for."""
    return {key.removeprefix("nights/ü 1/").rpartition("/")[0] for key in machines.bucket.whats("get")}


def files_below(folder: Path) -> dict[str, tuple[int, int, int]]:
    found = {str(file): file.stat() for file in folder.rglob("*")}
    return {name: (stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in found.items()}


def read_all(machines: Machines) -> None:
    bq.status(machines.url)
    results = bq.open_run(machines.url)
    results.to_pandas()
    results.top(3)
    results.sizes()
    results.explain(results.top(1)["id"][0].as_py())


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.first(1)
def test_a_reader_leaves_the_files_of_a_driver_alone(machines: Machines, source: Path, complete: bool) -> None:
    """The driver has entries that are not in the store yet, and has not seen that another run is there."""
    mine(machines, source, max_results=None if complete else 60)
    folder = driven(Path(machines.url))
    (folder / "ledger" / "999.json").write_text("about to be put")
    with store_at(folder).locked():
        before = files_below(folder)
        for _ in range(2):
            read_all(machines)
            another_process(machines)
        machines.empty()
        with pytest.raises(InputError, match="holds no run"):
            bq.status(machines.url)
        assert files_below(folder) == before


def test_a_reader_waits_for_nobody(machines: Machines, source: Path) -> None:
    """Another reader is stopped in the middle, and so is a worker that brings the graph."""
    mine(machines, source, max_results=60)
    first = here(Path(machines.url))
    another_process(machines)
    second = here(Path(machines.url))
    assert (first.parent.name, second.parent.name) == ("reader-1", "reader-2")
    machines.patch.setattr(bucket, "_PATIENCE_S", 0.0)
    identity = Run.at(first).identity
    with machines.patch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", machines.variables["XDG_CACHE_HOME"] + "-worker")
        lock = bucket_cache.shared_place(machines.url, identity) / "bringing.lock"
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with pytest.raises(ResourceError, match=r"another worker has been bringing what .* for 0 seconds"):
                open_in_worker(machines.url, identity)
    with store_at(second).one_thread(), pytest.raises(ResourceError, match="another worker has been bringing"):
        bq.status(machines.url)


def test_only_what_is_needed_is_brought(machines: Machines, source: Path) -> None:
    mine(machines, source, max_results=60)
    small = {"", "steps", "sessions"}
    for call, more in ((bq.status, {"plan", "ledger/1"}), (lambda url: len(bq.open_run(url)), {"plan", "ledger/1"})):
        machines.change()
        machines.bucket.well()
        call(machines.url)
        assert brought(machines) == small | more
    bq.resume(machines.url, workers=0, progress=False, max_results=None, report=False)
    machines.change()
    machines.bucket.well()
    results = bq.open_run(machines.url)
    assert len(results) == answer(EDGES, strings=True)[0]
    assert brought(machines) == {"", "steps"}
    results.top(3)
    assert "graph/left_labels.arrow" in " ".join(machines.bucket.whats("get"))
    assert brought(machines) == {"", "steps", "graph", "summary", "bicliques"}
    assert not [key for key in machines.bucket.whats("get") if key.endswith(".npy")]
    results.explain(results.top(1)["id"][0].as_py())
    assert {"edges", "summary"} <= brought(machines)


def test_what_was_brought_is_not_brought_again(machines: Machines, source: Path) -> None:
    mine(machines, source)
    machines.change()
    first = here(Path(machines.url))
    read_all(machines)
    for _, descriptor in bucket_cache._held.values():
        os.close(descriptor)  # as at the end of the process
    bucket_cache._held.clear()
    another_process(machines)
    read_all(machines)
    assert here(Path(machines.url)) == first
    assert brought(machines) == {"", "steps", "bicliques"}


def test_a_reader_sees_that_a_run_was_mended(machines: Machines, source: Path) -> None:
    """Its ledger is another one then."""
    mine(machines, source)
    assert bq.status(machines.url).state == "complete"
    part = next(key for key in machines.there() if key.startswith("bicliques/"))
    machines.bucket.delete(f"nights/ü 1/{part}")
    assert bq.status(machines.url).state == "failed"
    assert bq.resume(machines.url, workers=0, progress=False, report=False).complete
    now = bq.status(machines.url)
    assert (now.state, now.why[:6], now.problems) == ("complete", "proven", ())


def test_readers_share_the_bytes_of_files(machines: Machines, source: Path) -> None:
    mine(machines, source)
    first = Run.at(Path(machines.url))
    _ = first.graph, first.plan, first.labels
    another_process(machines)
    second = Run.at(Path(machines.url))
    _ = second.graph, second.plan, second.labels
    assert brought(machines) == {"", "steps"}
    assert first.path != second.path
    for file in ("graph/graph.json", "graph/left_labels.arrow", "plan/roots.npy"):
        assert (first.path / file).samefile(second.path / file)
    another_process(machines)
    damaged = first.path.parent.with_name("driver-1") / "run/graph/root_indices.npy"
    data = damaged.read_bytes()
    damaged.unlink()  # it is the same as that of the readers
    damaged.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    third = Run.at(Path(machines.url))
    assert (third.graph.root_indices == second.graph.root_indices).all(), "what is damaged there is not taken"


def test_a_reader_sees_a_run_that_is_not_in_the_store_yet(machines: Machines, source: Path) -> None:
    """It was begun on this machine, and is in no store before mining begins."""
    folder = driven(Path(machines.url))
    elsewhere = source.parent / "elsewhere"
    bq.mine(source, elsewhere, workers=0, progress=False, report=False, max_results=60)
    folder.mkdir()
    for name in ("options.json", "labels", "edges"):
        (elsewhere / name).rename(folder / name)
    another_process(machines)
    now = bq.status(machines.url)
    assert (now.state, now.step) == ("stopped", "ingest")
    machines.change()
    with pytest.raises(InputError, match="holds no run"):
        bq.status(machines.url)


def test_workers_of_the_machine_of_the_driver_take_its_graph(machines: Machines, source: Path) -> None:
    mine(machines, source, max_results=60)
    run = Run.to_go_on(Path(machines.url))
    with run.store.locked():
        at_work = holder(run.folder.lock_file)
        assert at_work is not None
        assert at_work.alive
        another_process(machines)
        assert open_in_worker(machines.url, run.identity).path == run.path
        assert brought(machines) == set()
        forget()
        with pytest.raises(IncompleteError, match="holds another run than the driver had there"):
            open_in_worker(machines.url, "another")
    another_process(machines)
    alone = open_in_worker(machines.url, run.identity)
    assert alone.path.parent.name.startswith("worker-")
    assert (alone.path / "graph/graph.json").samefile(run.path / "graph/graph.json")
