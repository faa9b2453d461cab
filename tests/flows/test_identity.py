"""Which folder a flow run works in, and for which day: asked without a server."""

import logging
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

import bicliques as bq
from bicliques.flows import identity, progress
from bicliques.flows.identity import complete_since, depends_on_moment, fill_in, folder_for, moment_of
from bicliques.kernels import engines
from bicliques.pipeline.api import steps
from bicliques.pipeline.ingest.sources.names import recorded
from bicliques.pipeline.run.files import read_json, write_json
from bicliques.pipeline.run.folder import RunFolder
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.options import RunOptions
from bicliques.schemas.search import Search
from tests.support.runs import QUIET, random_edges, write_edges

EDGES = random_edges(12, 9, 0.4, 1)


@pytest.fixture(autouse=True)
def _log(monkeypatch):
    monkeypatch.setattr(progress, "get_run_logger", lambda: logging.getLogger("test"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    source = write_edges(folder / "g.parquet", EDGES)
    return bq.mine(source, folder / "2026-11-23", **QUIET).path


@pytest.fixture
def day(model, tmp_path):
    """The folder of a day, which holds a complete run; its input is beside it."""
    day = shutil.copytree(model, tmp_path / "2026-11-23")
    header = read_json(day / "options.json")
    header["options"]["source"] = str(shutil.copy(model.parent / "g.parquet", tmp_path))
    write_json(day / "options.json", header)
    return day


def asked(day: Path, **others) -> RunOptions:
    return RunOptions(source=str(day.parent / "g.parquet"), **{"engine": engines.AUTO} | others)


def test_the_same_run_is_gone_on_with_or_left_alone(day):
    assert folder_for(day, asked(day), True) == day
    assert folder_for(day, asked(day, engine="cpu"), True) == day
    (day / "manifest.json").unlink()
    assert folder_for(day, asked(day), True) == day
    (day.parent / "g.parquet").unlink()
    assert folder_for(day, asked(day), True) == day, "it has all that it needs of its input"


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ({"search": Search(min_left=2)}, "holds a run with min_left=1, not with min_left=2, so a new run begins in"),
        ({"engine": "reference"}, "holds a run with engine='cpu', not with engine='reference'"),
        ({}, "g.parquet has changed since"),
    ],
)
def test_another_run_of_the_day_gets_a_number(day, others, reason, caplog):
    caplog.set_level("INFO")
    if not others:
        write_edges(day.parent / "g.parquet", EDGES[1:])
    assert folder_for(day, asked(day, **others), True) == day.with_name("2026-11-23.2")
    assert reason in caplog.messages[0]
    with pytest.raises(InputError, match="name another output folder, or finish that run as it is with: bicliques"):
        folder_for(day, asked(day, **others), False)


def test_a_run_as_source_has_the_digest_of_its_input(day, tmp_path):
    """It is another input once the run is another one, also where a link such as ``latest`` leads to it."""
    (tmp_path / "latest").symlink_to(day)
    out, search = tmp_path / "query", {"containing_left": ["5"]}
    bq.mine(tmp_path / "latest", out, **QUIET, **search)
    query = RunOptions(source=str(tmp_path / "latest"), search=Search(containing_left=("5",)), engine=engines.AUTO)
    assert folder_for(out, query, False) == out
    with pytest.raises(InputError, match=r"holds a run with containing_left=\['5'\], not with containing_left=\['8'\]"):
        folder_for(out, replace(query, search=Search(containing_left=("8",))), False)
    source = write_edges(tmp_path / "other.parquet", EDGES[1:])
    other = bq.mine(source, tmp_path / "other", **QUIET).path
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").symlink_to(other)
    with pytest.raises(InputError, match="latest has changed since"):
        folder_for(out, query, False)


def test_a_folder_to_which_a_file_came_is_another_input(day, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.el").write_text("1 2\n")
    out = bq.mine(tmp_path / "in", tmp_path / "out", **QUIET).path
    wanted = RunOptions(source=recorded(tmp_path / "in"), engine=engines.AUTO)
    assert folder_for(out, wanted, False) == out
    (tmp_path / "in" / "b.el").write_text("1 2\n")
    with pytest.raises(InputError, match="in has changed since"):
        folder_for(out, wanted, False)


def test_only_the_last_run_of_the_day_is_gone_on_with(day):
    """An input that is as it was in the morning, after it was corrected at noon, is a new run, and the newest."""
    source = write_edges(day.parent / "g.parquet", EDGES[1:])
    second = day.with_name("2026-11-23.2")
    bq.mine(source, second, **QUIET, max_results=3)
    assert folder_for(day, asked(day), True) == second, "not complete, same input"
    write_edges(source, EDGES)
    assert folder_for(day, asked(day), True) == day.with_name("2026-11-23.3")


def test_numbers_are_not_given_twice(day):
    for number in (2, 3):
        day.with_name(f"2026-11-23.{number}").write_text("a note")
    day.with_name("2026-11-23.old").mkdir()
    wish = asked(day, search=Search(min_left=2))
    assert folder_for(day, wish, True) == day.with_name("2026-11-23.4")
    shutil.copytree(day, day.with_name("2026-11-23.10"))
    shutil.rmtree(day)
    assert folder_for(day, wish, True) == day.with_name("2026-11-23.11")
    assert folder_for(day, asked(day), True) == day.with_name("2026-11-23.10")


@pytest.mark.parametrize(
    ("damage", "error", "sentence"),
    [
        (b"", IncompleteError, r"options\.json cannot be read \(.*\); start the run again in another folder"),
        (b"[]", IncompleteError, r"options\.json does not hold a JSON object; start the run again in another folder"),
        (b"{}", IncompleteError, r"options\.json does not say which version wrote it; start the run again in another"),
        (b'{"schema_version": 9, "version": "2"}', InputError, r"schema version 9, and .* 3; use version 2 of the"),
        (b'{"schema_version": 2, "version": "0"}', IncompleteError, r"options\.json cannot be used .*; start the run"),
    ],
)
def test_a_run_whose_options_cannot_be_read_makes_way(day, damage, error, sentence):
    (day / "options.json").write_bytes(damage)
    assert folder_for(day, asked(day), True) == day.with_name("2026-11-23.2")
    with pytest.raises(error, match=sentence) as told:
        folder_for(day, asked(day), False)
    assert "resume" not in str(told.value), "it cannot be resumed without options"
    with pytest.raises(error, match=sentence):
        complete_since(day)


@pytest.mark.parametrize("damage", [b"", b"\xff", b"null", b"{}", b'{"digest": 1}'])
def test_a_run_whose_record_of_its_input_is_damaged_is_gone_on_with(day, damage):
    record = day / "steps" / "ingest.json"
    facts = read_json(record)
    record.write_bytes(damage)
    assert folder_for(day, asked(day), True) == folder_for(day, asked(day), False) == day
    with pytest.raises(IncompleteError, match=r"ingest\.json .*; mend it with: bicliques.resume"):
        RunFolder(day).facts("ingest")
    assert steps.ingest(day, progress=False)["digest"] == facts["digest"], "going on mends it"
    record.write_bytes(damage)
    write_edges(day.parent / "g.parquet", EDGES[1:])
    with pytest.raises(IncompleteError, match=r"as after a change of the input .*; start the run again"):
        steps.ingest(day, progress=False)


def test_a_new_folder_is_the_named_one(tmp_path):
    assert folder_for(tmp_path / "not" / "there", asked(tmp_path), True) == tmp_path / "not" / "there"
    (tmp_path / "empty").mkdir()
    assert folder_for(tmp_path / "empty", asked(tmp_path), True) == tmp_path / "empty"


def test_complete_is_what_is_proven_and_still_there(day):
    manifest = RunFolder(day).manifest()
    assert complete_since(day) == f"{manifest.created[:10]} {manifest.created[11:16]} UTC"
    for file in (day / "bicliques" / manifest.parts[0].name, day / "ledger" / "0.json", day / "manifest.json"):
        whole = file.read_bytes()
        file.write_bytes(b"")
        assert complete_since(day) is None, "resuming it would mend it"
        file.write_bytes(whole)
    assert complete_since(day) is not None


def test_a_night_is_the_one_that_the_schedule_meant(monkeypatch):
    """However late it starts; a schedule of another timezone is taken in UTC."""
    meant = datetime(2026, 1, 31, 1, 30, 7, tzinfo=timezone(timedelta(hours=2)))
    monkeypatch.setattr(identity, "flow_run", SimpleNamespace(scheduled_start_time=meant))
    assert moment_of(None) == datetime(2026, 1, 30, 23, 30, 7, tzinfo=UTC)
    assert fill_in("in/{date}.csv", moment_of(None)) == "in/2026-01-30.csv"
    assert fill_in("runs/{date}T{time}", moment_of(date(2026, 2, 28))) == "runs/2026-02-28T233007"


@pytest.mark.parametrize("wrong", ["runs/{day}", "runs/{", "runs/{0}", "runs/{date.x}", "runs/{date[k]}"])
def test_another_placeholder_is_refused(wrong):
    with pytest.raises(InputError, match=r"placeholder other than \{date\} and \{time\}; write other braces twice"):
        fill_in(wrong, datetime.now(UTC))


def test_only_a_template_may_be_numbered():
    assert [depends_on_moment(name) for name in ("OUT/", "./a{{date}}", "runs/{date}", "asked/T{time}")] == [
        *(False, False, True, True)
    ]
