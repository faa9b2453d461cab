"""The edge table on threads: the same labels, edges and duplicates as on one thread."""

import itertools
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.kernels.graph import threads as graph_threads
from bicliques.pipeline.ingest.table import normalise
from bicliques.pipeline.ingest.table.normalise import EdgeTable
from tests.support.examples import examples

THREADS = (1, 2, 7)
TOGETHER = 120

#: Ranges of labels. Those of the last are too large to be their own numbers.
RANGES = st.sampled_from([5, 60, 10**6, 2**31 - 1, 2**31 + 3, 2**63 - 1])


@st.composite
def columns(draw: Any) -> list[np.ndarray]:
    """Batches of a column. Large labels may come late."""
    batches = draw(st.integers(1, 5))
    most = sorted(draw(RANGES) for _ in range(batches))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    size = draw(st.integers(1, 40))
    return [rng.choice(np.unique(rng.integers(0, m, 20, endpoint=True))[:5], size) for m in most]


def plain_table(left: np.ndarray, right: np.ndarray) -> tuple[list[Any], list[Any], list[list[int]], int]:
    """What a table must be, by its definition."""
    labels = [np.unique(column) for column in (left, right)]
    ids = np.stack([np.searchsorted(*pair) for pair in zip(labels, (left, right), strict=True)], axis=1)
    edges = np.unique(ids, axis=0)
    return labels[0].tolist(), labels[1].tolist(), edges.tolist(), len(left) - len(edges)


@settings(max_examples=examples(200), deadline=None)
@given(columns(), st.booleans(), st.sampled_from([3, 16, 1 << 18]), st.sampled_from([0, 1 << 22]))
def test_a_table_is_the_same_on_any_number_of_threads(batches, as_text, piece, small):
    left = np.concatenate(batches)
    right = left[::-1] % 17
    expected = plain_table(left, right)
    cuts = np.cumsum([0, *map(len, batches)])
    for threads in THREADS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(normalise, "PIECE", piece)
            patch.setattr(graph_threads, "LEAST", piece)
            patch.setattr(normalise, "SMALL", small)
            patch.setattr(normalise, "SLICE", piece)
            patch.setattr(normalise, "MANY_TEXTS", 3)
            table = EdgeTable((pa.int64(), pa.int64()), threads)
            for start, stop in itertools.pairwise(cuts):
                side: pa.Array = pa.array(right[start:stop])
                side = side.cast(pa.large_string()) if as_text else side
                table.add(pa.record_batch([pa.array(left[start:stop]), side], names=["left", "right"]))
            labels_left, labels_right, duplicates = table.finish()
            words = np.concatenate(list(table.unique()))
            found = [pa.chunked_array(list(labels.slices())).to_pylist() for labels in (labels_left, labels_right)]
        if as_text:
            order = sorted(range(len(expected[1])), key=lambda k: str(expected[1][k]))
            rank = np.argsort(order)
            edges = sorted([u, int(rank[v])] for u, v in expected[2])
            assert found[1] == [str(expected[1][k]) for k in order]
        else:
            edges = expected[2]
            assert found[1] == expected[1]
        assert found[0] == expected[0]
        assert [[int(word >> 32), int(word & 0xFFFFFFFF)] for word in words] == edges
        assert duplicates == expected[3]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("most", [1, 2, 5, 1 << 60])
@pytest.mark.parametrize("n", [0, 1, 15, 17, 100, 1000])
def test_words_are_sorted_in_place(n: int, most: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_threads, "LEAST", 16)
    words = np.random.default_rng(n).integers(0, most, n)
    expected = np.sort(words)
    graph_threads.sort(words, threads)
    assert words.tolist() == expected.tolist()


@pytest.mark.parametrize(("most", "n_labels"), [(100, 10), (10**9, 1000), (3000, 3000)])
def test_labels_are_ranked_at_the_same_time(most: int, n_labels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every piece waits for another one, in each of the passes."""
    meeting, met = threading.Barrier(2), []

    def both(work: Any, items: Any, threads: int) -> Any:
        assert threads == 2

        def waiting(item: Any) -> Any:
            meeting.wait(TOGETHER)
            met.append(threading.get_ident())
            return work(item)

        return real(waiting, items, threads)

    real = normalise.in_order
    monkeypatch.setattr(normalise, "in_order", both)
    monkeypatch.setattr(normalise, "PIECE", 1000)
    monkeypatch.setattr(normalise, "SMALL", 100)
    values = np.linspace(0, most, n_labels).astype(np.int32)
    column = np.random.default_rng(1).choice(values, 4000).astype(np.int32)
    expected = np.searchsorted(np.unique(column), column)
    known = normalise.rank_by_value(column, 2)
    assert np.isin(known, values).all()
    assert column.tolist() == expected.tolist()
    assert len(met) == 12
    assert len(set(met)) > 1
