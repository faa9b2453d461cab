"""A complete run is published by the flow that made it, and told of with its place; where that failed, it is later."""

import re
from pathlib import Path
from typing import Any

import pytest
from prefect.client.schemas.objects import State

from bicliques.flows import tasks
from bicliques.flows.mine import mine
from bicliques.pipeline.run.folder import RunFolder
from tests.flows.emitted import COMPLETE, MADE, PUBLISHED, READ, events
from tests.flows.grouped import grouped, refused
from tests.flows.states import artifacts, everything, logged
from tests.support.bucket import ACCESS_KEY, SECRET_KEY, Bucket, bucket_of_moto
from tests.support.published import check_complete, contents, files_below
from tests.support.runs import random_edges, write_edges

pytestmark = pytest.mark.usefixtures("prefect_server")

EDGES = random_edges(12, 9, 0.4, 1)


@pytest.fixture
def bucket(monkeypatch):
    monkeypatch.setattr(tasks, "publish", tasks.publish.with_options(retry_delay_seconds=0))
    with bucket_of_moto(monkeypatch) as there:
        yield there


def run(source: Path | str, output: Path | str, **options) -> State[Any]:
    return mine(str(source), str(output), **grouped(**{"workers": 0, "report": False} | options), return_state=True)


def below(bucket: Bucket, prefix: str) -> dict[str, bytes]:
    return {key.removeprefix(f"{prefix}/"): data for key, data in bucket.objects(f"{prefix}/").items()}


def told(folder: Path, n: int = 1) -> list[str]:
    """The names of the events of a run, at least so many."""
    return [event.event for event in events(n, "bicliques.", name=str(folder))]


def test_a_night_is_published_and_told_of_once(tmp_path, source, bucket):
    url = bucket.url("nights").replace("nights", "nights/{date}")
    state = run(source, f"{tmp_path}/runs/{{date}}", date="2026-01-31", publish=url, report=True)
    folder, place = tmp_path / "runs" / "2026-01-31", "s3://lake/nights/2026-01-31"
    check_complete(below(bucket, "nights/2026-01-31"), folder)
    assert "report.html" in below(bucket, "nights/2026-01-31")
    assert state.name == "Completed"
    assert state.result()["published"] == place
    assert str(state.message).endswith(f"in {folder}, published at {place}")
    shown = artifacts(state)
    assert shown["publishing"] == 100
    assert r"| published | s3<wbr>\://lake/nights/2026\-01\-31 |" in shown["run-card"]
    bucket.asked.clear()
    again = run(source, f"{tmp_path}/runs/{{date}}", date="2026-01-31", publish=url, report=True)
    assert again.result() == state.result()
    assert [asked for asked in bucket.asked if asked.changes] == []
    run(source, tmp_path / "last")
    assert told(tmp_path / "last") == [COMPLETE]
    complete, published = events(2, "bicliques.", name=str(folder))
    assert (complete.event, published.event) == (COMPLETE, PUBLISHED)
    assert complete.payload["published"] == place
    assert (published.payload, published.resource, published.follows) == (
        complete.payload,
        complete.resource,
        complete.id,
    )
    made = [event for event in events(1, MADE, id="s3://lake/nights/date") if event.payload["folder"] == str(folder)]
    assert [event.payload["url"] for event in made] == [place]
    assert made[0].payload["files"] == len(contents(folder))
    assert f"file://{tmp_path}/runs/date" in {related.id for related in made[0].related}
    assert events(1, READ, id=f"file://{tmp_path}/runs/date")
    for each in (state, again):
        text = everything(each)
        assert place in text
        for secret in (ACCESS_KEY, SECRET_KEY, SECRET_KEY[-10:]):
            assert secret not in text


@pytest.mark.parametrize("what", ["begin", *(pytest.param(k, marks=pytest.mark.exhaustive) for k in ("list", "get"))])
def test_a_store_that_refuses_loses_no_run_and_gets_it_later(tmp_path, source, bucket, what):
    bucket.fault = lambda asked: "refuse" if asked.what == what else None
    night = {"latest": True, "publish": bucket.url("night")}
    state = run(source, tmp_path / "out", **night)
    assert (state.type.value, state.name) == ("COMPLETED", "Needs attention")
    assert "but it could not be published: s3://lake/night" in str(state.message)
    assert "published" not in state.result()
    assert "published" not in artifacts(state)["run-card"]
    assert (tmp_path / "out" / "_SUCCESS").exists()
    assert (tmp_path / "latest").readlink() == Path("out")
    assert "_SUCCESS" not in below(bucket, "night")
    bucket.well()
    later = run(source, tmp_path / "out", **night)
    assert later.name == "Completed"
    check_complete(below(bucket, "night"), tmp_path / "out")
    run(source, tmp_path / "last")
    assert told(tmp_path / "last") == [COMPLETE]
    complete, published = events(2, "bicliques.", name=str(tmp_path / "out"))
    assert (complete.event, published.event) == (COMPLETE, PUBLISHED)
    assert "published" not in complete.payload
    assert published.payload == complete.payload | {"published": "s3://lake/night"}
    for secret in (ACCESS_KEY, SECRET_KEY, SECRET_KEY[-10:]):
        assert secret not in everything(state)


@pytest.mark.exhaustive
def test_a_store_that_is_back_soon_is_tried_again_by_the_task(tmp_path, source, bucket):
    refused = []

    def once(asked) -> str | None:
        if asked.what != "begin" or refused:
            return None
        refused.append(asked.key)
        return "refuse"

    bucket.fault = once
    state = run(source, tmp_path / "out", publish=bucket.url("night"))
    assert (state.name, len(refused)) == ("Completed", 1)
    check_complete(below(bucket, "night"), tmp_path / "out")


@pytest.mark.exhaustive
def test_a_place_without_a_day_has_the_newest_night(tmp_path):
    """Corrected input of a day replaces it; a night that is made up for does not."""
    place = tmp_path / "newest"

    def night(day: str, n: int) -> State[Any]:
        write_edges(tmp_path / f"{day}.parquet", EDGES[:n])
        return run(f"{tmp_path}/{{date}}.parquet", f"{tmp_path}/runs/{{date}}", date=day, publish=str(place), keep=3)

    night("2026-01-02", len(EDGES))
    check_complete(files_below(place), tmp_path / "runs" / "2026-01-02")
    late = night("2026-01-01", len(EDGES) - 1)
    assert late.name == "Completed"
    assert "published" not in late.result()
    assert logged(late, f"{tmp_path}/runs/2026-01-01 is not published: {tmp_path}/runs/2026-01-02 is newer")
    check_complete(files_below(place), tmp_path / "runs" / "2026-01-02")
    night("2026-01-02", len(EDGES) - 2)
    check_complete(files_below(place), tmp_path / "runs" / "2026-01-02.2")
    night("2026-01-03", len(EDGES))
    check_complete(files_below(place), tmp_path / "runs" / "2026-01-03")


@pytest.mark.exhaustive
def test_what_cannot_be_published_to_is_left_alone_and_needs_attention(tmp_path, source):
    """Also a place below the run, and one on the web."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "manifest.json").write_text("theirs")
    for place, reason in (
        ("{}/theirs", "holds manifest.json, which was not published there"),
        ("{}/out/copy", "is the folder of the run, or lies in it"),
        ("https://host/night", "https://host/night is an address of the web"),
    ):
        state = run(source, tmp_path / "out", publish=place.format(tmp_path))
        assert state.name == "Needs attention"
        assert f"but it could not be published: {place.format(tmp_path)}" in str(state.message)
        assert reason in str(state.message)
    assert files_below(tmp_path / "theirs") == {"manifest.json": b"theirs"}
    assert told(tmp_path / "out") == [COMPLETE]


def test_a_run_that_is_not_complete_is_not_published(tmp_path, source):
    state = run(source, tmp_path / "out", max_results=3, publish=str(tmp_path / "copy"))
    assert state.name == "Limit reached"
    assert not (tmp_path / "copy").exists()
    run(source, tmp_path / "out", publish=str(tmp_path / "copy"))
    check_complete(files_below(tmp_path / "copy"), tmp_path / "out")
    assert RunFolder(tmp_path / "out").manifest() is not None


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"publish": "s3://ann:geheim@lake/night"}, r"^the parameter publish s3://\*\*\*@lake/night has a password or"),
        (
            {"publish": "s3://lake/night?secret_key=geheim"},
            r"^the parameter publish s3://lake/night\?\*\*\* has a pass",
        ),
        (
            {"publish": "s3://lake/night?endpoint_override=ann:geheim@host"},
            r"^the parameter publish s3://lake/night\?\*\*\* has a pass",
        ),
        ({"publish": "s3://lake/{day}"}, r"^'s3://lake/\{day\}' has a placeholder other than"),
        ({"publish": "copy", "count_only": True}, "^publish asks for a copy of the bicliques, and with count_only"),
    ],
    ids=str,
)
def test_what_can_never_be_published_is_refused_before_anything_is_read(tmp_path, asked, sentence):
    said = refused(tmp_path / "not there", tmp_path / "out", **asked)
    assert re.search(sentence, said)
    assert "geheim" not in said
    assert not (tmp_path / "out").exists()
