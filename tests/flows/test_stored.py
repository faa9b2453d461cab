"""Flows whose run is kept in a store: they go on there, publish from there, and tell of its address."""

import json
from pathlib import Path
from typing import Any

import pytest
from prefect.client.schemas.objects import State

from bicliques.flows.mine import mine
from bicliques.flows.verify import verify
from bicliques.schemas.errors import InputError
from tests.flows.emitted import CHANGED, COMPLETE, events
from tests.flows.grouped import grouped, refused
from tests.flows.states import artifacts, everything, logged
from tests.support.compared import maximal_bicliques
from tests.support.runs import answer, write_edges
from tests.support.stored import EDGES, machines_with_a_bucket, source_in

pytestmark = pytest.mark.usefixtures("prefect_server")

DAY = "2026-01-31"


@pytest.fixture
def machines(tmp_path, monkeypatch):
    with machines_with_a_bucket(tmp_path / "caches", monkeypatch) as there:
        yield there


def run(source: Path, output: str, **options) -> State[Any]:
    return mine(str(source), output, **grouped(**{"workers": 0} | options), return_state=True)


def test_a_night_is_kept_in_a_store(machines, tmp_path):
    source, output = source_in(tmp_path), machines.bucket.url("runs").replace("runs", "runs/{date}")
    place, url = f"s3://lake/runs/{DAY}", machines.bucket.url(f"runs/{DAY}")
    stopped = run(source, output, date=DAY, max_results=60)
    assert stopped.name == "Limit reached"
    said = f"60 bicliques in {place}, not all: max_results; go on with: bicliques resume '{url}'"
    assert said in str(stopped.message)
    machines.change()
    state = run(source, output, date=DAY, publish=f"{tmp_path}/copies/{{date}}", report=True)
    count, fingerprint = answer(EDGES, strings=True)
    found = state.result()
    assert state.name == "Completed"
    assert (found["folder"], found["count"], found["fingerprint"]) == (url, count, str(fingerprint))
    assert str(state.message).startswith(f"{count:,} bicliques, all of them, in {place}, published at ")
    assert {"_SUCCESS", "report.html"} <= {key.rpartition("/")[2] for key in machines.bucket.objects(f"runs/{DAY}/")}
    assert (tmp_path / "copies" / DAY / "_SUCCESS").exists()
    assert [event.payload["folder"] for event in events(1, COMPLETE, name=url)] == [url]
    again = run(source, output, date=DAY, publish=f"{tmp_path}/copies/{{date}}", report=True)
    assert again.result() == found
    assert f"in {place}, complete since" in str(again.message)
    machines.change()
    checked = verify(url, sample=5, return_state=True)
    assert checked.result() == {"folder": url, "count": count, "fingerprint": str(fingerprint)}
    shown = [everything(each) for each in (stopped, state, again, checked)] + [str(artifacts(state))]
    top = str(machines.top)
    assert [text[text.index(top) - 200 :][:400] for text in shown if top in text] == []


@pytest.mark.exhaustive
def test_a_night_in_a_store_without_a_new_input_is_not_mined_again(machines, tmp_path):
    """On another machine, where no part of the run lies."""
    source, output = source_in(tmp_path), machines.bucket.url("runs").replace("runs", "runs/{date}")
    first = run(source, output, date="2026-01-30")
    before = machines.bucket.objects("runs/")
    machines.change()
    second = run(source, output, date=DAY)
    assert (first.name, second.name, second.result()) == ("Completed", "Unchanged", first.result())
    assert machines.bucket.objects("runs/") == before


@pytest.mark.exhaustive  # `test_changes.py` compares nights in folders, `compare/test_in_store.py` runs in a store
def test_nights_in_a_store_are_compared(machines, tmp_path):
    """Each night on another machine. What changed is told as of folders, and the address of the night before."""
    output, less = machines.bucket.url("runs").replace("runs", "runs/{date}"), EDGES[:-1]
    nights = []
    for number, edges in enumerate((EDGES, less), 1):
        (tmp_path / str(number)).mkdir()
        source = write_edges(tmp_path / str(number) / "g.parquet", edges, strings=True)
        series = source.rename(tmp_path / "in.parquet")
        day = {"date": f"2026-02-0{number}", "publish": f"{tmp_path}/newest"}
        nights.append(run(series, output, **day, report=True, changes=True, notify_above=0.0))
        machines.change()
    first, second = nights
    assert first.name == "Completed"
    assert logged(first, "s3://lake/runs/2026-02-01 has no run before it in its series")
    was, now = (maximal_bicliques({(str(a), str(b)) for a, b in edges}) for edges in (EDGES, less))
    words = f"{len(was - now)} are gone and {len(now - was)} are new since s3://lake/runs/2026-02-01, "
    assert (second.name, words in str(second.message)) == ("Much has changed", True)
    numbers = {row["name"]: row["value"] for row in json.loads(artifacts(second)["changes"])}
    assert (numbers["gone"], numbers["new"], numbers["after"]) == (len(was - now), len(now - was), len(now))
    assert {"largest-new", "vertices"} <= artifacts(second).keys()
    url = machines.bucket.url("runs/2026-02-01")
    changed = events(1, CHANGED, name=machines.bucket.url("runs/2026-02-02"))
    assert [(event.payload["since"], event.payload["gone"]) for event in changed] == [(url, len(was - now))]
    again = run(tmp_path / "in.parquet", output, **day, report=True, changes=True, notify_above=0.0)
    assert (again.name, "left alone" in str(again.message)) == ("Much has changed", True)
    assert (tmp_path / "newest" / "changes" / "diff.json").exists()
    late = run(tmp_path / "in.parquet", output, date="2026-01-31", publish=f"{tmp_path}/newest")
    assert logged(late, "s3://lake/runs/2026-01-31 is not published: s3://lake/runs/2026-02-02 is newer")
    top = str(machines.top)
    assert [each for each in map(everything, (*nights, again, late)) if top in each] == []


@pytest.mark.parametrize("options", [{"keep": 3}, {"latest": True}])
def test_what_changes_the_folder_above_is_refused(options):
    said = refused("in.csv", "s3://lake/nights/1", **options)
    assert said.startswith(f"{next(iter(options))} changes the folder above a run, and s3://lake/nights/1 is in a")


def test_another_run_there_is_refused(machines, tmp_path):
    source = source_in(tmp_path)
    run(source, machines.url, max_results=60)
    there = machines.there()
    with pytest.raises(InputError, match=r"holds a run without min_left.*name another output folder|holds a run"):
        run(source, machines.url, min_left=2).result()
    with pytest.raises(InputError, match="has a password or a key"):
        run(source, "s3://me:geheim@lake/night").result()
    assert machines.there().keys() == there.keys()
