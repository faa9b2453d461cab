"""The hash of a vertex follows from its label as the definition says, which is written down here a second time."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.schemas import hashes
from bicliques.schemas.bicliques import Bicliques, row_hashes
from bicliques.schemas.hashes import hashes_of_ids, vertex_hashes
from tests.support.examples import examples

GOLDEN = {
    "numbers left": [
        4554858252869889135,
        11166024226285649227,
        15193539724248491364,
        10821354916708764740,
        1142811420524057239,
    ],
    "words right": [
        10853367637908102115,
        18269553178463900902,
        12861511683499584979,
        4310388387046480638,
        1103217285942723080,
    ],
    "ids": [-5430229527399994678, -8768451033980117948],
}
MASK = 2**64 - 1
SALTS = {"left": int.from_bytes(b"left\0\0\0\0", "big"), "right": int.from_bytes(b"right\0\0\0", "big")}


def mix(x: int) -> int:
    """Splitmix64, in integers of any length."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def by_definition(label: int | str, side: str) -> int:
    if isinstance(label, int):
        return mix((label & MASK) ^ SALTS[side])
    text = label.encode()
    folded = mix(len(text))
    for k in range(0, len(text), 8):
        word = sum(byte << 8 * j for j, byte in enumerate(text[k : k + 8]))
        folded = mix(folded ^ word)
    return mix(folded ^ SALTS[side])


def test_golden_numbers():
    """Of the definition. They change with the schema version only, because ids are compared from run to run."""
    numbers, words = pa.array([0, 1, -1, 2**62, -(2**63)]), pa.array(["", "a", "user 1", "12345678", "ünïcødé 🎬 film"])
    assert vertex_hashes(numbers, "left").tolist() == GOLDEN["numbers left"]
    assert vertex_hashes(words, "right").tolist() == GOLDEN["words right"]
    rows = Bicliques.from_pairs([([0, 1], [2]), ([4], [0, 3])])
    known = vertex_hashes(numbers, "left"), vertex_hashes(words, "right")
    assert row_hashes(rows, known).view(np.int64).tolist() == GOLDEN["ids"]


@settings(max_examples=examples(200), deadline=None)
@given(
    labels=st.lists(st.one_of(st.text(max_size=3), st.text(max_size=40), st.just("x" * 9)), max_size=40),
    large=st.booleans(),
    start=st.integers(0, 3),
    chunk=st.sampled_from([1, 3, 1 << 17]),
    few=st.sampled_from([0, 1, 16]),
    most=st.sampled_from([1, 20, 1 << 23]),
    side=st.sampled_from(["left", "right"]),
)
def test_text_is_hashed_by_definition(labels, large, start, chunk, few, most, side):
    """Whatever is hashed together, in slices of arrays, with offsets of 32 and of 64 bits."""
    labels = [label.encode(errors="ignore").decode() for label in labels]
    array = pa.array(labels, pa.large_string() if large else pa.string())[start:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashes, "_LABELS", chunk)
        patch.setattr(hashes, "_FEW", few)
        patch.setattr(hashes, "_BYTES", most)
        found = vertex_hashes(array, side)
    assert found.dtype == np.uint64
    assert found.tolist() == [by_definition(label, side) for label in labels[start:]]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), st.sampled_from(["left", "right"]))
def test_integers_are_hashed_by_definition(labels, side):
    assert vertex_hashes(pa.array(labels, pa.int64()), side).tolist() == [by_definition(x, side) for x in labels]


def test_narrow_integers_have_the_hashes_of_wide_ones():
    labels = [-(2**31), -1, 0, 5, 2**31 - 1]
    for side in ("left", "right"):
        narrow, wide = (vertex_hashes(pa.array(labels, kind), side) for kind in (pa.int32(), pa.int64()))
        assert narrow.tolist() == wide.tolist()


def test_dense_ids_are_labels_where_there_are_no_others():
    for side, own in zip(("left", "right"), hashes_of_ids(7, 4), strict=True):
        assert own.tolist() == [by_definition(k, side) for k in range(len(own))]


def test_text_that_looks_alike_has_other_hashes():
    """Zeros fill the last word, so the length is a part of the hash. A number is not its text."""
    labels = ["", "\0", "\0\0", "a", "a\0", "a" * 8, "a" * 8 + "\0", "1", "ab", "ba"]
    found = vertex_hashes(pa.array(labels), "left").tolist() + vertex_hashes(pa.array([1, 0]), "left").tolist()
    assert len(set(found)) == len(labels) + 2
    assert not set(vertex_hashes(pa.array(labels), "right").tolist()) & set(found)


def test_a_very_long_label():
    labels = ["x" * 100_003, "y", "x" * 100_003]
    assert vertex_hashes(pa.array(labels), "left").tolist() == [by_definition(label, "left") for label in labels]
