"""Makes `Bicliques` of a kernel's records on the device. `kernels.gpu.slice_run` does the same on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bicliques.kernels.gpu.device import Device
from bicliques.kernels.gpu.records import PACK_PARAMS, PACK_TOTALS, parameters
from bicliques.kernels.gpu.source import Variant
from bicliques.schemas import blocks
from bicliques.schemas.bicliques import ID, Bicliques
from bicliques.schemas.dtypes import COUNT, OFFSET, VERTEX
from bicliques.schemas.graph import MiningGraph

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

    Parameters
    ----------
    records : handle
        The first `n_records` of it are `kernels.gpu.records.RECORD`. ``n_root == 0`` marks a hole, which is no
        biclique.
    values : handle
        For each record, its base vertices, then its root ranks.
    in_blocks : bool
        Whether rows are put into the blocks of `schemas.blocks`. Otherwise they have the order of the records.
    near : bool
        Whether it is behind the members how many pairs are missing.

    Raises
    ------
    DeviceMemoryError, MemoryError
        The device has no room for the result and 8 bytes per record; with blocks, 60 bytes.
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
    if in_blocks and n > blocks.BLOCK_ROWS:
        order = blocks.block_order(device.view(fields.pop("keys"), kind, 0, n_records), n)
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
