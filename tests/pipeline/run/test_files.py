"""Full disks, disks that become read-only and files that cannot be read give one sentence, which names the place."""

import errno
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.cli import main
from bicliques.pipeline.process.interrupts import Terminated, terminable
from bicliques.pipeline.proof.equal_rows import Repeats
from bicliques.pipeline.run import files
from bicliques.pipeline.run.files import SharedFlush, disk_errors, read_json, temporary_folder
from bicliques.pipeline.run.progress import Progress
from bicliques.schemas.errors import IncompleteError, ResourceError
from tests.support.runs import random_edges, write_edges

EDGES = random_edges(30, 20, 0.3, 1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is planned, but not mined."""
    place = tmp_path_factory.mktemp("model")
    source = write_edges(place / "g.parquet", EDGES)
    bq.mine(source, place / "out", workers=0, progress=False, report=False, max_results=40)
    return place / "out"


@pytest.fixture
def run(model: Path, tmp_path: Path) -> Path:
    return shutil.copytree(model, tmp_path / "out")


def failing(number: int, *names: str) -> Any:
    """A `Path` method that fails for the paths of these names."""

    def wrap(method: Any) -> Any:
        def wrapped(path: Path, *arguments: Any, **options: Any) -> Any:
            if path.name in names:
                raise OSError(number, os.strerror(number), str(path))
            return method(path, *arguments, **options)

        return wrapped

    return wrap


def test_names_that_are_given_during_a_flush_are_safe_after_one_more(tmp_path, monkeypatch):
    """Each of four threads gives a name and asks. One has the disk, and the second flush is for the three others."""
    goes_on, has_begun, safe = threading.Event(), threading.Event(), list[list[str]]()

    def slow(folder: Path) -> None:
        safe.append(sorted(path.name for path in folder.iterdir()))
        has_begun.set()
        assert goes_on.wait(300)

    def give(name: str) -> None:
        (tmp_path / name).touch()
        shared()
        assert name in [one for flush in safe for one in flush], "it returned before a flush that knows of its name"

    monkeypatch.setattr(files, "flush", slow)
    shared, failed = SharedFlush(tmp_path), list[object]()
    monkeypatch.setattr(threading, "excepthook", failed.append)
    threads = [threading.Thread(target=give, args=(name,)) for name in "abcd"]
    threads[0].start()
    assert has_begun.wait(300)
    for thread in threads[1:]:
        thread.start()
    while shared._asked < len(threads):
        time.sleep(0.01)
    goes_on.set()
    for thread in threads:
        thread.join(300)
    assert not failed
    assert safe == [["a"], ["a", "b", "c", "d"]]
    shared()
    assert len(safe) == 3, "what is named later needs another flush"


def test_a_flush_that_fails_is_no_flush_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def full(folder: Path) -> None:
        calls.append(folder)
        if len(calls) == 1:
            raise OSError(errno.EIO, "the disk is broken")

    def ask() -> None:
        try:
            shared()
        except OSError as error:
            failed.append(str(error))

    monkeypatch.setattr(files, "flush", full)
    shared, failed = SharedFlush(tmp_path), list[str]()
    threads = [threading.Thread(target=ask) for _ in range(2)]
    with shared._flushing:  # so that both have asked before one of them flushes
        for thread in threads:
            thread.start()
        while shared._asked < len(threads):
            time.sleep(0.01)
    for thread in threads:
        thread.join(300)
    assert failed == ["[Errno 5] the disk is broken"]
    assert len(calls) == 2


@pytest.mark.parametrize("name", ["steps", "graph", "plan", "bicliques", "ledger", "summary"])
def test_a_folder_that_cannot_be_made(run: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    shutil.rmtree(run / name, ignore_errors=True)
    for step in ("build", "plan"):
        (run / "steps" / f"{step}.json").unlink(missing_ok=True)
    monkeypatch.setattr(Path, "mkdir", failing(errno.ENOSPC, name)(Path.mkdir))
    with pytest.raises(ResourceError, match=rf"cannot write {run}/{name}.* \(No space left on device\); make room"):
        bq.resume(run, workers=0, max_results=None, progress=False, report=False)


def test_a_folder_that_is_deleted_while_it_is_mined(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def delete(progress: Progress) -> None:
        if progress.step == "mine":
            shutil.rmtree(run, ignore_errors=True)

    with pytest.raises(ResourceError, match=rf"cannot write {run}/.*\(No such file or directory\)"):
        bq.resume(run, workers=0, max_results=None, slice_seconds=1e-3, progress=delete, report=False)
    assert capsys.readouterr().err == ""


def test_a_disk_that_turns_read_only_is_named_in_the_error(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock cannot be removed either, and must not hide the sentence."""
    for method in ("mkdir", "unlink", "replace"):
        monkeypatch.setattr(Path, method, failing(errno.EROFS, "run.lock", ".mine.json.tmp")(getattr(Path, method)))
    with pytest.raises(ResourceError, match=r"mine.json \(Read-only file system\); see .* continue with: bicliques"):
        bq.resume(run, workers=0, max_results=None, progress=False, report=False)


def test_a_full_temporary_folder_is_an_error_that_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    words = rf"cannot write the temporary folder {tmp_path}/bicliques-\w+ \(No space left on device\); make room for "
    numbers = np.arange(10_000, dtype=np.uint64) << np.uint64(50)
    for expected, bytes_needed in ((10_000, "80,000"), (10_000_000, "80,000,000")):  # one bucket, and several

        def deal(expected: int) -> None:
            with Repeats(expected) as repeats:
                (repeats.folder / "rows").symlink_to("/dev/full")
                repeats.add(numbers)

        with pytest.raises(ResourceError, match=f"{words}{bytes_needed} bytes there, or name another place in .TMPDIR"):
            deal(expected)
        assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_a_temporary_folder_is_removed_does_not_keep_it(tmp_path, monkeypatch):
    remove, presses = shutil.rmtree, [KeyboardInterrupt, KeyboardInterrupt]

    def press_and_remove(folder: str, ignore_errors: bool) -> None:
        if presses:
            raise presses.pop()
        remove(folder, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", press_and_remove)
    with pytest.raises(KeyboardInterrupt), temporary_folder(tmp_path) as folder:
        (folder / "large").write_bytes(b"")
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder_that_cannot_be_removed_hides_no_error(tmp_path, monkeypatch, caplog):
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "rmdir", refuse)
    with pytest.raises(ResourceError, match="the right sentence"), temporary_folder(tmp_path) as folder:
        raise ResourceError("the right sentence")
    assert f"{folder} could not be removed; delete it" in caplog.text


COMMANDS = [
    *(["show"], ["sample"], ["sizes"], ["status"], ["verify", "--quiet"], ["report", "--quiet"]),
    *(["resume", "--quiet", "--workers", "0"],),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_a_file_that_cannot_be_read_is_one_sentence(run, command, number, monkeypatch, capsys):
    """It does not matter which file the command reads first."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number), str(run / "ledger"))

    monkeypatch.setattr("bicliques.pipeline.run.folder.children_of", refuse)
    if command[0] == "verify":
        monkeypatch.setattr("bicliques.pipeline.run.folder.RunFolder.manifest", refuse)
    assert main.main([command[0], str(run), *command[1:]]) in (1, 2)
    told = capsys.readouterr().err
    assert told.startswith("bicliques: ")
    assert os.strerror(number) in told
    assert told.count("\n") == 1
    assert "Traceback" not in told


def test_an_error_of_the_program_is_raised_unchanged(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("bicliques.pipeline.run.folder.children_of", wrong)
    with pytest.raises(ZeroDivisionError):
        main.main(["show", str(run)])


@pytest.mark.parametrize(
    ("error", "state", "why"),
    [
        (KeyboardInterrupt(), "stopped", "it was stopped by Ctrl-C"),
        (Terminated(), "stopped", "it was ended by SIGTERM"),
        (GeneratorExit(), "stopped", "it was cancelled (GeneratorExit)"),
        (ZeroDivisionError("by zero"), "failed", "ZeroDivisionError: by zero"),
        (ResourceError("no worker"), "failed", "no worker"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_the_end_of_mining_is_recorded_whatever_its_cause(run, monkeypatch, error, state, why):
    def fail(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("bicliques.pipeline.mining.driver._Driver.run", fail)
        with pytest.raises(type(error)):
            steps.mine(run, progress=False)
    found = bq.status(run)
    assert (found.state, found.why) == (state, why)
    assert bq.resume(run, workers=0, max_results=None, progress=False, report=False).complete


def test_sigterm_is_an_exception_once(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    cleaned = []

    def work() -> None:
        with terminable(143):
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)
                cleaned.append(True)

    with pytest.raises(Terminated, match="ended by SIGTERM"):
        work()
    assert cleaned
    assert signal.getsignal(signal.SIGTERM) == before
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with terminable(143):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    thread = threading.Thread(target=lambda: terminable(143).__enter__())
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("name", ["graph/base_indices.npy", "plan/roots.npy", "steps/plan.json"])
def test_a_folder_with_the_name_of_a_file_is_named(run: Path, name: str) -> None:
    (run / name).unlink()
    (run / name).mkdir()
    with pytest.raises(ResourceError, match=rf"cannot write {run}/{name} \(Is a directory\); move it away"):
        bq.resume(run, workers=0, max_results=None, progress=False, report=False)


def test_a_full_disk_is_known_from_the_error_of_numpy() -> None:
    said = r"cannot write all of g \(9 requested and 5 written\); make room"
    with pytest.raises(ResourceError, match=said), disk_errors(Path("g")):
        raise OSError("9 requested and 5 written")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_record_that_is_no_regular_file_does_not_block(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "options.json")
    with pytest.raises(
        IncompleteError, match=r"options.json cannot be read \(.*(It is not a regular file|Is a directory)"
    ):
        read_json(tmp_path / "options.json")


def test_a_dry_run_names_no_folder_to_go_on_with(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "mkdir", failing(errno.ENOSPC, "graph")(Path.mkdir))
    with pytest.raises(ResourceError, match=r"No space left on device\); make room$"):
        bq.dry_run(model.parent / "g.parquet")
