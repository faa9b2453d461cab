"""A parameter of a flow that begins with ~ is below the home folder of the worker, and never in a folder called ~."""

import os
from pathlib import Path
from typing import Any

import pytest
from prefect.client.schemas.objects import State

import bicliques as bq
from bicliques.flows.identity import nightly
from bicliques.flows.mine import mine
from bicliques.flows.publishing import Target
from bicliques.flows.verify import verify
from bicliques.pipeline.run.folder import RunFolder
from bicliques.schemas.errors import InputError
from tests.flows.grouped import grouped
from tests.flows.states import artifacts
from tests.support.runs import QUIET, answer, random_edges, write_edges

pytestmark = pytest.mark.usefixtures("prefect_server")

EDGES = random_edges(14, 11, 0.4, 2)
NIGHT = "2026-01-31"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The home folder, with a graph. The current folder is another one, which is empty."""
    for name in ("home", "here"):
        (tmp_path / name).mkdir()
    write_edges(tmp_path / "home/g.parquet", EDGES)
    # compiled code is found where it was kept before
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"


def run(output: str, **options) -> State[Any]:
    given = grouped(**{"workers": 0, "report": False} | options)
    return mine("~/g.parquet", output, date=NIGHT, **given, return_state=True)


def test_a_night_is_mined_published_and_verified_below_the_home_folder(home):
    found = run("~/runs/{date}", publish="~/lake/{date}", latest=True).result()
    assert found["folder"] == str(home / "runs" / NIGHT)
    assert found["published"] == str(home / "lake" / NIGHT)
    checked = verify(f"~/runs/{NIGHT}", sample=10, return_state=True)
    count, fingerprint = answer(EDGES)
    assert checked.result() == {"folder": found["folder"], "count": count, "fingerprint": str(fingerprint)}
    assert (home / "runs/latest").resolve() == home / "runs" / NIGHT
    assert RunFolder(home / "runs" / NIGHT).origin().series == str(home / "g.parquet")
    again = verify(str(home / "runs" / NIGHT), sample=10, return_state=True)
    assert artifacts(again)[""] == artifacts(checked)[""], "a history for one folder, however it is written"
    assert os.listdir() == []  # noqa: PTH208 - no folder that is called ~


def test_another_run_at_home_is_refused_and_not_written_to(home):
    bq.mine([("a", "x"), ("b", "x")], home / "out", **QUIET)
    files = [path for path in (home / "out").rglob("*") if path.is_file()]
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}
    with pytest.raises(InputError, match="name another output folder"):
        run("~/out").result()
    files = [path for path in (home / "out").rglob("*") if path.is_file()]
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files} == before
    assert os.listdir() == []  # noqa: PTH208


@pytest.mark.exhaustive
def test_a_night_in_a_folder_that_is_called_tilde_is_there_as_a_whole(home):
    """The run at home has another graph and this very place, so that nobody could miss what is read there."""
    bq.mine([("a", "x"), ("b", "x")], home / "runs" / NIGHT, **QUIET)
    files = [path for path in home.rglob("*") if path.is_file()]
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}
    place = Path("~/runs").absolute() / NIGHT
    assert run("./~/runs/{date}").result()["folder"] == str(place)
    assert verify(f"./~/runs/{NIGHT}", sample=10)["count"] == answer(EDGES)[0]
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in home.rglob("*") if path.is_file()} == before


def test_an_unknown_user_fails_the_flow_with_a_sentence(home):
    with pytest.raises(InputError, match=r"^~nobody-there/\{date\} cannot be found, because there is no home folder"):
        run("~nobody-there/{date}").result()
    assert os.listdir() == []  # noqa: PTH208


def test_an_asset_is_named_by_the_home_folder(home):
    from datetime import UTC, datetime

    target = Target.of("~/lake/{date}", datetime.now(UTC), lists=True)
    assert target.place == nightly(str(home / "lake/{date}"))
