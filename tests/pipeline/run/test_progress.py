"""Progress below the cell of a notebook: one output per call, which is rewritten, and none where none is wanted."""

import fcntl
import json
import os
import struct
import subprocess
import sys
import termios
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import nbformat
import pytest

import bicliques as bq
from bicliques.pipeline.results.facts import memory_words
from bicliques.pipeline.run.accounts import peak_rss
from bicliques.pipeline.run.progress import Progress, time_left, to_callback
from tests.support.runs import environment, random_edges, write_edges


class Output:
    """An output below a cell, with all texts that it has had."""

    def __init__(self, text: str):
        self.texts = [text]

    def update(self, data: dict[str, str], raw: bool) -> None:
        assert raw
        self.texts.append(data["text/plain"])


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[Output]:
    """The outputs of a cell, in a process that takes itself for the kernel of a notebook."""
    found: list[Output] = []

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Output:
        assert raw
        assert display_id
        found.append(Output(data["text/plain"]))
        return found[-1]

    ipython, shows = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    shows.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shows)
    return found


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_edges(tmp_path_factory.mktemp("progress") / "g.parquet", random_edges(15, 12, 0.4, 1))


def test_lines_that_stay_are_above_the_one_that_is_replaced(outputs, monkeypatch):
    monkeypatch.setattr("bicliques.pipeline.run.progress._BAR_S", float("inf"))
    on_progress = to_callback(None)
    assert outputs == []
    on_progress(Progress("ingest"))
    on_progress(Progress("ingest", share=1.0))
    on_progress(Progress("mine", note="engine cpu: no GPU"))
    on_progress(Progress("mine", share=0.5, bicliques=10))
    on_progress(Progress("mine", share=0.6, bicliques=11))  # too early
    on_progress(Progress("mine", share=1.0, bicliques=20))
    on_progress(Progress("prove", share=0.25, bicliques=5))
    [output] = outputs
    half = "mining     [############............]   50.0 % of the work  10 bicliques"
    done = "mining     [########################]  100.0 % of the work  20 bicliques"
    prove = "proving    [######..................]   25.0 % of the work  5 bicliques"
    note = "engine cpu: no GPU"
    assert output.texts == ["reading", note, f"{note}\n{half}", f"{note}\n{done}", f"{note}\n{done}\n{prove}"]


def calls(source: Path, folder: Path, progress: Any) -> list[Any]:
    """The results of all calls that tell of progress."""
    own = {"workers": 0, "progress": progress}
    (folder / "place").mkdir()
    return [
        bq.mine(source, folder / "run", **own),
        bq.mine(source, folder / "short", max_results=5, **own),
        bq.resume(folder / "short", max_results=None, **own),
        bq.largest(source, folder / "best", **own),
        bq.count(source, **own),
        bq.dry_run(source, sample_time=0.01, **own),
        bq.verify(folder / "run", progress=progress),
        bq.verify(folder / "best", progress=progress),
        bq.diff(folder / "run", folder / "short", folder / "changes", progress=progress),
        list(bq.maximal_bicliques(source, folder=folder / "place", **own)),
        bq.generate(folder / "graph", n_left=5, n_right=5, edges=9, progress=progress),
    ]


@pytest.mark.parametrize("progress", [None, True])
@pytest.mark.first(1)
def test_every_call_has_one_output_and_nothing_is_written_to_stderr(source, tmp_path, outputs, capsys, progress):
    results = calls(source, tmp_path, progress)
    assert len(outputs) == len(results)
    assert capsys.readouterr() == ("", "")
    for output in outputs:
        assert [text for text in output.texts if text != text.rstrip()] == [], "a notebook would show an empty line"
        lines = output.texts[-1].splitlines()
        assert len(lines) == len(set(lines)), "nothing is shown twice"
    assert "mining     [########################]  100.0 %" in outputs[0].texts[-1]
    assert "proving    [########################]  100.0 %" in outputs[0].texts[-1]


def test_there_is_none_where_none_is_wanted(source, tmp_path, outputs, capsys):
    calls(source, tmp_path, False)
    seen: list[Progress] = []
    bq.count(source, workers=0, progress=seen.append)
    assert seen
    assert outputs == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("columns", [20, 60, 80, 100, 160])
def test_no_line_that_is_redrawn_is_wider_than_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bicliques.pipeline.run.progress._BAR_S", 0.0)
    monkeypatch.setattr("bicliques.pipeline.run.progress._TELLS_S", 0.0)
    reader, writer = os.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(writer, "w") as terminal:
        tell = to_callback(None, terminal)
        workers = "12 workers on 3 machines, 4 of them on GPUs"
        for share in (0.0, 0.3, 1.0):
            tell(Progress("mine", share, 123_456_789, 1_234_567.0, 9_876_543_210, 12, workers))
        tell(Progress("sample", seconds=3.0, of_seconds=10.0))
        terminal.flush()
        shown = ""
        while shown.count("\x1b[2K") < 4:
            shown += os.read(reader, 1 << 16).decode()
    os.close(reader)
    lines = [line.rstrip("\r\n") for line in shown.split("\r\x1b[2K")[1:]]
    assert len(lines) == 4
    assert max(map(len, lines)) < columns
    if columns >= 60:
        assert " left" in lines[1]
        whole = {"  0.0 %", "  0.0 % of the work", "123,456,789 bicliques", "1,234,567/s", "9.9 GB", workers}
        assert lines[0].split("  ")[-1].strip() in {words.strip() for words in whole}, "no word is cut"
        assert lines[2].startswith("mining     [############"), "what goes first stands last"
    assert (workers in lines[0]) == (columns == 160)


@pytest.mark.parametrize(
    ("seconds", "done", "left", "words"),
    [
        *((4.0, 0.5, 0.5, ""), (10.0, 0.0, 1.0, ""), (10.0, 1.0, 0.0, ""), (10.0, 0.5, 0.5, "about 10 s left")),
        *(
            (60.0, 0.1, 0.4, "about 4 min left"),
            (3600.0, 0.25, 0.75, "about 3 h left"),
            (6, 0.1, 0.9, "about 54 s left"),
        ),
    ],
)
def test_the_time_that_is_left_is_told_once_it_is_known(seconds: float, done: float, left: float, words: str) -> None:
    assert time_left(seconds, done, left) == words


def test_ipython_in_a_terminal_is_no_notebook(outputs, monkeypatch, capsys):
    for shell in (None, SimpleNamespace()):
        monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda shell=shell: shell)
        to_callback(True)(Progress("mine"))
    assert capsys.readouterr().err.count("mining") == 2
    assert outputs == []


def test_ipython_is_not_imported(source: Path) -> None:
    program = (
        "import sys, bicliques as bq\n"
        f"bq.count({str(source)!r}, workers=0, progress=True)\n"
        "print([name for name in sys.modules if name.startswith('IPython')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "[]\n"
    assert "mining" in done.stderr


@pytest.mark.exhaustive
def test_a_real_notebook_shows_one_output_per_call(source: Path, tmp_path: Path) -> None:
    cells = [
        f"import bicliques; source = {str(source)!r}",
        "r = bicliques.mine(source, 'OUT', workers=0)",
        "for k in range(3): bicliques.count(source, workers=0)",
        "r = bicliques.count(source, workers=0, progress=False)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(notebook, tmp_path / "in.ipynb")
    program = (
        "import nbclient, nbformat\n"
        "notebook = nbformat.read('in.ipynb', 4)\n"
        "nbclient.NotebookClient(notebook, timeout=300, kernel_name='python3').execute()\n"
        "nbformat.write(notebook, 'out.ipynb')\n"
    )
    own = {"IPYTHONDIR": str(tmp_path), "JUPYTER_PLATFORM_DIRS": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment() | own,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    shown = [cell["outputs"] for cell in json.loads((tmp_path / "out.ipynb").read_text())["cells"]]
    assert [len(outputs) for outputs in shown] == [0, 1, 3, 0]
    assert {output["output_type"] for outputs in shown for output in outputs} == {"display_data"}
    text = "".join(shown[1][0]["data"]["text/plain"])
    assert "mining     [########################]  100.0 % of the work" in text
    assert "reading" not in text


def test_the_peak_is_that_of_this_process_where_the_system_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process inherits the peak that `getrusage` tells from the process that started it."""
    monkeypatch.setattr(Path, "read_bytes", lambda path: b"VmPeak:\t 9 kB\nVmHWM:\t    7 kB\n")
    assert peak_rss() == 7 << 10
    assert memory_words({"driver": 1 << 30, "workers": {"a": 1 << 20, "b": 3 << 30}}).endswith("3.2 GB in a worker")
