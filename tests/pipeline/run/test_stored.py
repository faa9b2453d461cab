"""Runs in a store: drivers that meet there, machines that come and go, and what a store may do."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import distributed
import pytest

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.pipeline.remote.objects import Objects, objects_at, opened_at
from bicliques.pipeline.run import bucket_ledger
from bicliques.pipeline.run.bucket import Bucket
from bicliques.pipeline.run.bucket_ledger import FIRST, Journal
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import Progress
from bicliques.pipeline.slices.worker import open_in_worker
from bicliques.schemas.errors import IncompleteError, InputError, ResourceError
from tests.support.runs import ROOT, answer, environment
from tests.support.stored import EDGES, Machines, check_whole, taken_over

OTHER = {"pid": 7, "host": "far", "since": "2026-01-01T00:00:00+00:00", "of": "x"}
STRAY = "bicliques/part-000077-0123456789ab-0.parquet"


def begun(machines: Machines, source: Path) -> None:
    bq.mine(source, machines.url, workers=0, progress=False, max_results=60, report=False)


def resume(machines: Machines) -> bq.Results:
    return bq.resume(machines.url, workers=0, progress=False, max_results=None, report=False)


def test_every_machine_reads_the_run(machines: Machines, source: Path, tmp_path: Path) -> None:
    here = bq.mine(source, tmp_path / "here", workers=0, progress=False, report=False)
    bq.mine(source, machines.url, workers=0, progress=False)
    kept = [key.removeprefix("nights/ü 1/") for key in machines.bucket.completed() if "run.lock" not in key]
    assert kept[-3:] == ["manifest.json", "_SUCCESS", "report.html"]
    assert kept.index("options.json") > kept.index("steps/plan.json")
    check_whole(machines)
    machines.change()
    results = bq.open_run(machines.url)
    assert results.top(5).drop_columns("root").equals(here.top(5).drop_columns("root"))
    one = here.top(1)["left"][0][0].as_py()
    assert results.top(5, containing_left=one)["id"].equals(here.top(5, containing_left=one)["id"])
    assert results.sample(9).drop_columns("root").equals(here.sample(9).drop_columns("root"))
    assert results.sizes() == here.sizes()
    assert results.explain(results.top(1)["id"][0].as_py()).n_near.keys() == {"left", "right"}
    assert bq.status(machines.url).state == "complete"
    assert bq.verify(machines.url).fingerprint == here.manifest.fingerprint
    assert machines.there()["report.html"].startswith(b"<!")


@pytest.mark.parametrize(
    "kind", ["largest", *(pytest.param(k, marks=pytest.mark.exhaustive) for k in ("per_vertex", "count_only"))]
)
def test_every_kind_of_run_is_kept(machines: Machines, source: Path, tmp_path: Path, kind: str) -> None:
    found = []
    for place in (tmp_path / "here", machines.url):
        if kind == "largest":
            found.append(bq.largest(source, place, top=5, workers=0, progress=False, report=False))
        else:
            found.append(bq.mine(source, place, workers=0, progress=False, report=False, **{kind: True}))
    here, there = found
    assert there.manifest.fingerprint == here.manifest.fingerprint
    machines.change()
    there = bq.open_run(machines.url)
    assert (there.complete, len(there)) == (True, len(here))
    if kind == "largest":
        assert there.top(5)["id"].to_pylist() == here.top(5)["id"].to_pylist()
    assert bq.resume(machines.url, workers=0, progress=False, report=False).complete


def test_commands_take_the_address(machines: Machines, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["mine", str(source), "-o", machines.url, "--quiet", "--workers", "0", "--no-report"]
    assert main.main([*words, "--max-results", "60"]) == 3
    assert f"bicliques resume '{machines.url}'" in capsys.readouterr().err
    machines.change()
    assert main.main(["status", machines.url]) == 3
    assert main.main(["resume", machines.url, "--quiet", "--workers", "0", "--max-results", "none", "--no-report"]) == 0
    for words in (["show"], ["verify", "--quiet"], ["status"], ["sizes"]):
        machines.change()
        assert main.main([words[0], machines.url, *words[1:]]) == 0


def test_a_second_driver_is_refused(machines: Machines, source: Path) -> None:
    begun(machines, source)
    said = []

    def look(progress: Progress) -> None:
        if progress.step == "mine" and not said:
            machines.change()
            said.append("")
            assert bq.status(machines.url).state == "running"
            with pytest.raises(InputError, match=r"is being worked on by process \d+ on .*; wait for it") as refused:
                resume(machines)
            said.append(str(refused.value))

    bq.resume(machines.url, workers=0, progress=look, max_results=None, report=False)
    assert len(said) == 2
    check_whole(machines)


def test_a_driver_that_was_believed_dead_adds_nothing(machines, source, monkeypatch):
    """Another driver goes on just before the first one commits a slice. The first one is refused, and the run stays."""
    begun(machines, source)
    done = taken_over(machines, monkeypatch, lambda: resume(machines).complete)
    with pytest.raises((IncompleteError, InputError)):
        resume(machines)
    assert done
    check_whole(machines)
    machines.change()
    assert bq.verify(machines.url).fingerprint == answer(EDGES, strings=True)[1]


@pytest.mark.parametrize(("seconds", "is_refused"), [(1000, True), (-1, False)])
def test_the_word_of_a_driver_far_away(machines: Machines, source: Path, seconds: int, is_refused: bool) -> None:
    begun(machines, source)
    machines.put("run.lock", json.dumps(OTHER | {"until": time.time() + seconds}).encode())
    machines.change()
    if is_refused:
        with pytest.raises(InputError, match=r"process 7 on far since 2026-01-01.*if it is dead, try again after"):
            resume(machines)
    else:
        assert bq.status(machines.url).state == "dead"
        assert resume(machines).complete
        assert "run.lock" not in machines.there()


def test_the_word_of_a_driver_is_renewed(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_ledger, "_RENEW_S", 0.001)
    store = objects_at(machines.url)
    with bucket_ledger.leased(store):
        while len(machines.bucket.whats("put")) < 4:
            time.sleep(0.001)
        said = bucket_ledger.said_of_driver(store)
        assert said is not None
        assert bucket_ledger.is_at_work(said)
    assert bucket_ledger.said_of_driver(store) is None


@pytest.mark.parametrize("table", ["another pid:[4026532567]", "", None])
def test_a_process_of_another_table_is_not_looked_for_here(machines: Machines, table: str | None) -> None:
    """A container with the host name of its machine has other numbers of processes."""
    store = objects_at(machines.url)
    with subprocess.Popen(["true"]) as ended:
        pass
    with bucket_ledger.leased(store):
        said = bucket_ledger.said_of_driver(store)
    assert said is not None
    assert not bucket_ledger.is_at_work(said | {"pid": ended.pid, "of": "another"})
    assert bucket_ledger.is_at_work(said | {"pid": ended.pid, "of": "another", "table": table})


def test_the_word_of_another_driver_stays(machines: Machines) -> None:
    store = objects_at(machines.url)
    with bucket_ledger.leased(store):
        machines.put("run.lock", json.dumps(OTHER | {"until": time.time() + 1000}).encode())
    said = bucket_ledger.said_of_driver(store)
    assert said is not None
    assert said["host"] == "far"


def test_entries_count_in_their_own_session_only(machines: Machines) -> None:
    store = objects_at(machines.url)
    first = Journal(store, "a")
    first.begin([])
    for number in (0, 3, FIRST + 1, 5 * FIRST):
        first.commit(number, f"{number}".encode())
    found: dict[int, bytes] = {}
    second = Journal(store, "a", found.__setitem__)
    assert found == {number: f"{number}".encode() for number in (0, 3, FIRST + 1, 5 * FIRST)}
    second.begin([0, 5 * FIRST])
    first.commit(4, b"late")
    first.commit(5 * FIRST + 1, b"late")
    second.commit(5 * FIRST + 1, b"second")
    found.clear()
    assert Journal(store, "a", found.__setitem__).counts.keys() == found.keys() == Journal(store, "a").counts.keys()
    assert found == {0: b"0", 5 * FIRST: f"{5 * FIRST}".encode(), 5 * FIRST + 1: b"second"}
    for other in (first, Journal(store, "a")):
        third = Journal(store, "a")
        third.begin(third.counts)
        with pytest.raises(InputError, match="another driver has gone on"):
            other.begin(third.counts)
    with pytest.raises(ResourceError, match="is there already, with another content"):
        second.commit(5 * FIRST + 1, b"twice")
    with pytest.raises(InputError, match="is of another run"):
        Journal(store, "b")
    machines.put("sessions/2.json", b"{}")
    with pytest.raises(IncompleteError, match=r"sessions/2\.json is damaged"):
        Journal(store, "a")


def test_a_session_knows_all_entries_of_those_before_it(machines: Machines) -> None:
    """Whether their numbers follow one another or not: they are told as ranges."""
    store, known = objects_at(machines.url), dict[int, int]()
    for session, numbers in enumerate([(0, 1, 2, 5), (6, 7, 9), (10,)], start=1):
        driver = Journal(store, "a")
        assert driver.counts == known
        driver.begin(driver.counts)
        for number in numbers:
            driver.commit(number, b"entry")
            known[number] = session
    assert Journal(store, "a").counts == known


@pytest.mark.parametrize("last", [FIRST - 1, FIRST, 2 * FIRST - 1, 2 * FIRST, 4 * FIRST])
def test_the_last_entry_is_found_at_the_border_of_what_is_announced(machines: Machines, last: int) -> None:
    store = objects_at(machines.url)
    driver = Journal(store, "a")
    driver.begin([])
    driver.commit(last, b"last")
    assert Journal(store, "a").counts == {last: 1}


def test_a_driver_that_was_taken_over_seals_nothing(machines, source, monkeypatch):
    """Another driver goes on, without any of its entries, when all is mined and proven and nothing is sealed yet."""
    keep = Bucket.keep_result

    def too_late(bucket: Bucket) -> None:
        Journal(objects_at(machines.url), bucket.folder.run_id()).begin([])
        keep(bucket)

    monkeypatch.setattr(Bucket, "keep_result", too_late)
    with pytest.raises(InputError, match="another driver has gone on with"):
        bq.mine(source, machines.url, workers=0, progress=False, report=False)
    assert not {"manifest.json", "_SUCCESS"} & machines.there().keys()
    monkeypatch.setattr(Bucket, "keep_result", keep)
    machines.change()
    assert resume(machines).complete
    check_whole(machines)


def test_a_driver_that_was_taken_over_removes_no_part_of_the_other(machines, source, monkeypatch):
    """It stops just after it has begun, and removes what was not committed when the other one is at work already."""
    begun(machines, source)
    machines.put(STRAY, b"of a worker that was killed")
    begin = Journal.begin

    def stall(self: Journal, counting: Iterable[int]) -> None:
        begin(self, counting)
        machines.put(STRAY.replace("77", "78"), b"of the other driver")

    monkeypatch.setattr(Journal, "begin", stall)
    Run.to_go_on(Path(machines.url)).repaired_ledger()
    there = machines.there()
    assert STRAY not in there
    assert STRAY.replace("77", "78") in there


def test_a_driver_notices_in_time_that_another_one_goes_on(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bicliques.pipeline.run.bucket_ledger._LOOK_S", 0.0)
    store = objects_at(machines.url)
    first = Journal(store, "a")
    first.begin([])
    first.commit(0, b"0")
    second = Journal(store, "a")
    second.begin([0])
    with pytest.raises(ResourceError, match=r"another driver has taken .* over"):
        first.commit(1, b"1")


def test_a_store_that_replaces_objects_is_refused(machines, source, monkeypatch):
    monkeypatch.setattr(Objects, "put_new", Objects.put)
    with pytest.raises(InputError, match="does not know If-None-Match"):
        begun(machines, source)


def test_a_slice_is_committed_by_one_put_and_nothing_is_renamed(machines: Machines, source: Path) -> None:
    begun(machines, source)
    resume(machines)
    changes = [(asked.what, asked.key.removeprefix("nights/ü 1/")) for asked in machines.bucket.asked if asked.changes]
    whats = {what for what, key in changes if key.startswith(("ledger/", "bicliques/"))}
    assert whats == {"put"}, "no copy, and no DELETE of another name"
    keys = [key for _, key in changes]
    entries = [key for key in keys if key.startswith("ledger/")]
    assert len(entries) > 1
    assert sorted(entries) == sorted(key for key in machines.there() if key.startswith("ledger/"))
    parts = {key: keys.index(key) for key in keys if key.startswith("bicliques/")}
    assert sum(key.startswith("bicliques/") for key in keys) == len(parts)
    slices = {int(Path(entry).stem): keys.index(entry) for entry in entries}
    assert all(at < slices[int(key.split("-")[1])] for key, at in parts.items()), "a part is there before it counts"


@pytest.mark.parametrize(
    "listing",
    ["true", "of the beginning", *(pytest.param(k, marks=pytest.mark.exhaustive) for k in ("empty", "of another run"))],
)
@pytest.mark.first(1)
def test_a_listing_that_lags_changes_nothing(machines: Machines, source: Path, listing: str) -> None:
    """A part that no entry names is removed where it is listed, and counts nowhere."""
    if listing == "of another run":
        bq.mine(source, machines.url, workers=0, progress=False, min_left=2, report=False)
        machines.bucket.stop_listing()
        old = machines.bucket.listed
        machines.empty()
        machines.bucket.listed = old
    if listing == "empty":
        machines.bucket.stop_listing()
    begun(machines, source)
    if listing == "of the beginning":
        machines.bucket.stop_listing()
    machines.put(STRAY, b"of a worker that was killed")
    machines.put("bicliques/others.txt", b"of somebody else")
    machines.change()
    assert resume(machines).complete
    assert machines.bucket.whats("list")
    there = machines.there()
    assert (STRAY in there) == (listing != "true")
    assert "bicliques/others.txt" in there
    machines.change()
    assert bq.verify(machines.url).fingerprint == answer(EDGES, strings=True)[1]
    assert bq.open_run(machines.url).dataset().count_rows() == answer(EDGES, strings=True)[0]


@pytest.mark.parametrize(
    "lost",
    ["part", *(pytest.param(other, marks=pytest.mark.exhaustive) for other in ("step", "entry", "graph", "manifest"))],
)
def test_what_is_lost_in_the_store_is_made_again(machines: Machines, source: Path, lost: str) -> None:
    begun(machines, source)
    resume(machines)
    ways = {"part": "bicliques/", "entry": "ledger/1/0", "graph": "graph/root_indices", "step": "steps/plan"}
    key = next(key for key in machines.there() if key.startswith(ways.get(lost, "manifest")))
    machines.bucket.delete(f"nights/ü 1/{key}")
    machines.change()
    with pytest.raises(IncompleteError):
        bq.verify(machines.url)
    machines.change()
    assert resume(machines).complete
    check_whole(machines)
    assert bq.verify(machines.url).count == answer(EDGES, strings=True)[0]


def test_a_worker_does_not_search_a_damaged_graph(machines: Machines, source: Path) -> None:
    begun(machines, source)
    identity = Run.at(Path(machines.url)).identity
    key = "graph/root_indices.npy"
    data = machines.there()[key]
    machines.put(key, data[:-1] + bytes([data[-1] ^ 1]))
    machines.change()
    with pytest.raises(IncompleteError, match=r"root_indices\.npy is missing or damaged"):
        open_in_worker(machines.url, identity)


def test_a_part_that_was_damaged_is_found(machines: Machines, source: Path) -> None:
    begun(machines, source)
    resume(machines)
    key, data = next((key, data) for key, data in machines.there().items() if key.startswith("bicliques/"))
    machines.put(key, data[:100] + bytes([data[100] ^ 1]) + data[101:])
    with pytest.raises(IncompleteError, match=r"remove it from the store and resume|is not"):
        bq.verify(machines.url)


def test_workers_of_other_machines_need_no_folder_in_common(machines: Machines, source: Path, tmp_path: Path) -> None:
    """A worker with a cache of its own takes the graph from the store, and puts its parts there."""
    scheduler = {"cls": distributed.Scheduler, "options": {"host": "127.0.0.1", "dashboard": False}}
    with distributed.SpecCluster(scheduler=scheduler) as cluster:
        machines.number += 1
        variables = environment() | machines.variables
        machines.number -= 1
        address = cluster.scheduler_address
        words = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"]
        worker = subprocess.Popen(words, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with distributed.Client(cluster) as client:
                client.wait_for_workers(1)
            found = bq.mine(source, machines.url, scheduler=address, engine="cpu", progress=False, report=False)
        finally:
            worker.kill()
            worker.wait()
    assert found.complete
    theirs = tmp_path / f"machine{machines.number + 1}" / "bicliques" / "stores"
    assert len(list(theirs.glob("*/worker-*/run/graph/graph.json"))) == 1
    assert list(theirs.glob("*/*/run/pending/*")) == []
    check_whole(machines)


def test_what_cannot_be_an_address(machines: Machines, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for url, words in (
        ("s3://lake", "names no folder of a bucket"),
        ("s3://me:geheim@lake/night", "is written with a secret"),
        ("s3://lake/night?access_key=me&secret_key=geheim", "is written with a secret"),
        ("s3://lake/night?allow_bucket_creation=true", "allow_bucket_creation is no option of the address of a run"),
    ):
        with pytest.raises(InputError, match=words) as refused:
            bq.mine(source, url, progress=False)
        assert "geheim" not in str(refused.value)
    machines.put("manifest.json", b"{}")
    with pytest.raises(InputError, match=r"has no options\.json, and is not empty: it has manifest\.json"):
        begun(machines, source)
    opened_at.cache_clear()
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(InputError, match=r"which is not installed \(pip install 'bicliques\[store\]'\)"):
        bq.status(machines.url)


def test_another_run_is_not_written_over(machines: Machines, source: Path) -> None:
    begun(machines, source)
    machines.change()
    with pytest.raises(InputError, match=r"holds a run without min_left|name another output folder"):
        bq.mine(source, machines.url, min_left=2, progress=False)
