"""The working folder of a run in a store: what is brought into it, what is not, and what the store gets of it."""

import json
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from bicliques.pipeline.cli.cards import run_card
from bicliques.pipeline.remote.objects import objects_at
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import OPTIONS_FILE, PUBLISHED_FILE
from bicliques.pipeline.run.opened import driven
from bicliques.pipeline.slices.worker import forget, open_in_worker
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.records import checked, one_line
from tests.support.runs import answer
from tests.support.stored import EDGES, PREFIX, Machines, check_whole


def mine(machines: Machines, source: Path, **options: Any) -> bq.Results:
    return bq.mine(source, machines.url, workers=0, progress=False, report=False, **options)


def resume(machines: Machines) -> bq.Results:
    return bq.resume(machines.url, workers=0, progress=False, max_results=None, report=False)


def folder_of(machines: Machines) -> RunFolder:
    return RunFolder(driven(Path(machines.url)))


@pytest.mark.parametrize(
    "name",
    [
        "ABSOLUTE",
        "graph/../../../../../victim",
        "graph/else.txt",
        pytest.param("../../../../victim", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.first(1)
def test_a_record_in_the_store_writes_no_file_of_others(machines, source, tmp_path, name):
    mine(machines, source, max_results=60)
    victim = tmp_path / "victim"
    victim.write_text("of somebody else")
    name = str(victim) if name == "ABSOLUTE" else name
    there = machines.there()
    good, identity = there["steps/build.json"], json.loads(there["options.json"])["origin"]["run"]
    record = checked(json.loads(good))
    bad = one_line(record | {"files": record["files"] | {name: 0}})
    said = f"/steps/build.json names {name}, which is no file of a run; remove it, then continue with: "
    machines.put("steps/build.json", bad)
    if name == str(victim):
        machines.put(name.lstrip("/"), b"of the store")
    for at in ("machine with a good record", "another machine"):
        with pytest.raises(IncompleteError) as refused:
            bq.status(machines.url)
        assert str(refused.value).startswith(f"{objects_at(machines.url).shown}{said}"), at
        with pytest.raises(IncompleteError, match="which is no file of a run"):
            open_in_worker(machines.url, identity)
        machines.change()
    assert victim.read_text() == "of somebody else"
    assert list(tmp_path.rglob("else.txt")) == []
    machines.put("steps/build.json", good)
    folder = folder_of(machines)
    folder.step_file("build").write_bytes(bad)
    with pytest.raises(IncompleteError, match="which is no file of a run"):
        folder.store.keep_steps()
    assert resume(machines).complete
    check_whole(machines)


def test_a_damaged_record_replaces_no_good_one(machines: Machines, source: Path) -> None:
    mine(machines, source, max_results=60)
    shown, there, folder = objects_at(machines.url).shown, machines.there(), folder_of(machines)
    for key in (OPTIONS_FILE, "steps/plan.json"):
        machines.put(key, there[key][:-9])
        with pytest.raises(IncompleteError) as refused:
            bq.status(machines.url)
        assert str(refused.value).startswith(f"{shown}/{key} cannot be read")
        assert (folder.path / key).read_bytes() == there[key]
        machines.put(key, there[key])
    assert [path.name for path in folder.path.parent.iterdir() if path.name.startswith("bicliques-")] == []
    assert resume(machines).complete


def test_a_place_that_was_emptied_takes_another_run(machines: Machines, source: Path) -> None:
    """On the same machine, whose working folder has the run that was there."""
    assert mine(machines, source, count_only=True).complete
    machines.empty()
    with pytest.raises(InputError, match="holds no run"):
        bq.status(machines.url)
    number = machines.number
    assert mine(machines, source, max_results=60).outcome == "max_results"
    assert resume(machines).complete
    check_whole(machines)
    machines.number = number - 1
    machines.change()
    machines.empty()
    few = mine(machines, source, min_left=2)
    assert few.complete
    assert 0 < len(few) < answer(EDGES, strings=True)[0]
    machines.change()
    assert bq.verify(machines.url).count == len(few)


def test_a_run_that_lost_its_options_in_the_store_goes_on_where_they_are(machines: Machines, source: Path) -> None:
    mine(machines, source, max_results=60)
    machines.bucket.delete(f"{PREFIX}/{OPTIONS_FILE}")
    number = machines.number
    machines.change()
    with pytest.raises(InputError, match=r"has no options\.json, and is not empty: it has sessions/1\.json"):
        mine(machines, source)
    machines.number = number - 1
    machines.change()
    assert resume(machines).complete
    check_whole(machines)


def test_all_machines_know_the_sessions(machines: Machines, source: Path) -> None:
    mine(machines, source, max_results=60)
    here = bq.status(machines.url)
    machines.change()
    now = bq.status(machines.url)
    assert (now.state, now.why) == ("stopped", "the limit on the number of results was reached")
    assert (now.sessions, now.mining_seconds, now.go_on) == (1, here.mining_seconds, here.go_on)
    assert bq.open_run(machines.url).outcome == "max_results"
    manifest = resume(machines).manifest
    first, second = (session["seconds"] for session in manifest.mining["sessions"])
    assert first == here.mining_seconds > 0
    assert manifest.seconds["mine"] == first + second > first
    machines.change()
    assert bq.status(machines.url).sessions == 2


def test_workers_of_other_machines_can_warm_up_for_a_new_run(machines, source, monkeypatch):
    """A pool of a cluster hides an error of a worker that warms up. So here the pool is this process."""
    met = []

    def warm_up_elsewhere(told: tuple[str, str, str]) -> None:
        machines.change()
        met.append(open_in_worker(told[0], told[1]).identity)
        forget()

    monkeypatch.setattr("bicliques.pipeline.mining.driver.warm_up", warm_up_elsewhere)
    assert mine(machines, source).complete
    assert len(met) == 1
    check_whole(machines)


@pytest.mark.parametrize("at", ["the same machine", "another machine"])
@pytest.mark.first(1)
def test_what_is_lost_beside_the_parts_is_put_again(machines: Machines, source: Path, at: str) -> None:
    mine(machines, source, per_vertex=True)
    before = machines.there()
    lost = ["vertices/left.parquet", "summary/sizes.parquet", "steps/mine.json"]
    for key in lost:
        machines.bucket.delete(f"{PREFIX}/{key}")
    machines.put("summary/left.parquet", before["summary/left.parquet"][:-9])
    if at == "another machine":
        machines.change()
    machines.bucket.well()
    assert resume(machines).complete
    there = machines.there()
    assert there.keys() == before.keys()
    assert len(there["summary/left.parquet"]) >= len(before["summary/left.parquet"])
    kept = [key.removeprefix(f"{PREFIX}/") for key in machines.bucket.completed()]
    assert [key for key in kept if key.startswith(("sessions/", "manifest", "_SUCCESS"))] == [], "it is not sealed anew"
    check_whole(machines)
    assert bq.open_run(machines.url).sizes().total == answer(EDGES, strings=True)[0]


def test_a_place_that_was_published_to(machines: Machines, source: Path) -> None:
    for key in ("manifest.json", PUBLISHED_FILE):
        machines.put(key, b"{}")
    shown = objects_at(machines.url).shown
    for call in (lambda: mine(machines, source), lambda: bq.status(machines.url)):
        with pytest.raises(InputError) as refused:
            call()
        assert str(refused.value) == (
            f"{shown} holds what was published of a run; read {shown}/bicliques with other programs"
        )


def test_neither_a_run_nor_its_place_is_a_source(machines: Machines, source: Path) -> None:
    shown = objects_at(machines.url).shown
    machines.put("g.parquet", source.read_bytes())
    with pytest.raises(InputError, match=rf"^{shown}.* is where a run is to be kept"):
        bq.mine(machines.url, machines.url, progress=False)
    assert machines.there().keys() == {"g.parquet"}
    mine(machines, source)
    with pytest.raises(InputError, match=rf"^{shown}.* is a run, and no list of edges"):
        bq.count(machines.url, progress=False)


def test_people_are_told_the_address(machines: Machines, source: Path) -> None:
    with pytest.raises(InputError, match=r"^s3://lake/typo holds no run: it has no options.* give the same command"):
        bq.status(machines.bucket.url("typo"))
    with pytest.raises(InputError, match=r"^s3://lake is a URL, and only runs in folders of this machine"):
        bq.prune(machines.bucket.url(""))
    shown = objects_at(machines.url).shown
    for most, state in ((60, "not complete"), (None, "complete")):
        bq.mine(source, machines.url, workers=0, progress=False, report=False, max_results=most, per_vertex=True)
        results = bq.open_run(machines.url)
        assert repr(results) == f"<{len(results):,} maximal bicliques in {shown}, {state}>"
        card = run_card(results)
        assert f" {shown}/bicliques" in card
        assert str(results.path) not in card
