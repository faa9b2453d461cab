"""Sentences of errors as people read them: in a shell, and in Python.

``tests/data/sentences.txt`` has a line for each: its name, the voice, the sentence. After a change of a sentence,
``python -m tests.pipeline.api.test_sentences --write`` writes the file anew, and a reader of the change sees both.
"""

import argparse
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import bicliques as bq
from bicliques.pipeline.api.table import TABLE
from bicliques.pipeline.cli.main import main
from bicliques.schemas.errors import BicliqueError
from tests.support.runs import ROOT, random_edges, write_edges
from tests.support.sentences import CALLS, FILES, OTHERS, SETTINGS, WRONG

FILE = ROOT / "tests" / "data" / "sentences.txt"
#: A command of each call of WRONG, and the call.
DOORS = {
    "mine": ("mine g.parquet -o OUT", "bq.mine('g.parquet', 'OUT', "),
    "largest": ("largest g.parquet", "bq.largest('g.parquet', 'OUT', "),
    "count": ("count g.parquet", "bq.count('g.parquet', "),
    "dry_run": ("mine g.parquet --dry-run", "bq.dry_run('g.parquet', "),
    "diff": ("diff g.parquet -o C", "bq.diff('g.parquet', None, 'C', "),
}
OWN = "workers=0, progress=False"


def sentences() -> list[str]:
    """A line for each sentence. What is made for them goes again."""
    with tempfile.TemporaryDirectory() as name, chdir(name), mock.patch.dict(os.environ, COLUMNS="80"):
        folder = Path(name).resolve()
        _make(folder)
        return [f"{case}\t{voice}\t{_plain(text, folder)}" for case, voice, text in _told()]


def _make(folder: Path) -> None:
    """Runs and files that refuse calls, so that nothing in them changes."""
    own: dict[str, Any] = {"workers": 0, "progress": False, "report": False}
    write_edges(folder / "g.parquet", random_edges(9, 9, 0.4, 1), strings=True)
    runs: dict[str, dict[str, Any]] = {
        "RUN": {},
        "SHORT": {"max_results": 3},
        "COUNTED": {"count_only": True},
        "it's a run": {"max_results": 3},
        "GONE": {},
        "NO INPUT": {"max_results": 3},
        "NO EDGES": {},
        "NO SUMMARY": {},
    }
    for name, options in runs.items():
        bq.mine("g.parquet", name, **own, **options)
    (part,) = bq.open_run("GONE").files
    part.unlink()
    Path("NO INPUT", "steps", "ingest.json").write_text("{")
    Path("NO EDGES", "edges", "edges.parquet").unlink()
    Path("NO SUMMARY", "summary", "left.parquet").unlink()
    bq.generate("GRAPH", n_left=5, n_right=5, edges=9, progress=False)
    for name, data in (FILES | OTHERS).items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(data)


def _told() -> Iterator[tuple[str, str, str]]:
    for call, (command, start) in DOORS.items():
        for options in WRONG[call]:
            case = f"{call} {' '.join(map(_word, options.items()))}"
            yield case, "shell", _of_command(f"{command} {' '.join(map(_as_option, options.items()))}")
            given = ", ".join(f"{name}={value!r}" for name, value in options.items())
            yield case, "python", _of_call(f"{start}{given}, progress=False)")
    for command, expression in CALLS:
        if command:
            yield command, "shell", _of_command(command)
        if expression:
            yield command or expression, "python", _of_call(expression)
    for name in sorted(FILES):
        yield f"count {name}", "shell", _of_command(f"count {name}")
        yield f"count {name}", "python", _of_call(f"bq.count({name!r}, {OWN})")
    for variable, command in SETTINGS:
        name, _, value = variable.partition("=")
        with mock.patch.dict(os.environ, {name: value}):
            yield f"{variable} {command}", "shell", _of_command(command)


def _of_command(command: str) -> str:
    told, stdin = io.StringIO(), io.TextIOWrapper(io.BytesIO(b"one\n"))
    words = [word.replace("\\_", " ") for word in command.split()]
    with redirect_stderr(told), redirect_stdout(io.TextIOWrapper(io.BytesIO())), mock.patch.object(sys, "stdin", stdin):
        code = main(words)
    assert code in (1, 2), (command, told.getvalue())
    return told.getvalue().rstrip("\n").rpartition("\n")[2]


def _of_call(expression: str) -> str:
    try:
        eval(expression, {"bq": bq, "nan": float("nan")})
    except BicliqueError as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"{expression} raises nothing")


def _word(given: tuple[str, Any]) -> str:
    return f"{given[0]}={given[1]!r}"


def _as_option(given: tuple[str, Any]) -> str:
    name, value = given
    word = f"--{name.replace('_', '-')}"
    if value is False and name == "header":
        return "--no-header"
    if value is False:
        return ""
    if value is True:
        return word
    values = value if isinstance(value, list) else [",".join(map(str, value)) if isinstance(value, tuple) else value]
    return f"{word} {' '.join(str(each).replace(' ', chr(92) + '_') for each in values)}"


def _plain(text: str, folder: Path) -> str:
    """Without what another machine has otherwise."""
    text = text.replace(str(folder), "FOLDER")
    text = re.sub(r"^bicliques(?: \w+)?: ", "", text)
    text = re.sub(r"part-\d+-[0-9a-f]+-\d+", "PART", text)
    return re.sub(r"\b\d+\.\d+ (?:[KMG]i?B|seconds)", "SIZE", text).replace("\t", "\\t")


def test_errors_say_what_they_said() -> None:
    told = sentences()
    before = FILE.read_text().splitlines()
    assert len(before) >= 300
    assert [line for line in told if line not in before] == [], "new; see --write"
    assert [line for line in before if line not in told] == [], "gone; see --write"


@pytest.mark.parametrize("voice", ["shell", "python"])
def test_no_voice_speaks_as_the_other(voice: str) -> None:
    names = [entry.name for entry in TABLE if "_" in entry.name]
    foreign = {
        "shell": rf"\b(?:{'|'.join(names)})\b|\bbicliques\.[a-z]+\(|=(?:True|False|None)\b",
        "python": r"(?<![\w'\"-])--(?!help)[a-z]|\bbicliques (?:resume|verify)\b",
    }[voice]
    text = re.sub(r" \| bicliques count - .*", "", FILE.read_text())  # a pipe is one of a shell, whoever asks
    lines = [line.split("\t") for line in text.splitlines()]
    found = [
        said for _, spoken, said in lines if spoken == voice and not said.endswith(")") and re.search(foreign, said)
    ]
    assert found == []


def test_every_option_has_a_wrong_value() -> None:
    named = {name for cases in WRONG.values() for options in cases for name in options}
    never = {"all", "overwrite", "report", "fingerprint", "skip_bad_lines", "strict", "undirected"}
    assert {entry.name for entry in TABLE} - never == named


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m tests.pipeline.api.test_sentences", description=__doc__)
    parser.add_argument("--write", action="store_true", required=True, help="tests/data/sentences.txt")
    parser.parse_args()
    FILE.write_text("".join(f"{line}\n" for line in sentences()))
