"""Labels are found by value, and hashed on threads, as one at a time."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.pipeline.run import labels
from bicliques.pipeline.run.labels import hashes_of, ids_of
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.hashes import vertex_hashes
from tests.support.examples import examples

TEXTS = st.sets(st.text(st.sampled_from("ab\0\x7f\x80é\U0001f600"), max_size=5), min_size=1, max_size=40)


def stored(texts: set[str], kind: pa.DataType) -> pa.Array:
    """Labels as a run has them: ascending by their bytes. They are a slice, as is a part of a column."""
    ascending = sorted(texts, key=str.encode)
    return pa.array(["before", *ascending, "behind"], kind)[1:-1]


@settings(max_examples=examples(300))
@given(texts=TEXTS, others=TEXTS, kind=st.sampled_from([pa.string(), pa.large_string()]), data=st.data())
def test_texts_are_found_by_search_and_by_a_table(texts, others, kind, data):
    known = stored(texts, kind)
    wanted = data.draw(st.lists(st.sampled_from(sorted(texts | others)), max_size=20))
    expected = [known.to_pylist().index(one) if one in texts else -1 for one in wanted]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels, "_MANY", 0)
        for least in (0, 1 << 30):  # always by search, always by a table
            patch.setattr(labels, "_TABLE", least)
            assert labels._find_texts(pa.array(wanted, kind), known).tolist() == expected
            if set(wanted) <= texts:
                assert ids_of(pa.array(wanted, kind), known).tolist() == expected
            else:
                with pytest.raises(IncompleteError, match="is not the label of a vertex"):
                    ids_of(pa.array(wanted, kind), known)


def test_a_few_texts_are_searched_without_a_table_of_all_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    known = stored({f"{k:05d}" for k in range(1000)}, pa.string())
    monkeypatch.setattr(labels, "_MANY", 1000)
    monkeypatch.setattr(labels.pc, "index_in", None)
    assert ids_of(pa.array(["00999", "00000", "00500", "00500"]), known).tolist() == [999, 0, 500, 500]
    assert ids_of(pa.array([], pa.string()), known).tolist() == []


def test_no_code_is_loaded_to_find_texts_among_few(monkeypatch: pytest.MonkeyPatch) -> None:
    known = stored({f"{k:05d}" for k in range(1000)}, pa.string())
    monkeypatch.setattr("bicliques.kernels.compiled.searching.find_texts", None)
    assert ids_of(pa.array(["00999", "00000"]), known).tolist() == [999, 0]


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 17, 1000, 1001])
def test_hashes_of_ranges_are_those_of_all_labels(n: int, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "_HASHED", 8)
    values = pa.array(range(n)).cast(kind)
    for side in ("left", "right"):
        assert np.array_equal(hashes_of(values, side), vertex_hashes(values, side))
