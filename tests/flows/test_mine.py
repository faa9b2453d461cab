"""The flow `mine`: the engine's answer, one run a folder, resumed by a call or a retry, watched, loud on failure."""

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.concurrency.sync import concurrency

import bicliques as bq
from bicliques.flows import tasks
from bicliques.flows.mine import mine
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.ledger import Ledger
from bicliques.pipeline.run.lock import locked
from bicliques.schemas.errors import InputError, ResourceError
from tests.flows.grouped import grouped
from tests.flows.states import artifacts, logged, read, tries
from tests.support.runs import OWN, QUIET, answer, load_ledger, manifest_pair, random_edges, write_edges

pytestmark = pytest.mark.usefixtures("prefect_server")

EDGES = random_edges(60, 40, 0.3, 1)


def run(source: Path, output: Path | str, **options) -> State[Any]:
    """The final state; errors are in it."""
    return mine(str(source), str(output), **grouped(**{"workers": 0, "report": False} | options), return_state=True)


def refusal(state: State[Any]) -> str:
    assert state.is_failed()
    with pytest.raises(InputError) as error:
        state.result()
    return str(error.value)


def rows_of(table: str) -> list[dict[str, str]]:
    """The rows of a Markdown table without odd text."""
    head, _, *rows = (line.strip("| ").split(" | ") for line in table.splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_any_workers_find_what_the_engine_finds_and_the_run_can_be_watched(tmp_path, source, capfd, workers):
    state = run(source, tmp_path / "out", workers=workers, slice_seconds=0.1, report=True, date="2026-03-01")
    assert state.is_completed()
    assert RunFolder(tmp_path / "out").origin().date == "2026-03-01", "where no name has the day"
    count, fingerprint = answer(EDGES)
    assert manifest_pair(tmp_path / "out") == (count, fingerprint)
    assert state.result() == {
        "folder": str(tmp_path / "out"),
        "count": count,
        "fingerprint": str(fingerprint),
        "outcome": "complete",
    }
    shown = artifacts(state)
    assert shown["mining"] == shown["proving"] == 100
    assert f"| bicliques | {count:,}, all of them |" in shown["run-card"]
    numbers = {row["name"]: row["value"] for row in json.loads(shown["numbers"])}
    assert (numbers["bicliques"], numbers["n_edges"]) == (count, len(EDGES))
    assert sum(int(row["bicliques"]) for row in rows_of(shown["workers"])) == count
    for top in ("largest", "balanced"):
        rows = [line.strip("| ").split(" | ") for line in shown[top].splitlines()]
        assert [row[0] for row in rows[2:]] == [str(rank) for rank in range(1, 11)]
        for _, left, right, edges, *members in rows[2:]:
            assert [int(left), int(right)] == [side.count(",") + 1 for side in members]
            assert int(edges) == int(left) * int(right)
    participants = rows_of(shown["participants"])
    assert {row["side"] for row in participants} == {"left", "right"}
    assert max(int(row["bicliques"]) for row in participants) <= count
    assert (tmp_path / "out" / "report.html").exists()
    assert "report" not in shown, "no browser follows a link from an http page to a file"
    assert shown[""].startswith("mine-out-g-")
    assert read(state).name == f"g.parquet to {tmp_path / 'out'}"
    assert logged(state, "engine cpu: ")
    assert "distributed.worker" not in capfd.readouterr().err, "Dask's workers do not print their every step"


def test_a_limit_is_not_a_failure_and_a_second_call_goes_on(tmp_path, source):
    state = run(source, tmp_path / "out", max_results=100, slice_seconds=0.02)
    assert (state.type.value, state.name) == ("COMPLETED", "Limit reached")
    assert state.message
    assert state.message.startswith("100 bicliques in")
    assert state.result()["outcome"] == "max_results"
    assert state.result()["fingerprint"] is None
    assert "not complete" in artifacts(state)["run-card"]
    slices = set(load_ledger(tmp_path / "out").entries)
    assert run(source, tmp_path / "out").result()["outcome"] == "complete"
    assert manifest_pair(tmp_path / "out") == answer(EDGES)
    assert slices < set(load_ledger(tmp_path / "out").entries)


def test_an_input_that_is_refused_names_the_parameter_that_helps(tmp_path):
    file = tmp_path / "sales.csv"
    file.write_text("shop,thing\nann,tea\nbob,milk\n")
    words = refusal(run(file, tmp_path / "out"))
    assert words.endswith("may be column names or an edge; say header=True or header=False")
    assert not (tmp_path / "out").exists()
    assert run(file, tmp_path / "out", header=True).is_completed()


def test_a_second_run_on_a_folder_in_use_is_refused(tmp_path, source):
    run(source, tmp_path / "out", max_results=10)
    with locked(RunFolder(tmp_path / "out").lock_file):
        state = run(source, tmp_path / "out")
    assert "is being worked on by process" in refusal(state)
    assert "wait for it, or stop it" in refusal(state)
    assert tries(state) == {1}, "it is not tried again"


def test_a_failed_mine_is_resumed_by_the_retry(tmp_path, monkeypatch):
    edges = random_edges(160, 80, 0.35, 5)
    source = write_edges(tmp_path / "g.parquet", edges)
    attempts = [[]]
    commit = Ledger.commit

    def fails_once(ledger, entry, *others):
        if len(attempts) == 1 and len(attempts[0]) == 1:
            attempts.append([])
            raise ResourceError("the disk is full; make room")
        commit(ledger, entry, *others)
        attempts[-1].append(entry.result.slice)

    monkeypatch.setattr(Ledger, "commit", fails_once)
    monkeypatch.setattr(tasks, "mine", tasks.mine.with_options(retry_delay_seconds=0))
    state = run(source, tmp_path / "out", slice_seconds=0.01)
    assert state.is_completed()
    assert manifest_pair(tmp_path / "out") == answer(edges)
    assert [bool(slices) for slices in attempts] == [True, True]
    assert set(attempts[0]) | set(attempts[1]) == set(load_ledger(tmp_path / "out").entries)
    assert not set(attempts[0]) & set(attempts[1]), "what was committed before the failure is not mined again"


@pytest.mark.exhaustive
def test_counting_only_by_size(tmp_path, source):
    state = run(source, tmp_path / "out", count_only=True, sizes=True)
    assert (state.result()["count"], int(state.result()["fingerprint"])) == answer(EDGES)
    assert bq.open_run(tmp_path / "out").sizes().total == answer(EDGES)[0]
    assert "largest" not in artifacts(state)
    assert "count_only" in refusal(run(source, tmp_path / "other", sizes=True))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"min_left": 0}, "min_left must be at least 1, not 0"),
        ({"containing_left": ["1"]}, r"'1' is a right label (item)"),
    ],
    ids=str,
)
def test_thresholds_and_members_that_cannot_be_are_refused_in_a_sentence(tmp_path, source, asked, sentence):
    assert sentence in refusal(run(source, tmp_path / "out", **asked))
    assert not (tmp_path / "out").exists()


@pytest.mark.exhaustive
def test_near_bicliques_are_mined(tmp_path, source):
    near = {"missing_pairs": 1, "min_left": 5, "min_right": 4}
    state = run(source, tmp_path / "out", report=True, **near)
    assert state.name == "Completed"
    assert state.result()["count"] == bq.count(source, **OWN, **near).count > 0
    assert 'id="holes"' in (tmp_path / "out" / "report.html").read_text()


def test_a_run_waits_for_its_turn(tmp_path, source):
    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name("mining", 1)
    states = []
    folder = RunFolder(tmp_path / "out")
    run_it = partial(run, source, folder.path, concurrency_limit="mining")
    other = threading.Thread(target=lambda: states.append(run_it()))
    with concurrency("mining", strict=True):
        other.start()
        until = time.monotonic() + 300
        while folder.facts("plan") is None and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(1.0)
        has_planned, has_mined = folder.facts("plan") is not None, folder.ledger.exists()
    other.join(300)
    assert (has_planned, has_mined) == (True, False)
    assert states[0].is_completed()


def test_a_limit_that_the_server_does_not_know_is_an_error(tmp_path, source):
    message = refusal(run(source, tmp_path / "out", concurrency_limit="nowhere"))
    assert "prefect gcl create nowhere --limit 1" in message


def test_the_folder_is_of_the_day_of_the_schedule(tmp_path, source):
    state = run(source, f"{tmp_path}/runs/{{date}}")
    (folder,) = (tmp_path / "runs").iterdir()
    assert datetime.now(UTC) - datetime.fromisoformat(f"{folder.name}T00:00Z") < timedelta(hours=25)
    assert read(state).expected_start_time.strftime("%Y-%m-%d") == folder.name
    assert state.result()["folder"] == str(folder)
    assert RunFolder(folder).origin().date == folder.name


def test_corrected_input_of_a_day_makes_a_new_run_and_the_same_none(tmp_path, source):
    night = partial(run, output=f"{tmp_path}/runs/{{date}}", date="2026-11-23")
    first, second = tmp_path / "runs" / "2026-11-23", tmp_path / "runs" / "2026-11-23.2"
    bq.mine(source, first, **QUIET)
    again = night(source)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["2026-11-23"]
    assert logged(again, f"{first} is complete since ")
    assert again.message.endswith(" UTC and left alone")
    write_edges(source, EDGES[1:])
    corrected = night(source)
    assert corrected.result()["folder"] == str(second)
    assert (manifest_pair(first), manifest_pair(second)) == (answer(EDGES), answer(EDGES[1:]))
    assert logged(corrected, f"{source} has changed since {first} read it, so a new run begins in {second}")
    assert read(corrected).name == f"g.parquet to {second}"


@pytest.mark.exhaustive
def test_a_backfill_is_one_parameter_and_removes_nothing(tmp_path):
    for k, day in enumerate(("2026-11-21", "2026-11-22", "2026-10-01")):
        write_edges(tmp_path / f"{day}.parquet", EDGES[k:])
    night = partial(run, f"{tmp_path}/{{date}}.parquet", f"{tmp_path}/runs/{{date}}", keep=1, latest=True)
    runs = tmp_path / "runs"
    bq.mine(tmp_path / "2026-11-21.parquet", runs / "2026-11-21", **QUIET)
    night(date="2026-11-22")
    assert (runs / "2026-11-22" / "_SUCCESS").exists()
    late = night(date="2026-10-01", keep_created=1)
    assert late.is_completed()
    assert {path.name for path in runs.iterdir()} == {"2026-11-22", "2026-10-01", "latest"}
    assert (runs / "latest").readlink() == Path("2026-11-22")
    assert logged(late, "no old run goes: 2026-11-22 is newer than 2026-10-01")
    origin = RunFolder(runs / "2026-10-01").origin()
    assert (origin.series, origin.date) == (f"{tmp_path}/{{date}}.parquet", "2026-10-01")


def test_old_runs_go_when_a_new_one_is_complete(tmp_path, source):
    runs = tmp_path / "runs"
    for day in ("1", "2"):
        bq.mine(source, runs / day, **QUIET)
    run(source, runs / "unfinished", max_results=10, keep=1)
    assert {path.name for path in runs.iterdir()} == {"1", "2", "unfinished"}
    assert not (runs / "unfinished" / "_SUCCESS").exists()
    state = run(source, runs / "3", keep=2)
    assert state.is_completed()
    assert {path.name for path in runs.iterdir()} == {"2", "3", "unfinished"}
    assert logged(state, f"{runs / '1'} goes: complete, number 3 from the newest")


def test_what_goes_wrong_beside_a_complete_run_does_not_make_it_fail(tmp_path, source, monkeypatch):
    (tmp_path / "latest").write_text("mine")

    def fail(path: Path):
        raise ResourceError("no room for the page")

    monkeypatch.setattr(tasks, "report", fail)
    state = run(source, tmp_path / "out", report=True, latest=True)
    assert (state.type.value, state.name) == ("COMPLETED", "Needs attention")
    assert "no room for the page" in state.message
    assert f"{tmp_path / 'latest'} is no link" in state.message
    assert (tmp_path / "out" / "_SUCCESS").exists()
    assert (tmp_path / "latest").read_text() == "mine"


def test_a_source_with_a_password_is_refused_before_it_is_in_a_name(tmp_path):
    """Prefect records parameters and names, and shows them."""
    with pytest.raises(InputError, match=r"the source https://\*\*\*@host/x\.csv\?\*\*\* has a password or a key"):
        mine.fn("https://ann:geheim@host/x.csv?sig=c0ffee", str(tmp_path / "out"))
