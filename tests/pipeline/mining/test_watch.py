"""A user can watch a run: the log has facts, the dashboard answers, and late or lost workers are named."""

import json
import logging
import os
import signal
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.pipeline.dealing.schedule import Start
from bicliques.pipeline.mining import watch
from bicliques.pipeline.mining.watch import Watch
from bicliques.pipeline.run.progress import Progress
from bicliques.pipeline.workers import dask_pool
from tests.support.pools import FakePool
from tests.support.runs import answer, bicliques, random_edges, write_edges

EDGES = random_edges(40, 30, 0.3, 4)
LARGE = random_edges(250, 80, 0.35, 7)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_edges(tmp_path / "g.parquet", EDGES)


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """The exit code of a command, and what it writes to stderr, as in a process of its own."""

    def call(*words: str | Path) -> tuple[int, str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(logging.getLogger(), "handlers", [])
            return main.main([*map(str, words)]), capsys.readouterr().err

    return call


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_json_log_has_a_line_with_facts_per_step_and_slice(source, tmp_path, logged):
    code, told = logged("mine", source, "-o", tmp_path / "out", "--workers", "0", "--log", "json")
    assert code == 0
    lines = lines_of(told)
    assert all(line["level"] == "info" and line["time"].endswith("+00:00") for line in lines)
    assert [line["step"] for line in lines if line["event"] == "step"] == ["ingest", "build", "plan", "report"]
    slices = [line for line in lines if line["event"] == "slice"]
    count, fingerprint = answer(EDGES)
    assert sum(line["rows"] for line in slices) == count == slices[-1]["total_rows"]
    for line in slices:
        assert line["rate"] == pytest.approx(line["rows"] / line["seconds"], rel=0.1)
        host, _, process = line["worker"].rpartition(":")
        assert host
        assert int(process)
        assert line["attempt"] == 0
    mined = next(line for line in lines if line["event"] == "mined")
    assert (mined["outcome"], mined["count"]) == ("complete", count)
    assert next(line for line in lines if line["event"] == "proven")["fingerprint"] == str(fingerprint)


def test_the_log_may_be_text_or_silent(source, tmp_path, logged):
    _, told = logged("mine", source, "-o", tmp_path / "a", "--workers", "0", "--log", "text")
    assert "bicliques: slice 0: " in told
    assert "% of the work" not in told
    assert logged("mine", source, "-o", tmp_path / "b", "--workers", "0", "--quiet") == (0, "")


def test_errors_are_lines_of_the_log_too(source, tmp_path, logged):
    code, told = logged("mine", "nothing.csv", "-o", tmp_path / "out", "--log", "json")
    assert code == 2
    assert [line["event"] for line in lines_of(told) if line["level"] == "error"] == ["error"]
    limited = bicliques("mine", source, "-o", tmp_path / "out", "--max-results", "3", "--workers", "0", "--log", "json")
    assert limited.returncode == 3
    assert "go on with: bicliques resume" in lines_of(limited.stderr)[-1]["message"]


def test_log_records_have_the_facts_of_slices(source: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "bicliques"):
        results = bq.mine(source, tmp_path / "out", workers=0, progress=False, report=False)
    facts = [record.facts for record in caplog.records if getattr(record, "event", "") == "slice"]  # type: ignore[attr-defined]
    assert sum(fact["rows"] for fact in facts) == len(results)


@pytest.mark.parametrize("has_bokeh", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_the_dashboard_is_shown_where_it_can_be_drawn_and_answers(tmp_path, monkeypatch, has_bokeh):
    """Dask draws it with Bokeh, and its pages about health do without."""
    monkeypatch.setattr(dask_pool, "find_spec", lambda name: name == "bokeh" if has_bokeh else None)
    source = write_edges(tmp_path / "large.parquet", LARGE)
    seen: list[str] = []

    def look(progress: Progress) -> None:
        if "dashboard" in progress.note:
            address = progress.note.partition(": ")[2]
            with urllib.request.urlopen(address.replace("/status", "/health"), timeout=300) as page:
                seen.append(f"{page.status} {address}")

    bq.mine(source, tmp_path / "out", workers=1, progress=look, report=False, max_results=1000)
    assert len(seen) == has_bokeh
    assert all(page.startswith("200 http://") and page.endswith("/status") for page in seen)


@pytest.mark.exhaustive
def test_a_stuck_worker_is_named_and_then_a_dead_one(tmp_path, caplog, monkeypatch):
    """A worker is stopped, so it answers nothing. It is killed as soon as the log names it, and the run goes on."""
    monkeypatch.setattr(watch, "GRACE_S", 0.5)
    source, out = write_edges(tmp_path / "large.parquet", LARGE), tmp_path / "out"
    stuck: list[str] = []

    def stop_one_then_kill_it(progress: Progress) -> None:
        if progress.bicliques and not stuck:
            stuck.append(bq.status(out).workers[0].name)
            os.kill(int(stuck[0].rpartition(":")[2]), signal.SIGSTOP)
        if stuck and "killed" not in stuck and told("late", f"is still with worker {stuck[0]} after"):
            os.kill(int(stuck[0].rpartition(":")[2]), signal.SIGKILL)
            stuck.append("killed")

    def told(event: str, words: str) -> bool:
        return any(getattr(r, "event", "") == event and words in r.getMessage() for r in caplog.records)

    with caplog.at_level(logging.INFO, "bicliques"):
        results = bq.mine(
            source, out, workers=2, slice_seconds=0.1, progress=stop_one_then_kill_it, report=False, count_only=True
        )
    assert results.manifest.count == answer(LARGE)[0]
    assert stuck[1:] == ["killed"]
    assert told("failed", f"its worker {stuck[0]} died")
    assert results.manifest.mining["retries"] >= 1


class Silent(FakePool):
    def who(self, tag: int) -> str:
        return "far:7"


def test_a_stuck_worker_is_named_again_after_twice_the_time(caplog, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("bicliques.pipeline.mining.watch.time.monotonic", lambda: now[0])
    seen = Watch(Silent(), lambda progress: None)
    seen.started(Start(3, 0, (), 10.0, None), 10.0)
    told = []
    for _ in range(400):
        seen.look()
        told.append(len(caplog.records))
        now[0] += 1.0
    assert [k for k in range(1, 400) if told[k] > told[k - 1]] == [70, 140, 280]
    assert "slice 3 was given 10.0 s and is still with worker far:7 after 70 s" in caplog.messages[0]
    seen.failed(3, "it died")
    assert caplog.messages[-1] == "slice 3 failed the first time: it died"
