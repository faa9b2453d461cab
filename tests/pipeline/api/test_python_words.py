"""Sentences that Python says name keywords and calls, and leave labels and paths as they are."""

import ast
import doctest
import pickle
import re
import shlex
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.api import python_words
from bicliques.pipeline.api.python_words import in_python
from bicliques.pipeline.api.table import TABLE
from bicliques.pipeline.cli.main import main
from bicliques.pipeline.process.interrupts import Interrupted
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.run.session import how_it_ended
from bicliques.schemas.errors import IncompleteError, InputError, UnknownIdError, speaking
from tests.support.runs import ROOT, random_edges, write_edges

SENTENCES = {
    "leave such lines out with --skip-bad-lines": "leave such lines out with skip_bad_lines=True",
    "give --min-weight, too": "give min_weight, too",
    "leave --devices, --rmm-pool and --spill out": "leave devices, rmm_pool and spill out",
    "mine with --ids dense": "mine with ids='dense'",
    "choose --ingest-on cpu": "choose ingest_on='cpu'",
    "choose --ingest-on cpu, or": "choose ingest_on='cpu', or",
    "--workers 0 uses one GPU without it": "workers=0 uses one GPU without it",
    "give --header or --no-header": "give header=True or header=False",
    "give --left 1 --right item, or --left 'a b' --right 1 for the first": "give left=1, right='item', or left='a b', "
    "right=1 for the first",
    "give --left 'it'\"'\"'s' --right $'a\\n\\'b'; or": 'give left="it\'s", right="a\\n\'b"; or',
    "only one of --left and --right is given": "only one of left and right is given",
    "another --format, one of csv": "another format, one of csv",
    "without --sizes; mine it again": "without sizes; mine it again",
    "see: bicliques mine --help": "see: bicliques mine --help",
    "the label '--left' is there twice": "the label '--left' is there twice",
    "my--left file.csv, a --- b": "my--left file.csv, a --- b",
    "lift it with --max-results none": "lift it with max_results=None",
    "find the damage with: bicliques verify": "find the damage with: bicliques.verify",
}


#: Paths with characters that no line can have, and bytes that are no UTF-8.
UNPRINTABLE = ["a\nb", "it's\t\\n, \x1b[31m", "\u202egnp é", "byte \udcff\r", "\x01\x02" + "7"]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_options_become_keywords(sentence: str) -> None:
    assert in_python(sentence) == SENTENCES[sentence]


@pytest.mark.parametrize(
    "path", ["OUT", "/a/b.c", "with blank", "it's", 'a"b', "x;y", "ü, (1)", "a,b", "--left", *UNPRINTABLE]
)
@pytest.mark.parametrize("outcome", ["", "max_results"])
def test_how_to_go_on_becomes_a_call(path: str, outcome: str) -> None:
    said = in_python(f"not complete; go on with: {how_to_resume(path, outcome)}; or not")
    found = re.fullmatch(r"not complete; go on with: bicliques\.(resume\(.*\)); or not", said)
    assert found is not None, said
    call = ast.parse(found[1], mode="eval").body
    assert isinstance(call, ast.Call)
    assert ast.literal_eval(call.args[0]) == path
    assert [word.arg for word in call.keywords] == (["max_results"] if outcome else [])
    assert how_to_resume(path, outcome).isprintable()
    if path.isprintable():
        assert shlex.split(how_to_resume(path))[2] == path


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
    stopped = Interrupted("stopped; go on with: bicliques resume OUT", 7)
    assert str(stopped) == "stopped; go on with: bicliques.resume('OUT')"
    assert stopped.so_far == 7


@pytest.mark.parametrize("kind", [InputError, UnknownIdError])
def test_the_process_that_shows_an_error_says_it(kind: type[InputError], tmp_path: Path) -> None:
    error = pickle.loads(pickle.dumps(kind("leave --strict out")))
    assert (str(error), error.written) == ("leave strict out", "leave --strict out")
    assert repr(error) == f"{kind.__name__}('leave strict out')"
    with speaking("shell"):
        assert str(error) == "leave --strict out"
        assert str(pickle.loads(pickle.dumps(kind("leave --strict out")))) == "leave --strict out"
    assert main(["verify", str(tmp_path)]) == 2
    assert str(error) == "leave strict out", "after a command in this process"
    assert how_it_ended(error) == ("failed", "leave --strict out"), "records have the words of the shell"


def test_an_iterator_can_be_closed_and_forgotten(tmp_path: Path) -> None:
    rows = bq.maximal_bicliques([(1, 2), (1, 3), (2, 3)], folder=tmp_path, workers=0)
    next(rows)
    assert len(list(tmp_path.iterdir())) == 1
    rows.close()  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []


def test_every_option_that_a_sentence_of_ours_names_is_known_or_of_the_command_line() -> None:
    """Of the strings in the code that are sentences of errors: what is left over is no keyword."""
    left: set[str] = set()
    for place in ("pipeline", "schemas", "kernels"):
        for path in (ROOT / place).rglob("*.py"):
            if path.is_relative_to(ROOT / "pipeline" / "cli"):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Raise) and node.exc is not None:
                    texts = [each.value for each in ast.walk(node.exc) if isinstance(each, ast.Constant)]
                    for text in (text for text in texts if isinstance(text, str)):
                        left |= set(re.findall(r"(?<![\w'\"-])--[a-z][a-z-]*", in_python(text)))
    assert left <= {"--help"}


def test_no_sentence_of_an_error_in_the_code_names_a_keyword() -> None:
    """Rooms write options, which become keywords for those who call from Python. The estimator has no other callers."""
    odd = "|".join(entry.name for entry in TABLE if "_" in entry.name)
    found = []
    for place in ("pipeline", "schemas", "kernels"):
        for path in (ROOT / place).rglob("*.py"):
            if path.name in ("estimator.py", "python_words.py"):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Raise) and node.exc is not None:
                    texts = [each.value for each in ast.walk(node.exc) if isinstance(each, ast.Constant)]
                    told = [text for text in texts if isinstance(text, str) and " " in text]
                    found += [(path.name, text) for text in told if re.search(rf"\b({odd})\b", text)]
    assert found == []


def test_the_examples_of_the_words_are_right() -> None:
    assert doctest.testmod(python_words).failed == 0
