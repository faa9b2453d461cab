"""What is known of the bit-matrix engine before it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernels.gpu.cuda import CUDA, SCRATCH_SHARE
from schemas.engine_kind import EngineKind
from schemas.search import Search

if TYPE_CHECKING:
    from schemas.graph import MiningGraph
    from schemas.work import Engine, Subtrees


def _make(halvings: int) -> Engine:
    from kernels.bitmatrix.engine import BitMatrixEngine
    from kernels.bitmatrix.memory import GpuSizes

    return BitMatrixEngine(sizes=GpuSizes().halved(halvings))


def _workspace_bytes(graph: MiningGraph, search: Search) -> int:
    from kernels.bitmatrix.memory import GpuSizes
    from kernels.gpu.sizes import workspace_bytes

    return workspace_bytes(GpuSizes(), search)


def _device_bytes(graph: MiningGraph, search: Search, halvings: int = 0) -> int:
    from kernels.bitmatrix.memory import GpuSizes, device_bytes

    return device_bytes(graph, search, GpuSizes().halved(halvings))


def _prepare(graph: MiningGraph, nodes: Subtrees, search: Search) -> Subtrees:
    from kernels.bitmatrix.items import Queued

    return Queued.of(graph, nodes, search.prunes)


KIND = EngineKind(
    name="bitmatrix",
    description="bit-matrix search on a CUDA GPU, one GPU per worker",
    platform=CUDA,
    make=_make,
    why_not=CUDA.why_absent,
    workspace_bytes=_workspace_bytes,
    device_bytes=_device_bytes,
    scratch_share=SCRATCH_SHARE,
    jobs=frozenset({"all", "largest", "vertices"}),
    prepare=_prepare,
)
