"""A value of a wrong type is refused by a sentence that names what it is for and the value, in every public call."""

import inspect
import math
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest

import bicliques as bq
from bicliques.pipeline.api.table import entries_of
from bicliques.pipeline.run.folder import RunFolder
from bicliques.schemas.errors import InputError
from bicliques.schemas.values import as_path, share, whole
from tests.support.runs import OWN

EDGES = [("a", "x"), ("b", "x"), ("b", "y")]
#: No whole numbers from 1 on, and how an error writes them.
NO_NUMBERS = ["3", -1, 0, 2.5, None, True, math.nan, [3], np.float64(3), np.bool_(True)]
NO_SHARES = ["x", -1, 2, math.nan, [0.5], True, False]
#: Options that are times.
TIMES = {"time_limit", "slice_seconds", "sample_time"}
NO_PATHS = [2.5, None, ["OUT"], True]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return bq.mine(EDGES, tmp_path_factory.mktemp("runs") / "out", report=False, **OWN)


@pytest.mark.parametrize("wrong", NO_NUMBERS, ids=repr)
@pytest.mark.parametrize("call", ["top", "cover", "sample", "explain", "plot", "head"])
def test_numbers_of_rows(call, wrong, results):
    if (call, wrong) == ("head", 0):
        assert len(results.head(0)) == 0
        return
    given = {"id": results[0].id} if call in ("explain", "plot") else {}
    with pytest.raises(
        InputError, match=r"^the number of .* must be (a whole number \(int\)|at least [01]), not "
    ) as raised:
        getattr(results, call)(n=wrong, **given)
    assert str(raised.value).partition(", not ")[2] == repr(wrong) or wrong in (0, -1)


@pytest.mark.parametrize("wrong", NO_SHARES, ids=repr)
@pytest.mark.parametrize("by", ["edges", "surprise"])
def test_shares(by, wrong, results):
    with pytest.raises(InputError, match=r"^the share of its edges that .* is a number from 0 to 1, not "):
        results.top(1, by, distinct=wrong)


def calls(results: bq.Results, wrong) -> dict[str, tuple[Callable[[], Any], str]]:
    """Calls with a value that is no text, no number and no path, and a word of each refusal."""
    id = results[0].id
    return {
        "by": (lambda: results.top(1, by=wrong), "ranked by"),
        "missing": (lambda: results.explain(id, missing=wrong), "members that a vertex may miss"),
        "seed": (lambda: results.sample(1, seed=wrong), "the seed"),
        "id": (lambda: results.members(wrong), "an id is a whole number"),
        "containing": (lambda: results.containing(wrong), "members are"),
        "members of a filter": (lambda: results.filter(containing_left=wrong), "members are"),
        "sizes of a filter": (lambda: results.filter(max_left=wrong), "max_left must be a whole number"),
        "id_type": (lambda: results.to_pandas(id_type=wrong), "ids become"),
        "columns": (lambda: results.to_arrow(columns=wrong), "columns|no column"),
        "filter": (lambda: results.to_arrow(filter=wrong), "filter is an expression"),
        "lists": (lambda: results.to_pandas(lists=wrong), "lists"),
        "side": (lambda: results.labels(wrong), "the side"),
        "memberships": (lambda: results.memberships(wrong), "the side"),
        "to_sparse": (lambda: results.to_sparse(wrong), "the side"),
        "batches": (lambda: list(results.batches(columns=wrong)), "columns|no column"),
        "format": (lambda: results.export(wrong, "x.csv"), "exported as"),
        "to": (lambda: results.export("csv", wrong), "a path or a binary file"),
        "open_run": (lambda: bq.open_run(wrong), "the folder of a run"),
        "verify": (lambda: bq.verify(wrong), "the folder of a run"),
        "resume": (lambda: bq.resume(wrong, progress=False), "the folder of a run"),
        "report": (lambda: bq.report(wrong), "the folder of a run"),
        "status": (lambda: bq.status(wrong), "the folder of a run"),
        "diff old": (lambda: bq.diff(wrong, results.path, "x"), "is not a graph|is no edge"),
        "diff new": (lambda: bq.diff(results.path, wrong, "x"), "is not a graph|is no edge"),
        "communities": (lambda: results.communities(wrong, 2), "the number of left members to share"),
        "diff output": (lambda: bq.diff(results.path, results.path, wrong), "the output folder"),
        "publish": (lambda: bq.publish(wrong, "x"), "the folder of a run"),
        "publish to": (lambda: bq.publish(results.path, wrong), "the place to publish to"),
        "prune": (lambda: bq.prune(wrong), "the folder of the runs"),
        "keep": (lambda: bq.prune(results.path.parent, keep=wrong), "the number of runs to keep"),
        "mine": (lambda: bq.mine(EDGES, wrong, **OWN), "the output folder"),
        "largest": (lambda: bq.largest(EDGES, wrong, **OWN), "the output folder"),
        "generate": (lambda: bq.generate(wrong, n_left=3, n_right=3, edges=3), "the folder of the graph"),
        "members from": (lambda: bq.count(EDGES, containing_left_from=wrong, **OWN), "containing_left_from"),
        "delimiter": (lambda: bq.count(EDGES, delimiter=wrong, **OWN), "delimiter must be"),
        "slices": (
            lambda: bq.count(EDGES, slice_seconds=wrong, **OWN),
            "slice_seconds must be a number of seconds",
        ),
        "sample": (lambda: bq.dry_run(EDGES, sample_time=wrong), "sample_time must be a number of seconds"),
        "verified": (lambda: bq.verify(results.path, sample=wrong, progress=False), "the number of rows to compare"),
        "seed of verify": (
            lambda: bq.verify(results.path, seed=wrong, progress=False),
            "the seed must be a whole number",
        ),
        "bound": (
            lambda: bq.verify(results.path, bound_time=wrong, progress=False),
            "bound must be a number of seconds",
        ),
        "time": (
            lambda: bq.mine(EDGES, results.path / "x", time_limit=wrong, **OWN),
            "time_limit must be a number of seconds",
        ),
    }


@pytest.mark.parametrize("wrong", [[2.5], True, object()], ids=lambda wrong: type(wrong).__name__)
def test_other_values_and_paths(wrong, results):
    for what, (call, word) in calls(results, wrong).items():
        with pytest.raises(InputError, match=word) as raised:
            call()
        assert "--" not in str(raised.value), what


@pytest.mark.parametrize(
    "wrong", ["5", pd.NA, pd.NaT, np.timedelta64(5, "ms"), Decimal(3), [3], b"3", 1j, timedelta(seconds=5)], ids=repr
)
@pytest.mark.parametrize("call", ["mine", "largest", "count", "dry_run", "resume", "look"])
def test_every_number_of_every_call(call, wrong, results, tmp_path):
    """A time that is a `timedelta` is the only one of these that a call takes, and only where it asks for a time."""
    place = {"mine": (EDGES, tmp_path / "x"), "largest": (EDGES, tmp_path / "x"), "resume": (results.path,)}
    for entry in entries_of(call):
        kinds = {entry.hint, *get_args(entry.hint)}
        columns = {str, int} <= kinds and isinstance(wrong, str)
        if not kinds & {int, float} or entry.name == "devices" or columns:  # a list has a sentence of its own
            continue
        if entry.name in TIMES and isinstance(wrong, timedelta):
            continue
        with pytest.raises(InputError) as raised:
            getattr(bq, call)(*place.get(call, (EDGES,)), **{entry.name: wrong})
        told = str(raised.value)
        assert re.search(r"must (be|name)", told), told
        assert repr(wrong)[:50] in told, told
        if entry.name in TIMES:
            assert told.endswith(f"must be a number of seconds, not {wrong!r} ({type(wrong).__name__})")
    assert not (tmp_path / "x").exists()


def test_a_time_may_be_a_timedelta(results, tmp_path):
    day = timedelta(days=1)
    assert bq.count(EDGES, time_limit=day, slice_seconds=day, **OWN).complete
    assert bq.dry_run(EDGES, sample_time=timedelta(seconds=0.1), **OWN).estimate is not None
    assert bq.verify(results.path, bound_time=day, progress=False).count == len(results)
    made = bq.mine(EDGES, tmp_path / "x", time_limit=pd.Timedelta("1 day"), report=False, **OWN)
    assert RunFolder(made.path).limits().time_limit_s == 86_400
    with pytest.raises(InputError, match=r"^time_limit must be more than 0 seconds, not datetime.timedelta\(0\)$"):
        bq.count(EDGES, time_limit=timedelta(0), **OWN)


@pytest.mark.parametrize("wrong", ["3", True, 2.5])
def test_numbers_of_rows_of_a_comparison(wrong, results, tmp_path):
    found = bq.diff(results.path, results.path, tmp_path / "changes", progress=False)
    with pytest.raises(InputError, match="the number of bicliques to show must be a whole number"):
        found.new.top(wrong)


def test_results_where_a_path_belongs_are_told_of_it(results):
    for call in (bq.report, bq.verify, bq.status, bq.open_run):
        with pytest.raises(InputError, match=f"; give its path, {results.path}$"):
            call(results)


def test_what_is_right_stays_right(results, tmp_path):
    assert results.top(np.int64(1), distinct=np.float32(0.5)).num_rows == 1
    assert results.to_arrow(columns=("id",)).column_names == ["id"]
    assert whole(np.uint8(3), "x", 1) == 3
    assert [share(each, "x") for each in (0, 1, 0.25)] == [0, 1, 0.25]
    assert as_path("a", "x") == as_path(Path("a"), "x") == Path("a")


def test_every_method_of_results_is_looked_at():
    taking = {
        name
        for name, own in inspect.getmembers(bq.Results, inspect.isfunction)
        if not name.startswith("_") and len(inspect.signature(own).parameters) > 1
    }
    assert taking == {
        *("top", "cover", "sample", "explain", "plot", "head", "members", "to_arrow", "to_pandas", "batches"),
        *("labels", "memberships", "to_sparse", "to_networkx", "export", "communities"),
        *("filter", "containing"),
        *("to_csv", "verify"),  # which are `export` and `bicliques.verify`
    }
