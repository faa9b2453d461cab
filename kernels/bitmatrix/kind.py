"""What is known of the bit-matrix engine before it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bicliques.kernels.gpu.cuda import CUDA, SCRATCH_SHARE
from bicliques.schemas.platform import EngineKind
from bicliques.schemas.search import Search

if TYPE_CHECKING:
    from bicliques.schemas.graph import MiningGraph
    from bicliques.schemas.work import Engine, Subtrees


def _make(halvings: int) -> Engine:
    from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
    from bicliques.kernels.bitmatrix.memory import GpuSizes

    return BitMatrixEngine(sizes=GpuSizes().halved(halvings))


def _workspace_bytes(graph: MiningGraph, search: Search) -> int:
    from bicliques.kernels.bitmatrix.memory import GpuSizes
    from bicliques.kernels.gpu.sizes import workspace_bytes

    return workspace_bytes(GpuSizes(), search)


def _device_bytes(graph: MiningGraph, search: Search, halvings: int = 0) -> int:
    from bicliques.kernels.bitmatrix.memory import GpuSizes, device_bytes

    return device_bytes(graph, search, GpuSizes().halved(halvings))


def _prepare(graph: MiningGraph, nodes: Subtrees, search: Search) -> Subtrees:
    from bicliques.kernels.bitmatrix.items import Queued

    return Queued.of(graph, nodes, search)


KIND = EngineKind(
    name="bitmatrix",
    description="bit-matrix search on a CUDA GPU, one GPU per worker",
    platform=CUDA,
    make=_make,
    why_not=CUDA.why_absent,
    workspace_bytes=_workspace_bytes,
    device_bytes=_device_bytes,
    scratch_share=SCRATCH_SHARE,
    jobs=frozenset({"all", "cliques", "largest", "marked", "near", "near-largest", "pq", "vertices"}),
    prepare=_prepare,
)
