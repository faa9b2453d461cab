"""The records of ``cuda/cumbe/types.cuh`` as NumPy dtypes, field for field."""

from __future__ import annotations

import numpy as np

_I32, _I64, _U64 = np.int32, np.int64, np.uint64

#: Phases that the time is spent in. They are the paper's, except that idling is not part of its "others".
PHASES = (
    "candidate_selection",
    "l_construction",
    "maximality_checking",
    "maximal_expansion",
    "subtree_fetching",
    "work_stealing",
    "idling",
)

CUMBE_ITEM = np.dtype(
    [
        ("root", _I32),
        ("fresh", _I32),
        ("path_at", _I64),
        ("cand_at", _I64),
        ("n_path", _I32),
        ("n_cand", _I32),
        ("n_todo", _I32),
        ("unused", _I32),
    ],
    align=True,
)

CUMBE_QUEUE = np.dtype(
    [
        *((name, _U64) for name in ("head", "open", "pool", "left_over", "values", "rows")),
        *((name, _I32) for name in ("stop", "overflow", "hungry", "offered", "unused", "full")),
        *((name, _U64) for name in ("count", "fingerprint", "tests", "published", "stolen", "rows_left", "longest")),
        ("ticks", _U64, (len(PHASES),)),
    ],
    align=True,
)

SHELF = np.dtype([(name, _I32) for name in ("n_base", "n_path", "n_rest", "level")], align=True)

#: ``sizeof(Level)`` in ints.
LEVEL_INTS = 14

CUMBE_PARAMS = np.dtype(
    [
        (name, _I64)
        for name in (
            "root_indptr root_indices base_indptr base_indices root_weight base_weight root_hash base_hash "
            "items n_items pool n_pool left_over n_left_over values n_values records n_records "
            "sizes n_sizes queue "
            "arena arena_ints most_base most_roots most_wedges table shelves available readers "
            "plain prove list limited root_is_left min_base max_base min_root max_root deadline_ns"
        ).split()
    ]
)
