"""What never answers: a pipe, a device or a socket in the place of a file, or a silent store. Nothing waits for it."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.pipeline.process import interrupts
from tests.support.bucket import Asked
from tests.support.odd_files import make_socket
from tests.support.runs import environment, random_edges, write_edges
from tests.support.stored import Machines

EDGES = random_edges(24, 16, 0.35, 7)
#: Seconds after which a pipe of a test that waits for it is opened, so that the test fails and does not wait for ever.
_LONGEST_S = 60


#: What is put in the place of a file.
KINDS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": make_socket,
    "device": lambda path: path.symlink_to("/dev/null"),
    "link to a pipe": lambda path: (os.mkfifo(path.with_name("pipe")), path.symlink_to("pipe")),
}


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hangs")
    source = write_edges(folder / "g.parquet", EDGES, strings=True)
    return bq.mine(source, folder / "out", workers=0, progress=False, per_vertex=True).path


@pytest.fixture
def patience() -> Iterator[Callable[[Path], None]]:
    """Opens a pipe for a reader that waits for it. Then the test fails."""
    waited: list[Path] = []
    timers = []

    def open_for_reader(pipe: Path) -> None:
        try:
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:  # nobody waits
            return
        waited.append(pipe)

    def watch(pipe: Path) -> None:
        timers.append(threading.Timer(_LONGEST_S, open_for_reader, [pipe]))
        timers[-1].start()

    yield watch
    for timer in timers:
        timer.cancel()
    assert waited == []


def test_a_pipe_of_a_user_in_a_folder_of_a_run_stays(complete, tmp_path, patience):
    out = Path(shutil.copytree(complete, tmp_path / "out"))
    (out / "graph" / "root_hash.npy").unlink()
    own = out / "graph" / "own"
    os.mkfifo(own)
    patience(own)
    assert bq.resume(out, workers=0, progress=False, report=False).complete
    assert own.is_fifo()


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_person_names_is_refused_if_it_is_no_file(complete, tmp_path, kind, patience, capfd):
    odd, source = tmp_path / "odd", complete.parent / "g.parquet"
    KINDS[kind](odd)
    if "pipe" in kind:
        patience(odd)
    for words in (
        ["mine", str(odd), "-o", str(tmp_path / "out")],
        ["count", str(odd)],
        ["mine", str(source), "-o", str(tmp_path / "out"), "--containing-left-from", str(odd)],
        ["diff", str(odd), str(complete)],
        ["show", str(odd)],
    ):
        assert main.main(words) == 2, words
        assert str(odd) in capfd.readouterr().err, words
        assert not (tmp_path / "out").exists()


def test_a_source_that_became_a_pipe_is_not_waited_for(tmp_path, patience, capfd):
    """Whether a source is as it was is looked up by the name that the run has recorded."""
    source, out = write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "out"
    bq.mine(source, out, workers=0, progress=False, report=False, max_results=5)
    source.unlink()
    os.mkfifo(source)
    patience(source)
    assert main.main(["mine", str(source), "-o", str(out), "--workers", "0"]) in (0, 2, 3)
    assert main.main(["status", str(out)]) in (0, 3)
    capfd.readouterr()
    assert bq.resume(out, workers=0, progress=False, report=False, max_results=None).complete


@contextmanager
def ended_by_sigterm(*words: str, **how: Any) -> Iterator[Any]:
    """A process of Python, which is told to end behind the block, and ends."""
    with subprocess.Popen([sys.executable, *words], **{"env": environment()} | how) as waiting:
        try:
            yield waiting
            waiting.send_signal(signal.SIGTERM)
            assert waiting.wait(_LONGEST_S) == 143
        finally:
            waiting.kill()


#: A program that waits for ever: in a library that repeats what a signal has interrupted, or for a thread that waits.
WAITING = """
import sys
from concurrent.futures import ThreadPoolExecutor
import pyarrow
from bicliques.pipeline.process import interrupts
interrupts._UNHEARD_S, interrupts._ENDING_S = 0.5, 0.5

def in_a_library(pipe):
    print("waits", flush=True)
    pyarrow.OSFile(pipe, "rb")

def in_a_thread(pipe):
    with ThreadPoolExecutor(1) as thread:
        thread.submit(int).result()  # from now on it is a thread that the end of the block waits for
        thread.submit(in_a_library, pipe).result()

try:
    with interrupts.terminable(143):
        globals()[sys.argv[2]](sys.argv[1])
except interrupts.Terminated:
    sys.exit(143)
"""


@pytest.mark.parametrize("how", ["in_a_library", "in_a_thread"])
def test_sigterm_ends_what_waits_where_python_raises_nothing(tmp_path: Path, how: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with ended_by_sigterm("-c", WAITING, str(tmp_path / "pipe"), how, stdout=subprocess.PIPE) as waiting:
        assert waiting.stdout.readline() == b"waits\n"


def test_sigterm_ends_a_command_whose_store_is_silent(machines: Machines, tmp_path: Path) -> None:
    asked = threading.Event()

    def silence(each: Asked) -> str:
        asked.set()
        return "silence"

    machines.bucket.fault = silence
    words = ["-m", "bicliques", "status", machines.url]
    try:
        with ended_by_sigterm(*words, env=environment() | machines.variables):
            assert asked.wait(_LONGEST_S)
    finally:
        machines.bucket.well()


def test_sigterm_ends_a_command_that_waits_for_more_of_its_input() -> None:
    words = ["-m", "bicliques", "count", "-", "--format", "snap"]
    with ended_by_sigterm(*words, stdin=subprocess.PIPE) as waiting:
        waiting.stdin.write(b"1 2\n" * 100_000)  # more than a pipe holds, so it is being read


def test_a_block_that_ends_in_time_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process goes on behind the block, and so may other signals."""
    exits: list[int] = []
    monkeypatch.setattr(os, "_exit", exits.append)
    monkeypatch.setattr(interrupts, "_ENDING_S", 60.0)
    before = threading.enumerate()
    for raised in (signal.SIGTERM, None):
        with suppress(interrupts.Terminated), interrupts.terminable(143):
            signal.raise_signal(signal.SIGCHLD)
            if raised is not None:
                signal.raise_signal(raised)
        for thread in set(threading.enumerate()).difference(before):
            thread.join()
    assert exits == []
    assert signal.set_wakeup_fd(-1) == -1


def test_a_signal_that_comes_with_another_one_is_heard() -> None:
    heard, over = threading.Event(), threading.Event()
    with interrupts._at_sigterm(lambda: heard.set() or over.wait(60)):
        signal.set_wakeup_fd(tell := signal.set_wakeup_fd(-1))
        os.write(tell, bytes([signal.SIGCHLD, signal.SIGTERM]))
        assert heard.wait(60)
    over.set()
