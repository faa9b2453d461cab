"""The records that all kernels share, as NumPy dtypes, field for field: bicliques, sizes, and parameters of packing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_I32, _I64, _U64 = np.int32, np.int64, np.uint64

#: The value for no vertex, no closure or no owner.
NOBODY = -1
#: Most base vertices of a word problem. A root with more is a hub.
WORD_BITS = 64

SIZE = np.dtype([("key", _U64), ("count", _U64)])

RECORD = np.dtype([("at", _I64), ("n_base", _I32), ("n_root", _I32)], align=True)

PACK_PARAMS = np.dtype(
    [
        (name, _I64)
        for name in (
            "records values n_records "
            "base_indptr base_members base_alone base_hashes base_lengths base_offsets base_out "
            "root_indptr root_members root_alone root_hashes root_lengths root_offsets root_out "
            "before ended first ids root_is_left writing keys key_step order missing"
        ).split()
    ]
)

#: How many rows and members come before a range of records.
PACK_TOTALS = np.dtype([("rows", _I64), ("base", _I64), ("root", _I64)])

ROW_HASH_PARAMS = np.dtype(
    [
        (name, _I64)
        for name in (
            "values wide offsets claimed n_rows labels first n_vertices hashes occurrences roots before ids out wrong"
        ).split()
    ]
)

#: What is wrong with a column: each field is 0, or 1 + the number of one that is wrong.
ROW_HASH_WRONG = np.dtype([("length", _I64), ("value", _I64), ("order", _I64), ("root", _I64), ("id", _I64)])


def parameters(dtype: np.dtype, values: Mapping[str, Any]) -> np.ndarray:
    """The parameter block of a launch, one record of `dtype`. Fields that `values` lacks are 0."""
    block = np.zeros(1, dtype)
    for name in dtype.names or ():
        block[name] = values.get(name, 0)
    return block
