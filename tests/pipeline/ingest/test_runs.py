"""A run is no list of edges: where its files would be read as one, the sentence says what to name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.schemas.errors import InputError
from tests.support.bucket import Bucket
from tests.support.runs import random_edges, write_edges

IS_RUN = (
    "is a run, and no list of edges; name what it was mined from, which options.json tells, or show or resume the run$"
)
IS_PUBLISHED = (
    "holds what was published of a run, and no list of edges; .* which manifest.json tells, or read .*/bicliques"
)
ARE_ROWS = (
    "these are bicliques of a run, and not edges; name the run, or what it was mined from, or join them to their left "
    "vertices with label_type='string' and left='id', right='left'$"
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("runs")
    source = write_edges(top / "g.parquet", random_edges(6, 5, 0.5, 1))
    bq.mine(source, top / "OUT", workers=0, progress=False, report=False)
    bq.publish(top / "OUT", top / "published", progress=False)
    bq.open_run(top / "OUT").export("csv", top / "rows.csv")
    return top


SOURCES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "among others": (lambda top: [top / "g.parquet", top / "OUT"], IS_RUN),
    "pattern": (lambda top: top / "OU*", IS_RUN),
    "published": (lambda top: top / "published", IS_PUBLISHED),
    "rows": (lambda top: top / "OUT" / "bicliques", ARE_ROWS),
    "published rows": (lambda top: top / "published" / "bicliques", ARE_ROWS),
    "part": (lambda top: next((top / "OUT" / "bicliques").iterdir()), ARE_ROWS),
    "exported": (lambda top: top / "rows.csv", ARE_ROWS),
    "frame": (lambda top: pd.read_parquet(top / "OUT" / "bicliques"), ARE_ROWS),
}


@pytest.mark.parametrize("named", SOURCES)
def test_a_run_is_no_list_of_edges(runs: Path, tmp_path: Path, named: str) -> None:
    source, said = SOURCES[named]
    with pytest.raises(InputError, match=said) as caught:
        bq.mine(source(runs), tmp_path / "new", workers=0, progress=False, report=False)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_the_folder_of_a_run_alone_is_its_input(runs: Path) -> None:
    count = bq.count(runs / "OUT", workers=0, progress=False).count
    assert count == bq.count(runs / "g.parquet", workers=0, progress=False).count


def test_rows_are_edges_where_columns_are_named(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bicliques, and the vertices that are in them."""
    rows = runs / "OUT" / "bicliques"
    expected = sum(pd.read_parquet(rows)["n_left"])
    found = bq.mine(rows, runs / "joined", left="id", right="left", label_type="string", workers=0, progress=False)
    assert found.manifest is not None
    assert found.manifest.input["n_edges"] == expected
    assert main.main(["count", str(rows)]) == 2
    assert "with --label-type string and --left id --right left\n" in capsys.readouterr().err


def test_a_run_in_a_bucket_is_not_copied(runs: Path, bucket: Bucket) -> None:
    for name in ("options.json", "steps/plan.json", "manifest.json", "bicliques/part.parquet"):
        bucket.put(f"night/{name}", b"x")
    bucket.put("copy/_published.json", b"x")
    bucket.put("copy/manifest.json", b"x")
    bucket.asked.clear()
    for key, said in (("night", IS_RUN), ("copy", IS_PUBLISHED)):
        with pytest.raises(InputError, match=rf"^s3://lake/{key}\?\*\*\* {said}"):
            bq.count(bucket.url(key), workers=0, progress=False)
    assert bucket.whats("get") == []
