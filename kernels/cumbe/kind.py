"""What is known of the cuMBE engine before it is made."""

from __future__ import annotations

from kernels.gpu.cuda import CUDA
from schemas.engine_kind import EngineKind
from schemas.graph import MiningGraph
from schemas.work import Engine, Search

__all__ = ["KIND"]


def _make(halvings: int) -> Engine:
    from kernels.cumbe.engine import CumbeEngine
    from kernels.cumbe.memory import CumbeSizes

    return CumbeEngine(sizes=CumbeSizes().halved(halvings))


def _workspace_bytes(graph: MiningGraph, search: Search) -> int:
    from kernels.cumbe.memory import CumbeSizes
    from kernels.gpu.sizes import workspace_bytes

    return workspace_bytes(CumbeSizes(), search)


KIND = EngineKind(
    name="cumbe",
    description="the published GPU algorithm cuMBE, to compare with",
    platform=CUDA,
    make=_make,
    why_not=CUDA.why_absent,
    workspace_bytes=_workspace_bytes,
)
