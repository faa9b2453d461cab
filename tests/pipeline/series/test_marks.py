"""``_SUCCESS`` exists as long as the run is complete. ``latest`` leads to the newest run, and replaces nothing else."""

import os
import shutil
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.series.runs import mark_complete, point_to_newest
from bicliques.schemas.errors import InputError
from tests.support.runs import QUIET, random_edges, write_edges


@pytest.fixture
def runs(tmp_path):
    """Complete runs of three days of one source, and of one day of another."""
    for name in ("g", "h"):
        write_edges(tmp_path / f"{name}.parquet", random_edges(12, 9, 0.4, 1))
    for source, folder in (("g", "2026-11-21"), ("g", "2026-11-22"), ("g", "2026-11-23"), ("h", "2026-12-01")):
        bq.mine(tmp_path / f"{source}.parquet", tmp_path / "runs" / folder, **QUIET)
    return tmp_path / "runs"


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def test_success_goes_when_the_run_is_not_complete_any_more(runs):
    run = runs / "2026-11-21"
    mark_complete(run)
    mark_complete(run)
    assert (run / "_SUCCESS").read_bytes() == b""
    next((run / "bicliques").iterdir()).unlink()
    bq.resume(run, **QUIET)
    assert bq.open_run(run).complete
    assert not (run / "_SUCCESS").exists(), "it was mined again; whoever promised it promises it again"


def test_success_follows_no_link(runs, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    (runs / "2026-11-21" / "_SUCCESS").symlink_to(tmp_path / "thesis.txt")
    (runs / "2026-11-22" / "_SUCCESS").symlink_to(tmp_path / "nothing")
    mark_complete(runs / "2026-11-21")
    mark_complete(runs / "2026-11-22")
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert not (tmp_path / "nothing").exists()


def test_latest_is_the_newest_complete_run_of_the_series(runs):
    (runs / "2026-11-23" / "manifest.json").unlink()
    for run in ("2026-11-22", "2026-11-21"):  # the second is a backfill
        assert point_to_newest(runs / run) == runs / "2026-11-22"
        assert (runs / "latest").readlink() == Path("2026-11-22")
    assert names(runs) == ["2026-11-21", "2026-11-22", "2026-11-23", "2026-12-01", "latest"]
    shutil.rmtree(runs / "2026-11-22")
    point_to_newest(runs / "2026-11-21")
    assert (runs / "latest").readlink() == Path("2026-11-21"), "a link to a run that is gone leads nowhere"


def test_latest_is_set_even_if_a_killed_process_left_a_link(runs):
    identity = bq.open_run(runs / "2026-11-23").manifest.run["run"]
    (runs / f".latest.{identity}.tmp").symlink_to("somewhere")
    point_to_newest(runs / "2026-11-23")
    assert (runs / "latest").readlink() == Path("2026-11-23")
    assert not [name for name in names(runs) if name.startswith(".")]


@pytest.mark.parametrize("kind", ["file", "folder", "far", "up", "another", "self"])
@pytest.mark.first(3)
def test_something_else_called_latest_is_left_alone(runs, kind):
    latest, led_to = runs / "latest", {"far": runs.parent / "g.parquet", "up": "..", "another": "2026-12-01"}
    if kind == "file":
        latest.write_text("mine")
    elif kind == "folder":
        latest.mkdir()
    else:
        latest.symlink_to(led_to.get(kind, "latest"))
    before = os.lstat(latest)
    with pytest.raises(InputError, match=r"left alone.*rename it"):
        point_to_newest(runs / "2026-11-23")
    assert os.path.samestat(os.lstat(latest), before)
