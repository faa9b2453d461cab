"""Arrow schemas of the normalised edge table and of the two label tables.

Dense ids are positions in sorted label order (integers by value, strings by UTF-8 bytes), each side in
a name space of its own. They depend on the set of labels alone: not on the order of the edges, the
format of the file or the machine.
"""

from __future__ import annotations

import pyarrow as pa

from schemas.errors import InputError

__all__ = ["EDGES", "LABEL_TYPES", "label_schema"]

#: One row an edge, sorted by (left, right), no duplicates.
EDGES = pa.schema(
    [
        pa.field("left", pa.int32(), nullable=False),
        pa.field("right", pa.int32(), nullable=False),
    ]
)

#: The types a label may have once a file is read: int32 where all numbers of the column's type fit.
LABEL_TYPES = (pa.int32(), pa.int64(), pa.string())


def label_schema(label_type: pa.DataType) -> pa.Schema:
    """Schema of a label table: row number = dense id, one column ``label``.

    Raises
    ------
    InputError
        If `label_type` is none of `LABEL_TYPES`.
    """
    if label_type not in LABEL_TYPES:
        raise InputError(f"labels must be integers or strings, not {label_type}; cast the column first")
    return pa.schema([pa.field("label", label_type, nullable=False)])
