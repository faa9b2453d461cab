"""From the kernel's records to `Bicliques` on the device: what `kernels.gpu.unpack` does on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kernels.gpu.device import Device
from kernels.gpu.layout import PACK_PARAMS, RECORD, parameters
from schemas.bicliques import Bicliques
from schemas.dtypes import OFFSET, VERTEX
from schemas.graph import MiningGraph

__all__ = ["Members", "pack"]

_KERNEL, _THREADS, _BLOCKS = "pack", 128, 16  # blocks a multiprocessor
#: Of a record as int32 words (`layout.RECORD`): how many, and where the number of its root vertices is.
_WORDS, _N_ROOT = RECORD.itemsize // 4, RECORD.fields["n_root"][1] // 4  # type: ignore[index]


@dataclass(frozen=True)
class Members:
    """`MiningGraph.root_members` and `base_members` on the device, with their offsets; uploaded once a graph."""

    arrays: dict[str, Any]
    root_is_left: bool

    @classmethod
    def of(cls, device: Device, graph: MiningGraph) -> Members:
        """Upload those of a graph."""
        arrays = {
            f"{side}_{name}": device.upload(getattr(graph, f"{side}_members{suffix}"))
            for side in ("base", "root")
            for name, suffix in (("indptr", "_indptr"), ("members", ""))
        }
        return cls(arrays, graph.root_side == "left")


def pack(device: Device, members: Members, records: Any, n_records: int, values: Any) -> Bicliques:
    """Bicliques in dense ids of the user's sides, all arrays on the device.

    Parameters
    ----------
    device : Device
    members : Members
    records : handle
        The first `n_records` of it are `layout.RECORD`; ``n_root == 0`` marks a hole.
    values : handle
        For each record its base vertices, then its root ranks.

    Raises
    ------
    DeviceMemoryError, MemoryError
        Without room for the result, and 60 bytes a record.
    """
    xp = device.xp
    words = device.view(records, VERTEX, 0, n_records * _WORDS).reshape(-1, _WORDS)
    until = xp.cumsum((words[:, _N_ROOT] > 0).astype(OFFSET))
    n = int(until[-1]) if n_records else 0
    first = device.empty(n, VERTEX)
    fields = {"records": records, "values": values, "until": until, "first": first} | members.arrays
    lengths = {side: device.empty(n, OFFSET) for side in ("base", "root")}
    _launch(device, n_records, fields | {f"{side}_lengths": handle for side, handle in lengths.items()})
    sides, written = {}, dict[str, Any]()
    for side, handle in lengths.items():
        offsets = xp.concatenate([xp.zeros(1, OFFSET), xp.cumsum(device.view(handle, OFFSET, 0, n), dtype=OFFSET)])
        total = int(offsets[-1])
        out = device.empty(total, VERTEX)
        written |= {f"{side}_offsets": offsets, f"{side}_out": out}
        sides[side] = (offsets, device.view(out, VERTEX, 0, total))
    _launch(device, n_records, fields | written)
    left, right = (sides["root"], sides["base"]) if members.root_is_left else (sides["base"], sides["root"])
    return Bicliques(*left, *right, device.view(first, VERTEX, 0, n))


def _launch(device: Device, n_records: int, fields: dict[str, Any]) -> None:
    values = {name: device.address(handle) for name, handle in fields.items()}
    values |= {"n_records": n_records, "writing": "base_out" in fields}
    params = parameters(PACK_PARAMS, values)
    device.launch(_KERNEL, {}, _BLOCKS * device.n_multiprocessors, _THREADS, params)
