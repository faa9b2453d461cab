"""Results say in Python how to mend a run with a call, and to a command with a command, whatever is damaged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.cli.main import main
from bicliques.pipeline.results.results import open_results
from bicliques.schemas.errors import IncompleteError
from tests.support.runs import random_edges, write_edges

EDGES = random_edges(20, 15, 0.4, 3)
#: All that reads rows, except the Arrow stream, which its consumer reads.
READERS: dict[str, Callable[[Any], Any]] = {
    "iteration": list,
    "batches": lambda results: list(results.batches()),
    "one row": lambda results: results[0],
    "a slice": lambda results: results[:3],
    "head": lambda results: results.head(),
    "to_arrow": lambda results: results.to_arrow(),
    "to_pandas": lambda results: results.to_pandas(),
    "top": lambda results: results.top(200),
    "surprise": lambda results: results.top(3, by="surprise"),
    "distinct": lambda results: results.top(3, distinct=0.5),
    "cover": lambda results: results.cover(3),
    "sample": lambda results: results.sample(3),
    "sizes": lambda results: results.sizes(),
    "members": lambda results: results.members(1),
    "explain": lambda results: results.explain(1),
    "plot": lambda results: results.plot(1),
    "memberships": lambda results: results.memberships(),
    "export": lambda results: results.export("csv", "rows.csv"),
    "a notebook": lambda results: results._repr_html_(),
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A complete run in the current folder."""
    monkeypatch.chdir(tmp_path)
    source = write_edges(tmp_path / "g.parquet", EDGES)
    return bq.mine(source, "OUT", workers=0, progress=False, report=False).path


@pytest.mark.parametrize("reader", READERS)
def test_a_missing_part_is_mended_with_a_call_or_a_command(reader: str, run: Path) -> None:
    results = bq.open_run(run)
    (part,) = results.files
    part.unlink()
    with pytest.raises(IncompleteError) as raised:
        READERS[reader](results)
    reason = f"{part} cannot be read (it is missing); mend it with:"
    assert (str(raised.value), raised.value.written) == (
        f"{reason} bicliques.resume('OUT')",
        f"{reason} bicliques resume OUT",
    )


@pytest.mark.parametrize("reader", ["iteration", "batches", "to_arrow", "to_pandas", "memberships", "export"])
def test_a_damaged_part_is_named_by_all_that_reads_every_row(reader: str, run: Path) -> None:
    (part,) = open_results(run).files
    group, data = pq.ParquetFile(part).metadata.row_group(0), bytearray(part.read_bytes())
    for k in range(group.num_columns):  # the header of a page, because not every reader takes every column
        data[group.column(k).data_page_offset] ^= 255
    part.write_bytes(data)
    with pytest.raises(IncompleteError, match=rf"^{part} cannot be read \(.*\); delete it and resume the run$"):
        READERS[reader](bq.open_run(run))


def test_what_is_wrong_with_a_filter_is_no_damage(run: Path) -> None:
    results = bq.open_run(run)
    with pytest.raises(Exception, match=r"No match for FieldRef\.Name\(size\)"):
        results.to_arrow(filter=ds.field("size") > 3)
    with pytest.raises(Exception, match=r"^there is no column 'size'; the columns are id, left, "):
        results.batches(["size"])


def test_other_files_and_calls_are_named_in_words_of_python(run: Path) -> None:
    results = bq.open_run(run)
    id = results[0].id
    for file in ("edges/edges.parquet", "summary/left.parquet"):
        (run / file).rename(run / "away")
        with pytest.raises(IncompleteError, match=r"mend it with: bicliques\.resume\('OUT'\)$"):
            results.explain(id)
        (run / "away").rename(run / file)


def test_a_status_names_calls(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = run.parent / "g.parquet"
    bq.mine(source, "SHORT", workers=0, progress=False, report=False, max_results=3)
    assert bq.status("SHORT").go_on == "bicliques.resume('SHORT', max_results=None)"
    assert bq.status("SHORT").go_on == "bicliques.resume('SHORT', max_results=None)"
    open_results(run).files[0].unlink()
    assert bq.status(run).go_on == "bicliques.resume('OUT')"
    assert main(["status", "SHORT"]) == 3
    assert "go on with: bicliques resume SHORT --max-results none" in capsys.readouterr().out
