"""Reads lines of plain integers, eight digits at a time.

A block is plain if its lines have equally many fields, one delimiter stands between two fields, and all fields are
digits. Most large edge lists are plain. Arrow reads the other blocks, and takes more than twice as long.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["compiled_plain_integers", "plain_integers"]

#: A word is eight digits, the first one in its lowest byte. Any number with more digits than two words is for Arrow.
_WORD = 8
_MOST_DIGITS = 2 * _WORD
_LF, _ZERO, _NINE = ord("\n"), ord("0"), 9


def plain_integers(data: bytes, delimiter: str, columns: Sequence[int], n_columns: int) -> list[np.ndarray] | None:
    """Some columns of a plain block.

    Parameters
    ----------
    data : bytes
        Lines, each with its LF.
    delimiter : str
        One ASCII character, not a digit.
    columns : sequence of int
        Positions of the wanted columns.
    n_columns : int
        Fields of every line.

    Returns
    -------
    list of ndarray of int64, or None
        None when the block is not plain, or when a wanted field has a leading zero or more than 16 digits.
    """
    text = np.frombuffer(b"0" * _MOST_DIGITS + data + bytes(-len(data) % _WORD), np.uint8)
    inside = text[_MOST_DIGITS : _MOST_DIGITS + len(data)]
    ends = np.flatnonzero((inside - np.uint8(_ZERO)) > _NINE)  # a character below "0" wraps around
    if len(ends) == 0 or len(ends) % n_columns:
        return None
    lengths = np.diff(ends, prepend=-1) - 1
    borders = inside[ends].reshape(-1, n_columns)
    if lengths.min() < 1 or not (borders[:, -1] == _LF).all() or not (borders[:, :-1] == ord(delimiter)).all():
        return None
    words = text.view("<u8")
    found = []
    for k in columns:
        end, length = ends[k::n_columns], lengths[k::n_columns]
        most = int(length.max())
        if most > _MOST_DIGITS or ((inside[end - length] == _ZERO) & (length > 1)).any():
            return None
        end = end + _MOST_DIGITS
        numbers = _number(_digits(words, end, np.minimum(length, _WORD) if most > _WORD else length))
        if most > _WORD:
            numbers += _number(_digits(words, end - _WORD, np.maximum(length - _WORD, 0))) * 10**_WORD
        found.append(numbers)
    return found


def compiled_plain_integers(
    data: bytes, delimiter: str, columns: Sequence[int], n_columns: int
) -> list[np.ndarray] | None:
    """As `plain_integers`, by compiled code. It takes a quarter of the time and lets other threads work."""
    from kernels.compiled.digits import read_columns  # not before it pays: it loads machine code

    wanted = np.full(n_columns, -1)
    distinct = list(dict.fromkeys(columns))
    wanted[distinct] = np.arange(len(distinct))
    most = len(data) // (2 * n_columns)
    found = np.empty(len(distinct) * most, np.int64)
    n = read_columns(np.frombuffer(data, np.uint8), ord(delimiter), wanted, _MOST_DIGITS, found, most)
    return [found[start : start + n] for start in (wanted[list(columns)] * most).tolist()] if n > 0 else None


def _digits(words: np.ndarray, end: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The last `n` digits before `end` as words. The digits before them are zero."""
    place, bits = end >> 3, ((end & 7) << 3).astype(np.uint64)
    # NumPy shifts by 64 bits to zero
    digits = (words[place - 1] >> bits) | (words[place] << (np.uint64(64) - bits))
    digits &= np.uint64(0x0F0F0F0F0F0F0F0F)
    empty = ((_WORD - n) << 3).astype(np.uint64)
    digits >>= empty
    digits <<= empty
    return digits


def _number(digits: np.ndarray) -> np.ndarray:
    """The numbers that words of digits stand for. Pairs of digits are added up, then pairs of pairs, then halves."""
    digits *= np.uint64(10 << 8 | 1)
    digits >>= np.uint64(8)
    digits &= np.uint64(0x00FF00FF00FF00FF)
    digits *= np.uint64(100 << 16 | 1)
    digits >>= np.uint64(16)
    digits &= np.uint64(0x0000FFFF0000FFFF)
    digits *= np.uint64(10000 << 32 | 1)
    digits >>= np.uint64(32)
    return digits.view(np.int64)
