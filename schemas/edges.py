"""Arrow schemas of the normalised edge table and of the two label tables, and the bytes of a column of text.

The dense id of a vertex is the position of its label among the sorted labels of its side. Integers are sorted by
value, and strings by UTF-8 bytes. So dense ids depend on the set of labels alone, and not on the order of the edges,
the format of the file or the machine.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bicliques.schemas.errors import InputError

#: One row per edge, sorted by (left, right), without duplicates.
EDGES = pa.schema(
    [
        pa.field("left", pa.int32(), nullable=False),
        pa.field("right", pa.int32(), nullable=False),
    ]
)

#: The types that a label may have after a file is read. It is int32 if all numbers of the column's type fit.
LABEL_TYPES = (pa.int32(), pa.int64(), pa.string())


def label_schema(label_type: pa.DataType) -> pa.Schema:
    """Schema of a label table. It has one column ``label``, and the row number is the dense id.

    Raises
    ------
    InputError
        `label_type` is none of `LABEL_TYPES`.
    """
    if label_type not in LABEL_TYPES:
        raise InputError(f"labels must be integers or strings, not {label_type}; cast the column first")
    return pa.schema([pa.field("label", label_type, nullable=False)])


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
