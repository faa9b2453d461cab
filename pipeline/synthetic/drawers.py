"""Who draws the edges of a graph: the cores of this machine, or a GPU. The edges are the same, in the same order.

What only a GPU needs is imported inside functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from kernels.compiled.lists import count_members
from kernels.compiled.random_edges import label_edges
from kernels.gpu.cuda import CUDA
from pipeline.synthetic.labels import relabellings
from pipeline.synthetic.models import Part, RandomGraph
from schemas.errors import DeviceMemoryError, ResourceError

if TYPE_CHECKING:
    from kernels.compiled.random_rows import Rows
    from kernels.gpu.device import Device

__all__ = ["DeviceDrawer", "Drawer", "Edges", "HostDrawer"]


class Edges(NamedTuple):
    """The edges of a part.

    Parameters
    ----------
    left, right : ndarray of int32
        Numbers in the labels of their ends.
    fingerprint : int
        The sum of `schemas.hashes.mixed` of these, modulo 2**64.
    left_degrees : ndarray of int64
        Edges of the left vertices of the part.
    neighbours : ndarray of int32
        Right vertices of the edges, for `Drawer.count`. Empty if the drawer has counted them.
    """

    left: np.ndarray
    right: np.ndarray
    fingerprint: int
    left_degrees: np.ndarray
    neighbours: np.ndarray


class Drawer(Protocol):
    """Draws a graph part by part. Many threads may call `edges`."""

    def edges(self, part: Part) -> Edges:
        """The edges of a part, those of a vertex one behind the other."""
        ...

    def count(self, neighbours: np.ndarray) -> None:
        """Add `Edges.neighbours` to the degrees of right vertices. One thread calls it, once for each part."""
        ...

    def right_degrees(self) -> np.ndarray:
        """Degrees of right vertices, as far as counted."""
        ...


class HostDrawer:
    """Draws with the cores of this machine, a part in each thread that calls it."""

    def __init__(self, drawn: RandomGraph) -> None:
        self._drawn, self._lines = drawn, [each.line for each in relabellings(drawn.graph)]
        self._occurrences = np.zeros(drawn.graph.n_right, np.int64)

    def edges(self, part: Part) -> Edges:
        """See `Drawer`."""
        vertices, indptr, right = self._drawn.drawn(self._drawn.rows(part))
        left_labels, right_labels = np.empty_like(right), np.empty_like(right)
        total = label_edges(vertices, indptr, right, *self._lines, left_labels, right_labels) % 2**64
        return Edges(left_labels, right_labels, total, np.diff(indptr), right)

    def count(self, neighbours: np.ndarray) -> None:
        """See `Drawer`."""
        count_members(neighbours, self._occurrences)

    def right_degrees(self) -> np.ndarray:
        """See `Drawer`."""
        return self._occurrences


class DeviceDrawer:
    """Draws on a device, one part after the other.

    Parameters
    ----------
    drawn : RandomGraph
    device : Device

    Raises
    ------
    ResourceError
        The device has too little memory, or cannot run the kernel.
    """

    def __init__(self, drawn: RandomGraph, device: Device) -> None:
        from kernels.gpu.random_edges import EdgeDrawer

        left, right = (each.line for each in relabellings(drawn.graph))
        self._drawn = drawn
        with _device_errors(f"{drawn.graph.n_right:,} right vertices"):
            self._drawer = EdgeDrawer(device, drawn.key, drawn.model, (left, right))

    def edges(self, part: Part) -> Edges:
        """See `Drawer`."""
        rows = self._drawn.rows(part)
        with _device_errors(f"a part of {rows.indptr[-1]:,} edges"):
            left, right, total = self._drawer.edges(rows, self._redrawn)
        return Edges(left, right, total, np.diff(rows.indptr), right[:0])

    def count(self, neighbours: np.ndarray) -> None:
        """See `Drawer`. They are counted already."""

    def right_degrees(self) -> np.ndarray:
        """See `Drawer`."""
        return self._drawer.right_degrees()

    def _redrawn(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        _, indptr, right = self._drawn.drawn(rows)
        return indptr, right


@contextmanager
def _device_errors(what: str) -> Iterator[None]:
    """Turn an error of the device into one sentence. `what` is drawn."""
    try:
        yield
    except (DeviceMemoryError, MemoryError) as error:  # CuPy raises the second
        raise ResourceError(
            f"the GPU has too little memory to draw {what}; choose --generate-on cpu, or a smaller --part-edges"
        ) from error
    except RuntimeError as error:
        if type(error).__name__ not in CUDA.fatal_errors:
            raise
        raise ResourceError(f"the GPU failed when it drew {what} ({error}); choose --generate-on cpu") from error
