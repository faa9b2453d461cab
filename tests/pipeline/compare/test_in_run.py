"""A run of a series is compared with the one before it, below ``changes/``, once."""

from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.compare.in_run import changes_since_the_run_before, new_doubts
from bicliques.pipeline.run.names import stranger_in
from bicliques.pipeline.series.runs import run_before
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import RunLimits, RunOptions
from tests.support.compared import QUIET, maximal_bicliques, noted_comparisons, rows_of, stored
from tests.support.runs import random_edges, rewrite_record

EDGES = {(int(a), int(b)) for a, b in random_edges(8, 7, 0.5, 6)}
LESS = EDGES - {min(EDGES)}


def of_series(
    place: Path, day: str, edges: set[tuple[int, int]], series: str = "g", max_results: int | None = None
) -> Path:
    """A run that a schedule makes."""
    for name in ("made", "runs"):
        (place / name).mkdir(exist_ok=True)
    source = stored(place / "made" / f"{series}-{day}.parquet", edges)
    path, limits = place / "runs" / f"{series}-{day}", RunLimits(max_results=max_results)
    steps.start(str(source), path, RunOptions(source=str(source), engine="cpu"), limits, False, None, (series, day))
    steps.run(path, WorkerOptions(workers=0), limits, False)
    return path


def test_the_run_before_is_the_newest_complete_one_of_the_series(tmp_path: Path) -> None:
    second = of_series(tmp_path, "2026-01-02", LESS)
    first = of_series(tmp_path, "2026-01-01", EDGES)
    of_series(tmp_path, "2026-01-03", EDGES, max_results=2)
    of_series(tmp_path, "2026-01-03", EDGES, "other")
    fourth = of_series(tmp_path, "2026-01-04", EDGES)
    assert [found and found.path for found in map(run_before, (first, second, fourth))] == [None, first, second]
    assert changes_since_the_run_before(first) is None
    assert not (first / "changes").exists()
    found = changes_since_the_run_before(fourth)
    assert found is not None
    assert rows_of(found.new) == maximal_bicliques(EDGES) - maximal_bicliques(LESS)
    assert (found.path, found.old_run.folder) == (fourth / "changes", str(second))
    assert stranger_in(fourth) is None


def test_it_is_made_once_and_again_when_a_run_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = of_series(tmp_path, "2026-01-01", EDGES), of_series(tmp_path, "2026-01-03", EDGES)
    made = noted_comparisons(monkeypatch)
    for _ in range(2):
        found = changes_since_the_run_before(last)
        assert found is not None
        assert found.share == 0
    assert made == [first]
    second = of_series(tmp_path, "2026-01-02", LESS)
    found = changes_since_the_run_before(last)
    assert found is not None
    assert len(found.new) > 0
    assert made == [first, second]
    (last / "changes" / "diff.json").write_text("{}")
    (last / "changes" / "letter").write_text("mine")
    with pytest.raises(InputError, match="is not empty: it holds letter; name another one"):
        changes_since_the_run_before(last)
    assert (last / "changes" / "letter").read_text() == "mine"


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    of_series(tmp_path, "2026-01-01", EDGES)
    last = of_series(tmp_path, "2026-01-02", LESS)
    (tmp_path / "elsewhere").mkdir()
    (last / "changes").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="changes is a link, and nothing is written or deleted through one"):
        changes_since_the_run_before(last)


def test_a_run_of_an_object_in_memory_has_none_before_it(tmp_path: Path) -> None:
    for name in ("2026-01-01", "2026-01-02"):
        bq.mine(sorted(EDGES), tmp_path / name, **QUIET)
    assert changes_since_the_run_before(tmp_path / "2026-01-02") is None


def test_a_pruned_run_takes_its_changes_with_it(tmp_path: Path) -> None:
    runs = [of_series(tmp_path, f"2026-01-0{day}", edges) for day, edges in ((1, EDGES), (2, LESS), (3, EDGES))]
    for run in runs:
        changes_since_the_run_before(run)
    bq.prune(tmp_path / "runs", keep=1, remove=True)
    assert sorted((tmp_path / "runs").iterdir()) == [runs[2]]


def test_a_doubt_is_new_if_the_run_before_had_none_of_its_kind(tmp_path: Path) -> None:
    stars = [{(side, k) for k in range(12)} for side in (1, 2)]
    days = [f"2026-01-0{k}" for k in range(1, 6)]
    first, second, third, fourth, fifth = map(
        of_series, 5 * [tmp_path], days, [stars[0], EDGES, stars[0], stars[1], EDGES]
    )
    text = "there is only one user label, '1'; are user and film the columns you mean? "
    text += "the options left and right name others"
    assert [new_doubts(run) for run in (first, second, third, fourth, fifth)] == [[], [], [text], [], []]
    manifest = bq.open_run(second).manifest
    rewrite_record(second / "manifest.json", input={k: v for k, v in manifest.input.items() if k != "reading"})
    assert new_doubts(third) == [], "an earlier version kept no kinds"
