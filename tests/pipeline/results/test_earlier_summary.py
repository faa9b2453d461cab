"""A run whose summary has 100 of the largest per measure, as an earlier version wrote it, gives the same answers."""

import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.proof.summary import LARGEST
from bicliques.pipeline.results.report.content import content_of
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.search import MEASURES
from tests.support.runs import QUIET, random_edges, write_edges

_FEWER = 100


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run, and the same with the shorter summary."""
    folder = tmp_path_factory.mktemp("runs")
    source = write_edges(folder / "g.parquet", random_edges(200, 14, 0.8, 11), strings=True)
    new = bq.mine(source, folder / "new", **QUIET)
    old = shutil.copytree(new.path, folder / "old") / "summary" / "largest.parquet"
    table = pq.read_table(old)
    by = table["by"].to_numpy(zero_copy_only=False)
    rank = np.concatenate([np.arange(n) for n in np.unique_counts(by).counts])
    assert len(table) == LARGEST * len(MEASURES)
    pq.write_table(table.filter(rank < _FEWER), old)
    return [new, bq.open_run(old.parents[1])]


@pytest.mark.parametrize("by", ["edges", "right"])
@pytest.mark.first(1)
def test_the_largest_and_explanations(runs, by):
    new, old = runs
    for n in (_FEWER, _FEWER + 1, LARGEST + 1):
        assert old.top(n, by).equals(new.top(n, by))
    for id in new.top(LARGEST + 1, by)["id"].to_pylist()[_FEWER - 1 :: 67]:
        assert old.members(id) == new.members(id)
        assert old.explain(id).to_json() | {"run": ""} == new.explain(id).to_json() | {"run": ""}


def test_the_page_the_comparison_and_the_proof(runs, tmp_path):
    new, old = runs
    theirs, ours = (content_of(Run.at(each.path)).listed for each in runs)
    assert ours.ids == theirs.ids
    assert {by: own.tolist() for by, own in ours.numbers.items()} == {
        by: own.tolist() for by, own in theirs.numbers.items()
    }
    assert bq.report(old.path).exists()
    assert bq.diff(old.path, new.path, tmp_path / "changes").unchanged == len(new)
    assert bq.verify(old.path).count == len(new)
    assert bq.publish(old.path, tmp_path / "published").count == len(new)
