"""Batches of bicliques that are made up, for writers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.bicliques import Bicliques

#: Of four left and three right vertices.
LABELS = (pa.array([10, 20, 30, 40]), pa.array(["a", "b", "c"]))


def some(n: int, seed: int = 0) -> Bicliques:
    """So many, at random."""
    rng = np.random.default_rng(seed)
    pairs = [
        (
            rng.choice(4, rng.integers(1, 5), replace=False).tolist(),
            rng.choice(3, 2, replace=False).tolist(),
        )
        for _ in range(n)
    ]
    return Bicliques.from_pairs(pairs, list(range(n)))
