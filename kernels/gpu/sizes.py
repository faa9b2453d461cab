"""The knobs that every GPU engine has, and the main memory that follows from them."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np

from kernels.gpu.records import RECORD
from schemas.dtypes import VERTEX
from schemas.work import Search

__all__ = ["Sizes", "workspace_bytes"]


class Sizes(Protocol):
    """A named tuple of an engine; these of its fields say how long buffers are, in entries."""

    @property
    def left_over(self) -> int:
        """Items that a launch writes down."""
        ...

    @property
    def pool(self) -> int:
        """Vertices in the lists of items."""
        ...

    @property
    def values(self) -> int:
        """Vertices of bicliques."""
        ...

    @property
    def records(self) -> int:
        """Bicliques."""
        ...

    @property
    def size_slots(self) -> int:
        """Different sizes of bicliques that can be counted."""
        ...

    def _replace(self, *args: Any, **knobs: Any) -> Self: ...


def workspace_bytes(sizes: Sizes, search: Search) -> int:
    """Main memory for what is read back after a launch: the lists; the bicliques once as read, and twice unpacked."""
    vertex = np.dtype(VERTEX).itemsize
    bicliques = vertex * sizes.values + RECORD.itemsize * sizes.records if search.mode == "list" else 0
    return vertex * sizes.pool + 3 * bicliques
