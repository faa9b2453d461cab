"""The knobs that every GPU engine has, and the memory that follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np

from bicliques.kernels.gpu.records import RECORD
from bicliques.schemas.dtypes import COUNT, VERTEX
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Search


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


class Buffer(NamedTuple):
    """One array on the device.

    Parameters
    ----------
    knob : str
        The field of the sizes that says how many entries the buffer has. Several buffers may share one.
    dtype : dtype
    length : str
        The launch parameter that tells the kernel how many entries the buffer has.
    when : "always", "listing", "sizing" or "pivoting"
        The searches that use the buffer. In others it has a single entry.
    """

    knob: str
    dtype: np.dtype | type
    length: str
    when: Literal["always", "listing", "sizing", "pivoting"] = "always"


def entries_of(buffer: Buffer, sizes: Sizes, search: Search) -> int:
    """How many entries a buffer has. 0 when this search does not use it."""
    used = {"always": True, "listing": search.mode == "list", "sizing": search.sizes, "pivoting": bool(search.pq)}
    return int(getattr(sizes, buffer.knob)) if used[buffer.when] else 0


def workspace_bytes(sizes: Sizes, search: Search) -> int:
    """Main memory for what is read back after a launch: the lists; the bicliques once as read, and twice unpacked."""
    vertex = np.dtype(VERTEX).itemsize
    bicliques = vertex * sizes.values + RECORD.itemsize * sizes.records if search.mode == "list" else 0
    return vertex * sizes.pool + 3 * bicliques


def search_bytes(graph: MiningGraph, search: Search, sizes: Sizes, table: Mapping[str, Buffer]) -> int:
    """Device memory of a search as it begins: the graph, and the buffers. Its scratch memory comes on top."""
    wide, narrow, n_vertices = np.dtype(COUNT).itemsize, np.dtype(VERTEX).itemsize, graph.n_roots + graph.n_base
    edges = wide * (n_vertices + 2) + 2 * narrow * graph.n_edges
    members = narrow * len(graph.root_members) + narrow * len(graph.base_members) + wide * (n_vertices + 2)
    buffers = sum(entries_of(each, sizes, search) * np.dtype(each.dtype).itemsize for each in table.values())
    return edges + (wide + narrow) * n_vertices + (members if search.mode == "list" else 0) + buffers
