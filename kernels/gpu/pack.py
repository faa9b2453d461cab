"""The graph on a device, as both GPU engines search it, and bicliques that are made there of a kernel's records.

`kernels.gpu.slice_run` makes them on the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bicliques.kernels.gpu.device import Device
from bicliques.kernels.gpu.machine_code import Variant
from bicliques.kernels.gpu.records import PACK_PARAMS, PACK_TOTALS, WORD_BITS, parameters
from bicliques.schemas import bicliques
from bicliques.schemas.bicliques import ID, Bicliques
from bicliques.schemas.dtypes import COUNT, OFFSET, VERTEX
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Near, Search

_KERNEL, _THREADS, _BLOCKS = "pack", 128, 16  # most blocks per multiprocessor
_DEFINES: dict[str, int] = {}
_SIDES = ("base", "root")


@dataclass(frozen=True)
class Members:
    """`MiningGraph.root_members` and `base_members` on the device, with offsets and hashes. Uploaded once per graph."""

    arrays: dict[str, Any]
    #: By side: 1 if every vertex has one member, so that the kernel need not read offsets.
    alone: dict[str, int]
    root_is_left: bool
    #: What a left member adds to the key of a row, if keys of 32 bits are enough. Otherwise 0.
    key_step: int

    @classmethod
    def of(cls, device: Device, graph: MiningGraph, hashes: dict[str, Any]) -> Members:
        """Upload those of a graph, whose hashes are on the device: handles by side."""
        arrays, alone = dict[str, Any](), dict[str, int]()
        for side in _SIDES:
            indptr, members = (getattr(graph, f"{side}_members{suffix}") for suffix in ("_indptr", ""))
            arrays |= {f"{side}_indptr": device.upload(indptr), f"{side}_members": device.upload(members)}
            arrays[f"{side}_hashes"] = hashes[side]
            alone[f"{side}_alone"] = int(len(members) == len(indptr) - 1)
        is_narrow = (graph.n_left + 1) * (graph.n_right + 1) < 1 << 32
        return cls(arrays, alone, graph.root_side == "left", graph.n_right + 1 if is_narrow else 0)


def pack(
    device: Device,
    members: Members,
    records: Any,
    n_records: int,
    values: Any,
    in_blocks: bool = False,
    near: bool = False,
) -> Bicliques:
    """Bicliques in dense ids of the user's sides, ascending. All arrays are on the device, which may be writing them.

    Raises `DeviceMemoryError` or `MemoryError`: the device has no room for the result and 8 bytes per record; with
    blocks, 60 bytes.

    Parameters
    ----------
    records : handle
        The first `n_records` of it are `kernels.gpu.records.RECORD`. ``n_root == 0`` marks a hole, which is no
        biclique.
    values : handle
        For each record, its base vertices, then its root ranks.
    in_blocks : bool
        Whether rows are put into the blocks of `schemas.bicliques`. Otherwise they have the order of the records.
    near : bool
        Whether it is behind the members how many pairs are missing.
    """
    n_blocks = min(_BLOCKS * device.n_multiprocessors, -(-n_records // _THREADS)) or 1
    n_warps = n_blocks * _THREADS // 32
    before = device.empty(n_warps + 1, PACK_TOTALS)
    fields = {"records": records, "values": values, "before": before, "ended": device.zeros(1, COUNT)}
    fields |= members.arrays | {f"{side}_lengths": device.empty(n_records, VERTEX) for side in _SIDES}
    numbers = {"n_records": n_records, "root_is_left": int(members.root_is_left), "key_step": members.key_step}
    numbers |= members.alone
    kind = np.uint32 if members.key_step else np.uint64
    if in_blocks:
        fields["keys"] = device.empty(n_records, kind)
    _enqueue(device, n_blocks, fields, numbers)
    totals = device.read(before, PACK_TOTALS, n_warps, 1)[0]
    n = int(totals["rows"])
    if in_blocks and n > bicliques.BLOCK_ROWS:
        order = bicliques.block_order(device.view(fields.pop("keys"), kind, 0, n_records), n)
        fields |= {"order": order, "ended": device.zeros(1, COUNT)}
        numbers["n_records"] = n
        _enqueue(device, n_blocks, fields, numbers)
    offsets = {side: device.empty(n + 1, OFFSET) for side in _SIDES}
    out = {side: device.empty(int(totals[side]), VERTEX) for side in _SIDES}
    first, ids = device.empty(n, VERTEX), device.empty(n, ID)
    fields |= {f"{side}_offsets": offsets[side] for side in _SIDES} | {f"{side}_out": out[side] for side in _SIDES}
    missing = {"missing": device.empty(n, VERTEX)} if near else {}
    _enqueue(device, n_blocks, fields | missing | {"first": first, "ids": ids}, numbers | {"writing": 1})
    base, root = (
        (device.view(offsets[side], OFFSET, 0, n + 1), device.view(out[side], VERTEX, 0, int(totals[side])))
        for side in _SIDES
    )
    left, right = (root, base) if members.root_is_left else (base, root)
    numbered = device.view(first, VERTEX, 0, n), device.view(ids, ID, 0, n)
    return Bicliques(*left, *right, *numbered, *(device.view(each, VERTEX, 0, n) for each in missing.values()))


def _enqueue(device: Device, n_blocks: int, fields: dict[str, Any], numbers: dict[str, int]) -> None:
    values = {name: device.address(handle) for name, handle in fields.items()} | numbers
    device.enqueue(_KERNEL, _DEFINES, n_blocks, _THREADS, parameters(PACK_PARAMS, values))


def shipped() -> list[Variant]:
    """All that `pack` asks for."""
    return [Variant.of(_KERNEL, _DEFINES)]


class DeviceGraph:
    """A `MiningGraph` on the device, with the size and hash sum of every vertex."""

    def __init__(self, device: Device, graph: MiningGraph) -> None:
        self.graph = graph
        self._members: Members | None = None
        degree = np.diff(graph.root_indptr)
        base_degree = np.sort(np.diff(graph.base_indptr))[::-1]
        self.max_root_degree = int(degree.max())
        self.max_rows = int(min(graph.n_roots, base_degree[:WORD_BITS].sum()))
        self.arrays = {
            "root_indptr": device.upload(graph.root_indptr),
            "root_indices": device.upload(graph.root_indices),
            "base_indptr": device.upload(graph.base_indptr),
            "base_indices": device.upload(graph.base_indices),
            "root_weight": device.upload(np.diff(graph.root_members_indptr).astype(VERTEX)),
            "base_weight": device.upload(np.diff(graph.base_members_indptr).astype(VERTEX)),
            "root_hash": device.upload(graph.root_hash),
            "base_hash": device.upload(graph.base_hash),
        }
        self.params: dict[str, int] = {name: device.address(handle) for name, handle in self.arrays.items()}
        self.params |= {"n_roots": graph.n_roots, "n_base": graph.n_base}

    def members(self, device: Device) -> Members:
        """The members of every vertex, on the device. They are uploaded at the first call."""
        if self._members is None:
            self._members = Members.of(
                device, self.graph, {side: self.arrays[f"{side}_hash"] for side in ("base", "root")}
            )
        return self._members


def search_params(graph: MiningGraph, search: Search) -> dict[str, int]:
    """Launch parameters that say what counts as a result, by root and base side."""
    left, right = (search.min_left, search.max_left), (search.min_right, search.max_right)
    (min_root, max_root), (min_base, max_base) = (left, right) if graph.root_side == "left" else (right, left)
    unlimited, near = int(np.iinfo(OFFSET).max), search.near or Near(0, 0, 0)
    near_root, near_base = (near.left, near.right) if graph.root_side == "left" else (near.right, near.left)
    return {
        "prove": search.mode != "count",
        "list": search.mode == "list",
        "root_is_left": graph.root_side == "left",
        "min_base": min_base,
        "max_base": unlimited if max_base is None else max_base,
        "min_root": min_root,
        "max_root": unlimited if max_root is None else max_root,
        "near_pairs": -1 if near.pairs is None else near.pairs,
        "near_root": near_root,
        "near_base": near_base,
    }
