"""Runs stay that were made lately or that a person marked, and those that a gate refused are not counted."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.series.pruning import prune_after, refuse_short_lived
from bicliques.pipeline.series.runs import mark_complete, mark_refused, point_to_newest
from bicliques.schemas.errors import InputError
from tests.pipeline.series.several import change, copy, left, reasons
from tests.support.runs import QUIET, random_edges, write_edges

EDGES = random_edges(12, 9, 0.4, 1)


def test_what_was_created_lately_stays_whichever_day_it_stands_for(runs, model, capsys):
    change(runs / "a", created=f"{datetime.now(UTC) - timedelta(days=6.9):%Y-%m-%dT%H:%M:%S.000+00:00}")
    change(runs / "a", date="2026-01-01")  # made up for
    change(runs / "b", created=f"{datetime.now(UTC) - timedelta(days=7.1):%Y-%m-%dT%H:%M:%S.000+00:00}")
    change(runs / "b", date="2026-01-02")
    assert "a" in {run.path.name for run in bq.prune(runs, keep=1).chosen}
    found = bq.prune(runs, keep=1, keep_created=7, unfinished=True)
    assert [run.path.name for run in found.chosen] == ["e", "d", "c", "b"]
    assert reasons(found)["a"] == "created within the last 7 days"
    prune_after(runs / "f", keep=1, keep_created=7)
    assert left(runs) == "abef"
    assert main.main(["prune", str(runs), "--keep", "1", "--keep-created", "7"]) == 0
    assert "would remove 0 of 4 runs" in capsys.readouterr().out
    for wrong in (-1, 1.5, "7"):
        with pytest.raises(InputError, match="the number of days for which runs stay after they were created must be"):
            bq.prune(runs, keep=1, keep_created=wrong)


@pytest.mark.parametrize("created", ["yesterday", "", "9999-01-01T00:00:00.000+00:00", "2026-01-01T00:00:00"])
def test_a_run_whose_age_is_not_known_is_not_called_old(runs, created):
    change(runs / "a", created=created, date="2026-01-01")
    bq.prune(runs, keep=1, keep_created=10**9, remove=True)
    assert left(runs) == "abcdef"
    bq.prune(runs, keep=1, keep_created=1, remove=True)
    assert left(runs) == "abef"


def test_what_a_person_named_stays(runs):
    (runs / "a" / ".keep").touch()
    (runs / "b" / ".keep").symlink_to("nowhere")
    assert reasons(bq.prune(runs, keep=2))["a"] == "somebody has put a file .keep into it"
    prune_after(runs / "f", keep=2)
    bq.prune(runs, keep=1, unfinished=True, remove=True)
    assert left(runs) == "abf"


def test_a_run_may_begin_in_a_folder_that_is_to_be_kept(tmp_path):
    night = tmp_path / "2026-01-01"
    night.mkdir()
    (night / ".keep").touch()
    source = write_edges(tmp_path / "g.parquet", EDGES)
    with pytest.raises(InputError):
        bq.mine(source, night, min_left=-1, **QUIET)
    assert bq.mine(source, night, **QUIET).complete
    assert (night / ".keep").exists()


@pytest.mark.parametrize(
    ("day", "keep", "others", "newer"),
    [
        (1, 3, [], 3),
        (1, 4, [], 3),
        (1, 5, [], None),
        (3, 3, [], 2),
        (3, 4, [], None),
        (6, 1, [], None),
        (7, 1, [], None),
        (1, 5, [1, 3, 4], None),
        (1, 5, [1, 2, 3, 4], 4),
        (7, 3, [6, 7, 8], None),
        (7, 3, [6, 7, 8, 9], 2),
    ],
)
def test_a_night_that_the_next_one_would_remove_is_refused(runs, model, day, keep, others, newer):
    """Complete ones of its series are of the 1st, the 3rd, the 4th and the 6th."""
    series = RunFolder(runs / "a").origin().series
    assert series is not None
    copy(model[0], runs / "other", "2026-02-01", series="/in/other.csv")
    asked, days = (runs / "backfill", series, f"2026-01-0{day}", keep), [f"2026-01-0{other}" for other in others]
    if newer is None:
        refuse_short_lived(*asked, 0, days)
        return
    words = (
        f"^the run of 2026-01-0{day} would be removed by the next night, because {newer} runs of its series are newer"
    )
    with pytest.raises(InputError, match=f"{words} and keep is {keep}; say for how many days"):
        refuse_short_lived(*asked, 0, days)
    refuse_short_lived(*asked, 1, days)
    (runs / "backfill").mkdir()
    (runs / "backfill" / ".keep").touch()
    refuse_short_lived(*asked, 0, days)


def test_a_run_that_goes_on_is_protected_only_as_long_as_it_is_young(runs):
    series = RunFolder(runs / "a").origin().series
    assert series is not None
    asked = (runs / "a", series, "2026-01-01", 1)
    change(runs / "a", created=f"{datetime.now(UTC) - timedelta(days=6.9):%Y-%m-%dT%H:%M:%S.000+00:00}")
    refuse_short_lived(*asked, 7)
    with pytest.raises(InputError, match=r"^the run of 2026-01-01 would be removed by the next night"):
        refuse_short_lived(*asked, 6)


def test_a_refused_run_takes_the_place_of_none_and_is_not_the_latest(runs):
    for name in "df":
        mark_complete(runs / name)
        mark_refused(runs / name, True)
        assert not (runs / name / "_SUCCESS").exists()
    assert point_to_newest(runs / "f") == runs / "c"
    found = bq.prune(runs, keep=1)
    assert [run.path.name for run in found.chosen] == ["a"], "a run that stays is older than d and f"
    assert reasons(found)["f"] == "complete, but a gate refused it"
    shutil.rmtree(runs / "c")
    mark_refused(runs / "f", False)
    mark_complete(runs / "f")
    assert point_to_newest(runs / "a") == runs / "f"
    assert not (runs / "f" / "_REFUSED").exists()
    assert [run.path.name for run in bq.prune(runs, keep=1).chosen] == ["d", "a"]
