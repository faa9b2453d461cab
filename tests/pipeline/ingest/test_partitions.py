"""`--where` chooses files by the Hive partitions that they lie in."""

import operator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from bicliques.pipeline.cli import main
from bicliques.pipeline.ingest.sources.at_hand import digest_of
from bicliques.pipeline.ingest.sources.names import n_bytes_of, recorded
from bicliques.pipeline.run.folder import RunFolder
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions
from bicliques.schemas.reading import Condition
from tests.support.inputs import read_edges, write


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Files that Arrow writes: an edge of every day to every country."""
    rows = [(day, land) for day in (1, 2, 10) for land in ("de", "fr", "a/b c")]
    table = pa.table(
        {
            "user": [day for day, _ in rows],
            "item": [land for _, land in rows],
            "day": [day for day, _ in rows],
            "land": [land for _, land in rows],
        }
    )
    ds.write_dataset(
        table, tmp_path / "lake", format="parquet", partitioning=["day", "land"], partitioning_flavor="hive"
    )
    return tmp_path / "lake"


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ((), [(1, "a/b c"), (1, "de"), (1, "fr"), (2, "a/b c"), (2, "de"), (2, "fr")]),
        (("day=2",), [(2, "a/b c"), (2, "de"), (2, "fr")]),
        (("day = 2", "land=fr"), [(2, "fr")]),
        (("land=a/b c",), [(1, "a/b c"), (2, "a/b c")]),
        (("day<=2", "land!=de", "land<f"), [(1, "a/b c"), (2, "a/b c")]),
    ],
)
def test_files_are_chosen_by_their_folders(lake: Path, tmp_path: Path, where: tuple[str, ...], wanted: list) -> None:
    found, summary = read_edges(lake, tmp_path / "out", where=(*where, "day<10"))
    assert found == wanted
    assert summary.digest == digest_of(recorded(lake), (*where, "day<10"))
    assert 0 < n_bytes_of(lake, (*where, "day<10")) < n_bytes_of(lake)


def test_files_without_a_value_fit_no_comparison_unless_it_names_them(tmp_path: Path) -> None:
    no_value = "__HIVE_DEFAULT_PARTITION__"
    for day in ("2026-11-01", "2026-11-02", no_value):
        (tmp_path / "lake" / f"day={day}").mkdir(parents=True)
        (tmp_path / "lake" / f"day={day}" / "a.csv").write_text(f"user,item\n{day},x\n")
    for where, wanted in {
        "day>=2026-11-02": ["2026-11-02"],
        "day!=2026-11-02": ["2026-11-01"],
        f"day={no_value}": [no_value],
        f"day!={no_value}": ["2026-11-01", "2026-11-02"],
    }.items():
        assert read_edges(tmp_path / "lake", tmp_path / "out", where=where)[0] == [(day, "x") for day in wanted]


def test_numbers_are_compared_as_numbers_and_other_values_as_text() -> None:
    signs = {
        "=": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
    for sign, compare in signs.items():
        for value in (2, 10, 9, -3):
            assert Condition.parse(f"day{sign}9").holds(str(value)) == compare(value, 9)
        for text in ("2026-11-01", "2026-11-23", "x"):
            assert Condition.parse(f" day {sign} 2026-11-23").holds(text) == compare(text, "2026-11-23")


def test_on_the_command_line_and_in_the_records(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = ["mine", str(lake), "-o", str(out), "--where", "day=2", "land!=de", "--quiet", "--no-report"]
    assert main.main(words) == 0
    assert "(9 files), of which 2 where day=2 and land!=de: 1 user (left), 2 item" in capsys.readouterr().out
    assert RunFolder(out).options().ingest.where == ("day=2", "land!=de")


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("day=3", r"no file of .*lake \(9 files\) fits day=3; the values of day are 1, 10, 2$"),
        ("year=3", r"lies in no folder year=\.\.\. \(its partitions are day, land\), so where cannot tell"),
        ("day", "'day' is no condition; write KEY=VALUE"),
        ("=3", "'=3' is no condition"),
        (3, "where takes conditions such as 'day=2026-11-23', not 3"),
    ],
)
def test_conditions_that_choose_nothing_are_refused(lake: Path, tmp_path: Path, where: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_edges(lake, tmp_path / "out", where=where)


def test_sources_without_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.el lies in no folder day=\.\.\., so where cannot tell"):
        read_edges(write(tmp_path / "x.el", "1 2\n"), tmp_path / "out", where="day=1")
    with pytest.raises(InputError, match="standard input lies in no folder"):
        read_edges("-", tmp_path / "out", where="day=1")
    with pytest.raises(InputError, match=r"where chooses files by their folders, which format builtins\.list does not"):
        read_edges([(1, 2)], tmp_path / "out", where="day=1")
    assert IngestOptions(where="day=1").where == ("day=1",)
    with pytest.raises(InputError, match="'day' is no condition"):  # before anything is read
        IngestOptions(where="day")
