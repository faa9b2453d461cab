"""Runs in a store are compared with the one before them there, and every machine knows what was found."""

from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.compare.difference import Difference
from bicliques.pipeline.compare.in_run import changes_since_the_run_before
from bicliques.pipeline.remote.objects import Objects
from bicliques.pipeline.results.report.content import before
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import CHANGES_FILES
from bicliques.pipeline.run.opened import driven
from bicliques.pipeline.run.store import store_at
from bicliques.pipeline.series.runs import run_after, run_before
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.options import CallOptions, RunLimits, RunOptions
from bicliques.schemas.search import Search
from tests.support.bucket import Asked
from tests.support.compared import maximal_bicliques, noted_comparisons, rows_of, stored
from tests.support.runs import random_edges
from tests.support.stored import Machines

EDGES = {(int(a), int(b)) for a, b in random_edges(8, 7, 0.5, 6)}
LESS = EDGES - {min(EDGES)}


def url_of_night(machines: Machines, day: str) -> str:
    return machines.bucket.url(f"ü 1/{day}")


def of_series(machines: Machines, day: str, edges: set[tuple[int, int]], series: str = "g", min_left: int = 1) -> str:
    """A run that a schedule makes, in a store. Returns its address."""
    place = machines.top / "in"
    place.mkdir(parents=True, exist_ok=True)
    source = str(stored(place / f"{series}-{day}-{machines.number}.parquet", edges))
    url, limits = url_of_night(machines, day), RunLimits(max_results=1 if series == "stopped" else None)
    options = RunOptions(source=source, engine="cpu", search=Search(min_left=min_left))
    path = driven(Path(url))
    origin = "g" if series == "stopped" else series, day
    steps.start(source, path, options, limits, False, CallOptions(ingest_on="cpu"), origin)
    steps.run(path, WorkerOptions(workers=0), limits, False)
    return url


def compared(url: str) -> Difference | None:
    return changes_since_the_run_before(driven(Path(url)))


def changes_in(machines: Machines, day: str) -> dict[str, bytes]:
    prefix = f"ü 1/{day}/changes/"
    return {key.removeprefix(prefix): data for key, data in machines.bucket.objects(prefix).items()}


def test_the_run_before_is_the_newest_complete_one_of_the_series(machines: Machines) -> None:
    first = of_series(machines, "2026-01-01", EDGES)
    second = of_series(machines, "2026-01-02", LESS)
    of_series(machines, "2026-01-03", EDGES, "stopped")
    of_series(machines, "2026-01-03.2", EDGES, "other")
    of_series(machines, "2026-01-03.3", EDGES, min_left=2)
    fourth = of_series(machines, "2026-01-04", EDGES)
    for key, data in {"letter": b"mine", "damaged/options.json": b"{", "folder/below/letter": b"mine"}.items():
        machines.bucket.put(f"ü 1/{key}", data)
    machines.change()
    found = [run_before(driven(Path(url))) for url in (first, second, fourth)]
    assert [None if run is None else run.store.address for run in found] == [None, first, second]
    after = run_after(driven(Path(first)))
    assert after is not None
    assert after.store.address == fourth
    assert compared(first) is None
    difference = compared(fourth)
    assert difference is not None
    assert rows_of(difference.new) == maximal_bicliques(EDGES) - maximal_bicliques(LESS)
    assert (difference.old_run.folder, difference.new_run.folder) == (second, fourth)
    assert (changes_in(machines, "2026-01-01"), changes_in(machines, "2026-01-04").keys()) == ({}, set(CHANGES_FILES))
    put = [key.rpartition("/")[2] for key in machines.bucket.completed() if "/changes/" in key]
    assert (put[-1], set(put)) == ("diff.json", set(CHANGES_FILES))


def test_every_machine_knows_it_until_a_run_is_another(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = of_series(machines, "2026-01-01", EDGES), of_series(machines, "2026-01-03", EDGES)
    made = noted_comparisons(monkeypatch)
    for _ in range(2):
        found = compared(last)
        assert found is not None
        assert found.share == 0
        machines.change()
    assert [store_at(path).address for path in made] == [first]
    machines.change()
    second = of_series(machines, "2026-01-02", LESS)
    found = compared(last)
    assert found is not None
    assert found.old_run.folder == second
    machines.number -= 2  # the machine that has the first comparison
    machines.change()
    found = compared(last)
    assert found is not None
    assert rows_of(found.new) == maximal_bicliques(EDGES) - maximal_bicliques(LESS)
    assert len(made) == 2
    machines.change()
    machines.bucket.listed = {}  # whoever begins anew knows the names
    assert bq.mine(sorted(EDGES), last, workers=0, progress=False, report=False, overwrite=True).complete
    assert changes_in(machines, "2026-01-03") == {}


@pytest.mark.parametrize(
    "lost", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name != "diff.json")) for name in CHANGES_FILES]
)
def test_a_comparison_that_does_not_get_there_is_made_again(machines: Machines, lost: str) -> None:
    """The one that was there is withdrawn first. So no machine takes the files of two for one."""
    of_series(machines, "2026-01-01", EDGES)
    last = of_series(machines, "2026-01-03", EDGES)
    compared(last)
    of_series(machines, "2026-01-02", LESS)

    def fault(asked: Asked) -> str | None:
        return "refuse" if asked.what == "put" and asked.key.endswith(f"changes/{lost}") else None

    machines.bucket.fault = fault
    with pytest.raises(ResourceError, match=f"/changes/{lost} cannot be written"):
        compared(last)
    machines.bucket.well()
    assert "diff.json" not in changes_in(machines, "2026-01-03")
    found = compared(last)
    assert found is not None
    assert len(found.new) > 0
    machines.change()
    assert changes_in(machines, "2026-01-03").keys() == set(CHANGES_FILES)


@pytest.mark.exhaustive
def test_a_comparison_that_is_replaced_while_it_is_read_is_none(machines: Machines) -> None:
    of_series(machines, "2026-01-01", EDGES)
    last = of_series(machines, "2026-01-02", LESS)
    compared(last)
    machines.change()
    record = changes_in(machines, "2026-01-02")["diff.json"]

    def replaced(asked: Asked) -> None:
        if asked.what == "get" and asked.key.endswith("new.parquet"):
            machines.bucket.put("ü 1/2026-01-02/changes/diff.json", record + b"\n")

    machines.bucket.fault = replaced
    bq.publish(last, machines.top / "copy")
    assert not (machines.top / "copy" / "changes").exists()
    machines.bucket.well()
    bq.publish(last, machines.top / "copy")
    assert {file.name for file in (machines.top / "copy" / "changes").iterdir()} == set(CHANGES_FILES)


def test_readers_get_it(machines: Machines) -> None:
    """A copy has it, and the page names the run before, with a link to its page."""
    first = of_series(machines, "2026-01-01", EDGES)
    bq.report(first)
    last = of_series(machines, "2026-01-02", LESS)
    assert compared(last) is not None
    machines.change()
    bq.publish(last, machines.top / "copy")
    copied = {file.name: file.read_bytes() for file in (machines.top / "copy" / "changes").iterdir()}
    assert copied == changes_in(machines, "2026-01-02")
    machines.change()
    results = bq.open_run(last)
    told = before(RunFolder(results.path), results.manifest, results.sizes(), {})
    assert told is not None
    assert (told.day, told.page) == ("2026-01-01", "../2026-01-01/report.html")
    assert "most edges" in [change.what for change in told.changes]
    assert told.difference is not None
    assert rows_of(told.difference.gone) == maximal_bicliques(EDGES) - maximal_bicliques(LESS)
    assert "../2026-01-01/report.html" in bq.report(last).read_text()


@pytest.mark.exhaustive
def test_a_listing_that_lags_finds_an_older_run_or_none(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    first = of_series(machines, "2026-01-01", EDGES)
    of_series(machines, "2026-01-02", EDGES)
    last = of_series(machines, "2026-01-03", LESS)
    for listed, old in ((["2026-01-01", "gone"], first), ([], None)):
        monkeypatch.setattr(Objects, "folders", lambda self, listed=listed: listed)
        found = compared(last)
        assert (None if found is None else found.old_run.folder) == old


def test_runs_may_lie_directly_in_a_bucket(machines: Machines) -> None:
    assert Objects(machines.bucket.url()).folders() == []
    machines.bucket.put("2026-01-01/options.json", b"{}")
    machines.bucket.put("letter", b"mine")
    assert Objects(machines.bucket.url()).folders() == ["2026-01-01"]


def test_a_store_that_does_not_answer_is_no_run_without_one_before(machines: Machines) -> None:
    of_series(machines, "2026-01-01", EDGES)
    last = driven(Path(of_series(machines, "2026-01-02", LESS)))
    machines.bucket.fault = lambda asked: "refuse" if asked.what == "list" else None
    with pytest.raises(ResourceError, match=r"cannot be listed"):
        changes_since_the_run_before(last)
    for name in ("options", "manifest"):
        machines.bucket.fault = lambda asked, key=f"2026-01-01/{name}.json": "refuse" if key in asked.key else None
        with pytest.raises(ResourceError, match=rf"2026-01-01/{name}\.json cannot be read"):
            changes_since_the_run_before(last)
