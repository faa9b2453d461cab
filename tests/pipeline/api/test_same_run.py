"""The same call on the same input goes on, or returns the run that is there; `overwrite` begins anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pipeline
from pipeline.api import same_run, steps
from pipeline.cli.main import main
from pipeline.run.lock import locked
from pipeline.run.names import LOCK_FILE
from schemas.errors import InputError, ResourceError
from tests.support.runs import random_edges, write_edges

EDGES = random_edges(20, 15, 0.4, 1)
QUIET: dict[str, Any] = {"workers": 0, "progress": False, "report": False}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_edges(tmp_path / "g.parquet", EDGES)


def files(folder: Path) -> dict[str, int]:
    """When each file was written. Only the lock is taken again by whoever looks."""
    found = {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    return {name: at for name, at in found.items() if not name.endswith(LOCK_FILE)}


def identity(folder: Path) -> str:
    return pipeline.open_run(folder)._run.identity


@pytest.mark.parametrize("call", [pipeline.mine, pipeline.largest])
def test_a_finished_run_is_returned_and_left_alone(call: Callable[..., Any], source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = call(source, out, min_left=2, **QUIET)
    before = files(out)
    again = call(source, out, min_left=2, engine="auto", **QUIET)
    assert (len(again), again.complete, again.manifest) == (len(first), True, first.manifest)
    assert files(out) == before


def test_an_unfinished_run_goes_on_with_the_limits_of_the_call(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    wanted = pipeline.count(source, fingerprint=True, workers=0, progress=False)
    assert len(pipeline.mine(source, out, max_results=5, **QUIET)) == 5
    run = identity(out)
    assert len(pipeline.mine(source, out, max_results=20, **QUIET)) == 20
    done = pipeline.mine(source, out, **QUIET)
    assert (len(done), done.manifest.fingerprint, identity(out)) == (wanted.count, wanted.fingerprint, run)


def test_a_page_that_is_missing_is_made(source: Path, tmp_path: Path) -> None:
    pipeline.mine(source, tmp_path / "out", **QUIET)
    assert not (tmp_path / "out" / "report.html").exists()
    pipeline.mine(source, tmp_path / "out", **QUIET | {"report": True})
    assert (tmp_path / "out" / "report.html").exists()


OBJECTS: list[Any] = [
    pd.DataFrame({"user": [1, 1, 2], "film": ["a", "b", "a"]}),
    [(1, "a"), (1, "b"), (2, "a")],
    {1: {"a", "b"}, 2: {"a"}},
]


@pytest.mark.parametrize("given", OBJECTS, ids=lambda given: type(given).__name__)
def test_an_object_in_memory_is_compared_by_its_edges(given: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline.mine(given, out, **QUIET)
    run = identity(out)
    pipeline.mine(given, out, **QUIET)
    assert identity(out) == run
    other = given | {3: {"c"}} if isinstance(given, dict) else given[:2]
    with pytest.raises(InputError, match=r"has changed since .*out read it; name another output folder"):
        pipeline.mine(other, out, **QUIET)
    assert identity(out) == run


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"min_left": 3}, "a run with min_left=1, not with min_left=3"),
        ({"ids": "dense"}, "with ids='labels', not with ids='dense'"),
    ],
)
def test_another_run_is_refused_with_what_is_different(
    options: dict[str, Any], reason: str, source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    pipeline.mine(source, out, **QUIET)
    before = files(out)
    with pytest.raises(
        InputError, match=f"{reason}; name another output folder, .* begin anew there with overwrite=True"
    ):
        pipeline.mine(source, out, **options, **QUIET)
    assert files(out) == before


def test_input_that_has_changed_is_refused(source: Path, tmp_path: Path) -> None:
    pipeline.mine(source, tmp_path / "out", **QUIET)
    write_edges(source, EDGES[1:])
    with pytest.raises(InputError, match=r"g\.parquet has changed since .*out read it"):
        pipeline.mine(source, tmp_path / "out", **QUIET)


def test_standard_input_is_not_taken_for_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "in.el"
    text.write_text("1 2\n1 3\n")
    for code in (0, 2):
        with text.open() as stream:
            monkeypatch.setattr("sys.stdin", stream)
            assert (
                main(["mine", "-", "--format", "snap", "-o", str(tmp_path / "out"), "--quiet", "--no-report"]) == code
            )


def test_overwrite_begins_anew(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline.mine(source, out, overwrite=True, **QUIET)  # nothing is there yet
    run = identity(out)
    pipeline.mine(source, out, overwrite=True, **QUIET)
    assert identity(out) != run
    few = pipeline.mine(source, out, overwrite=True, min_left=3, **QUIET)
    assert (few.complete, len(few)) == (True, pipeline.count(source, min_left=3, workers=0, progress=False).count)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.parquet", "out"]


@pytest.mark.parametrize("wrong", ["source", "label"])
def test_a_run_stays_if_the_one_that_should_replace_it_cannot_begin(wrong: str, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline.mine(source, out, **QUIET)
    before = files(out)
    given = tmp_path / "nothing.csv" if wrong == "source" else source
    labels = ["12345"] if wrong == "label" else []
    with pytest.raises(InputError):
        pipeline.mine(given, out, overwrite=True, containing_left=labels, **QUIET)
    assert files(out) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.parquet", "out"]


def test_a_run_that_fails_later_replaces_the_old_one_and_can_be_resumed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    pipeline.mine(source, out, **QUIET)
    run = identity(out)

    def fail(*_: Any) -> None:
        raise ResourceError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(steps, "complete_run", fail)
        with pytest.raises(ResourceError, match="no room"):
            pipeline.mine(source, out, overwrite=True, **QUIET)
    assert identity(out) != run
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.parquet", "out"]
    assert pipeline.resume(out, workers=0, progress=False, report=False).complete


def test_files_of_others_and_runs_at_work_are_not_overwritten(source: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty; name another one"):
        pipeline.mine(source, full, overwrite=True, **QUIET)
    out = tmp_path / "out"
    pipeline.mine(source, out, **QUIET)
    (out / "note.txt").write_text("mine")
    with pytest.raises(InputError, match=r"note\.txt is not of the run, so the run stays"):
        pipeline.mine(source, out, overwrite=True, **QUIET)
    (out / "note.txt").unlink()
    with locked(out / LOCK_FILE), pytest.raises(InputError, match="is being worked on by"):
        pipeline.mine(source, out, overwrite=True, **QUIET)
    assert pipeline.open_run(out).complete


def test_a_damaged_run_is_not_gone_on_with(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline.mine(source, out, **QUIET)
    (out / "options.json").write_text("{")
    with pytest.raises(InputError, match="is not empty; name another one"):
        pipeline.mine(source, out, **QUIET)


def test_the_command_does_the_same(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["mine", str(source), "-o", str(tmp_path / "out"), "--quiet", "--no-report", "--workers", "0"]
    assert main([*words, "--max-results", "5"]) == 3
    assert main(words) == 0
    assert main(words) == 0
    assert main([*words, "--min-left", "2"]) == 2
    assert main([*words, "--min-left", "2", "--overwrite"]) == 0
    capsys.readouterr()
    assert main(["mine", str(source), "--dry-run", "--overwrite"]) == 2
    assert "no use for --overwrite" in capsys.readouterr().err


def test_a_run_as_source_is_compared_by_what_it_has_read(source: Path, tmp_path: Path) -> None:
    pipeline.mine(source, tmp_path / "whole", **QUIET)
    some = pipeline.mine(tmp_path / "whole", tmp_path / "some", min_left=3, **QUIET)
    assert len(pipeline.mine(tmp_path / "whole", tmp_path / "some", min_left=3, **QUIET)) == len(some)
    with pytest.raises(InputError, match="is the source and the output"):
        pipeline.mine(tmp_path / "some", tmp_path / "some", overwrite=True, **QUIET)
    assert pipeline.open_run(tmp_path / "some").complete
    assert same_run.is_there_already(tmp_path / "nothing", some._run.options, source) is False
    assert os.listdir(tmp_path / "some" / "bicliques")  # noqa: PTH208
