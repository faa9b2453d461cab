"""The bytes of a column of text, without a copy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def bytes_of(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of all texts, and where each of them begins and ends.

    Parameters
    ----------
    texts : Array
        ``string`` or ``large_string``, without nulls. It may be a slice.

    Returns
    -------
    (ndarray of uint8, ndarray of int32 or int64)
        Text ``i`` has the bytes ``bytes[ends[i]:ends[i + 1]]``. Of ``large_string`` the second array has 64 bits.
    """
    width = np.dtype(np.int64 if pa.types.is_large_string(texts.type) else np.int32)
    _, places, text = texts.buffers()
    ends = np.frombuffer(places, width, len(texts) + 1, texts.offset * width.itemsize)
    return np.frombuffer(text or b"", np.uint8), ends
