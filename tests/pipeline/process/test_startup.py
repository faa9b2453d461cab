"""Before the work: what it takes is told apart, and Ctrl-C ends it in one sentence wherever it is."""

import gc
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.process import startup
from tests.support.runs import bicliques, environment, random_edges, write_edges

EDGES = random_edges(40, 30, 0.3, 4)
#: Two million: seconds of work.
LARGE = random_edges(250, 80, 0.35, 7)

#: Prints what each step imports and which functions it compiles or loads: nothing, if that was done before.
WATCH = """
import gc, sys
import bicliques as bq
from bicliques.pipeline.api import preparing
from bicliques.pipeline.mining import driver
from bicliques.pipeline.proof import proving
from bicliques.kernels.compiled.jit import Entry

def there():
    entries = [e for e in gc.get_objects() if isinstance(e, Entry)]
    loaded = {f"{entry.name} {types}" for entry in entries for types in entry.loaded}
    return loaded | {name for name in sys.modules if name.partition(".")[0] in HEAVY}

HEAVY = ("bicliques", "cffi", "charset_normalizer", "llvmlite", "numba", "pandas", "scipy", "unittest")

def watch(home, name):
    whole = getattr(home, name)
    def watched(*arguments, **options):
        before = there()
        found = whole(*arguments, **options)
        print(name, sorted(there() - before))
        return found
    setattr(home, name, watched)

watch(preparing, "ingest_source")
watch(preparing, "build_graph")
watch(preparing, "plan_roots")
watch(driver._Driver, "run")
watch(proving, "prove_parts")
bq.mine(sys.argv[1], sys.argv[2], workers=0, progress=False, report=False, min_left=2, order=sys.argv[3])
"""


@pytest.mark.parametrize("order", [pytest.param("degree", marks=pytest.mark.exhaustive), "two-hop"])
def test_no_step_imports_anything_or_loads_machine_code(tmp_path: Path, order: str) -> None:
    source = write_edges(tmp_path / "g.parquet", EDGES, strings=True)
    words = [sys.executable, "-c", WATCH, str(source), str(tmp_path / "out"), order]
    ended = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=300, check=True)
    names = ("ingest_source", "build_graph", "plan_roots", "run", "prove_parts")
    assert ended.stdout.splitlines() == [f"{name} []" for name in names]


def test_the_command_line_counts_from_the_start_of_its_process(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "g.parquet", EDGES)
    began = time.monotonic()
    told = json.loads(bicliques("count", source, "--workers", "0", "--quiet", "--json").stdout)
    waited = time.monotonic() - began
    assert list(told["seconds"]) == ["startup", "ingest", "build", "plan", "mine", "prove"]
    assert 0 < sum(told["seconds"].values()) <= told["total_seconds"] + 0.02
    assert told["total_seconds"] <= waited + 0.02, "the kernel counts in hundredths"
    mined = bicliques("mine", source, "-o", tmp_path / "out", "--workers", "0", "--quiet", "--no-report")
    seconds = json.loads((tmp_path / "out" / "manifest.json").read_text())["seconds"]
    assert next(iter(seconds)) == "startup"
    assert f"seconds: startup {seconds['startup']:.2f}, ingest" in mined.stdout
    [whole] = re.findall(r"; this command ([\d.]+)$", mined.stdout, re.MULTILINE)
    assert sum(seconds.values()) <= float(whole) + 0.02 <= time.monotonic() - began - waited + 0.04


def test_a_second_run_of_a_process_has_nothing_left_to_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_edges(tmp_path / "g.parquet", EDGES)
    bq.mine(source, tmp_path / "first", workers=0, progress=False, report=False)
    now = [0.0]
    monkeypatch.setattr("bicliques.pipeline.process.startup.time.perf_counter", lambda: now[0])
    startup.take()
    monkeypatch.setattr(
        "bicliques.pipeline.slices.first_use.choose_reader", lambda *_: (now.__setitem__(0, now[0] + 5.0), "")
    )
    again = bq.mine(source, tmp_path / "again", workers=0, progress=False, report=False)
    assert again.manifest.seconds["startup"] == 5.0, "what was loaded before is not counted again"


def test_blocks_within_blocks_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("bicliques.pipeline.process.startup.time.perf_counter", lambda: now[0])
    startup.take()
    with startup.getting_ready():
        now[0] += 1
        with startup.getting_ready():
            now[0] += 2
    now[0] += 50
    assert (startup.take(), startup.take()) == (3.0, 0.0)
    with startup.program(90.0, lambda: None):
        with startup.getting_ready():
            now[0] += 4
        startup.over()
        now[0] += 50
    assert startup.take() == now[0] - 50 - 90


@pytest.mark.parametrize("began", [None, 90.0])
def test_only_a_program_collects_no_garbage_until_it_has_started(began: float | None) -> None:
    with startup.program(began, lambda: None):
        assert gc.isenabled() == (began is None)
        startup.over()
        assert gc.isenabled()


def interrupted(words: list[str | Path], program: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-c",
        f"{program}\nfrom bicliques.pipeline.cli.main import main\nsys.exit(main())",
        *map(str, words),
    ]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    "module",
    [
        "bicliques.pipeline.process.startup",
        "pyarrow",
        "pandas",
        *(
            pytest.param(module, marks=pytest.mark.exhaustive)
            for module in ("argparse", "bicliques.pipeline.cli.results", "llvmlite", "bicliques.pipeline.api.steps")
        ),
    ],
)
def test_ctrl_c_during_an_import_is_one_sentence(tmp_path: Path, module: str) -> None:
    source, scratch = write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "scratch"
    scratch.mkdir()
    program = (
        "import signal, sys\n"
        f"found = lambda event, facts: event == 'import' and facts[0] == {module!r} and signal.raise_signal(2)\n"
        "sys.addaudithook(found)"
    )
    ended = interrupted(["count", source, "--folder", scratch, "--quiet"], program)
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == "bicliques: stopped; nothing was written\n"
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("module", ["bicliques.pipeline.cli.program", "pyarrow"])
def test_sigterm_during_an_import_ends_the_program_by_itself(tmp_path: Path, module: str) -> None:
    """The kernel would not end the first process of a container for it, and says -15 of a process that it ends."""
    program = (
        "import signal, sys\n"
        f"found = lambda event, facts: event == 'import' and facts[0] == {module!r} and signal.raise_signal(15)\n"
        "sys.addaudithook(found)"
    )
    ended = interrupted(["count", write_edges(tmp_path / "g.parquet", EDGES), "--quiet"], program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (143, "", "")


@pytest.mark.parametrize("before", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_start_leaves_sigterm_as_it_was(before: signal.Handlers) -> None:
    kept = signal.signal(signal.SIGTERM, before)
    try:
        with startup.program(None, lambda: None):
            assert (signal.getsignal(signal.SIGTERM) == signal.SIG_IGN) == (before == signal.SIG_IGN)
        assert signal.getsignal(signal.SIGTERM) == before
    finally:
        signal.signal(signal.SIGTERM, kept)


def test_ctrl_c_inside_a_destructor_still_ends_the_start(tmp_path: Path) -> None:
    """As in what the interpreter calls when it frees an object, which imports do all the time."""
    program = (
        "import signal, sys\n"
        "class Freed:\n"
        "    def __del__(self):\n"
        "        signal.raise_signal(2)\n"
        "sys.addaudithook(lambda event, facts: (event, facts[:1]) == ('import', ('pyarrow',)) and Freed() and None)"
    )
    ended = interrupted(["count", write_edges(tmp_path / "g.parquet", EDGES), "--quiet"], program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "bicliques: stopped; nothing was written\n")


@pytest.mark.parametrize("delay_s", [0.0, 0.05, 0.1, 0.2, 0.3])
def test_ctrl_c_soon_after_the_start_leaves_no_traceback(tmp_path: Path, delay_s: float) -> None:
    source = write_edges(tmp_path / "g.parquet", LARGE)
    program = (  # which says that it is up with the first thing that it imports
        "import sys; from bicliques.pipeline.cli.main import main\n"
        "first = ('import', ('bicliques.pipeline.process.startup',))\n"
        "sys.addaudithook(lambda event, facts: (event, facts[:1]) == first and print('up', flush=True))\n"
        "sys.exit(main())"
    )
    words = [sys.executable, "-c", program, "mine", str(source), "-o", str(tmp_path / "out"), "--quiet"]
    with subprocess.Popen(words, env=environment(), stdout=-1, stderr=-1, text=True) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "up\n"
        time.sleep(delay_s)
        os.kill(started.pid, signal.SIGINT)
        _, error = started.communicate(timeout=120)
    assert started.returncode == 130
    assert error.splitlines()[-1].startswith("bicliques: ")
    assert "Traceback" not in error


def test_nothing_is_imported_before_ctrl_c_is_handled() -> None:
    """An import takes milliseconds, in which Ctrl-C would print a traceback. -S: the interpreter has loaded little."""
    program = (
        "import os, sys\n"
        f"sys.path.insert(0, {environment()['PYTHONPATH']!r})\n"
        "before = set(sys.modules)\n"
        "from bicliques.pipeline.cli.main import main\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    ended = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == [
        "__future__",
        "bicliques",
        "bicliques.pipeline",
        "bicliques.pipeline.cli",
        "bicliques.pipeline.cli.main",
    ]


def test_ctrl_c_after_the_command_has_ended_changes_nothing() -> None:
    program = (
        "import atexit, signal, sys\n"
        "atexit.register(print, 'the last words')\n"
        "atexit.register(signal.raise_signal, 2)\n"
        "from bicliques.pipeline.cli.main import program\n"
        "sys.argv = ['bicliques', '--version']\n"
        "program()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [f"bicliques {bq.__version__}", "the last words"]


def test_ctrl_c_between_a_command_and_the_end_changes_nothing() -> None:
    """The command has printed its result, and no handler is there any more."""
    program = (
        "import signal\n"
        "from bicliques.pipeline.cli import main\n"
        "handle = signal.signal\n"
        "def pressed(*_):\n"
        "    signal.signal = handle\n"
        "    signal.raise_signal(2)\n"
        "signal.signal = pressed\n"
        "main.main = lambda: print('the result') or 3\n"
        "main.program()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "the result\n", "")
