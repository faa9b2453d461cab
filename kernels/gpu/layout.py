"""The records of ``cuda/types.cuh`` and ``cuda/pack.cu`` as NumPy dtypes, field for field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = [
    "GIVEN",
    "HUB",
    "ITEM",
    "NOBODY",
    "PACK_PARAMS",
    "PACK_TOTALS",
    "PARAMS",
    "PATH",
    "QUEUE",
    "RECORD",
    "ROOT",
    "SIZE",
    "WORD",
    "WORD_BITS",
    "parameters",
]

#: `Item.kind`.
ROOT, HUB, WORD, PATH = range(4)
NOBODY = -1
#: `Params.ready`: the item was given away and nobody has taken it.
GIVEN = 1
#: Left vertices of a word problem.
WORD_BITS = 64

_I32, _I64, _U64 = np.int32, np.int64, np.uint64

ITEM = np.dtype(
    [
        ("kind", _I32),
        ("bound", _I32),
        ("left_at", _I64),
        ("closure_at", _I64),
        ("cand_at", _I64),
        ("n_left", _I32),
        ("n_closure", _I32),
        ("n_cand", _I32),
        ("begin", _I32),
        ("end", _I32),
        ("fresh", _I32),
    ],
    align=True,
)

_LINE = 15  # u64 of padding behind what many warps poll

QUEUE = np.dtype(
    [
        ("head", _U64),
        ("pad0", _U64, _LINE),
        ("tail", _U64),
        ("pad1", _U64, _LINE),
        ("open", _U64),
        ("pad2", _U64, _LINE),
        ("stop", _I32),
        ("overflow", _I32),
        ("pad3", _U64, _LINE),
        *((name, _U64) for name in "pool left_over oversize values rows".split()),
        *((name, _U64) for name in "count fingerprint busy longest given tests rows_left".split()),
    ],
    align=True,
)

SIZE = np.dtype([("key", _U64), ("count", _U64)])

RECORD = np.dtype([("at", _I64), ("n_base", _I32), ("n_root", _I32)], align=True)

PARAMS = np.dtype(
    [
        (name, _I64)
        for name in (
            "root_indptr root_indices base_indptr base_indices root_weight base_weight root_hash base_hash "
            "hub_bits first_hub hub_words n_roots n_base items n_items given ready n_given pool n_pool pool_limit "
            "left_over n_left_over oversize n_oversize values n_values records n_records record_chunk "
            "sizes n_sizes queue scratch n_warps prove list limited root_is_left min_base max_base min_root max_root "
            "deadline_ns host_stop host_count"
        ).split()
    ]
)

PACK_PARAMS = np.dtype(
    [
        (name, _I64)
        for name in (
            "records values n_records "
            "base_indptr base_members base_alone base_lengths base_offsets base_out "
            "root_indptr root_members root_alone root_lengths root_offsets root_out "
            "before ended first writing"
        ).split()
    ]
)

#: Rows and their members that come before a range of records.
PACK_TOTALS = np.dtype([("rows", _I64), ("base", _I64), ("root", _I64)])


def parameters(dtype: np.dtype, values: Mapping[str, Any]) -> np.ndarray:
    """The parameter block of a launch, one record of `dtype`: the fields that `values` has, else 0."""
    block = np.zeros(1, dtype)
    for name in dtype.names or ():
        block[name] = values.get(name, 0)
    return block
