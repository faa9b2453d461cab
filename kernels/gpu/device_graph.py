"""The graph on a device, in the form that both GPU engines search."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.gpu.device import Device
from bicliques.kernels.gpu.pack import Members
from bicliques.kernels.gpu.records import WORD_BITS
from bicliques.schemas.dtypes import OFFSET, VERTEX
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Near, Search


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
