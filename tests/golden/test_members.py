"""With one given member there are as many bicliques as a run of the whole graph says that it takes part in."""

import numpy as np
import pytest

import bicliques as bq
from bicliques.pipeline.run.tables import read_table
from tests.support.known import ROOT

GRAPH = ROOT / "examples" / "debian12_package_tag.parquet"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return bq.mine(GRAPH, tmp_path_factory.mktemp("whole") / "out", progress=False, report=False).path


@pytest.mark.parametrize("side", ["left", "right"])
def test_counts_are_those_of_the_summary(whole, side):
    labels = read_table(whole / "labels" / f"{side}.parquet")["label"]
    takes_part = read_table(whole / "summary" / f"{side}.parquet")["bicliques"]
    some = np.random.default_rng(1).choice(len(labels), 9, replace=False).tolist()
    some += [int(np.argmax(takes_part.to_numpy())), int(np.argmin(takes_part.to_numpy()))]
    for vertex in some:
        label = labels[vertex].as_py()
        found = bq.count(whole, progress=False, workers=0, **{f"containing_{side}": [label]})
        assert found.count == takes_part[vertex].as_py(), label
