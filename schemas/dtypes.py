"""Integer types of the project.

Ids have 32 bits, so a graph may have at most 2**31 - 1 vertices per side. Offsets and counts have 64 bits, so a graph
may have as many edges as fit into memory, and no count wraps.
"""

from __future__ import annotations

import numpy as np

VERTEX = np.dtype(np.int32)
OFFSET = np.dtype(np.int64)
COUNT = np.dtype(np.int64)
WORD = np.dtype(np.uint64)

MAX_VERTICES = 2**31 - 1
