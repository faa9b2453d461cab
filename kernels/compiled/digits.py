"""One pass over lines of plain integers. It holds no lock of Python, so that sixteen threads can read a file."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import entry


@entry
def read_columns(
    text: np.ndarray, delimiter: int, wanted: np.ndarray, most_digits: int, found: np.ndarray, most_lines: int
) -> int:
    """Read some columns of lines of integers.

    Parameters
    ----------
    text : ndarray of uint8
        Lines, each with its LF.
    delimiter : int
        The character between two fields, not a digit.
    wanted : ndarray of int64, shape (n_columns,)
        For each column its place in `found`, or -1.
    most_digits : int
        Digits of a wanted field at most. No more than 18.
    found : ndarray of int64, shape (columns * most_lines,)
        Output, one column behind the other.
    most_lines : int
        A line has a digit and a border per field, so there are at most ``len(text) // (2 * n_columns)``.

    Returns
    -------
    int
        The number of lines. -1 when a field is empty or has another character than digits, or a wanted field has a
        leading zero or too many digits, or a line has another number of fields.
    """
    at = row = 0
    while at < text.size:
        for k in range(wanted.size):
            begin, number = at, np.int64(0)
            while at < text.size and np.uint8(text[at] - np.uint8(48)) <= 9:  # a character below "0" wraps around
                number = number * 10 + (np.int64(text[at]) - 48)
                at += 1
            length = at - begin
            if at == text.size or length == 0 or text[at] != (delimiter if k < wanted.size - 1 else 10):
                return -1
            if wanted[k] >= 0:
                if length > most_digits or (length > 1 and text[begin] == 48):
                    return -1
                found[wanted[k] * most_lines + row] = number
            at += 1
        row += 1
    return row
