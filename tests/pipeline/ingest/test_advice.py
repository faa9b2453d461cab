"""What is found in the sentence of a refusal, so that following it can be tested."""

import pandas as pd
import pytest

import bicliques as bq
from tests.pipeline.ingest.advice import Advice, advised


@pytest.mark.parametrize(
    ("sentence", "offered"),
    [
        ("g.csv, line 1: it may be names; say --header or --no-header", [{"header": True}, {"header": False}]),
        ("g.csv: a header again; give --format tsv --skip-lines 1", [{"format": "tsv", "skip_lines": 1}]),
        ("g.el: the counts; leave them out with --skip-lines 1, or name another --format", [{"skip_lines": 1}]),
        (
            "g.csv: no sides; give --left user --right 'an item', or --left 0 --right user for the first two",
            [{"left": "user", "right": "an item"}, {"left": 0, "right": "user"}],
        ),
        ("g.dat: commas; give --delimiter ,, or take the lines as text with --label-type string",
         [{"delimiter": ","}, {"label_type": "string"}]),
        ("g.dat: colons; give `--format csv --delimiter ::`", [{"format": "csv", "delimiter": "::"}]),
        ("g.dat: semicolons; give --delimiter ';' --label-type string", [{"delimiter": ";", "label_type": "string"}]),
        ("g.dat: tabs; give --delimiter '\\t'", [{"delimiter": "\t"}]),
        ("g.csv: it may be names; say header=True or header=False", [{"header": True}, {"header": False}]),
        ("g.el: text; give label_type='string', skip_lines=1", [{"label_type": "string", "skip_lines": 1}]),
        ("g.csv: '--format tsv; --header' is no edge; mend the line", []),
        ("g: neither the name nor the first line tells; say --format, one of konect, snap", []),
        ("g.csv: a table; name two columns with --left and --right", []),
        ("g.csv: what is it; see it with bicliques look g.csv --header", []),
        ("g.csv: no remedy at all --header", []),
    ],
)  # fmt: skip
def test_options_are_found_in_a_sentence(sentence, offered):
    assert [advice.options for advice in advised(sentence)] == offered


@pytest.mark.parametrize(
    ("sentence", "codes"),
    [
        (
            "a table of counts; give bq.from_table(frame, above=0), or frame > 0",
            ["bq.from_table(frame, above=0)", "frame > 0"],
        ),
        ("an index; use frame.reset_index() or name them", ["frame.reset_index()"]),
        (
            "a table; make edges of it (booleans are read so: frame.set_index('u').astype(bool)), or --header",
            ["frame.set_index('u').astype(bool)", ""],
        ),
        ("a table; make a frame of booleans", []),
    ],
)
def test_python_is_found_in_a_sentence(sentence, codes):
    assert [advice.code for advice in advised(sentence)] == codes


def test_command_is_found_in_a_sentence():
    (advice,) = advised("g.zip is a ZIP archive; read what is in it: unzip -p g.zip | bicliques count - --format csv")
    assert advice.command == "unzip -p g.zip | bicliques count - --format csv"


def test_advice_is_followed_beside_what_was_said():
    source, options = Advice("", {"header": True}).applied("g.csv", {"delimiter": ";", "header": False})
    assert (source, options) == ("g.csv", {"delimiter": ";", "header": True})
    frame = pd.DataFrame({"u": ["a", "b"], "x": [1, 0], "y": [1, 1]})
    source, options = Advice("", code="frame.set_index('u') > 0").applied(frame, {})
    assert bq.count(source, engine="cpu", progress=False, **options).count == 2
