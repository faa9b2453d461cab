"""Integer types of the project, stated once.

Ids are 32-bit, offsets and counts are 64-bit: a graph may have at most 2**31 - 1 vertices a side and
as many edges as memory holds; a count never wraps.
"""

from __future__ import annotations

import numpy as np

__all__ = ["COUNT", "MAX_VERTICES", "OFFSET", "VERTEX", "WORD"]

VERTEX = np.dtype(np.int32)
OFFSET = np.dtype(np.int64)
COUNT = np.dtype(np.int64)
WORD = np.dtype(np.uint64)

MAX_VERTICES = 2**31 - 1
