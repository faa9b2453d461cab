"""Nights that change nothing, that a gate refuses, and that are made up for."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.client.schemas.objects import State

import pipeline
from flows.mine import mine
from pipeline.run.folder import RunFolder
from schemas.errors import InputError
from tests.flows.emitted import COMPLETE, events
from tests.flows.grouped import grouped
from tests.flows.receiver import notified
from tests.flows.states import artifacts, read
from tests.support.runs import answer, manifest_pair, random_edges, write_edges

pytestmark = pytest.mark.usefixtures("prefect_server")

EDGES, OTHERS = random_edges(9, 8, 0.5, 2), random_edges(9, 8, 0.5, 3)


@pytest.fixture
def told(prefect_server: None) -> Iterator[list[dict[str, str]]]:
    """What a receiver of messages has received."""
    with notified("nights") as received:
        yield received


def run(place: Path, day: str | None, source: str = "g.parquet", **options: Any) -> State[Any]:
    given = grouped(**{"workers": 0, "report": False, "notify": "custom-webhook/nights"} | options)
    return mine(f"{place}/{source}", f"{place}/runs/{{date}}", date=day, **given, return_state=True)


def runs(place: Path) -> list[str]:
    return sorted(path.name for path in (place / "runs").iterdir())


def test_an_unchanged_input_is_not_mined_again_and_told_after_two_nights(
    tmp_path: Path, told: list[dict[str, str]]
) -> None:
    """Here each night has a file of its own, which was only copied."""
    for day in range(1, 6):
        write_edges(tmp_path / f"2026-01-0{day}.parquet", EDGES if day < 5 else OTHERS)
    night = {"source": "{date}.parquet", "keep": 1, "latest": True, "publish": f"{tmp_path}/newest"}
    first = run(tmp_path, "2026-01-01", **night)
    second = run(tmp_path, "2026-01-02", **night)
    assert (first.name, second.name, told) == ("Completed", "Unchanged", [])
    assert second.result() == first.result()
    assert str(second.message).endswith("; its input has not changed for 1 night")
    assert read(second).name == f"2026-01-02.parquet to {tmp_path}/runs/2026-01-01"
    third = run(tmp_path, "2026-01-03", **night)
    assert third.name == "Unchanged"
    assert runs(tmp_path) == ["2026-01-01", "latest"], "it is neither mined nor counted"
    [message] = told
    assert message["title"] == "bicliques: mine unchanged"
    assert "its input has not changed for 2 nights" in message["text"]
    assert f"Folder: {tmp_path}/runs/2026-01-01" in message["text"]
    assert run(tmp_path, "2026-01-04", notify_unchanged_after=None, **night).name == "Unchanged"
    assert len(told) == 1
    other = run(tmp_path, "2026-01-04", min_left=2, **night)
    assert (other.name, runs(tmp_path)) == ("Completed", ["2026-01-04", "latest"])
    assert run(tmp_path, "2026-01-05", min_left=2, **night).name == "Completed"
    assert manifest_pair(tmp_path / "runs" / "latest") == answer(OTHERS, min_left=2)
    again = run(tmp_path, "2026-01-05", min_left=2, **night)
    assert again.name == "Completed", "the run of the day itself is left alone, as ever"
    assert len(told) == 1


def test_a_damaged_run_does_not_stand_for_a_later_night(tmp_path: Path, told: list[dict[str, str]]) -> None:
    write_edges(tmp_path / "g.parquet", EDGES)
    run(tmp_path, "2026-01-01")
    next((tmp_path / "runs" / "2026-01-01" / "bicliques").iterdir()).unlink()
    assert run(tmp_path, "2026-01-02").name == "Completed"
    assert manifest_pair(tmp_path / "runs" / "2026-01-02") == answer(EDGES)


def test_what_the_gate_refuses_is_neither_published_nor_linked(tmp_path: Path, told: list[dict[str, str]]) -> None:
    night = {"changes": True, "latest": True, "keep": 2, "publish": f"{tmp_path}/newest"}
    gate = night | {"refuse_above": 0.5}
    write_edges(tmp_path / "g.parquet", EDGES)
    assert run(tmp_path, "2026-01-01", **gate).name == "Completed", "nothing is before it"
    write_edges(tmp_path / "g.parquet", OTHERS)
    for day in ("2026-01-02", "2026-01-03", "2026-01-02"):
        state = run(tmp_path, day, **gate)
        assert (state.type.value, state.name, "published" in state.result()) == ("COMPLETED", "Refused", False)
        assert "neither published nor linked, because more than refuse_above (0.5) has changed" in str(state.message)
        assert f"new since {tmp_path}/runs/2026-01-01, " in str(state.message)
    assert "mine refused" in told[0]["title"]
    assert (len(told), runs(tmp_path)) == (3, ["2026-01-01", "2026-01-02", "latest"])
    assert not (tmp_path / "runs" / "2026-01-02" / "_SUCCESS").exists()
    write_edges(tmp_path / "g.parquet", OTHERS[1:])
    assert run(tmp_path, "2026-01-04", **gate).name == "Refused", "it is not compared with a run that was refused"
    write_edges(tmp_path / "g.parquet", EDGES)
    late = run(tmp_path, "2026-01-01", **gate)  # may not link what is newer, either
    assert late.name == "Completed"
    assert (tmp_path / "runs" / "latest").readlink() == Path("2026-01-01")
    assert manifest_pair(tmp_path / "newest") == manifest_pair(tmp_path / "runs" / "latest") == answer(EDGES)
    write_edges(tmp_path / "g.parquet", OTHERS[1:])
    assert run(tmp_path, "2026-01-04", **night).name == "Completed", "a person lets it pass"
    assert (tmp_path / "runs" / "latest").readlink() == Path("2026-01-04")
    assert manifest_pair(tmp_path / "newest") == answer(OTHERS[1:])
    assert runs(tmp_path) == ["2026-01-01", "2026-01-02", "2026-01-04", "latest"]
    folders = [str(tmp_path / "runs" / name) for name in runs(tmp_path)]
    assert [len(events(n, COMPLETE, name=folder)) for n, folder in zip((1, 0, 1), folders, strict=False)] == [1, 0, 1]


def test_a_night_that_cannot_be_compared_does_not_pass_the_gate(tmp_path: Path, told: list[dict[str, str]]) -> None:
    gate = {"changes": True, "latest": True, "refuse_above": 1.0}
    write_edges(tmp_path / "g.parquet", EDGES)
    run(tmp_path, "2026-01-01", **gate)
    write_edges(tmp_path / "g.parquet", EDGES, strings=True)
    state = run(tmp_path, "2026-01-02", **gate)
    assert state.name == "Refused"
    assert "because it could not be compared, and refuse_above is set; but what changed could not be" in state.message
    assert (tmp_path / "runs" / "latest").readlink() == Path("2026-01-01")


def test_a_backfill_that_the_next_night_would_remove_is_refused(tmp_path: Path, told: list[dict[str, str]]) -> None:
    for day in ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"):
        write_edges(tmp_path / f"{day}.parquet", EDGES if int(day[-1]) % 2 else OTHERS)
    night = {"source": "{date}.parquet", "keep": 1}
    assert run(tmp_path, "2026-01-03", **night).name == "Completed"
    for days in ({}, {"last_date": "2026-01-02"}):
        state = run(tmp_path, "2026-01-01", **night, **days)
        with pytest.raises(InputError, match=r"the run of 2026-01-01 would be removed .* keep is 1; say for how many"):
            state.result()
    assert runs(tmp_path) == ["2026-01-03"]
    (tmp_path / "runs" / "2026-01-01").mkdir()
    (tmp_path / "runs" / "2026-01-01" / ".keep").touch()
    assert run(tmp_path, "2026-01-01", **night).name == "Completed"
    assert run(tmp_path, "2026-01-02", **night, keep_created=3).name == "Completed"
    assert run(tmp_path, "2026-01-04", **night, keep_created=3).name == "Completed"
    assert runs(tmp_path) == ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]
    write_edges(tmp_path / "2026-01-05.parquet", EDGES)
    assert run(tmp_path, "2026-01-05", **night).name == "Completed"
    assert runs(tmp_path) == ["2026-01-01", "2026-01-05"]


def test_a_range_of_days_is_made_up_for_by_one_call(tmp_path: Path, told: list[dict[str, str]]) -> None:
    """A day without an input fails, and the others are there."""
    for day, edges in ((1, EDGES), (3, OTHERS), (4, OTHERS)):
        write_edges(tmp_path / f"2026-01-0{day}.parquet", edges)
    write_edges(tmp_path / "2026-01-09.parquet", random_edges(9, 8, 0.5, 4))
    run(tmp_path, "2026-01-09", "{date}.parquet", latest=True)
    state = run(
        tmp_path,
        "2026-01-01",
        "{date}.parquet",
        last_date=datetime.date(2026, 1, 4),
        keep=1,
        keep_created=9,
        min_left=2,
    )
    assert state.is_failed()
    assert "4 nights from 2026-01-01 to 2026-01-04: 3 Completed, 1 Failed; failed: 2026-01-02 (" in str(state.message)
    assert runs(tmp_path) == ["2026-01-01", "2026-01-03", "2026-01-04", "2026-01-09", "latest"]
    assert RunFolder(tmp_path / "runs" / "2026-01-03").origin().date == "2026-01-03"
    assert manifest_pair(tmp_path / "runs" / "2026-01-03") == answer(OTHERS, min_left=2)
    assert (tmp_path / "runs" / "latest").readlink() == Path("2026-01-09")
    assert [message["title"] for message in told] == ["bicliques: mine failed"] * 2
    begin, until = f"2026-01-01.parquet to {tmp_path}/runs/2026-01-01", f"2026-01-04.parquet to {tmp_path}/runs/"
    assert read(state).name == f"{begin} until {until}2026-01-04"
    again = run(tmp_path, "2026-01-03", "{date}.parquet", last_date="2026-01-04", min_left=2)
    assert again.name == "Completed"
    assert [Path(night["folder"]).name for night in again.result()] == ["2026-01-03", "2026-01-04"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"date": None}, "^last_date .2026-01-04. is the end of a range of days; say with date where it begins$"),
        ({"date": "2026-01-05"}, "^the range of days ends on 2026-01-04 and begins on 2026-01-05; exchange date"),
        ({"date": "2026-01-01", "output": "out"}, "^out is one folder for 4 days; write {date} where output has"),
        ({"date": "2026-01-01", "keep": 2}, "^the run of 2026-01-01 would be removed by the next night, because 3 of"),
        ({"date": "2026-01-01", "keep": 9, "keep_created": -1}, "after they were created must be at least 0, not -1$"),
    ],
)
def test_a_range_that_cannot_be_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=words):
        mine("not there", **options, last_date="2026-01-04", return_state=True).result()
    assert list(tmp_path.iterdir()) == []


def test_names_of_artifacts_begin_with_words(tmp_path: Path, told: list[dict[str, str]]) -> None:
    write_edges(tmp_path / "g.parquet", EDGES)
    run(tmp_path, "2026-01-01")
    write_edges(tmp_path / "g.parquet", OTHERS)
    shown = artifacts(run(tmp_path, "2026-01-02", changes=True))
    assert {"largest", "largest-new", "changes", "run-card", "mining"} <= shown.keys()
    assert shown[""].startswith("mine-runs-g-")
    assert pipeline.open_run(tmp_path / "runs" / "2026-01-02").complete
