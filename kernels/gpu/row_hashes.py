"""Hashes rows that lie on a device, compares their ids, and counts in how many each vertex is.

`schemas.bicliques.row_hashes` and `pipeline.proof.read_back` do it on the host.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bicliques.kernels.gpu.device import Device
from bicliques.kernels.gpu.machine_code import Variant
from bicliques.kernels.gpu.records import ROW_HASH_PARAMS, ROW_HASH_WRONG, parameters
from bicliques.schemas.dtypes import COUNT
from bicliques.schemas.errors import IncompleteError

_KERNEL, _THREADS, _BLOCKS = "row_hashes", 256, 4  # blocks per multiprocessor
_DEFINES: dict[str, int] = {}


class Lists(NamedTuple):
    """A column of lists on the device.

    Parameters
    ----------
    values : array of int32 or int64, shape (n_values,)
        Labels, or dense ids, of all rows, one row behind the other.
    offsets : array of int32, shape (n_rows + 1,)
    lengths : array of int32, shape (n_rows,)
        Length of each row as another column says, which is compared.
    """

    values: Any
    offsets: Any
    lengths: Any


class Hashed(NamedTuple):
    """What is known of some rows.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n_rows,)
        `schemas.bicliques.row_hashes` of the rows.
    left, right : ndarray of int64
        In how many of the rows each vertex of the side is, by dense id.
    """

    hashes: np.ndarray
    left: np.ndarray
    right: np.ndarray


class RowHasher:
    """The vertices of a run on a device.

    Raises `DeviceMemoryError`: the device has no room for 16 bytes per vertex.

    Parameters
    ----------
    labels : (ndarray or None, ndarray or None)
        Ascending labels of the left and of the right side, int64. None if rows hold dense ids.
    hashes : (ndarray, ndarray)
        `schemas.hashes.vertex_hashes` of both sides.
    root_side : "left" or "right"
        The side that has the root of each row.
    """

    def __init__(
        self,
        device: Device,
        labels: tuple[np.ndarray | None, np.ndarray | None],
        hashes: tuple[np.ndarray, np.ndarray],
        root_side: str,
    ) -> None:
        self._device, self._root_side = device, root_side
        with device.active():
            self._sides = [_Side(device, *side) for side in zip(labels, hashes, strict=True)]

    def rows(self, left: Lists, right: Lists, roots: Any, ids: Any, n_rows: int) -> Hashed:
        """Hash rows. Their arrays have to be filled already.

        Raises `IncompleteError`: a row is empty, or has another length than is claimed, or has a value that is no
        label, or its members do not ascend, or it lacks its root, or has another id. Raises `DeviceMemoryError`: the
        device has no room for 16 bytes per row and 8 per vertex.

        Parameters
        ----------
        roots : array of int32, shape (n_rows,)
            Dense id of the root of each row.
        ids : array of int64, shape (n_rows,)
            What each row says is its id, which is compared with the hash of its members.
        """
        device = self._device
        with device.active():
            wrong = device.zeros(1, ROW_HASH_WRONG)
            sums, out = device.empty(n_rows, np.uint64), device.empty(n_rows, np.uint64)
            occurrences = [device.zeros(side.n, COUNT) for side in self._sides]
            for k, (name, lists) in enumerate((("left", left), ("right", right))):
                values = self._sides[k].params | {
                    "values": device.address(lists.values),
                    "wide": int(np.dtype(lists.values.dtype).itemsize == 8),
                    "offsets": device.address(lists.offsets),
                    "claimed": device.address(lists.lengths),
                    "n_rows": n_rows,
                    "occurrences": device.address(occurrences[k]),
                    "roots": device.address(roots) if name == self._root_side else 0,
                    "before": device.address(sums) if k else 0,
                    "ids": device.address(ids) if k else 0,
                    "out": device.address(out if k else sums),
                    "wrong": device.address(wrong),
                }
                n_blocks = min(_BLOCKS * device.n_multiprocessors, -(-n_rows // _THREADS)) or 1
                device.enqueue(_KERNEL, _DEFINES, n_blocks, _THREADS, parameters(ROW_HASH_PARAMS, values))
                self._raise(device.read(wrong, ROW_HASH_WRONG, 0, 1)[0], name)
            hashes = device.read(out, np.uint64, 0, n_rows)
            counted = [device.read(own, COUNT, 0, side.n) for own, side in zip(occurrences, self._sides, strict=True)]
        return Hashed(hashes, *counted)

    def _raise(self, wrong: np.void, side: str) -> None:
        if wrong["length"]:
            raise IncompleteError(f"column n_{side} is not the length of column {side}")
        if wrong["value"]:
            raise IncompleteError(f"value {int(wrong['value']) - 1:,} of column {side} is not the label of a vertex")
        if wrong["order"]:
            raise IncompleteError(
                f"value {int(wrong['order']) - 1:,} of column {side} is not larger than the one before"
            )
        if wrong["root"]:
            raise IncompleteError(f"row {int(wrong['root']) - 1:,} does not have its root in column {side}")
        if wrong["id"]:
            raise IncompleteError(f"the id of row {int(wrong['id']) - 1:,} does not follow from its members")


class _Side:
    """Labels and hashes of one side on the device, and the launch parameters that say where they are."""

    def __init__(self, device: Device, labels: np.ndarray | None, hashes: np.ndarray) -> None:
        self.n = len(hashes)
        first = 0 if labels is None or not len(labels) else int(labels[0])
        is_range = labels is None or not len(labels) or int(labels[-1]) - first == len(labels) - 1
        self._labels = None if is_range else device.upload(np.asarray(labels, np.int64))
        self._hashes = device.upload(hashes)
        self.params = {
            "labels": 0 if self._labels is None else device.address(self._labels),
            "first": first,
            "n_vertices": self.n,
            "hashes": device.address(self._hashes),
        }


def shipped() -> list[Variant]:
    """All that a `RowHasher` asks for."""
    return [Variant.of(_KERNEL, _DEFINES)]
