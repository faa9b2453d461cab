"""The records of ``cuda/bitmatrix/types.cuh`` as NumPy dtypes, field for field."""

from __future__ import annotations

import numpy as np

#: Values of `Item.kind`.
ROOT, HUB, PATH, SPLIT = range(4)
#: Value of `Params.ready`: the item was given away and no warp has taken it.
GIVEN = 1

_I32, _I64, _U64 = np.int32, np.int64, np.uint64

ITEM = np.dtype(
    [
        ("kind", _I32),
        ("bound", _I32),
        ("base_at", _I64),
        ("closure_at", _I64),
        ("cand_at", _I64),
        ("n_base", _I32),
        ("n_closure", _I32),
        ("n_cand", _I32),
        ("begin", _I32),
        ("end", _I32),
        ("fresh", _I32),
    ],
    align=True,
)

LEAF = np.dtype([("root", _U64), ("base", _U64), ("count", _U64)])

_LINE = 15  # u64 of padding behind a value that many warps poll

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
        *((name, _U64) for name in "count fingerprint busy longest given tests rows_left bound".split()),
    ],
    align=True,
)

PARAMS = np.dtype(
    [
        (name, _I64)
        for name in (
            "root_indptr root_indices base_indptr base_indices root_weight base_weight root_hash base_hash "
            "hub_bits first_hub hub_words n_roots n_base items n_items given ready n_given pool n_pool pool_limit "
            "left_over n_left_over oversize n_oversize values n_values records n_records record_chunk "
            "sizes n_sizes queue scratch n_warps prove list limited root_is_left min_base max_base min_root max_root "
            "deadline_ns host_stop host_count measure top n_top scratch_bytes near_pairs near_root near_base "
            "marks_indptr marks n_marked leaves n_leaves"
        ).split()
    ]
)
