"""A slice that is ended before its time has the rest of its work as left-over, wherever it was."""

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.cpu.workspace import Sizes
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.pipeline.slices import ending
from bicliques.pipeline.slices.slice_search import SliceSearch
from bicliques.schemas.bicliques import Bicliques, emit_to, nowhere
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Engine, Subtrees
from tests.support.oracles import graph_of, random_edges, run

GRAPH = graph_of(random_edges(np.random.default_rng(2), 30, 30, 0.4))
ENGINES = [ReferenceEngine, lambda: CpuEngine(Sizes(rows=3, members=200))]


@pytest.fixture(autouse=True)
def a_process_that_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ending, "_leaving", threading.Event())
    yield
    assert not ending._searches, "a search that is over can still be ended"


def slice_of(engine: Engine, after: int, n_probes: int) -> tuple[int, int, int, Subtrees]:
    """Count and fingerprint of a slice that is told to end after so many batches, their number, and what is left."""
    batches = 0

    def told(found: Bicliques) -> None:
        nonlocal batches
        batches += 1
        if batches >= after:
            ending.leave()

    search = SliceSearch(engine, GRAPH, Search(), Limits(), emit_to(told))
    with ending.may_end(search.stop):
        search.all_of(Subtrees.of_roots(np.arange(GRAPH.n_roots)), n_probes)
    return search.total.seen, search.total.fingerprint or 0, batches, Subtrees.concat(search.left_over)


@pytest.mark.parametrize("make", ENGINES, ids=["reference", "cpu"])
@pytest.mark.parametrize("n_probes", [0, 8])
@pytest.mark.parametrize("after", [1, 40])
def test_what_is_not_done_is_left_over(make: Callable[[], Engine], n_probes: int, after: int) -> None:
    expected = run(CpuEngine(), GRAPH, Search("fingerprint"))
    count, fingerprint, batches, left = slice_of(make(), after, n_probes)
    assert batches >= after
    assert 0 < count < expected.count
    rest = CpuEngine().mine(GRAPH, left, Search("fingerprint"), Limits(), nowhere)
    assert count + rest.count == expected.count
    assert (fingerprint + (rest.fingerprint or 0)) % 2**64 == expected.fingerprint


def test_a_slice_that_begins_in_a_process_that_leaves_does_nothing() -> None:
    ending.leave()
    count, _, batches, left = slice_of(ReferenceEngine(), 1, 8)
    assert (count, batches, len(left)) == (0, 0, GRAPH.n_roots)
