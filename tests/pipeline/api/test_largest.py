"""The job of the few largest, end to end: mined, resumed, with workers, proven, verified, on the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pipeline
from pipeline.api import steps
from pipeline.cli.main import main
from schemas.errors import IncompleteError, InputError
from schemas.search import MEASURES, By
from tests.support.runs import load_ledger, random_edges, rewrite_record, write_edges

EDGES = random_edges(40, 30, 0.35, 8)
K = 12


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_edges(tmp_path_factory.mktemp("largest") / "g.parquet", EDGES)


@pytest.fixture(scope="module")
def whole(source: Path, tmp_path_factory: pytest.TempPathFactory) -> pipeline.Results:
    return pipeline.mine(source, tmp_path_factory.mktemp("whole") / "out", workers=0, progress=False, report=False)


def rows(results: pipeline.Results) -> list[Any]:
    return sorted((sorted(row["left"]), sorted(row["right"])) for row in results.to_arrow().to_pylist())


def expected(whole: pipeline.Results, by: By = "edges") -> list[Any]:
    return sorted((sorted(row["left"]), sorted(row["right"])) for row in whole.top(K, by).to_pylist())


@pytest.mark.parametrize("by", MEASURES)
@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_they_are_the_first_of_all(source: Path, whole: pipeline.Results, tmp_path: Path, by: By, engine: str) -> None:
    found = pipeline.mine(
        source, tmp_path / "out", largest=K, by=by, engine=engine, workers=0, progress=False, report=False
    )
    assert (found.complete, len(found)) == (True, K)
    assert rows(found) == expected(whole, by)
    for column in ("n_left", "n_right"):
        assert found.top(K, by)[column].equals(whole.top(K, by)[column])
    assert found.manifest.mining["seen"] <= len(whole), "what is below the bound is not looked at"
    files = list((tmp_path / "out" / "bicliques").iterdir())
    assert len(pd.concat(map(pd.read_parquet, files))) == K, "the folder holds no others"


def test_verified_and_on_the_page(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = pipeline.mine(source, out, largest=K, workers=0, progress=False)
    found_again = pipeline.verify(out, progress=False)
    assert found_again.count == K
    assert "that no other biclique is larger rests on the ledger alone" in found_again.not_proven
    page = (out / "report.html").read_text()
    assert "the largest by edges of" in page
    assert pipeline.status(out).state == "complete"
    assert found.sizes().total == K


def test_stopped_and_resumed_with_workers(source: Path, whole: pipeline.Results, tmp_path: Path) -> None:
    out = tmp_path / "out"
    how = {"slice_seconds": 0.02, "progress": False, "report": False}
    stopped = pipeline.mine(source, out, largest=K, engine="reference", time_limit=0.05, workers=0, **how)
    assert not stopped.complete
    assert 0 < len(stopped) == len(rows(stopped)) <= K
    assert not list((out / "bicliques").iterdir()), "rows are written once it is known which they are"
    found = pipeline.resume(out, time_limit=None, workers=2, **how)
    assert rows(found) == expected(whole)


def test_rows_of_the_run_that_are_changed_are_not_proven(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline.mine(source, out, largest=K, workers=0, progress=False, report=False)
    ledger = load_ledger(out)
    file = ledger.file(min(ledger.entries))
    data = json.loads(file.read_text())
    rewrite_record(file, count=data["count"] + 1)
    (out / "manifest.json").unlink()
    with pytest.raises(IncompleteError, match="its rows are not the"):
        steps.prove(out, progress=False)
    found = pipeline.resume(out, workers=0, progress=False, report=False)
    assert (found.complete, len(found)) == (True, K)


def test_proving_again_leaves_no_other_parts(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline.mine(source, out, largest=K, workers=0, progress=False, report=False)
    (out / "manifest.json").unlink()
    assert pipeline.resume(out, workers=0, progress=False, report=False).complete
    assert len(list((out / "bicliques").iterdir())) == 1


def test_more_than_there_are(source: Path, whole: pipeline.Results, tmp_path: Path) -> None:
    found = pipeline.mine(source, tmp_path / "out", largest=10**6, workers=0, progress=False, report=False)
    assert (len(found), found.manifest.fingerprint) == (len(whole), whole.manifest.fingerprint)


def test_none_at_all(source: Path, tmp_path: Path) -> None:
    found = pipeline.mine(source, tmp_path / "out", largest=3, min_left=39, workers=0, progress=False)
    assert (found.complete, len(found)) == (True, 0)


def test_what_cannot_be_asked_together(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    with pytest.raises(InputError, match="leave max_results or largest out"):
        pipeline.mine(source, out, largest=3, max_results=5)
    with pytest.raises(InputError, match="leave count_only and sizes out"):
        pipeline.mine(source, out, largest=3, count_only=True)
    assert not out.exists()
    assert main(["mine", str(source), "--dry-run", "--largest", "3"]) == 2
    assert "no use for --largest" in capsys.readouterr().err
    assert main(["mine", str(source), "-o", str(out), "--largest", "3", "--by", "balance", "--workers", "0"]) == 0
    assert "3, the largest by balance of" in capsys.readouterr().out
