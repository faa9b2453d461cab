"""Band graphs, whose maximal bicliques follow from a formula however large they are."""

from typing import Any

import numpy as np


def band(xp: Any, n: int, width: int) -> tuple[Any, Any]:
    """Edges of n + n vertices, left i to right j whenever they differ by `width` at most; sorted."""
    left = xp.repeat(xp.arange(n, dtype=np.int32), 2 * width + 1)
    right = left + xp.tile(xp.arange(-width, width + 1, dtype=np.int32), n)
    inside = (right >= 0) & (right < n)
    return left[inside], right[inside]


def bicliques_of_band(n: int, width: int) -> int:
    """Maximal ones: L from i to j and R from j - width to i + width, whenever all four are vertices."""
    i = np.arange(n - width, dtype=np.int64)
    return int((np.minimum(n - 1, i + 2 * width) - np.maximum(i, width) + 1).clip(0).sum())
