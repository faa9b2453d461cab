"""Whatever is wrong with an option: a call names keywords, and the command names options."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from bicliques.pipeline.api.python_words import in_python
from bicliques.pipeline.api.table import TABLE, entries_of
from bicliques.pipeline.cli.main import main
from bicliques.schemas.errors import BicliqueError
from bicliques.schemas.option import Call, as_option
from tests.support.runs import ROOT, random_edges, write_edges

KEYWORDS = {entry.name for entry in TABLE} | set(inspect.signature(bq.generate).parameters) - {"output"}
#: Names that no plain word of a sentence is.
ODD = sorted(name for name in KEYWORDS if "_" in name)
AN_OPTION = re.compile(r"(?<![\w'-])--[a-z]")
A_KEYWORD = re.compile(rf"\b(?:{'|'.join(ODD)})\b|\b[a-z_]+=[\w'\"]|\bpipeline\.|\bbicliques\.")

#: Wrong values, of each option alone or of two that do not go together. They are refused in every call that has them.
WRONG: list[dict[str, Any]] = [
    {"min_left": 0},
    {"min_right": -1},
    {"max_left": 0},
    {"max_left": 1, "min_left": 2},
    {"max_right": 1, "min_right": 2},
    {"containing_left": ["nobody"]},
    {"containing_right": ["nothing"]},
    {"containing_left_from": "no file"},
    {"containing_right_from": "no file"},
    {"max_results": 0},
    {"time_limit": 0.0},
    {"engine": "bitmatrix"},
    {"engine": "nothing"},
    {"root_side": "up"},
    {"order": "size"},
    {"workers": -1},
    {"workers": 2, "scheduler": "tcp://127.0.0.1:1"},
    {"slice_seconds": 0.0},
    {"devices": (0,)},
    {"device_memory": "much"},
    {"rmm_pool": "1GB"},
    {"spill": True},
    {"write_on": "disk"},
    {"write_on": "gpu", "per_vertex": True},
    {"ingest_on": "gpu"},
    {"format": "nothing"},
    {"left": 0},
    {"left": 0, "right": 0},
    {"left": "user", "right": "nothing"},
    {"where": ["nonsense"]},
    {"where": ["day=1"]},
    {"delimiter": '"'},
    {"skip_lines": -1},
    {"delimiter": ";"},
    {"header": True},
    {"header": False},
    {"label_type": "float"},
    {"min_weight": float("nan")},
    {"min_weight": 2.0},
    {"weight": "w"},
    {"ids": "names"},
    {"sizes": True, "count_only": False},
    {"sample_time": 0.0},
    {"top": 0},
    {"by": "size"},
    {"folder": "no/folder"},
]
#: Options that only say what is written, and have no wrong value; and edge lists, of whose sentences others take care.
NEVER_WRONG = {"all", "overwrite", "report", "fingerprint", "skip_bad_lines", "strict", "added", "removed"}
CALLS: dict[Call, Callable[..., Any]] = {
    "mine": lambda source, **options: bq.mine(source, "OUT", **options),
    "largest": lambda source, **options: bq.largest(source, "OUT", **options),
    "count": bq.count,
    "dry_run": bq.dry_run,
}
COMMANDS: dict[Call, list[str]] = {
    "mine": ["mine", "SOURCE", "--output", "OUT"],
    "largest": ["largest", "SOURCE"],
    "count": ["count", "SOURCE"],
    "dry_run": ["mine", "SOURCE", "--dry-run"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with an input of Parquet, which has no lines."""
    write_edges(tmp_path / "g.parquet", random_edges(9, 9, 0.4, 1), strings=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cases() -> Iterator[tuple[Call, dict[str, Any]]]:
    for call in CALLS:
        known = {entry.name for entry in entries_of(call)}
        yield from ((call, wrong) for wrong in WRONG if wrong.keys() <= known)


def no_option(sentence: str) -> bool:
    return AN_OPTION.search(sentence) is None and "bicliques resume" not in sentence


@pytest.mark.parametrize(("call", "wrong"), list(cases()), ids=str)
def test_a_call_names_keywords_and_the_command_options(
    call: Call, wrong: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BicliqueError) as raised:
        CALLS[call]("g.parquet", progress=False, **wrong)
    assert no_option(str(raised.value)), raised.value
    words = [word.replace("SOURCE", "g.parquet") for word in COMMANDS[call]]
    for name, value in wrong.items():
        entry = next(entry for entry in TABLE if entry.name == name)
        if value is False and name == "header":
            words.append("--no-header")
        elif value is not False:
            shown = (
                value if isinstance(value, list) else [",".join(map(str, value)) if isinstance(value, tuple) else value]
            )
            words += [as_option(name), *([] if entry.is_switch or value is True else map(str, shown))]
    assert main([*words, "--quiet"]) in (1, 2), words
    told = capsys.readouterr().err
    assert A_KEYWORD.search(told) is None, told


def test_every_option_has_a_wrong_value() -> None:
    named = {name for wrong in WRONG for name in wrong}
    assert {entry.name for entry in TABLE} - NEVER_WRONG == named


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs and other things that refuse calls and commands, so that nothing in it changes."""
    folder = tmp_path_factory.mktemp("made")
    write_edges(folder / "g.parquet", random_edges(9, 9, 0.4, 1), strings=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_runs(folder)
    return folder


def make_runs(folder: Path) -> None:
    bq.mine("g.parquet", "RUN", workers=0, progress=False, report=False)
    bq.mine("g.parquet", "SHORT", workers=0, progress=False, report=False, max_results=3)
    bq.mine("g.parquet", "COUNTED", workers=0, progress=False, report=False, count_only=True)
    bq.generate("GRAPH", n_left=5, n_right=5, edges=9, progress=False)
    (folder / "FULL").mkdir()
    (folder / "FULL" / "file").touch()
    (folder / "x.csv").write_text("a,b\n1,2\n3\n")


def other_calls() -> dict[str, Callable[[], Any]]:
    """Calls that are refused because of what is in a folder, or of an option that is not in the table."""
    counted = bq.open_run("COUNTED")
    own = {"workers": 0, "progress": False}
    return {
        "other options": lambda: bq.mine("g.parquet", "RUN", min_left=2, **own),
        "other switch": lambda: bq.mine("g.parquet", "RUN", per_vertex=True, **own),
        "only counted": lambda: bq.mine("g.parquet", "RUN", count_only=True, **own),
        "the largest": lambda: bq.largest("g.parquet", "RUN", **own),
        "given members": lambda: bq.mine("g.parquet", "RUN", containing_left=["u5"], **own),
        "lines": lambda: bq.count("x.csv", **own),
        "an iterator": lambda: next(bq.maximal_bicliques("x.csv", **own)),
        "vertices": lambda: bq.count("g.parquet", per_vertex="FULL", **own),
        "both limits": lambda: bq.maximal_bicliques("g.parquet", max_results=0),
        "not complete": lambda: bq.verify("SHORT"),
        "not to compare": lambda: bq.diff("RUN", "SHORT", "CHANGES"),
        "nothing to compare": lambda: bq.diff("RUN", "COUNTED", "CHANGES"),
        "nothing to verify": lambda: bq.verify("COUNTED"),
        "no run": lambda: bq.open_run("FULL"),
        "no status": lambda: bq.status("FULL"),
        "no report": lambda: bq.report("FULL"),
        "a limit": lambda: bq.resume("SHORT", max_results=0),
        "prune": lambda: bq.prune("RUN", keep=-1),
        "no manifest": lambda: bq.open_run("SHORT").manifest,
        "no sizes": lambda: counted.sizes(),
        "no rows": lambda: counted.head(),
        "another graph": lambda: bq.generate("GRAPH", n_left=6, n_right=5, edges=9, progress=False),
        "no graph": lambda: bq.generate("NEW", n_left=0, n_right=5, edges=9),
        "parts": lambda: bq.generate("NEW", n_left=5, n_right=5, edges=9, part_edges=0),
        "labels": lambda: bq.generate("NEW", n_left=5, n_right=5, edges=9, labels="bytes"),
        "noise": lambda: bq.generate("NEW", n_left=5, n_right=5, edges=9, noise=2),
    }


def test_other_errors_of_calls_name_no_options_either(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    for what, call in other_calls().items():
        with pytest.raises(BicliqueError) as raised:
            call()
        assert no_option(str(raised.value)), f"{what}: {raised.value}"


@pytest.mark.parametrize(
    "words",
    [
        "mine g.parquet -o RUN --min-left 2",
        "mine g.parquet -o RUN --per-vertex",
        "mine g.parquet -o RUN --count-only",
        "mine g.parquet -o RUN --containing-left u5",
        "largest g.parquet -o RUN",
        "count x.csv",
        "count g.parquet --per-vertex FULL",
        "verify SHORT",
        "verify COUNTED",
        "diff RUN SHORT --output CHANGES",
        "diff RUN COUNTED --output CHANGES",
        "resume SHORT --max-results 0",
        "show COUNTED",
        "sizes COUNTED",
        "sample COUNTED",
        "export COUNTED --format csv",
        "generate --n-left 6 --n-right 5 --edges 9 -o GRAPH",
        "generate --n-left 0 --n-right 5 --edges 9 -o NEW",
        "generate --n-left 5 --n-right 5 --edges 9 --part-edges 0 -o NEW",
        "generate --n-left 5 --n-right 5 --edges 9 --noise 2 -o NEW",
    ],
)
def test_other_errors_of_the_command_name_no_keywords(
    words: str, made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(made)
    assert main(words.split()) in (1, 2)
    told = capsys.readouterr().err
    assert A_KEYWORD.search(told) is None, told


def test_no_sentence_of_an_error_in_the_code_names_a_keyword() -> None:
    """Rooms write options, which become keywords for those who call from Python. The estimator has no other callers."""
    found = []
    for place in ("pipeline", "schemas", "kernels"):
        for path in (ROOT / place).rglob("*.py"):
            if path.name in ("estimator.py", "python_words.py"):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Raise) and node.exc is not None:
                    texts = [each.value for each in ast.walk(node.exc) if isinstance(each, ast.Constant)]
                    told = [text for text in texts if isinstance(text, str) and " " in text]
                    found += [(path.name, text) for text in told if re.search(rf"\b({'|'.join(ODD)})\b", text)]
    assert found == []


def test_every_option_of_a_call_becomes_its_keyword() -> None:
    for name in KEYWORDS - {"progress"}:
        assert in_python(f"leave {as_option(name)} out") == f"leave {name} out"


def test_calls_are_found_by_pickle_and_say_where_they_belong() -> None:
    for name in bq.__all__:
        call = getattr(bq, name)
        if inspect.isfunction(call):
            assert call.__module__ == "bicliques"
            assert pickle.loads(pickle.dumps(call)) is call
