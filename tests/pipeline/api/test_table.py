"""The table of options, and what is compared with it: signatures of the Python calls, their docstrings, a page."""

import inspect
import json
from dataclasses import asdict, fields
from typing import get_args

import numpy as np
import pytest

import bicliques as bq
from bicliques.pipeline.api import keywords
from bicliques.pipeline.api.table import RECORDS, TABLE, entries_of, record
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.errors import InputError
from bicliques.schemas.option import GROUPS, Call, option_of
from bicliques.schemas.options import BuildOptions, IngestOptions, RunLimits, RunOptions
from bicliques.schemas.search import Search
from tests import options

CALLS = {
    "mine": keywords.Mine,
    "largest": keywords.Largest,
    "count": keywords.Count,
    "cliques": keywords.Cliques,
    "resume": keywords.Resume,
    "look": keywords.Look,
    "dry_run": keywords.DryRun,
}
#: Functions that have another name.
FUNCTIONS = {"cliques": "clique_counts"}
#: Of every call, behind the options.
OF_A_CALL = ["progress", "stop"]
#: Fields that nobody chooses by name: records of options, the source, and what the calls have words of their own for.
NOT_CHOSEN = {
    "RunOptions": {"source", "search", "build", "ingest"},
    "Search": {"marked", "mirrored", "mode"},
}


@pytest.mark.parametrize("call", CALLS)
def test_a_type_checker_sees_the_keywords_of_the_table(call):
    written = CALLS[call].__annotations__
    assert {name: hint.__forward_arg__ for name, hint in written.items()} == {
        entry.name: entry.annotation_on(call) for entry in entries_of(call)
    }


@pytest.mark.parametrize("call", CALLS)
def test_a_signature_shows_every_option_and_its_default(call):
    parameters = inspect.signature(getattr(bq, FUNCTIONS.get(call, call))).parameters
    options = {name: each.default for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}
    rest = [name for name in options if name in OF_A_CALL]
    assert list(options) == [entry.name for entry in entries_of(call)] + rest
    assert all(options[entry.name] == entry.default_on(call) for entry in entries_of(call))
    assert not [each for each in parameters.values() if each.kind is each.VAR_KEYWORD]


@pytest.mark.parametrize("call", CALLS)
def test_the_docstring_of_a_call_tells_of_every_option(call):
    told = getattr(bq, FUNCTIONS.get(call, call)).__doc__
    assert "{options}" not in told
    for entry in entries_of(call):
        assert f"\n    {entry.name} : {entry.annotation}\n        " in told


def test_the_page_is_what_the_table_says():
    assert options.PAGE.read_text() == options.page(), "run: python -m tests.options --write"


def test_every_field_of_a_record_is_an_option():
    for kind in RECORDS:
        silent = {each.name for each in fields(kind) if option_of(each) is None}
        assert silent == NOT_CHOSEN.get(kind.__name__, set())


def test_names_and_groups_are_unambiguous():
    for call in get_args(Call):
        names = [entry.name for entry in entries_of(call)]
        assert len(set(names)) == len(names)
    assert {entry.told.group for entry in TABLE} == set(GROUPS)
    assert [entry for entry in TABLE if not entry.told.on] == []


@pytest.mark.parametrize("kind", RECORDS)
def test_records_are_made_with_names_only(kind):
    with pytest.raises(TypeError, match="positional"):
        kind("list", 2)


def test_a_record_takes_what_it_has():
    given = {"min_left": 3, "root_side": "left", "left": "user", "engine": "cpu", "nothing": 1}
    assert record(Search, given, mode="count") == Search("count", min_left=3)
    assert record(BuildOptions, given) == BuildOptions(root_side="left")
    assert record(IngestOptions, given) == IngestOptions(left="user")
    assert record(RunOptions, given, source="x").engine == "cpu"
    assert record(RunOptions, {}, source="x").engine == "auto"


def test_numbers_of_numpy_become_those_of_python():
    """A run writes its options as JSON, which takes no others."""
    given = {"min_left": np.int64(3), "max_left": np.uint8(4), "left": np.int32(0), "right": 1}
    given |= {
        "max_results": np.int64(7),
        "time_limit": np.int64(9),
        "workers": np.int8(0),
        "min_weight": np.float32(0.5),
    }
    kinds = (Search, IngestOptions, RunLimits, WorkerOptions)
    made = {name: value for kind in kinds for name, value in asdict(record(kind, given)).items()}
    wanted = {"min_left": 3, "max_left": 4, "left": 0, "max_results": 7, "time_limit_s": 9, "workers": 0}
    assert made.items() >= wanted.items()
    assert made["min_weight"] == 0.5
    json.dumps(made)


@pytest.mark.parametrize("wrong", [True, np.bool_(True), np.float64(3), 3.0, "3"])
def test_what_is_no_whole_number_is_refused(wrong):
    with pytest.raises(InputError, match="min_left must be a whole number"):
        bq.count([(1, 2)], min_left=wrong, progress=False)


def test_limits_may_stay_as_they_were():
    before = RunLimits(max_results=7, time_limit_s=3.0)
    assert record(RunLimits, {"max_results": "as before", "time_limit": None}, before) == RunLimits(max_results=7)


@pytest.mark.parametrize("call", CALLS)
def test_a_misspelt_keyword_is_an_error_that_knows_the_right_one(call, tmp_path):
    where = (tmp_path / "x", tmp_path / "y")[: 2 if call in ("mine", "largest") else 1]
    wrong, right = ("time_limits", "time_limit") if call == "resume" else ("skip_line", "skip_lines")
    says = rf"^{call}\(\) got an unexpected keyword argument '{wrong}'. Did you mean '{right}'\?$"
    with pytest.raises(TypeError, match=says):
        getattr(bq, FUNCTIONS.get(call, call))(*where, **{wrong: 1})
    with pytest.raises(TypeError, match="argument 'rootside'"):
        getattr(bq, FUNCTIONS.get(call, call))(*where, rootside=1)
    assert list(tmp_path.iterdir()) == []
