"""Runs of one series."""

import pytest

import bicliques as bq
from tests.pipeline.series.several import copy
from tests.support.runs import random_edges, write_edges

EDGES = random_edges(12, 9, 0.4, 1)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A complete run, and one that is not."""
    folder = tmp_path_factory.mktemp("model")
    source = write_edges(folder / "g.parquet", EDGES)
    bq.mine(source, folder / "complete", workers=0, progress=False, report=False)
    bq.mine(source, folder / "stopped", workers=0, progress=False, report=False, max_results=3)
    return folder / "complete", folder / "stopped"


@pytest.fixture
def runs(model, tmp_path):
    """Runs a (oldest) to f (newest) of one series; b and e are not complete."""
    for k, name in enumerate("abcdef", start=1):
        copy(model[name in "be"], tmp_path / "runs" / name, f"2026-01-0{k}")
    return tmp_path / "runs"
