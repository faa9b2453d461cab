"""Sentences that Python says name keywords and calls, and leave labels and paths as they are."""

import ast
import doctest
import pickle
import re
import shlex
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.api.table import TABLE
from bicliques.pipeline.cli.main import main
from bicliques.pipeline.process.interrupts import Interrupted
from bicliques.pipeline.run.resuming import VERIFY, how_to_resume
from bicliques.pipeline.run.session import how_it_ended
from bicliques.schemas import errors
from bicliques.schemas.errors import (
    IncompleteError,
    InputError,
    UnknownIdError,
    as_option,
    as_options,
    speaking,
    spoken,
    written,
)
from tests.support.runs import ROOT, random_edges, write_edges

SENTENCES = [
    (f"leave such lines out with {as_option('skip_bad_lines', True)}", "with --skip-bad-lines", "skip_bad_lines=True"),
    (f"give {as_option('min_weight')}, too", "give --min-weight, too", "give min_weight, too"),
    (f"mine with {as_option('ids', 'dense')}", "mine with --ids dense", "mine with ids='dense'"),
    (f"{as_option('workers', 0)} uses one GPU", "--workers 0 uses one GPU", "workers=0 uses one GPU"),
    (f"give {as_option('header', False)}", "give --no-header", "give header=False"),
    (f"lift it with {as_option('max_results', None)}", "with --max-results none", "with max_results=None"),
    (
        as_options(as_option("left", "it's"), as_option("right", 1)),
        "--left 'it'\"'\"'s' --right 1",
        'left="it\'s", right=1',
    ),
    (f"find the damage with: {VERIFY}", "with: bicliques verify", "with: bicliques.verify"),
    ("the label '--left' is there twice", "'--left' is there twice", "'--left' is there twice"),
    (f"a \ufdd0 b {as_option('strict')}", r"a \ufdd0 b --strict", r"a \ufdd0 b strict"),
]


#: Paths with characters that no line can have, and bytes that are no UTF-8.
UNPRINTABLE = ["a\nb", "it's\t\\n, \x1b[31m", "\u202egnp é", "byte \udcff\r", "\x01\x02" + "7"]


@pytest.mark.parametrize(("sentence", "shell", "python"), SENTENCES)
def test_a_sentence_has_options_in_a_shell_and_keywords_in_python(sentence: str, shell: str, python: str) -> None:
    error = InputError(sentence)
    assert str(error).endswith(python)
    assert error.written.endswith(shell)
    with speaking("shell"):
        assert str(error) == error.written
    assert error.written.isprintable()


def test_an_error_knows_the_options_that_it_names() -> None:
    assert InputError(f"{as_option('left')} or {as_option('min_left', 3)}, not max_left").options == {
        "left",
        "min_left",
    }
    assert InputError(f"go on with: {how_to_resume('OUT', 'max_results')}").options == set()


@pytest.mark.parametrize(
    "path", ["OUT", "/a/b.c", "with blank", "it's", 'a"b', "x;y", "ü, (1)", "a,b", "--left", *UNPRINTABLE]
)
@pytest.mark.parametrize("outcome", ["", "max_results"])
def test_how_to_go_on_becomes_a_call(path: str, outcome: str) -> None:
    said = spoken(f"not complete; go on with: {how_to_resume(path, outcome)}; or not")
    found = re.fullmatch(r"not complete; go on with: bicliques\.(resume\(.*\)); or not", said)
    assert found is not None, said
    call = ast.parse(found[1], mode="eval").body
    assert isinstance(call, ast.Call)
    assert ast.literal_eval(call.args[0]) == path
    assert [word.arg for word in call.keywords] == (["max_results"] if outcome else [])
    assert written(how_to_resume(path, outcome)).isprintable()
    if path.isprintable():
        assert shlex.split(written(how_to_resume(path)))[2] == path


def test_calls_of_bicliques_raise_the_same_errors_in_these_words(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3\n")
    for call in (lambda: bq.count(tmp_path / "x.csv"), lambda: next(bq.maximal_bicliques(tmp_path / "x.csv"))):
        with pytest.raises(InputError, match="skip_bad_lines=True") as raised:
            call()
        assert "--" not in str(raised.value).replace(str(tmp_path), "")
    source = write_edges(tmp_path / "g.parquet", random_edges(12, 9, 0.4, 1))
    bq.mine(source, tmp_path / "out", workers=0, progress=False, report=False, max_results=3)
    with pytest.raises(IncompleteError, match=rf"bicliques\.resume\('{tmp_path}/out', max_results=None\)"):
        bq.verify(tmp_path / "out")


def test_an_interruption_keeps_what_there_is() -> None:
    stopped = Interrupted(f"stopped; go on with: {how_to_resume('OUT')}", 7)
    assert str(stopped) == "stopped; go on with: bicliques.resume('OUT')"
    assert stopped.so_far == 7


@pytest.mark.parametrize("kind", [InputError, UnknownIdError])
def test_the_process_that_shows_an_error_says_it(kind: type[InputError], tmp_path: Path) -> None:
    error = pickle.loads(pickle.dumps(kind(f"leave {as_option('strict')} out")))
    assert (str(error), error.written) == ("leave strict out", "leave --strict out")
    assert repr(error) == f"{kind.__name__}('leave strict out')"
    with speaking("shell"):
        assert str(error) == "leave --strict out"
        assert str(pickle.loads(pickle.dumps(kind(f"leave {as_option('strict')} out")))) == "leave --strict out"
    assert main(["verify", str(tmp_path)]) == 2
    assert str(error) == "leave strict out", "after a command in this process"
    assert how_it_ended(error) == ("failed", "leave --strict out"), "records have the words of the shell"


def test_an_iterator_can_be_closed_and_forgotten(tmp_path: Path) -> None:
    rows = bq.maximal_bicliques([(1, 2), (1, 3), (2, 3)], folder=tmp_path, workers=0)
    next(rows)
    assert len(list(tmp_path.iterdir())) == 1
    rows.close()  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []


def test_no_room_below_the_command_line_writes_an_option_or_a_keyword_into_a_sentence() -> None:
    """They say `as_option`, so that a shell and Python read their own words. The estimator has no other callers."""
    odd = "|".join(entry.name for entry in TABLE if "_" in entry.name)
    found = []
    for place in ("pipeline", "schemas", "kernels"):
        for path in (ROOT / place).rglob("*.py"):
            if path.name == "estimator.py" or path.is_relative_to(ROOT / "pipeline" / "cli"):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Raise) and node.exc is not None:
                    texts = [each.value for each in ast.walk(node.exc) if isinstance(each, ast.Constant)]
                    told = [text for text in texts if isinstance(text, str) and " " in text]
                    wrong = rf"(?<![\w'\"-])--(?!help)[a-z]|\b({odd})\b|bicliques (resume|verify)\b"
                    found += [(path.name, text) for text in told if re.search(wrong, text)]
    assert found == []


def test_the_examples_of_the_words_are_right() -> None:
    assert doctest.testmod(errors).failed == 0
