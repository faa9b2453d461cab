"""Hashes of vertices, which follow from their labels alone, and of bicliques.

The hash of a label does not depend on the other labels, so a biclique keeps its hash when the graph grows. It does not
depend on the machine, either: bytes are read as little-endian words.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bicliques.schemas.edges import bytes_of
from bicliques.schemas.search import Side

#: `vertex_hashes` of the left and of the right side, by dense id.
VertexHashes = tuple[np.ndarray, np.ndarray]

#: Constants of the sides, because of which label 5 on the left and label 5 on the right have different hashes.
LEFT_SALT = np.uint64(0x6C65667400000000)  # "left"
RIGHT_SALT = np.uint64(0x7269676874000000)  # "right"
_SALTS: dict[Side, np.uint64] = {"left": LEFT_SALT, "right": RIGHT_SALT}

#: Labels that are hashed at a time, and bytes of text, unless one label is longer.
_LABELS, _BYTES = 1 << 17, 1 << 23
#: If at most so many labels have another word, Python goes on with each of them faster than NumPy with all.
_FEW = 16


def splitmix64(x: np.ndarray) -> np.ndarray:
    """The 64-bit mixer of Steele, Lea and Flood (OOPSLA 2014, doi:10.1145/2714064.2660195), elementwise.

    Parameters
    ----------
    x : ndarray of uint64
    """
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def mixed(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The hashes of bicliques, uint64, from the sums (uint64, modulo 2**64) of the hashes of their members."""
    return splitmix64(left ^ splitmix64(right))


def vertex_hashes(labels: pa.Array, side: Side) -> np.ndarray:
    """The hash of every label of a side.

    Parameters
    ----------
    labels : Array
        Integers, or text (``string`` or ``large_string``), without nulls.
    side : "left" or "right"

    Returns
    -------
    ndarray, shape (len(labels),), uint64
        Of an integer: ``splitmix64(x ^ salt of the side)``, where `x` is the integer as 64 bits. Of text: the same,
        where `x` comes from its UTF-8 bytes. They are read as 64-bit words, the first byte lowest, and zeros fill the
        last word. `x` begins as ``splitmix64(number of bytes)``, and with every word it becomes
        ``splitmix64(x ^ word)``.

    Notes
    -----
    It takes memory for 2**17 labels and for 8 MiB of text besides the result.
    """
    hashes = np.empty(len(labels), np.uint64)
    is_text = not pa.types.is_integer(labels.type)
    for start in range(0, len(labels), _LABELS):
        part = labels[start : start + _LABELS]
        folded = _folded(part) if is_text else part.to_numpy().astype(np.int64).view(np.uint64)
        hashes[start : start + _LABELS] = splitmix64(folded ^ _SALTS[side])
    return hashes


def hashes_of_ids(n_left: int, n_right: int) -> VertexHashes:
    """`vertex_hashes` of a graph whose labels are its dense ids, as where nobody gave any."""
    left, right = (np.arange(n, dtype=np.uint64) for n in (n_left, n_right))
    return splitmix64(left ^ LEFT_SALT), splitmix64(right ^ RIGHT_SALT)


def _folded(labels: pa.Array) -> np.ndarray:
    """64 bits of each text, uint64; see `vertex_hashes`."""
    text, ends = bytes_of(labels)
    offsets = ends.astype(np.int64)
    folded, done = np.empty(len(labels), np.uint64), 0
    while done < len(labels):
        stop = int(np.searchsorted(offsets, offsets[done] + _BYTES, side="right")) - 1
        stop = min(max(stop, done + 1), len(labels))
        begin, end = int(offsets[done]), int(offsets[stop])
        own = np.zeros(end - begin + 16 & ~7, np.uint8)  # a word more, because the last word is read beyond its end
        own[: end - begin] = text[begin:end]
        folded[done:stop] = _fold(own.view("<u8"), offsets[done : stop + 1] - begin)
        done = stop
    return folded


def _fold(words: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """As `_folded`, where `offsets` are those of the bytes of `words`."""
    at, left = offsets[:-1], np.diff(offsets)
    folded = splitmix64(left.astype(np.uint64))
    going = np.flatnonzero(left > 0)
    at, left = at[going], left[going]
    while len(going) > _FEW:
        folded[going] = splitmix64(folded[going] ^ _word(words, at, left))
        longer = left > 8
        going, at, left = going[longer], at[longer] + 8, left[longer] - 8
    for one, first, bytes_left in zip(going.tolist(), at.tolist(), left.tolist(), strict=True):
        own = words.view(np.uint8)[first : first + bytes_left].tobytes()
        folded[one] = _fold_one(int(folded[one]), own)
    return folded


def _word(words: np.ndarray, at: np.ndarray, left: np.ndarray) -> np.ndarray:
    """The 64 bits from each byte on, of which the last are zero where fewer than eight bytes are left."""
    first, bits = at >> 3, (at & 7).astype(np.uint64) << np.uint64(3)
    own = words[first] >> bits | words[first + 1] << np.uint64(1) << (np.uint64(63) - bits)
    unused = np.maximum(8 - left, 0).astype(np.uint64) << np.uint64(3)
    return own & (np.uint64(2**64 - 1) >> unused)


def _fold_one(folded: int, text: bytes) -> int:
    """As `_fold`, for one label. Integers of Python take a microsecond per word."""
    for at in range(0, len(text), 8):
        x = (folded ^ int.from_bytes(text[at : at + 8], "little")) + 0x9E3779B97F4A7C15 & 2**64 - 1
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
        x = (x ^ x >> 27) * 0x94D049BB133111EB & 2**64 - 1
        folded = x ^ x >> 31
    return folded
