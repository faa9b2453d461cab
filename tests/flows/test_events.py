"""A run that becomes complete is an event and an asset of the server, once, and so is much that has changed in it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prefect.client.schemas.objects import State

from bicliques.flows import ending
from bicliques.flows.events import asset_key
from bicliques.flows.mine import mine
from bicliques.pipeline.run.folder import RunFolder
from tests.flows.emitted import CHANGED, COMPLETE, MADE, READ, events
from tests.flows.grouped import grouped
from tests.support.compared import maximal_bicliques
from tests.support.runs import answer, random_edges, write_edges

pytestmark = pytest.mark.usefixtures("prefect_server")

EDGES = random_edges(12, 9, 0.4, 1)


def run(source: Path | str, output: Path | str, **options) -> State[Any]:
    return mine(str(source), str(output), **grouped(workers=0, report=False, **options), return_state=True)


def test_a_complete_run_is_told_of_once_and_is_an_asset_from_its_input(tmp_path, source):
    """The last run gives an event that should not be there time to come."""
    nights = [run(source, f"{tmp_path}/{{date}}", date="2026-01-01", max_results=3)]
    for day, edges in (("2026-01-01", EDGES), ("2026-01-02", EDGES[::-1]), ("2026-01-02", EDGES[::-1])):
        write_edges(source, edges)
        nights.append(run(source, f"{tmp_path}/{{date}}", date=day))
    run(source, tmp_path / "last")
    assert [night.name for night in nights[:2]] == ["Limit reached", "Completed"]
    assert len(events(1, COMPLETE, name=str(tmp_path / "last"))) == 1
    assert len(events(1, MADE, id=f"file://{tmp_path}/last")) == 1
    count, fingerprint = answer(EDGES)
    for out, completed in ((tmp_path / "2026-01-01", nights[1]), (tmp_path / "2026-01-02", nights[2])):
        [event] = events(1, "bicliques.", name=str(out))
        assert event.payload == {
            "folder": str(out),
            "series": str(source),
            "count": count,
            "fingerprint": str(fingerprint),
            "seconds": pytest.approx(sum(RunFolder(out).manifest().seconds.values()), abs=1e-3),
        }
        assert event.resource.id == f"bicliques.run.{RunFolder(out).run_id()}"
        assert event.resource["bicliques.series"] == str(source)
        assert f"prefect.flow-run.{completed.state_details.flow_run_id}" in {related.id for related in event.related}
    assert events(1, READ, id=f"file://{source}")
    made = events(2, MADE, id=f"file://{tmp_path}/date")
    assert [event.payload["folder"] for event in made] == [night.result()["folder"] for night in nights[1:3]]
    facts = made[0].payload
    assert (facts["count"], facts["fingerprint"], facts["n_edges"]) == (count, str(fingerprint), len(EDGES))
    assert made[0].resource.name == f"bicliques of {source}"
    assert {"bicliques", f"file://{source}"} <= {related.id for related in made[0].related}


def night(place: Path, day: str, edges: set[tuple[Any, Any]], **options):
    left, right = zip(*sorted(edges, reverse=int(day[-1]) % 2 == 1), strict=True)  # no two nights have the same input
    pq.write_table(pa.table({"user": left, "film": right}), place / f"{day}.parquet")
    run(f"{place}/{{date}}.parquet", f"{place}/runs/{{date}}", date=day, changes=True, **options)


@pytest.mark.exhaustive
def test_a_run_tells_what_changed_if_that_is_much(tmp_path):
    """The last night gives an event that should not be there time to come."""
    edges = {(f"user {a}", f"film {b}") for a, b in EDGES.tolist()}
    less = edges - {max(edges)}
    was, now = maximal_bicliques(edges), maximal_bicliques(less)
    share = round(len(was ^ now) / len(was | now), 6)
    night(tmp_path, "2026-01-01", edges)
    night(tmp_path, "2026-01-02", less)
    night(tmp_path, "2026-01-03", less)
    night(tmp_path, "2026-01-04", edges, notify_above=0.999)
    night(tmp_path, "2026-01-05", less, notify_above=share / 2)
    night(tmp_path, "2026-01-06", less)
    assert events(1, COMPLETE, name=f"{tmp_path}/runs/2026-01-06")
    expected = [[COMPLETE], [COMPLETE, CHANGED], [COMPLETE], [COMPLETE], [COMPLETE, CHANGED]]
    names = [
        [event.event for event in events(len(those), "bicliques.", name=f"{tmp_path}/runs/2026-01-0{day}")]
        for day, those in enumerate(expected, 1)
    ]
    assert names == expected
    complete, changed = events(2, "bicliques.", name=f"{tmp_path}/runs/2026-01-02")
    assert changed.follows == complete.id
    assert changed.resource == complete.resource
    assert changed.payload == complete.payload
    told = {name: changed.payload[name] for name in ("since", "gone", "new", "unchanged", "share")}
    assert told == {
        "since": f"{tmp_path}/runs/2026-01-01",
        "gone": len(was - now),
        "new": len(now - was),
        "unchanged": len(was & now),
        "share": share,
    }


def test_no_event_taken_and_a_link_in_the_way_do_not_make_the_run_fail(tmp_path, source, monkeypatch):
    (tmp_path / "latest").write_text("mine")
    told = []

    def refuse(results, *_):
        told.append(results.path)
        raise ConnectionRefusedError("nobody there")

    monkeypatch.setattr(ending, "emit_complete", refuse)
    state = run(source, tmp_path / "out", latest=True)
    assert (state.type.value, state.name) == ("COMPLETED", "Needs attention")
    assert "the run could not be announced: nobody there" in str(state.message)
    assert "latest is no link" in str(state.message)
    assert told == [tmp_path / "out"], "a link that cannot be made is no reason to say nothing"
    assert (tmp_path / "out" / "_SUCCESS").exists()


@pytest.mark.parametrize(
    ("place", "key"),
    [
        ("/srv/runs/2026", "file:///srv/runs/2026"),
        ("/srv/in/{date}T{time}.csv", "file:///srv/in/dateTtime.csv"),
        ("s3://lake/ratings/", "s3://lake/ratings"),
        ("S3://lake/{date}/*.csv", "s3://lake/date/*.csv"),
        ("/", "file://"),
        ("/日本/g.el", "file:///日本/g.el"),
        ("/a b/{x}'\"<>#?&%[]|\\^`\n", "file:///a-b/-x----------------"),
        ("/" + 600 * "x", "file:///" + 497 * "x"),
        ("/g\udcff", "file:///g-"),
        ("memory://x", "memory://x"),
    ],
    ids=ascii,
)
def test_a_place_is_a_key_that_prefect_takes(place, key):
    from prefect.assets import Asset

    found = asset_key(place)
    assert Asset(key=found).key == found
    begin, _, digest = found.rpartition("-")
    assert key in (found, begin)
    assert key == found or len(digest) == 6


def test_two_places_have_two_keys():
    places = ["/a b", "/a-b", "/a?b", "/" + 600 * "x", "/" + 601 * "x", "/{b}", "/-b-"]
    assert len({asset_key(place) for place in places}) == len(places)
