"""Flows whose run is kept in a store: they go on there, publish from there, and tell of its address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.client.schemas.objects import State

from flows.mine import mine
from flows.verify import verify
from schemas.errors import InputError
from tests.flows.emitted import COMPLETE, events
from tests.flows.grouped import grouped
from tests.flows.states import artifacts, everything
from tests.support.runs import answer
from tests.support.stored import EDGES, Machines, machines_with_a_bucket, source_in

DAY = "2026-01-31"


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    with machines_with_a_bucket(tmp_path / "caches", monkeypatch) as there:
        yield there


def run(source: Path, output: str, **options: Any) -> State[Any]:
    return mine(str(source), output, **grouped(**{"workers": 0} | options), return_state=True)


@pytest.mark.usefixtures("prefect_server")
def test_a_night_is_kept_in_a_store(machines: Machines, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("options", [{"keep": 3}, {"latest": True}, {"changes": True}])
@pytest.mark.usefixtures("prefect_server")
def test_what_needs_folders_beside_it_is_refused(machines: Machines, tmp_path: Path, options: dict[str, Any]) -> None:
    word = next(iter(options))
    state = run(source_in(tmp_path), machines.url, **options)
    with pytest.raises(InputError, match=f"^{word} looks at the folders beside a run, and s3://lake/nights/.* is in a"):
        state.result()
    assert machines.there() == {}


@pytest.mark.usefixtures("prefect_server")
def test_another_run_there_is_refused(machines: Machines, tmp_path: Path) -> None:
    source = source_in(tmp_path)
    run(source, machines.url, max_results=60)
    there = machines.there()
    with pytest.raises(InputError, match=r"holds a run without min_left.*name another output folder|holds a run"):
        run(source, machines.url, min_left=2).result()
    with pytest.raises(InputError, match="has a password or a key"):
        run(source, "s3://me:geheim@lake/night").result()
    assert machines.there().keys() == there.keys()
