"""Thresholds that leave nothing: with every engine an empty, sealed result, and a sentence that says why."""

import pytest

import bicliques as bq
from bicliques.pipeline.cli.cards import run_card
from tests.support.emulated import runnable
from tests.support.runs import OWN, QUIET, random_edges, write_edges

#: What is said of an empty result, by what was asked for.
NONE = {
    "core": "no item has 39 neighbours; the most is",
    "sizes": "no maximal biclique has the sizes that were asked for",
    "with members": "with the given members, the two thresholds together leave nothing of the graph",
}


@pytest.fixture(params=["cpu", "reference", "bitmatrix", "cumbe"])
def engine(request):
    with runnable(request.param):
        yield request.param


@pytest.mark.first(2)
def test_thresholds_that_leave_nothing_give_an_empty_sealed_result(tmp_path, engine):
    words = write_edges(tmp_path / "words.parquet", random_edges(40, 30, 0.35, 8), True)
    for name, asked in (
        ("core", {"min_left": 39}),
        ("sizes", {"min_left": 7, "min_right": 5}),
        ("with members", {"min_left": 20, "containing_right": ["thing 1"]}),
    ):
        out = tmp_path / name
        found = bq.mine(words, out, engine=engine, **asked, **QUIET)
        assert (found.complete, len(found), found.manifest.fingerprint) == (True, 0, 0)
        assert bq.verify(out).count == 0
        assert f"bicliques: none: {NONE[name]}" in run_card(found)
        assert found.to_arrow().num_rows == 0
        assert bq.dry_run(words, engine=engine, sample_time=0.1, **asked, **OWN).graph["merged_edges"] >= 0
