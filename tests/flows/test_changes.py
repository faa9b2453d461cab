"""A night is compared with the one before it: in artifacts, in the folder of the run, and told if much changed."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prefect.client.schemas.objects import State

import bicliques as bq
from bicliques.flows.mine import mine
from tests.flows.grouped import grouped, refused
from tests.flows.receiver import BLOCK
from tests.flows.states import artifacts, logged
from tests.support.compared import maximal_bicliques, rows_of
from tests.support.runs import random_edges

pytestmark = pytest.mark.usefixtures("prefect_server")

#: The first label is hostile to Markdown.
EDGES = {(f"user {a}" if a else "<script>|*", f"film {b}") for a, b in random_edges(9, 8, 0.5, 2)}
LESS = EDGES - {max(EDGES)}


def run(place: Path, day: str, edges: set[tuple[Any, Any]], **options) -> State[Any]:
    left, right = zip(*sorted(edges), strict=True)
    (place / "in").mkdir(exist_ok=True)
    pq.write_table(pa.table({"user": left, "film": right}), place / "in" / f"{day}.parquet")
    given = grouped(workers=0, **{"report": False, "changes": True, "notify": BLOCK} | options)
    source, output = f"{place}/in/{{date}}.parquet", f"{place}/runs/{{date}}"
    return mine(source, output, date=day, **given, return_state=True)


@pytest.mark.exhaustive
def test_nights_are_compared_and_much_change_is_told(tmp_path, told):
    first = run(tmp_path, "2026-01-01", EDGES, notify_above=0.0)
    assert first.name == "Completed"
    assert logged(first, f"{tmp_path}/runs/2026-01-01 has no run before it in its series")
    assert "changes" not in artifacts(first)
    second = run(tmp_path, "2026-01-02", LESS, notify_above=0.0, keep=1)
    was, now = maximal_bicliques(EDGES), maximal_bicliques(LESS)
    assert second.name == "Much has changed"
    words = f"{len(was - now)} are gone and {len(now - was)} are new since {tmp_path}/runs/2026-01-01"
    assert words in str(second.message)
    [message] = told
    assert message["title"] == "bicliques: mine much has changed"
    assert words in message["text"]
    assert logged(second, f"much has changed: {words}")
    shown = artifacts(second)
    numbers = {row["name"]: row["value"] for row in json.loads(shown["changes"])}
    assert numbers == {
        "before": len(was),
        "gone": len(was - now),
        "new": len(now - was),
        "unchanged": len(was & now),
        "after": len(now),
        "share that changed": pytest.approx(len(was ^ now) / len(was | now), abs=1e-6),
    }
    assert len(shown["largest-new"].splitlines()) == 2 + min(10, len(now - was))
    assert "<script>" not in shown["largest-new"].replace("\\<", "")
    head, _, first, *_ = (line.strip("| ").split(" | ") for line in shown["vertices"].splitlines())
    most = {name: int(value) for name, value in zip(head, first, strict=True) if value.lstrip("\\-").isdecimal()}
    assert most["before"] - most["gone"] + most["new"] == most["after"]
    changes = tmp_path / "runs" / "2026-01-02" / "changes"
    assert rows_of(bq.Difference(changes).gone) == was - now
    assert not (tmp_path / "runs" / "2026-01-01").exists(), "the run before is removed after it was compared"


@pytest.mark.exhaustive
def test_nights_with_missing_pairs_are_compared(tmp_path):
    rows = []
    for day, edges in (("2026-01-01", EDGES), ("2026-01-02", LESS)):
        state = run(tmp_path, day, edges, notify=None, missing_pairs=1, min_left=3, min_right=3)
        assert state.name == "Completed"
        rows.append(rows_of(bq.open_run(tmp_path / "runs" / day)))
    was, now = rows
    changes = bq.Difference(tmp_path / "runs" / "2026-01-02" / "changes")
    assert (rows_of(changes.gone), rows_of(changes.new)) == (was - now, now - was)
    assert was - now
    assert now - was


def test_little_change_is_not_told(tmp_path, told):
    for day, edges in (("2026-01-01", EDGES), ("2026-01-02", LESS)):
        assert run(tmp_path, day, edges, notify_above=1.0).name == "Completed"
    assert run(tmp_path, "2026-01-02", LESS, notify_above=0.0).name == "Much has changed"  # a complete run, left alone
    assert len(told) == 1


@pytest.mark.exhaustive
def test_what_cannot_be_compared_needs_attention(tmp_path, told):
    run(tmp_path, "2026-01-01", EDGES)
    numbers = {(int(user == "user 1"), film) for user, film in EDGES}
    state = run(tmp_path, "2026-01-02", numbers)
    assert state.name == "Needs attention"
    assert "what changed could not be found: the left labels are text in" in str(state.message)
    assert len(told) == 1


def test_a_new_doubt_about_the_input_needs_attention(tmp_path, told):
    """It is told once: what was doubtful the night before, too, is not new."""
    spoilt = EDGES | {("USER 1", "film 1"), ("user 1", "film 1")}
    states = [
        run(tmp_path, f"2026-01-0{k}", edges, changes=False) for k, edges in enumerate((EDGES, spoilt, spoilt), 1)
    ]
    assert [state.name for state in states] == ["Completed", "Needs attention", "Unchanged"]
    words = (
        "the input has a doubt that it did not have in the run before: 1 user label differs from another one only in"
    )
    assert words in str(states[1].message)
    [message] = told
    assert words in message["text"]


def test_a_strict_night_fails_with_the_doubts(tmp_path, told):
    state = run(tmp_path, "2026-01-01", EDGES | {("USER 1", "film 1"), ("user 1", "film 1")}, strict=True)
    assert state.is_failed()
    assert "is doubtful: 1 user label differs from another one only in blanks or capitals" in str(state.message)
    assert "or leave strict out" in told[0]["text"]
    assert not (tmp_path / "runs" / "2026-01-01").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"notify_above": -0.5}, "notify_above is a share from 0 to 1, not -0.5"),
        ({"notify_above": 1.5}, "notify_above is a share from 0 to 1, not 1.5"),
        ({"notify_above": 0.5, "changes": False}, "nothing is compared; set changes, too"),
    ],
)
def test_bad_options_are_refused(tmp_path, options, words):
    assert words in refused(tmp_path / "in.csv", tmp_path / "out", **{"changes": True} | options)
    assert not (tmp_path / "out").exists()
