"""Rows are hashed on a device as on the host, and columns that contradict each other are refused. It is emulated."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.kernels.gpu.row_hashes import Lists, RowHasher
from bicliques.schemas.bicliques import ID, row_hashes
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.hashes import VertexHashes, vertex_hashes
from tests.emulation.device import EmulatedDevice, why_not
from tests.support.batches import random_batch
from tests.support.examples import examples

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

DEVICE = EmulatedDevice(3)
SIZES = (150, 9000)  # the counters of a side of more than 8192 vertices are in global memory


def labels_of(kind: str, n: int) -> np.ndarray | None:
    """Labels of n vertices: none, consecutive, with gaps, with one gap, or at both ends of what 64 bits hold."""
    if kind == "none":
        return None
    if kind == "gap":  # and the last label is that of n vertices from 0 on
        return np.concatenate([[-5], np.arange(1, n)])
    if kind == "far":
        ends = np.iinfo(np.int64)
        return np.concatenate([ends.min + np.arange(n // 2), ends.max - np.arange(n - n // 2)[::-1]])
    return np.arange(n) * (1 if kind == "range" else 3) - 7


def hashes_of(labels, sizes: tuple[int, int]) -> VertexHashes:
    """Those of the labels; of the dense ids, where a side has none."""
    arrays = (np.arange(n) if own is None else own for own, n in zip(labels, sizes, strict=True))
    left, right = map(pa.array, arrays)
    return vertex_hashes(left, "left"), vertex_hashes(right, "right")


def columns(batch, labels):
    """A batch as columns on the device."""
    sides = []
    for side, own in zip(("left", "right"), labels, strict=True):
        indptr, ids = getattr(batch, f"{side}_indptr"), getattr(batch, side)
        values = ids.astype(np.int32) if own is None else own[ids]
        sides.append(Lists(values, indptr.astype(np.int32), np.diff(indptr).astype(np.int32)))
    return sides


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([0, 1, 31, 33, 300]),
    kinds=st.tuples(*[st.sampled_from(["none", "range", "gap", "gaps", "far"])] * 2),
    root_side=st.sampled_from(["left", "right"]),
)
def test_rows_are_hashed_and_counted_as_on_the_host(seed, n, kinds, root_side):
    batch = random_batch(np.random.default_rng(seed), n, SIZES, most=100, root_side=root_side)
    labels = tuple(labels_of(kind, size) for kind, size in zip(kinds, SIZES, strict=True))
    known = hashes_of(labels, SIZES)
    ids = row_hashes(batch, known)
    found = RowHasher(DEVICE, labels, known, root_side).rows(*columns(batch, labels), batch.root, ids.view(ID), n)
    assert np.array_equal(found.hashes, ids)
    assert np.array_equal(found.left, np.bincount(batch.left, minlength=SIZES[0]))
    assert np.array_equal(found.right, np.bincount(batch.right, minlength=SIZES[1]))


@pytest.mark.parametrize(("kind", "n_bytes"), [("none", 0), ("range", 0), ("gap", 8 * 150), ("gaps", 8 * 150)])
def test_labels_without_a_gap_are_not_on_the_device(kind, n_bytes):
    labels, n = (labels_of(kind, 150), labels_of("none", 150)), (150, 150)
    devices = EmulatedDevice(3), EmulatedDevice(3)
    hashers = (
        RowHasher(devices[0], labels, hashes_of(labels, n), "left"),
        RowHasher(devices[1], (None, None), hashes_of(labels, n), "left"),
    )
    assert devices[0].used_bytes() - devices[1].used_bytes() == n_bytes
    del hashers  # until here they hold what is on their devices


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("longer", "column n_left is not the length of column left"),
        ("empty", "column n_right is not the length of column right"),
        ("below", "value 0 of column left is not the label of a vertex"),
        ("above", "of column right is not the label of a vertex"),
        ("between", "of column right is not the label of a vertex"),
        ("root", r"row 4 does not have its root in column left"),
        ("swapped", r"value 2 of column left is not larger than the one before"),
        ("twice", r"value 1 of column right is not larger than the one before"),
        ("id", r"the id of row 3 does not follow from its members"),
    ],
)
def test_columns_that_contradict_each_other_are_refused(change, sentence, long):
    batch = random_batch(np.random.default_rng(1), 5, (150, 150), most=100, least=80 if long else 1, root_side="left")
    labels = labels_of("range", 150), labels_of("gaps", 150)
    left, right = columns(batch, labels)
    known, roots = hashes_of(labels, (150, 150)), batch.root.copy()
    ids = row_hashes(batch, known).view(ID)
    if change == "longer":
        left.lengths[2] += 1
    elif change == "empty":
        right.offsets[3] = right.offsets[2]
        right.lengths[2] = 0
    elif change == "below":
        left.values[0] = -8
    elif change == "above":
        right.values[-1] = 3 * 150 - 7
    elif change == "between":
        right.values[-1] += 1
    elif change == "swapped":
        left.values[1:3] = left.values[[2, 1]]
    elif change == "twice":
        right.values[1] = right.values[0]
    elif change == "id":
        ids[3] ^= 1 << 40
    else:
        roots[4] = np.setdiff1d(np.arange(150), batch.left[batch.left_indptr[4] :])[0]
    with pytest.raises(IncompleteError, match=sentence):
        RowHasher(DEVICE, labels, known, "left").rows(left, right, roots, ids, 5)
