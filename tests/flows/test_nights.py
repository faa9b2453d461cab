"""Nights that change nothing, that a gate refuses, and that are made up for."""

import datetime
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prefect.client.schemas.objects import State

import bicliques as bq
from bicliques.flows import tasks
from bicliques.flows.mine import mine
from bicliques.pipeline import __version__
from bicliques.pipeline.api import refreshing
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.series.runs import is_run
from bicliques.schemas.errors import InputError
from tests.flows.emitted import COMPLETE, events
from tests.flows.grouped import grouped, refused
from tests.flows.receiver import BLOCK
from tests.flows.states import artifacts, logged, read
from tests.support.runs import QUIET, answer, manifest_pair, random_edges, write_edges

pytestmark = pytest.mark.usefixtures("prefect_server")

EDGES, OTHERS = random_edges(9, 8, 0.5, 2), random_edges(9, 8, 0.5, 3)


def run(place: Path, day: str | None, source: str = "g.parquet", output: str = "{date}", **options) -> State[Any]:
    given = grouped(**{"workers": 0, "report": False, "notify": BLOCK} | options)
    return mine(f"{place}/{source}", f"{place}/runs/{output}", date=day, **given, return_state=True)


def mined(place: Path, name: str = "2026-01-01", **options) -> bq.Results:
    """The run of a night before, as it is whoever made it. The flow takes ten times as long."""
    source, given = place / "g.parquet", QUIET | options
    make = bq.largest if "top" in options else bq.mine
    return make(source, place / "runs" / name, **given)


def runs(place: Path) -> list[str]:
    return sorted(path.name for path in (place / "runs").iterdir())


def test_an_unchanged_input_is_not_mined_again_and_told_after_two_nights(tmp_path, told):
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


@pytest.mark.parametrize(
    "damage",
    [
        "a bit of a part",
        *(pytest.param(what, marks=pytest.mark.exhaustive) for what in ("a label", "the digest of the input")),
    ],
)
def test_a_damaged_run_does_not_stand_for_a_later_night(tmp_path, told, damage):
    """Without the record of what it has read, a run would be the same whatever the input is now."""
    forgets = damage == "the digest of the input"
    source, first = write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "runs" / "2026-01-01"
    mined(tmp_path, count_only=forgets)
    file = first / "steps" / "ingest.json"
    if not forgets:
        file = min((first / ("labels" if damage == "a label" else "bicliques")).iterdir())
    bits = bytearray(file.read_bytes())
    bits[len(bits) // 2] ^= 1
    file.write_bytes(bits)
    edges = OTHERS if forgets else EDGES
    write_edges(source, edges)
    state = run(tmp_path, "2026-01-02", count_only=forgets)
    assert state.name == "Completed"
    assert manifest_pair(tmp_path / "runs" / "2026-01-02") == answer(edges)
    assert logged(state, "this night is mined: ")


def test_another_version_of_this_package_mines_an_unchanged_input_again(tmp_path, told, monkeypatch):
    write_edges(tmp_path / "g.parquet", EDGES)
    mined(tmp_path)
    monkeypatch.setattr("bicliques.flows.identity.__version__", "9.8.7")
    state = run(tmp_path, "2026-01-02")
    assert (state.name, runs(tmp_path)) == ("Completed", ["2026-01-01", "2026-01-02"])
    words = f"version {__version__} of this package made {tmp_path}/runs/2026-01-01, and this is version 9.8.7"
    assert logged(state, f"this night is mined: {words}")


def test_only_the_content_says_whether_an_input_has_changed(tmp_path, told):
    file = tmp_path / "g.tsv"
    file.write_text("1\t2\n3\t4\n")
    bq.mine(file, tmp_path / "runs" / "2026-01-01", **QUIET)
    before = file.stat()
    file.write_text("1\t2\n3\t5\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    state = run(tmp_path, "2026-01-02", "g.tsv")
    assert (state.name, runs(tmp_path)) == ("Completed", ["2026-01-01", "2026-01-02"])
    assert logged(state, f"this night is mined: {file} has changed since {tmp_path}/runs/2026-01-01 read it")
    os.utime(file)
    assert run(tmp_path, "2026-01-03", "g.tsv").name == "Unchanged"


@pytest.mark.parametrize(
    "options",
    [
        {"top": 3},
        *(
            pytest.param(options, marks=pytest.mark.exhaustive)
            for options in ({"count_only": True}, {"per_vertex": True}, {"containing_left": ["5"], "report": True})
        ),
    ],
    ids=str,
)
def test_every_kind_of_run_stands_for_the_next_night(tmp_path, told, options):
    write_edges(tmp_path / "g.parquet", EDGES)
    found = mined(tmp_path, **options)
    state = run(tmp_path, "2026-01-02", **options)
    fingerprint = str(found.manifest.fingerprint)
    told = {"folder": str(found.path), "count": len(found), "fingerprint": fingerprint, "outcome": "complete"}
    assert (state.name, state.result()) == ("Unchanged", told)


@pytest.mark.exhaustive
def test_a_night_with_a_time_in_its_name_stands_for_the_next_one(tmp_path, told):
    write_edges(tmp_path / "g.parquet", EDGES)
    first, second = (run(tmp_path, day, output="{date}T{time}") for day in ("2026-01-01", "2026-01-02"))
    assert (first.name, second.name, second.result()) == ("Completed", "Unchanged", first.result())


def test_what_the_gate_refuses_is_neither_published_nor_linked(tmp_path, told):
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
    with pytest.raises(InputError, match="2026-01-02 has not passed the gate of its schedule, so it is not published"):
        bq.publish(tmp_path / "runs" / "2026-01-02", tmp_path / "by hand")
    assert not (tmp_path / "by hand").exists()
    write_edges(tmp_path / "g.parquet", OTHERS[1:])
    low = night | {"refuse_below": 10_000, "alert_as": "failed"}
    state = run(tmp_path, "2026-01-04", **low)
    assert (state.type.value, state.name) == ("FAILED", "Refused")
    assert "because it has fewer bicliques than refuse_below (10,000)" in str(state.message)
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


def test_a_run_that_was_killed_before_the_gate_has_not_passed_it(tmp_path, told, monkeypatch):
    gate = {"changes": True, "latest": True, "refuse_above": 0.5}
    write_edges(tmp_path / "g.parquet", EDGES)
    run(tmp_path, "2026-01-01", **gate)
    write_edges(tmp_path / "g.parquet", OTHERS)
    with monkeypatch.context() as patched:
        patched.setattr("bicliques.flows.mine.compare", lambda *_: 1 / 0)
        assert run(tmp_path, "2026-01-02", **gate).is_failed()
    assert bq.open_run(tmp_path / "runs" / "2026-01-02").complete
    with pytest.raises(InputError, match="has not passed the gate"):
        bq.publish(tmp_path / "runs" / "2026-01-02", tmp_path / "by hand")
    write_edges(tmp_path / "g.parquet", OTHERS[1:])
    assert run(tmp_path, "2026-01-03", **gate).name == "Refused"
    assert (tmp_path / "runs" / "latest").readlink() == Path("2026-01-01")
    write_edges(tmp_path / "g.parquet", OTHERS)
    assert run(tmp_path, "2026-01-02", **gate | {"refuse_above": 1.0}).name == "Completed"
    assert (tmp_path / "runs" / "latest").readlink() == Path("2026-01-02")


def test_a_night_that_cannot_be_compared_does_not_pass_the_gate(tmp_path, told):
    gate = {"changes": True, "latest": True, "refuse_above": 1.0}
    write_edges(tmp_path / "g.parquet", EDGES)
    run(tmp_path, "2026-01-01", **gate)
    write_edges(tmp_path / "g.parquet", EDGES, strings=True)
    state = run(tmp_path, "2026-01-02", **gate)
    assert state.name == "Refused"
    assert "because it could not be compared, and refuse_above is set; but what changed could not be" in state.message
    assert (tmp_path / "runs" / "latest").readlink() == Path("2026-01-01")


def test_a_backfill_that_the_next_night_would_remove_is_refused(tmp_path, told):
    for day in ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"):
        write_edges(tmp_path / f"{day}.parquet", EDGES if int(day[-1]) % 2 else OTHERS)
    night = {"source": "{date}.parquet", "keep": 1}
    bq.mine(tmp_path / "2026-01-03.parquet", tmp_path / "runs" / "2026-01-03", **QUIET)
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


def test_a_range_of_days_is_made_up_for_by_one_call(tmp_path, told):
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


@pytest.mark.exhaustive
def test_a_range_that_was_killed_goes_on_where_it_was(tmp_path, told, monkeypatch):
    for day in (1, 2, 3):
        write_edges(tmp_path / f"2026-01-0{day}.parquet", EDGES if day == 2 else OTHERS)
    first, second, third = (tmp_path / "runs" / f"2026-01-0{day}" for day in (1, 2, 3))
    make_up = partial(run, tmp_path, "2026-01-01", "{date}.parquet", last_date="2026-01-03")
    plan = tasks.plan

    def killed(path: Path):
        if path == second:
            raise KeyboardInterrupt
        return plan(path)

    with monkeypatch.context() as patched:
        patched.setattr(tasks, "plan", killed)
        with pytest.raises(KeyboardInterrupt):
            make_up()
    assert [bq.open_run(first).complete, is_run(second), is_run(third)] == [True, True, False]
    names = [RunFolder(path).run_id() for path in (first, second)]
    state = make_up()
    assert state.name == "Completed"
    assert [night["folder"] for night in state.result()] == [str(path) for path in (first, second, third)]
    assert [RunFolder(path).run_id() for path in (first, second)] == names
    assert [manifest_pair(path) for path in (second, third)] == [answer(EDGES), answer(OTHERS)]
    assert len(runs(tmp_path)) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"date": None}, "^last_date .2026-01-04. is the end of a range of days; say with date where it begins$"),
        ({"date": "2026-01-05"}, "^the range of days ends on 2026-01-04 and begins on 2026-01-05; exchange date"),
        ({"date": "2026-01-01", "output": "out"}, "^out is one folder for 4 days; write {date} where output has"),
        ({"date": "2026-01-01", "output": "{date}T{time}"}, "^{date}T{time} has {time}, by which a range that is"),
        (
            {"date": "2026-01-01", "keep": 2},
            "^the run of 2026-01-01 would be removed by the next night, because 3 runs of",
        ),
        ({"date": "2026-01-01", "keep": 9, "keep_created": -1}, "after they were created must be at least 0, not -1$"),
    ],
)
def test_a_range_that_cannot_be_is_refused_before_anything_is_read(tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    assert re.search(words, refused("not there", **options, last_date="2026-01-04"))
    assert list(tmp_path.iterdir()) == []


def test_names_of_artifacts_begin_with_words(tmp_path, told):
    write_edges(tmp_path / "g.parquet", EDGES)
    mined(tmp_path)
    write_edges(tmp_path / "g.parquet", OTHERS)
    shown = artifacts(run(tmp_path, "2026-01-02", changes=True))
    assert {"largest", "largest-new", "changes", "run-card", "mining"} <= shown.keys()
    assert shown[""].startswith("mine-runs-g-")
    assert bq.open_run(tmp_path / "runs" / "2026-01-02").complete


def test_a_night_is_refreshed_from_the_one_before_it_or_mined_and_says_why(tmp_path, told, monkeypatch):
    write_edges(tmp_path / "g.parquet", EDGES)
    first = run(tmp_path, "2026-01-01")
    assert "anew" not in str(first.message), "nothing is before it"
    write_edges(tmp_path / "g.parquet", EDGES[1:])
    monkeypatch.setattr(refreshing, "LEAST_S", 1e9)  # also where a machine stalls
    second = run(tmp_path, "2026-01-02")
    assert "2026-01-02, mined anew, because that takes some " in str(second.message)
    assert logged(second, "this night is mined anew, because that takes some ")
    for name, value in (("LEAST_S", 0), ("BUILDS", 0), ("EDGES", 0), ("SHARE", 1e9), ("BYTE_S", 0)):
        monkeypatch.setattr(refreshing, name, value)
    write_edges(tmp_path / "g.parquet", EDGES)
    third = run(tmp_path, "2026-01-03")
    folder = tmp_path / "runs" / "2026-01-03"
    assert manifest_pair(folder) == answer(EDGES)
    parent = bq.open_run(folder).manifest.parent
    words = f"2026-01-03, refreshed from {tmp_path}/runs/2026-01-02 by {parent.gone} gone and {parent.new} new"
    assert words in str(third.message)
    assert parent.gone + parent.new > 0
    assert "refreshed from" in str(artifacts(third))
    assert run(tmp_path, "2026-01-04").name == "Unchanged"
    write_edges(tmp_path / "g.parquet", EDGES[1:])
    for part in (folder / "bicliques").iterdir():
        bits = bytearray(part.read_bytes())
        bits[len(bits) // 3] ^= 4
        part.write_bytes(bits)
    fourth = run(tmp_path, "2026-01-04")
    assert manifest_pair(tmp_path / "runs" / "2026-01-04") == answer(EDGES[1:])
    assert re.search(r"2026-01-04, mined anew, because .*2026-01-03/bicliques/part-.*", str(fourth.message))
    other = run(tmp_path, "2026-01-05", min_left=2)
    assert (bq.open_run(tmp_path / "runs" / "2026-01-05").manifest.parent, "anew" in str(other.message)) == (
        None,
        False,
    )
