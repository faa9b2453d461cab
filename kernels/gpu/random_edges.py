"""Draws the edges of a random graph on a device: the same ones as `kernels.compiled.random_edges`.

There, a left vertex draws one neighbour after the other. Here, all threads draw together. Let P be the planted
neighbours of a row, O the owners of its stubs (with quadrants there are none), D its draws 0, 1, 2, ..., and d its
number of neighbours to draw. A *repeat* is a draw of something that is in the set already.

- One after the other, each stub and each draw is new or was there already. So at the end the set is P + O + {the first
  m draws}, with d members beside P. The last draw was new, and so was every stub behind it when its turn came. So one
  draw less makes one member less: m is the least number that is enough. None of this depends on the order.
- Where k members are missing, at least k more draws are needed, because a draw adds one at most. So k draws at once are
  never too many. A launch makes as many draws as the one before had repeats, until there are none.
- The order does matter behind 64 repeats in a row, where the host takes the next free vertex. Up to there both have
  made the same draws. Here all stubs are in the set before the first draw, and there only some are. So a draw that is a
  repeat there is one here, too. A row with 64 repeats in a row here is *hard*, and the host draws it, one after the
  other. Some rows are hard that need not be.
- Whether draw number k is a repeat must not depend on which thread came first. So a set keeps the least number of all
  draws that led to a vertex. The draw with this number was new, and the others were repeats.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kernels.compiled.random_rows import Quadrants, Rows, Stubs, begins_of
from kernels.gpu.device import Device
from kernels.gpu.records import RANDOM_EDGES_PARAMS, parameters
from kernels.gpu.source import Variant
from schemas.dtypes import COUNT, OFFSET, VERTEX

__all__ = ["EdgeDrawer", "Labelled", "device_bytes", "shipped"]

_KERNEL, _THREADS, _BLOCKS = "random_edges", 128, 16  # blocks per multiprocessor
_DEFINES: dict[str, int] = {}
_CLASSES = ("class_starts", "class_vertices", "class_degrees", "guide")
_GRID, _CHANCES = ("height", "width", "n_stubs"), ("in_first", "in_second", "in_one")
_PLANT, _DRAW, _CHECK, _COLLECT, _LABEL = range(5)
_EMPTY = np.uint64(2**64 - 1)
#: Bytes for an edge of a part, for a left vertex of it, and for a right vertex of the graph.
_EDGE_BYTES, _ROW_BYTES, _RIGHT_BYTES = 48, 88, 4

Line = tuple[int, int, int]


class Labelled(NamedTuple):
    """Edges of some rows, those of a row by ascending right vertices.

    Parameters
    ----------
    left, right : ndarray of int32
        Numbers in the labels of their ends.
    total : int
        The sum of `schemas.hashes.mixed` of these, modulo 2**64.
    """

    left: np.ndarray
    right: np.ndarray
    total: int


class EdgeDrawer:
    """Draws the edges of one graph. Many threads may call it; one after the other uses the device.

    Parameters
    ----------
    device : Device
    key : int
        Of the draws.
    model : Stubs or Quadrants
    lines : (Line, Line)
        Factor, shift and modulus of both sides: vertex ``v`` has the label ``(v * factor + shift) % n``.

    Raises
    ------
    DeviceMemoryError
        The device has no room for 4 bytes per right vertex.

    Notes
    -----
    The kernel is loaded, so a device that cannot run it raises here and not at the first edge.
    """

    def __init__(self, device: Device, key: int, model: Stubs | Quadrants, lines: tuple[Line, Line]) -> None:
        self._device, self._lock = device, threading.Lock()
        self._by_stubs = isinstance(model, Stubs)
        (left_factor, left_shift, n_left), (right_factor, right_shift, self._n_right) = lines
        self._numbers: dict[str, int] = {
            "key": key,
            "by_stubs": int(self._by_stubs),
            "n_left": n_left,
            "n_right": self._n_right,
            "left_factor": left_factor,
            "left_shift": left_shift,
            "right_factor": right_factor,
            "right_shift": right_shift,
        }
        with device.active():
            device.resident_blocks(_KERNEL, _DEFINES, _THREADS)
            self._fields = {"occurrences": device.zeros(self._n_right, np.uint32)}
            if isinstance(model, Stubs):
                arrays = dict(zip(_CLASSES, model.classes, strict=True)) | {"keys": model.keys}
                self._fields |= {name: device.upload(array) for name, array in arrays.items()}
                self._numbers |= dict(zip(_GRID, model.grid, strict=True))
                self._numbers |= {"shift": model.shift, "n_keys": len(model.keys)}
            else:
                self._numbers |= dict(zip(_CHANCES, model.chances.tolist(), strict=True))

    def edges(self, rows: Rows, redraw: Callable[[Rows], tuple[np.ndarray, np.ndarray]]) -> Labelled:
        """The edges of some rows.

        Parameters
        ----------
        rows : Rows
            Each vertex is in one call only.
        redraw : callable
            Rows -> their neighbours as `kernels.compiled.random_edges` draws them: where those of each row begin
            (int64), and these (int32). It is called for rows whose result may depend on the order.

        Raises
        ------
        DeviceMemoryError, MemoryError
            The device has no room for what `device_bytes` says.
        """
        with self._lock, self._device.active():
            return self._edges(rows, redraw)

    def right_degrees(self) -> np.ndarray:
        """How many edges each right vertex has so far, uint32."""
        with self._lock, self._device.active():
            return self._device.read(self._fields["occurrences"], np.uint32, 0, self._n_right)

    def _edges(self, rows: Rows, redraw: Callable[[Rows], tuple[np.ndarray, np.ndarray]]) -> Labelled:
        device, n = self._device, len(rows.vertices)
        spaces, n_edges = rows.spaces, int(rows.indptr[-1])
        if not n_edges:
            return Labelled(np.empty(0, VERTEX), np.empty(0, VERTEX), 0)
        n_slots = 2 * int(spaces[-1])
        sets = device.empty(n_slots, np.uint64)
        device.view(sets, np.uint8, 0, 8 * n_slots).fill(255)  # _EMPTY
        arrays = {"vertices": rows.vertices, "firsts": rows.firsts, "spaces": spaces}
        fields = self._fields | {name: device.upload(array) for name, array in arrays.items()}
        fields |= {name: device.zeros(n, COUNT) for name in ("done", "missing", "run", "next_run", "hard")}
        fields |= {"sets": sets, "n_hard": device.zeros(1, COUNT)}
        if len(rows.planted[1]):
            planted = {"planted_indptr": device.upload(rows.planted[0]), "planted": device.upload(rows.planted[1])}
            self._enqueue(_PLANT, len(rows.planted[1]), fields | planted, n)
        self._draw(rows, fields)
        if device.read(fields["n_hard"], COUNT, 0, 1)[0]:
            fields |= self._redrawn(rows, spaces, fields, redraw)
        self._enqueue(_COLLECT, n_slots, fields, n)
        fields.pop("fixed", None)
        del fields["done"], fields["missing"], fields["run"], fields["next_run"]
        device.view(sets, np.uint64, 0, n_slots).sort()
        out = {side: device.empty(n_edges, VERTEX) for side in ("out_left", "out_right")}
        total = device.zeros(1, np.uint64)
        self._enqueue(_LABEL, n_edges, fields | out | {"total": total}, n)
        left, right = (device.read(out[side], VERTEX, 0, n_edges) for side in ("out_left", "out_right"))
        return Labelled(left, right, int(device.read(total, np.uint64, 0, 1)[0]))

    def _draw(self, rows: Rows, fields: dict[str, Any]) -> None:
        """Fill the sets. `fields` has what is needed for it, and then also what is left of it."""
        device, n = self._device, len(rows.vertices)
        fields["starts"] = device.upload(begins_of(rows.degrees))
        starts = device.view(fields["starts"], OFFSET, 0, n + 1)
        done, missing = (device.view(fields[name], COUNT, 0, n) for name in ("done", "missing"))
        n_draws, pairing = int(rows.degrees.sum()), self._by_stubs
        while n_draws:
            if not pairing and "places" not in fields:
                fields["places"] = device.empty(n_draws, OFFSET)  # later launches have fewer draws
            self._enqueue(_DRAW, n_draws, fields, n, pairing=int(pairing))
            if not pairing:
                self._enqueue(_CHECK, n_draws, fields, n)
                fields["run"], fields["next_run"] = fields["next_run"], fields["run"]
                done += starts[1:] - starts[:-1]
            pairing = False
            starts[1:] = missing.cumsum()
            device.clear(fields["missing"])
            n_draws = int(device.read(fields["starts"], OFFSET, n, 1)[0])
        fields.pop("places", None)

    def _redrawn(
        self,
        rows: Rows,
        spaces: np.ndarray,
        fields: dict[str, Any],
        redraw: Callable[[Rows], tuple[np.ndarray, np.ndarray]],
    ) -> dict[str, Any]:
        """The fields that say what the slots of hard rows are to be."""
        hard = self._device.read(fields["hard"], COUNT, 0, len(rows.vertices)).astype(OFFSET)
        which = np.flatnonzero(hard)
        indptr, right = redraw(rows.pick(which))
        begins = begins_of(2 * (spaces[which + 1] - spaces[which]))
        fixed = np.full(begins[-1], _EMPTY, np.uint64)
        sizes = np.diff(indptr)
        to = np.repeat(begins[:-1] - indptr[:-1], sizes) + np.arange(len(right))
        fixed[to] = np.repeat(which, sizes).astype(np.uint64) << np.uint64(32) | right.astype(np.uint64)
        hard[which] = 1 + begins[:-1]
        return {"hard": self._device.upload(hard), "fixed": self._device.upload(fixed)}

    def _enqueue(self, phase: int, n: int, fields: dict[str, Any], n_rows: int, **numbers: int) -> None:
        device = self._device
        values = {name: device.address(handle) for name, handle in fields.items()} | self._numbers | numbers
        values |= {"phase": phase, "n": n, "n_rows": n_rows}
        n_blocks = min(_BLOCKS * device.n_multiprocessors, -(-n // _THREADS)) or 1
        device.enqueue(_KERNEL, _DEFINES, n_blocks, _THREADS, parameters(RANDOM_EDGES_PARAMS, values))


def device_bytes(edges: int, rows: int, n_right: int) -> int:
    """Device memory for parts of at most so many edges and rows, about, besides what CUDA takes."""
    return edges * _EDGE_BYTES + rows * _ROW_BYTES + n_right * _RIGHT_BYTES


def shipped() -> list[Variant]:
    """All that an `EdgeDrawer` asks for."""
    return [Variant.of(_KERNEL, _DEFINES)]
