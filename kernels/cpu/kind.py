"""What is known of the CPU engine before it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bicliques.schemas.platform import CORES, EngineKind
from bicliques.schemas.search import Search

if TYPE_CHECKING:
    from bicliques.schemas.graph import MiningGraph
    from bicliques.schemas.work import Engine


def _make(halvings: int) -> Engine:
    from bicliques.kernels.cpu.engine import CpuEngine

    return CpuEngine()


def _workspace_bytes(graph: MiningGraph, search: Search) -> int:
    from bicliques.kernels.cpu import leaves, near_workspace, workspace

    if search.pq is not None:
        return leaves.workspace_bytes(graph)
    room = workspace.workspace_bytes if search.near is None else near_workspace.near_bytes
    return room(graph, search)


def _will_compile(search: Search) -> bool:
    from bicliques.kernels.cpu.engine import EXPLORE, EXPLORE_NEAR, EXPLORE_WITH_THRESHOLDS
    from bicliques.kernels.cpu.leaves import COUNT_PIECES

    if search.pq is not None:
        return not COUNT_PIECES.is_kept()
    if search.near is not None:
        return not EXPLORE_NEAR.is_kept()
    return not (EXPLORE_WITH_THRESHOLDS if search.prunes else EXPLORE).is_kept()


KIND = EngineKind(
    name="cpu",
    description="compiled bit-matrix search, one core per worker",
    platform=CORES,
    make=_make,
    why_not=CORES.why_absent,
    workspace_bytes=_workspace_bytes,
    will_compile=_will_compile,
    jobs=frozenset({"all", "cliques", "largest", "marked", "near", "near-largest", "pq", "vertices"}),
)
