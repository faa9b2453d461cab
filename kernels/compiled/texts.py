"""Finds texts among sorted ones."""

from __future__ import annotations

import numpy as np

from kernels.compiled.jit import compiled, entry

__all__ = ["find_texts"]


@compiled
def _order(text, begin, end, other, other_begin, other_end):
    """Less than 0, 0 or more: how the bytes of one text compare with those of another one."""
    n = min(end - begin, other_end - other_begin)
    for k in range(n):
        difference = np.int64(text[begin + k]) - np.int64(other[other_begin + k])
        if difference != 0:
            return difference
    return (end - begin) - (other_end - other_begin)


@entry
def find_texts(
    text: np.ndarray, offsets: np.ndarray, wanted: np.ndarray, wanted_offsets: np.ndarray, found: np.ndarray
) -> None:
    """Find each of some texts among others that ascend by their bytes and are different, by halving.

    Parameters
    ----------
    text, offsets : ndarray of uint8, ndarray of integers, shape (n + 1,)
        Text ``i`` has the bytes ``text[offsets[i]:offsets[i + 1]]``.
    wanted, wanted_offsets : the same
        The texts to find.
    found : ndarray of int32
        Output: the number of each, or -1 where it is not there.
    """
    for i in range(len(found)):
        begin, end = np.int64(wanted_offsets[i]), np.int64(wanted_offsets[i + 1])
        low, high = 0, len(offsets) - 1
        while low < high:
            middle = (low + high) // 2
            order = _order(text, np.int64(offsets[middle]), np.int64(offsets[middle + 1]), wanted, begin, end)
            if order < 0:
                low = middle + 1
            else:
                high = middle
        found[i] = -1
        if low < len(offsets) - 1:
            if _order(text, np.int64(offsets[low]), np.int64(offsets[low + 1]), wanted, begin, end) == 0:
                found[i] = low
