"""Text of records, names and arguments moves no cursor of a terminal, and adds no line of its own."""

import json
import logging
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.pipeline.process.logs import log_to_stderr
from bicliques.pipeline.run.files import read_json
from bicliques.pipeline.run.progress import Progress, to_callback
from bicliques.schemas.records import with_checksum

#: Sets the title of a terminal, clears it with a control of eight bits, turns the direction of text, and begins a line.
ODD = "\x1b]0;title\x07\x9b2J\u202e\nstate: complete"
SHOWN = r"\x1b]0;title\x07\x9b2J\u202e\nstate: complete"
RECORDS = ("options.json", "manifest.json", "steps/ingest.json", "steps/build.json", "steps/mine.json")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("escapes")
    pq.write_table(pa.table({"user": list("aabbcc"), "item": list("xyxyyz")}), folder / "in.parquet")
    bq.mine(folder / "in.parquet", folder / "a", workers=0, progress=False, report=False)
    return folder


def is_plain(text: str) -> bool:
    lines = text.split("\n")
    return all(line.isprintable() for line in lines) and "state: complete" not in lines


def texts(data: Any, name: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every text in a record."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        if isinstance(value, str):
            yield (*name, key)
        else:
            yield from texts(value, (*name, key))


def put(file: Path, data: dict[str, Any], place: tuple[Any, ...]) -> None:
    """Write a record with a right checksum, in which one text has an odd end."""
    changed = json.loads(json.dumps(data))
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] += ODD
    file.write_text(json.dumps(with_checksum(changed)))


@pytest.mark.parametrize(
    "name",
    [
        *(name if name in RECORDS[1:3] else pytest.param(name, marks=pytest.mark.exhaustive) for name in RECORDS),
        *("run.lock", "ledger/0.json"),
    ],
)
def test_no_text_of_a_record_reaches_a_terminal_raw(runs, tmp_path, name, capfd):
    shutil.copytree(runs / "a", tmp_path / "a")
    out = Path(shutil.copytree(runs / "a", tmp_path / "out"))
    file, lock = out / name, {"pid": 1, "host": "far", "since": "x"}
    record = lock if file.name == "run.lock" else read_json(file)
    places = list(texts(record))
    assert places
    commands = (["status", out], ["prune", tmp_path, "--keep", "1"], ["diff", tmp_path / "a", out], ["show", out])
    for is_complete in (True, False)[: 1 if name == "manifest.json" else 2]:
        for place in places:
            put(file, record, place)
            for command in commands:
                main.main([str(word) for word in command])
                told = "\n".join(capfd.readouterr())
                assert is_plain(told), (place, command, told)
        if is_complete:
            (out / "manifest.json").unlink()  # then other files are read


def test_names_of_sides_are_escaped(runs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = Path(shutil.copytree(runs / "a", tmp_path / "out"))
    put(out / "steps" / "ingest.json", read_json(out / "steps" / "ingest.json"), ("left_name",))
    for command in ("diff", "status", "report", "verify", "explain", "sizes", "sample"):
        assert main.main([command, *([str(runs / "a")] if command == "diff" else []), str(out)]) == 0
        told = "\n".join(capfd.readouterr())
        assert is_plain(told)
        if command == "diff":
            assert f"is called user{SHOWN}." in told


def test_arguments_are_escaped(runs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    odd = Path(shutil.copytree(runs / "a", tmp_path / "o\x1b[2Jdd"))
    commands = (
        ["report", odd],
        ["publish", odd, tmp_path / "P\x1b[2J"],
        ["diff", odd, odd, "-o", tmp_path / "D\x1b[2J"],
        ["export", odd, "-o", tmp_path / "E\x1b[2J"],
        ["plot", odd, "-o", tmp_path / "P\x1b[2J.svg"],
        ["generate", "--n-left", "3", "--n-right", "3", "--edges", "4", "-o", tmp_path / "G\x1b[2J"],
        ["demo", "--overwrite", "-o", odd],
    )
    for command in commands:
        main.main([str(word) for word in command])
        told = "\n".join(capfd.readouterr())
        assert is_plain(told), command
        assert r"\x1b[2J" in told or r"\033[2J" in told or command[0] == "demo"
    assert main.main(["report", str(odd), "--json", "--quiet"]) == 0
    assert json.loads(capfd.readouterr().out) == {"report": str(odd / "report.html")}, "JSON is for programs"
    assert "\x1b" not in repr(bq.open_run(odd))


def test_settings_are_escaped_in_help_and_on_the_card(runs, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bicliques.toml").write_text(f"containing_left = {json.dumps(['a' + ODD])}\nworkers = 0\n")
    for command in (
        ["count", "--help"],
        ["count", str(runs / "in.parquet")],
        ["mine", str(runs / "in.parquet"), "--dry-run"],
    ):
        main.main(command)
        told = "\n".join(capfd.readouterr())
        assert is_plain(told), command
        assert r"\x9b2J\u202e" in told


def test_a_log_and_a_line_of_progress_are_escaped(capfd, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    log_to_stderr()
    logging.getLogger("bicliques.pipeline.run.ledger").warning("%s is removed", ODD)
    show = to_callback(True)
    assert show is not None
    show(Progress("mine", note=f"worker {ODD} has come"))
    told = capfd.readouterr().err
    assert (told.count(SHOWN), is_plain(told)) == (2, True)
    assert not told.startswith("{")


@pytest.mark.parametrize("form", ["cxt", "spmf", "csv"])
def test_labels_are_whole_for_programs_and_escaped_on_a_terminal(tmp_path, form, monkeypatch, capfd):
    odd = "\x9b2J"  # which JSON does not escape, either
    (tmp_path / "in.csv").write_text(f"user,item\na,x{odd}\nb,x{odd}\n")
    out = bq.mine(tmp_path / "in.csv", tmp_path / "out", workers=0, progress=False, report=False).path
    assert main.main(["export", str(out), "--format", form]) == 0
    whole = capfd.readouterr().out
    assert odd in whole
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main.main(["export", str(out), "--format", form]) == 0
    assert capfd.readouterr().out == whole.replace(odd, r"\x9b2J")
