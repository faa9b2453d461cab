"""What is known of the cuMBE engine before it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bicliques.kernels.gpu.cuda import CUDA, SCRATCH_SHARE
from bicliques.schemas.platform import EngineKind
from bicliques.schemas.search import Search

if TYPE_CHECKING:
    from bicliques.schemas.graph import MiningGraph
    from bicliques.schemas.work import Engine


def _make(halvings: int) -> Engine:
    from bicliques.kernels.cumbe.engine import CumbeEngine
    from bicliques.kernels.cumbe.memory import CumbeSizes

    return CumbeEngine(sizes=CumbeSizes().halved(halvings))


def _workspace_bytes(graph: MiningGraph, search: Search) -> int:
    from bicliques.kernels.cumbe.memory import CumbeSizes
    from bicliques.kernels.gpu.sizes import workspace_bytes

    return workspace_bytes(CumbeSizes(), search)


def _device_bytes(graph: MiningGraph, search: Search, halvings: int = 0) -> int:
    from bicliques.kernels.cumbe.memory import CUMBE_BUFFERS, CumbeSizes
    from bicliques.kernels.gpu.sizes import search_bytes

    return search_bytes(graph, search, CumbeSizes().halved(halvings), CUMBE_BUFFERS)


KIND = EngineKind(
    name="cumbe",
    description="the published GPU algorithm cuMBE, to compare with",
    platform=CUDA,
    make=_make,
    why_not=CUDA.why_absent,
    workspace_bytes=_workspace_bytes,
    device_bytes=_device_bytes,
    scratch_share=SCRATCH_SHARE,
)
