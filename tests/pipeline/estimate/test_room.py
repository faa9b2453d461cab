"""A graph that is too large for the device is refused in a sentence before mining begins."""

from dataclasses import replace

import pytest

import bicliques as bq
from bicliques.pipeline.estimate import memory
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.slices import worker
from bicliques.schemas.errors import ResourceError
from tests.support.engines import TOY_GPU, registered, toy_kind
from tests.support.runs import OWN, random_edges, write_edges

SENTENCE = (
    r"the graph of \d+ edges takes \d\d\.\d MB on the device with the smallest buffers of engine bitmatrix, and 1\.0 "
    r"MB are free there; raise min_left and min_right, or begin anew with engine='cpu'"
)
CALLS = {
    "mine": lambda source, out, **options: bq.mine(source, out, report=False, **options),
    "count": lambda source, _, **options: bq.count(source, **options),
    "dry_run": lambda source, _, **options: bq.dry_run(source, sample_time=0.01, **options),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("free", [1_000_000, 1 << 40, None])
def test_a_graph_that_does_not_fit_is_refused(call, free, tmp_path, monkeypatch):
    source = write_edges(tmp_path / "g.parquet", random_edges(40, 30, 0.3, 4))
    monkeypatch.setattr(memory, "_ANY_DEVICE", 0)
    options = {"engine": "bitmatrix", **OWN}
    with registered(toy_kind(replace(TOY_GPU, free_bytes=lambda: free))):
        if free == 1_000_000:
            with pytest.raises(ResourceError, match=SENTENCE):
                CALLS[call](source, tmp_path / "out", **options)
            if call == "mine":
                assert RunFolder(tmp_path / "out").facts("mine") is None
        else:
            CALLS[call](source, tmp_path / "out", **options)
        worker.forget()


def test_no_device_is_asked_about_a_small_graph(tmp_path):
    def ask() -> int:
        raise AssertionError("it was asked")

    source = write_edges(tmp_path / "g.parquet", random_edges(40, 30, 0.3, 4))
    with registered(toy_kind(replace(TOY_GPU, free_bytes=ask))):
        bq.count(source, engine="bitmatrix", **OWN)
        worker.forget()
