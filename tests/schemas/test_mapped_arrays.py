"""Arrays are mapped as `numpy.save` wrote them, and a header that promises something else is refused."""

import numpy as np
import pytest

from bicliques.schemas.dtypes import OFFSET, VERTEX, WORD
from bicliques.schemas.regular_files import map_array


@pytest.mark.parametrize("kind", [VERTEX, OFFSET, WORD, np.dtype(np.float64)], ids=str)
@pytest.mark.parametrize("n", [0, 1, 1000, 10**5])
def test_an_array_is_mapped_as_it_was_saved(tmp_path, kind, n):
    array = np.arange(n).astype(kind)
    np.save(tmp_path / "a.npy", array)
    found = map_array(tmp_path / "a.npy", kind)
    assert found.dtype == kind
    assert np.array_equal(found, array)
    assert not found.flags.writeable


def test_an_empty_array_has_the_kind_that_is_wanted(tmp_path):
    """Runs of earlier versions have empty arrays of another one."""
    np.save(tmp_path / "a.npy", np.empty(0, OFFSET))
    assert map_array(tmp_path / "a.npy", VERTEX).dtype == VERTEX


@pytest.mark.parametrize("n", [3, 4, 10**12, 2**62, "9" * 18, "9" * 19, "9" * 4000, -1, "True", "2, 1", ""], ids=str)
def test_a_header_that_promises_more_than_there_is_asks_for_no_memory(tmp_path, n):
    np.save(tmp_path / "a.npy", np.arange(2, dtype=VERTEX))
    start = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(start.replace(b"(2,)", f"({n},)".encode()))
    with pytest.raises(ValueError, match=r"is shorter than the \d+ entries that it promises|is no array of int32"):
        map_array(tmp_path / "a.npy", VERTEX)


@pytest.mark.parametrize(
    "array",
    [np.arange(3.0), np.arange(3), np.array([[1]], VERTEX), np.array(1, VERTEX), np.array([{}]), np.array(["a"])],
    ids=lambda array: f"{array.dtype} {array.ndim}",
)
def test_another_array_is_refused(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(ValueError, match=r"a\.npy is no array of int32$"):
        map_array(tmp_path / "a.npy", VERTEX)


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"PK\x03\x04", b"\x93NUMPY\x01\x00\xff\xff{" + b"(" * 65_534])
def test_what_is_no_array_is_refused(tmp_path, data):
    (tmp_path / "a.npy").write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.npy is no array of int32$"):
        map_array(tmp_path / "a.npy", VERTEX)
