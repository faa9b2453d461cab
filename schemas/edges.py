"""Arrow schemas of the normalised edge table and of the two label tables.

The dense id of a vertex is the position of its label among the sorted labels of its side. Integers are sorted by
value, and strings by UTF-8 bytes. So dense ids depend on the set of labels alone, and not on the order of the edges,
the format of the file or the machine.
"""

from __future__ import annotations

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
