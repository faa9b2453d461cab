"""What the page of a run says of the run before."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.compare.in_run import changes_since_the_run_before
from bicliques.pipeline.results.report import content as since
from bicliques.pipeline.results.report.content import Before, Change, content_of
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.series.runs import run_before
from tests.support.runs import QUIET, random_edges, write_edges

DAYS = ("2026-11-21", "2026-11-22", "2026-11-23")


def mined(source, folder: Path, **options) -> Path:
    options = QUIET | options
    return bq.mine(source, folder, **options).path


@pytest.fixture
def runs(tmp_path):
    """The runs of three days, of which the last has more edges, and that of another source."""
    for day, share in zip(DAYS, (0.3, 0.3, 0.5), strict=True):
        write_edges(tmp_path / f"{day}.parquet", random_edges(30, 20, share, 4), strings=True)
        mined(tmp_path / f"{day}.parquet", tmp_path / "runs" / day)
    mined(write_edges(tmp_path / "other.parquet", random_edges(9, 9, 0.5, 1)), tmp_path / "runs" / "2026-11-22-other")
    return tmp_path / "runs"


def before_of(run: Path) -> Before | None:
    return content_of(Run.at(run)).before


def name_before(run: Path) -> str | None:
    found = run_before(run)
    return None if found is None else found.path.name


def numbers(run: Path) -> list[int]:
    frame = bq.open_run(run).to_pandas()
    facts = bq.open_run(run).manifest.input
    smaller, edges = np.minimum(frame.n_left, frame.n_right), frame.n_left * frame.n_right
    return [len(frame), facts["n_left"], facts["n_right"], facts["n_edges"], int(edges.max()), int(smaller.max())]


def test_numbers_of_then_and_now(runs):
    found = before_of(runs / DAYS[2])
    what = ["bicliques", "user of the input", "item of the input", "edges of the input", "most edges"]
    both = zip(numbers(runs / DAYS[1]), numbers(runs / DAYS[2]), strict=True)
    wanted = [Change(words, *pair) for words, pair in zip([*what, "largest smaller side"], both, strict=True)]
    assert (found.day, found.page, found.same_input, list(found.changes)) == (DAYS[1], None, False, wanted)
    bq.report(runs / DAYS[1])
    page = bq.report(runs / DAYS[2])
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.read_text()))
    assert f"The run before stands for {DAYS[1]}. Its page" in text
    change = wanted[0].now - wanted[0].then
    assert f"bicliques {wanted[0].then:,} {wanted[0].now:,} {change:+,} user of" in text
    assert f'href="../{DAYS[1]}/report.html"' in page.read_text()
    same = before_of(runs / DAYS[1])
    assert (same.same_input, same.same_bicliques, found.same_bicliques) == (True, True, False)
    assert all(change.then == change.now for change in same.changes)
    text = (runs / DAYS[1] / "report.html").read_text()
    assert "Both have read the same input and found the same bicliques." in text
    assert ">then<" not in text


def test_the_run_before_is_the_last_one_that_asked_the_same(runs):
    source = runs.parent / f"{DAYS[2]}.parquet"
    assert [name_before(runs / day) for day in DAYS] == [None, *DAYS[:2]]
    assert name_before(runs / "2026-11-22-other") is None
    assert name_before(mined(source, runs / "2026-11-24", min_left=2)) is None, "another question"
    mined(source, runs / "2026-11-25", max_results=1)
    assert name_before(mined(source, runs / "2026-11-26")) == DAYS[2], "the one between is not complete"
    (runs / ".hidden").mkdir()
    (runs / DAYS[2]).rename(runs / ".hidden" / DAYS[2])
    assert name_before(runs / "2026-11-26") == DAYS[1]
    (runs / DAYS[1] / "manifest.json").write_text("{")
    (runs / DAYS[0] / "options.json").write_text("{")
    assert name_before(runs / "2026-11-26") is None, "neither can be read"
    assert bq.report(runs / "2026-11-26").exists()


def test_runs_of_objects_in_memory_follow_none(tmp_path):
    table = pa.table({"l": [1, 2], "r": [1, 1]})
    assert [before_of(mined(table, tmp_path / name)) for name in ("2026-01-01", "2026-01-02")] == [None, None]


def test_a_run_without_a_summary_and_one_that_only_counts(runs):
    for file in (runs / DAYS[1] / "summary").iterdir():
        file.unlink()
    (runs / DAYS[1] / "summary").rmdir()
    found = before_of(runs / DAYS[2])
    assert [change.what for change in found.changes][-1] == "edges of the input", "sizes would need its rows"
    source = runs.parent / f"{DAYS[2]}.parquet"
    assert before_of(mined(source, runs / "2026-11-24", count_only=True)) is None, "it lists nothing"
    other = before_of(mined(source, runs / "2026-11-25", count_only=True))
    assert (other.changes[0].then, other.same_input) == (other.changes[0].now, True)


def test_what_is_gone_and_new_is_shown_where_it_was_found_out(runs, tmp_path, monkeypatch):
    labels = [f"<img src=x> {k}" for k in range(30)]
    for day, n in (("2026-12-01", 400), ("2026-12-02", 600)):
        left, right = (np.random.default_rng(3).integers(0, 30, (2, 600)))[:, :n]
        table = pa.table({"user": pa.array(labels).take(pa.array(left)), "item": right})
        pq.write_table(table, tmp_path / f"evil-{day}.parquet")
        mined(tmp_path / f"evil-{day}.parquet", runs / day)
    run = runs / "2026-12-02"
    known = before_of(run)
    assert (known.difference, known.largest_new) == (None, None), "nobody has compared them"
    difference = changes_since_the_run_before(run)
    found = before_of(run)
    assert found is not None
    assert found.difference is not None
    sets = [
        {(tuple(left), tuple(right)) for left, right in zip(frame.left, frame.right, strict=True)}
        for frame in (bq.open_run(runs / day).to_pandas() for day in ("2026-12-01", "2026-12-02"))
    ]
    html = bq.report(run).read_text()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
    gone, new = len(sets[0] - sets[1]), len(sets[1] - sets[0])
    assert f"{gone:,} bicliques are gone and {new:,} are new, {100 * difference.share:.3g} % of all" in text
    edges = sorted((len(left) * len(right) for left, right in sets[1] - sets[0]), reverse=True)
    rows = found.largest_new.to_pylist()
    assert [row["n_left"] * row["n_right"] for row in rows] == edges[:5]
    assert all((tuple(row["left"]), tuple(row["right"])) in sets[1] - sets[0] for row in rows)
    assert "The largest new ones" in text
    assert "<img" not in html
    monkeypatch.setattr(since, "_MOST_NEW", new - 1)
    few = before_of(run)
    assert few.largest_new is None, "there are too many to look for the largest"
