"""Damage to a complete run. One `resume` repairs it, or says in a sentence why that is not possible."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.cli import main
from bicliques.pipeline.mining import driver
from bicliques.pipeline.results.report.make import report
from bicliques.pipeline.results.run_status import status
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import SUCCESS_FILE
from bicliques.pipeline.series.runs import mark_complete
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.errors import BicliqueError, IncompleteError
from bicliques.schemas.options import RunLimits, RunOptions
from bicliques.schemas.search import Search
from tests.support.runs import answer, load_ledger, manifest_pair, random_edges, rewrite_record, write_edges

EDGES = random_edges(40, 30, 0.3, 4)
EXPECTED = answer(EDGES)


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run of several slices."""
    folder = tmp_path_factory.mktemp("complete")
    source = write_edges(folder / "g.parquet", EDGES)
    steps.start(source, folder / "out", RunOptions(source=str(source), search=Search("list")), RunLimits(), False)
    steps.prepare(folder / "out", False)
    for limit in (100, 200, 300, 400, None):
        steps.mine(folder / "out", WorkerOptions(workers=0, slice_seconds=0.02), RunLimits(max_results=limit), False)
    steps.prove(folder / "out", progress=False)
    assert len(load_ledger(folder / "out").entries) >= 4
    return folder / "out"


@pytest.fixture
def out(complete: Path, tmp_path: Path) -> Path:
    """A copy of it that may be damaged."""
    return Path(shutil.copytree(complete, tmp_path / "out"))


def mended(out: Path, report: bool = False) -> None:
    """Resume once: complete as before, and nothing is left to do."""
    assert bq.resume(out, workers=0, progress=False, report=report).complete
    assert manifest_pair(out) == EXPECTED
    assert bq.verify(out, progress=False).count == EXPECTED[0]
    assert status(out).state == "complete"
    assert steps.run(out, WorkerOptions(workers=0), RunLimits(), False) is None


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)


ENTRY_DAMAGE: dict[str, Callable[[Path], Any]] = {
    "lost": Path.unlink,
    "empty": lambda file: file.write_bytes(b""),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-30]),
    "flipped": flip,
    "another": lambda file: shutil.copyfile(file.with_name("0.json" if file.name != "0.json" else "1.json"), file),
}


@pytest.mark.values
@pytest.mark.parametrize("which", [0, 1, -1])
@pytest.mark.parametrize("damage", ENTRY_DAMAGE)
def test_a_damaged_entry_withdraws_the_manifest_and_is_mined_again(out, damage, which, caplog):
    mark_complete(out)
    entries = load_ledger(out)
    ENTRY_DAMAGE[damage](entries.file(list(entries.entries)[which]))
    assert status(out).state == "failed"
    mended(out)
    assert "the manifest is withdrawn, and what is missing is mined again" in caplog.text
    assert not (out / SUCCESS_FILE).exists(), "whoever waits for the mark would take the run for the one before"


def test_a_lost_ledger_is_mined_again(out: Path) -> None:
    shutil.rmtree(out / "ledger")
    assert status(out).state == "failed"
    report(out)
    mended(out)


def test_an_entry_whose_count_differs_from_the_manifest_is_noticed(out: Path, caplog: pytest.LogCaptureFixture) -> None:
    rewrite_record(out / "manifest.json", count=EXPECTED[0] - 1)
    mended(out)
    assert f"but the manifest says {EXPECTED[0] - 1}" in caplog.text


def test_a_lost_entry_that_found_nothing_is_missed(out: Path) -> None:
    """Count and fingerprint are right without it, and the proof of all subtrees is not there any more."""
    ledger = load_ledger(out)
    entry = ledger.entries[max(ledger.entries)]
    number, (source, start, stop) = entry.result.slice + 1, entry.took[-1]
    ended = entry.took[:-1] + (((source, start, stop - 1),) if stop - start > 1 else ())
    nothing = {"took": [[source, stop - 1, stop]], "parts": [], "count": 0, "fingerprint": "0"}
    rewrite_record(
        ledger.file(entry.result.slice), ledger.file(number), slice=number, n_left_over=0, left_over="", **nothing
    )
    rewrite_record(ledger.file(entry.result.slice), took=ended)
    assert status(out).state == "complete"
    ledger.file(number).unlink()
    assert (status(out).state, status(out).count) == ("failed", EXPECTED[0])
    assert "accounts for 1 node of" in status(out).why


def test_a_complete_count_needs_its_ledger_but_no_folder_of_parts(tmp_path: Path) -> None:
    source, out = write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "out"
    bq.mine(source, out, count_only=True, workers=0, progress=False, report=False)
    shutil.rmtree(out / "bicliques")
    assert status(out).state == "complete", "there was nothing in it"
    (out / "ledger" / "0.json").unlink()
    assert status(out).state == "failed"
    assert bq.resume(out, workers=0, progress=False, report=False).complete
    assert manifest_pair(out) == EXPECTED


COMMANDS = ("status", "verify", "report", "show", "sizes", "sample")


def said(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """What a command that has no result says: one line."""
    assert main.main(list(map(str, words))) in (1, 2)
    text = capsys.readouterr()
    line = text.err.strip() or text.out.strip()
    assert "Traceback" not in line
    return line


@pytest.mark.parametrize("command", COMMANDS)
def test_without_the_folder_of_the_parts(out: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(out / "bicliques")
    if command == "report":
        (out / "summary" / "sizes.parquet").write_bytes(b"")  # else it knows the sizes from there
    words = said(capsys, command, out)
    assert f"bicliques resume {out}" in words
    assert "delete" not in words


def test_a_lost_folder_of_parts_is_mined_again(out: Path) -> None:
    shutil.rmtree(out / "bicliques")
    mended(out)


@pytest.mark.parametrize("command", [*COMMANDS, "resume"])
@pytest.mark.parametrize("name", ["bicliques", "ledger"])
def test_a_file_in_place_of_a_folder_is_named(out, command, name, capsys):
    shutil.rmtree(out / name)
    (out / name).write_text("mine")
    if name == "ledger" and command in ("show", "sizes", "sample"):
        assert main.main([command, str(out)]) == 0, "they read the parts alone"
        return
    words = said(capsys, command, out)
    assert f"{out / name}" in words
    assert "resume" in words
    assert (out / name).read_text() == "mine"
    assert (out / "manifest.json").exists()


SUMMARY_DAMAGE: dict[str, Callable[[Path], Any]] = {
    "lost": shutil.rmtree,
    "without a file": lambda summary: (summary / "right.parquet").unlink(),
    "empty": lambda summary: (summary / "sizes.parquet").write_bytes(b""),
    "of no columns": lambda summary: shutil.copyfile(summary / "left.parquet", summary / "sizes.parquet"),
    "flipped": lambda summary: flip(summary / "left.parquet"),
    "of other vertices": lambda summary: shutil.copyfile(summary / "left.parquet", summary / "right.parquet"),
}


@pytest.mark.parametrize("damage", SUMMARY_DAMAGE)
@pytest.mark.first(3)
def test_a_damaged_summary_is_made_anew_without_mining(out, damage, monkeypatch, capsys):
    before = json.loads((out / "manifest.json").read_text())
    (out / "summary" / "notes.txt").write_text("mine")
    if damage == "lost":
        (out / "summary" / "notes.txt").unlink()
    SUMMARY_DAMAGE[damage](out / "summary")
    if damage in ("empty", "of no columns", "flipped"):
        assert f"mend it with: bicliques resume {out}" in said(capsys, "report", out)
    with monkeypatch.context() as patch:
        patch.setattr(driver, "mine_run", lambda *_: pytest.fail("it was mined again"))
        mended(out)
    report(out)
    assert json.loads((out / "manifest.json").read_text()) == before
    assert damage == "lost" or (out / "summary" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["bicliques", "ledger", "summary"])
def test_foreign_files_are_neither_counted_nor_removed(out: Path, name: str) -> None:
    (out / name / ".ipynb_checkpoints").mkdir()
    (out / name / ".ipynb_checkpoints" / "0.json").write_text("theirs")
    (out / name / "notes.json").write_text("theirs")
    assert status(out).state == "complete"
    assert steps.run(out, WorkerOptions(workers=0), RunLimits(), False) is None
    load_ledger(out).file(0).unlink()
    shutil.rmtree(out / "summary" if name != "summary" else out / "bicliques")
    mended(out)
    assert (out / name / "notes.json").read_text() == "theirs"
    assert (out / name / ".ipynb_checkpoints" / "0.json").read_text() == "theirs"


@pytest.mark.values
@pytest.mark.parametrize(
    "name", ["ledger/5000.json", "bicliques/part-x.parquet", "bicliques/part-000001-0123456789ab-0.parquet"]
)
@pytest.mark.parametrize("is_complete", [True, False])
def test_a_folder_with_the_name_of_a_file_is_named(out: Path, name: str, is_complete: bool) -> None:
    if not is_complete:
        (out / "manifest.json").unlink()
    (out / name).mkdir()
    for _ in range(2):
        with pytest.raises(
            IncompleteError, match=f"{out / name} .* move it away, then continue with: bicliques.resume"
        ):
            bq.resume(out, workers=0, progress=False, report=False)
        assert (out / "manifest.json").exists() == is_complete
    (out / name).rmdir()
    mended(out)


@pytest.mark.parametrize("name", ["manifest.json", "steps/mine.json"])
def test_a_damaged_record_of_a_complete_run_is_made_anew(out: Path, name: str) -> None:
    sessions = json.loads((out / "steps" / "mine.json").read_text())["sessions"]
    damages: tuple[Callable[[Path], Any], ...] = (
        lambda file: file.write_text(file.read_text().replace('"', "&", 1)),  # any other bit may be one of a number
        lambda file: file.write_text("{"),
        lambda file: file.write_text("[" * 100_000),
    )
    for damage in damages:
        damage(out / name)
        with pytest.raises(BicliqueError, match=f"{out / name} .*mend it with: bicliques.resume\\({str(out)!r}\\)$"):
            status(out)
        mended(out, report=name == "manifest.json")
    if name == "steps/mine.json":
        assert json.loads((out / name).read_text())["sessions"] == sessions, "the manifest has them, too"
    else:
        assert (out / "report.html").exists()
    assert RunFolder(out).manifest() is not None
