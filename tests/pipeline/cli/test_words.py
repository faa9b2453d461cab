"""What a person is told: lists cut between labels, levels of a log, odd letters."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading

import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.pipeline.cli import cards
from bicliques.pipeline.cli.commands import parsers
from bicliques.pipeline.cli.main import main
from bicliques.pipeline.compare.difference import Changed
from bicliques.pipeline.process.interrupts import Interrupted
from bicliques.pipeline.results import listing
from bicliques.pipeline.run.progress import Progress
from bicliques.pipeline.workers import opening
from bicliques.pipeline.workers.dask_pool import DaskPool
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.errors import InputError
from tests.support.commands import run
from tests.support.pools import FakePool
from tests.support.runs import OWN, QUIET, ROOT, answer, bicliques, environment, random_edges, write_edges

EDGES = random_edges(40, 30, 0.3, 4)
#: Two million: seconds of work.
LARGE = random_edges(250, 80, 0.35, 7)
ALONE = ("--workers", "0", "--quiet")


NAMES = ["Дмитрий van der Berg", "李 Ivanov", "東京", "Ann", "Bob Müller", "José Ng", "🌟", "C" * 300]
ROWS = pa.table(
    {"left": [NAMES, ["Ann"], NAMES[-1:]], "right": [["milk"], NAMES, NAMES], "n_left": [8, 1, 1], "n_right": [1, 8, 8]}
)


@pytest.mark.parametrize("width", [50, 60, 80, 120, 200, 700])
def test_lists_are_cut_between_labels_and_say_how_many_follow(width):
    _, *lines = listing.top_table(ROWS, width).splitlines()
    for line, row in zip(lines, ROWS.to_pylist(), strict=True):
        assert listing.columns_of(line) <= max(width, 60), line
        sides = line[line.index("{") + 1 : -1].split("} x {")
        for text, labels in zip(sides, (row["left"], row["right"]), strict=True):
            *shown, last = text.split(", ")
            if last.endswith(" more"):
                assert int(last.removesuffix(" more")) == len(labels) - len(shown)
            else:
                shown.append(last)
                assert len(shown) == len(labels)
            whole = [label for label in shown if not label.endswith("...")]
            assert whole == labels[: len(whole)], "a label was cut in the middle"
            assert len(shown) - len(whole) <= (len(shown) == 1), "the beginning of a label, where others are shown"


@pytest.mark.parametrize("width", [20, 40, 50, 59, 60])
def test_a_narrow_list_shows_the_beginning_of_a_label(width):
    names = [f"{letter}-program-of-a-long-name" for letter in ("role", "東京東京")]
    sides = [[name, *map(str, range(3490))] for name in names]
    rows = pa.table({"left": sides[:1], "right": sides[1:], "n_left": [3491], "n_right": [3491]})
    line = listing.top_table(rows, width).splitlines()[1]
    assert line.endswith("{rol..., 3,490 more} x {東..., 3,490 more}")


def test_all_members_are_shown_when_asked_for():
    line = listing.top_table(ROWS, None).splitlines()[1]
    assert line.endswith(f"{{{', '.join(NAMES)}}} x {{milk}}")


def test_a_label_that_would_be_taken_for_two_is_in_quotes():
    rows = pa.table(
        {
            "left": [["Smith, J", "x,y"]],
            "right": [["milk, whole", "O'Hara, A", "tea\n, hot"]],
            "n_left": [2],
            "n_right": [3],
        }
    )
    members = "{'Smith, J', x,y} x {'milk, whole', \"O'Hara, A\", 'tea\\n, hot'}"
    assert [
        listing.top_table(rows, width).splitlines()[1].partition("  ")[2][-len(members) :] for width in (120, None)
    ] == [members, members]
    assert listing.cut(pa.array(["Smith, J"] * 9), 20) == "'Smith, J', 8 more"


def test_one_of_a_kind_is_told_in_the_singular(tmp_path, capsys):
    (tmp_path / "one.csv").write_text("user,film,weight\na,b,2\na,b,2\na,,2\nc,d,1\n")
    words = ("--skip-bad-lines", "--min-weight", "2", "-o", tmp_path / "out", *ALONE, "--no-report")
    _, told, _ = run(capsys, "mine", tmp_path / "one.csv", *words)
    assert ", 1 edge, 1 duplicate removed, 1 bad line left out, 1 edge below the smallest weight left out\n" in told
    assert ", 1 root\n" in told
    assert repr(bq.open_run(tmp_path / "out")).startswith("<1 maximal biclique in ")
    assert repr(Changed(tmp_path / "gone.parquet", 1)).startswith("<1 maximal biclique in ")
    graph = bq.generate(tmp_path / "graph", n_left=1, n_right=1, edges=1, progress=False)
    assert repr(graph).startswith("<generated graph of 1 edge in ")
    _, told, _ = run(capsys, "verify", tmp_path / "out", "--quiet")
    assert told.startswith("verified: 1 biclique, ")
    assert "  - their 1 row has the count " in told
    assert "  - in every row, " in told


def test_show_and_sample_take_the_same_words(capsys, source, tmp_path, monkeypatch):
    run(capsys, "mine", source, "-o", tmp_path / "out", *ALONE, "--no-report")
    for command in ("show", "sample"):
        assert len(run(capsys, command, tmp_path / "out")[1].splitlines()) == 21
        assert len(run(capsys, command, tmp_path / "out", "-n", "3")[1].splitlines()) == 4
        widths = {}
        for columns in ("60", "150"):
            monkeypatch.setenv("COLUMNS", columns)
            widths[columns] = max(map(len, run(capsys, command, tmp_path / "out")[1].splitlines()))
        assert widths["60"] <= 60 < widths["150"] <= 150
        assert " more}" not in run(capsys, command, tmp_path / "out", "--full")[1]
    assert run(capsys, "show", tmp_path / "out", "--top", "3") == run(capsys, "show", tmp_path / "out", "-n", "3")


def test_a_list_of_nothing_says_so(source, tmp_path, capsys):
    run(capsys, "mine", source, "-o", tmp_path / "out", *ALONE, "--no-report", "--min-left", "1000")
    for command in ("show", "sample", "cover", "sizes"):
        assert run(capsys, command, tmp_path / "out") == (0, "no bicliques\n", "")
        told = json.loads(run(capsys, command, tmp_path / "out", "--json")[1])
        assert not any(told.values() if isinstance(told, dict) else told)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["mine", "X", "--min_left", "3"], "--min_left 3 (did you mean --min-left?); see: bicliques mine --help"),
        (["count", "X", "--fingerprnt"], "--fingerprnt (did you mean --fingerprint?); see: bicliques count --help"),
        (["count", "X", "--nothing-like-it"], "--nothing-like-it; see: bicliques count --help"),
        (["count", "X", "--dry-run"], "--dry-run (an option of mine); see: bicliques count --help"),
        (["--versoin"], "--versoin (did you mean --version?); see: bicliques --help"),
    ],
)
def test_a_misspelt_option_is_named_with_the_one_that_is_meant(capsys, words, sentence):
    code, _, error = run(capsys, *words)
    assert (code, error) == (2, f"bicliques: unrecognized arguments: {sentence}\n")


def test_a_dry_run_tells_of_the_workers_that_are_asked_for(source):
    one, four = (bq.dry_run(source, workers=n, sample_time=0.5, progress=False) for n in (1, 4))
    none, here = (bq.dry_run(source, workers=n, sample_time=0.5, progress=False) for n in (None, 0))
    assert one.total_memory == one.memory.total(1)
    assert four.total_memory == four.memory.total(4)
    assert none.total_memory is None
    assert here.total_memory == here.memory.shared + here.memory.worker + here.memory.weights
    assert four.seconds.value == pytest.approx(four.estimate.seconds.value / 4)
    assert "for 4 workers, if none of them ever waits" in cards.dry_run_card(four)
    assert "for 4 workers and this process, on one machine" in cards.dry_run_card(four)
    assert "for one worker" in cards.dry_run_card(none)
    assert "for this process" in cards.dry_run_card(here)


def test_a_dry_run_asks_the_workers_of_a_scheduler(source, monkeypatch):
    answers = {"tcp://far:7": {"bitmatrix": "it is night", "cpu": None, "cumbe": None, "reference": None}}
    monkeypatch.setattr(DaskPool, "connect", lambda *_: FakePool(5, reasons=answers))
    found = bq.dry_run(source, scheduler="tcp://far:1", sample_time=0.5, progress=False)
    assert found.workers == 5
    assert "worker tcp://far:7 says: it is night" in found.engine.reason


def test_the_time_for_a_sample_is_an_option_of_a_dry_run(capsys, source, tmp_path):
    code, _, error = run(capsys, "mine", source, "-o", tmp_path / "out", "--sample-time", "3")
    assert code == 2
    assert "--sample-time is an option of --dry-run; leave it out" in error


def test_a_limit_that_was_asked_for_is_no_error_in_the_log(source, tmp_path):
    out = tmp_path / "out"
    ended = bicliques("mine", source, "-o", out, "--max-results", "3", "--workers", "0", "--log", "json")
    assert ended.returncode == 3
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert {line["level"] for line in lines} == {"info"}
    assert lines[-1]["event"] == "stopped"
    assert lines[-1]["message"] == f"not complete; go on with: bicliques resume {out} --max-results none"


def test_count_logs_counted_and_not_proven(source):
    ended = bicliques("count", source, "--workers", "0", "--log", "json")
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert not [line for line in lines if line["event"] == "proven"]
    (counted,) = [line for line in lines if line["event"] == "counted"]
    assert counted["fingerprint"] is None
    assert "None" not in counted["message"]


def test_an_engine_that_is_passed_over_is_told_once_the_input_is_good(source, monkeypatch):
    assert bicliques("count", "nothing.csv").stderr.splitlines()[-1].startswith("bicliques: nothing.csv")
    for words in (["count", "nothing.csv"], ["mine", "nothing.csv", "-o", "OUT"]):
        assert "engine cpu" not in bicliques(*words).stderr
    notes = []
    for there in (False, True):
        monkeypatch.setattr("bicliques.pipeline.api.choices.has_gpu", lambda there=there: there)
        assert not any(notes), "who has no GPU is not told of it"
        bq.count(source, workers=0, progress=lambda moment: notes.append(moment.note))
    assert any(note.startswith("engine cpu: the fastest that can run here") for note in notes)


def test_count_tells_what_mine_tells(capsys, source, tmp_path):
    _, output, _ = run(capsys, "count", source, "--min-left", "2", "--sizes", "--json", *ALONE)
    told = json.loads(output)
    run(capsys, "mine", source, "-o", tmp_path / "out", "--min-left", "2", "--no-report", *ALONE)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    for record in ("input", "graph", "options", "seconds", "peak_rss"):
        assert told[record].keys() == manifest[record].keys(), record
    assert told["input"]["digest"] == manifest["input"]["digest"]
    assert told["graph"]["root_side"] == manifest["graph"]["root_side"]
    assert told["options"]["search"]["min_left"] == 2
    assert told["fingerprint"] is None
    assert told["peak_rss"]["driver"] > 50 << 20
    stopped = bq.count(source, max_results=3, **OWN)
    assert list(stopped.seconds) == ["startup", "ingest", "build", "plan", "mine"]
    assert stopped.options["engine"] == "cpu"


class CtrlC:
    """A progress callback that presses it once, when something has been found."""

    def __init__(self):
        self.pressed = False

    def __call__(self, moment: Progress):
        if moment.step == "mine" and moment.bicliques and not self.pressed:
            self.pressed = True
            os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_is_an_exception_after_the_commit(tmp_path):
    source, out = write_edges(tmp_path / "g.parquet", LARGE), tmp_path / "out"
    options = {"workers": 0, "slice_seconds": 0.05}
    with pytest.raises(KeyboardInterrupt, match="go on with: bicliques") as caught:
        bq.mine(source, out, progress=CtrlC(), **options)
    assert isinstance(caught.value, Interrupted)
    assert len(caught.value.so_far) == len(bq.open_run(out)) > 0
    assert bq.status(out).why == "it was stopped by Ctrl-C"
    with pytest.raises(KeyboardInterrupt):
        bq.resume(out, progress=CtrlC(), **options)
    with pytest.raises(KeyboardInterrupt, match="nothing is kept") as caught:
        bq.count(source, progress=CtrlC(), **options)
    assert 0 < caught.value.so_far.count <= answer(LARGE)[0]


def test_an_event_of_the_caller_stops_with_what_there_is(tmp_path):
    source, stop = write_edges(tmp_path / "g.parquet", LARGE), threading.Event()

    def watch(moment):
        if moment.bicliques:
            stop.set()

    results = bq.mine(source, tmp_path / "out", workers=0, slice_seconds=0.05, progress=watch, report=False, stop=stop)
    assert (results.outcome, results.complete) == ("interrupted", False)


def test_ctrl_c_of_the_command_line_prints_what_there_is(capsys, tmp_path, monkeypatch, caplog):
    source = write_edges(tmp_path / "g.parquet", LARGE)
    monkeypatch.setattr("bicliques.pipeline.cli.mining.progress", lambda arguments: CtrlC())
    code, output, error = run(capsys, "mine", source, "-o", tmp_path / "out", "--slice-seconds", "0.05", *ALONE)
    assert code == 130
    assert "so far; not complete: it was stopped" in output
    assert error == f"bicliques: not complete; go on with: bicliques resume {tmp_path / 'out'}\n"
    code, output, _ = run(capsys, "count", source, "--slice-seconds", "0.05", *ALONE)
    assert code == 130
    assert "bicliques: at least " in output
    with caplog.at_level(logging.INFO, "bicliques"):
        code, _, _ = run(capsys, "resume", tmp_path / "out", "--slice-seconds", "0.05", "--log", "json", *ALONE)
    assert code == 130
    (stopped,) = [record for record in caplog.records if getattr(record, "event", "") == "stopped"]
    assert stopped.levelname == "WARNING"


def test_letters_that_a_terminal_lacks_are_printed_as_escapes(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    table, out = pa.table({"l": ["Käse", "東京"], "r": ["x", "x"]}), tmp_path / "out"
    bq.mine(table, out, **QUIET)
    ended = bicliques("show", out, "--full")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert r"K\xe4se" in ended.stdout
    assert r"\u6771\u4eac" in ended.stdout


def test_a_folder_whose_name_is_no_text_is_told_of_all_the_same(source, tmp_path):
    out = tmp_path / os.fsdecode(b"runs-\xff")
    bq.mine(source, tmp_path / "out", max_results=3, **QUIET)
    shutil.copytree(tmp_path / "out", out)
    ended = bicliques("status", out)
    assert (ended.returncode, ended.stderr) == (3, "")
    assert rf"go on with: bicliques resume $'{tmp_path}/runs-\377' --max-results none" in ended.stdout


@pytest.mark.parametrize("devices", ["0", "0,1", 0, [0, 1], (1,), ["0", "1"], range(2)], ids=str)
def test_gpus_are_named_as_on_the_command_line_or_as_numbers(devices, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    expected = {"0": ["4"], "0,1": ["4", "7"], "[0, 1]": ["4", "7"], "(1,)": ["7"]}
    WorkerOptions(devices=devices)
    found = opening.choose_devices(devices, None)
    assert found == expected.get(str(devices), ["4"] if devices == 0 else ["4", "7"])


@pytest.mark.parametrize("devices", ["a", "0;1", "", [], [0.5], {}, -1, "1,,2"], ids=repr)
def test_devices_that_are_no_numbers_of_gpus_are_refused(devices):
    with pytest.raises(InputError, match="GPUs are numbers from 0, as 0,1 or"):
        WorkerOptions(devices=devices)


def test_a_card_names_the_files_that_there_are(tmp_path, capsys):
    source, out = write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "out"
    kept, page = run(capsys, "mine", source, "-o", out, "--workers", "0", "--quiet")[1], f"{out}/report.html\n"
    assert f"{out}/bicliques: 1 Parquet file" in kept
    assert f"{out}/manifest.json\n" in kept
    assert page in f"{kept}\n"
    (out / "report.html").unlink()
    assert page not in f"{cards.run_card(bq.open_run(out))}\n"
    largest = run(capsys, "largest", source, "--workers", "0", "--quiet")[1]
    assert "certificate" in largest
    assert "Parquet file" not in largest
    assert "manifest" not in largest


def test_every_command_takes_the_words_that_all_have(capsys):
    _, commands = parsers()
    assert [name for name, one in commands.items() if not {"--log", "--json"} <= {*one._option_string_actions}] == []
    assert main(["-V"]) == 0
    assert capsys.readouterr().out.startswith("bicliques 0")
    assert json.loads(bicliques("show", "nothing", "--log", "json").stderr)["event"] == "error"


def test_a_system_without_the_locks_of_files_is_named_in_a_sentence():
    """As on Windows. The end of a traceback says the same to a caller of Python."""
    start = "import sys; sys.modules['fcntl'] = None; "
    for program, lines in (
        ("from bicliques.pipeline.cli.main import main; sys.exit(main(['formats']))", 1),
        ("import bicliques; bicliques.mine", None),
    ):
        command = [sys.executable, "-c", start + program]
        ended = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
        told = ended.stderr.splitlines()
        assert (
            ended.returncode,
            told[-1].endswith("(fcntl), which this system does not have; on Windows use WSL"),
        ) == (1, True)
        assert lines is None or len(told) == lines
