"""What is known of the CPU engine before it is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from schemas.engine_kind import EngineKind
from schemas.platform import CORES
from schemas.search import Search

if TYPE_CHECKING:
    from schemas.graph import MiningGraph
    from schemas.work import Engine

__all__ = ["KIND"]

#: The files of machine code that Numba writes when everything has been compiled: without and with thresholds.
_OUTERMOST = "explore.explore-*.nbi", "explore.explore_with_thresholds-*.nbi"


def _make(halvings: int) -> Engine:
    from kernels.cpu.engine import CpuEngine

    return CpuEngine()


def _workspace_bytes(graph: MiningGraph, search: Search) -> int:
    from kernels.cpu.workspace import workspace_bytes

    return workspace_bytes(graph, search)


def _will_compile(search: Search) -> bool:
    import numba

    import kernels.compiled.jit  # noqa: F401 - says where machine code is kept

    return not any(Path(numba.config.CACHE_DIR).glob(f"*/{_OUTERMOST[search.has_thresholds]}"))


KIND = EngineKind(
    name="cpu",
    description="compiled bit-matrix search, one core per worker",
    platform=CORES,
    make=_make,
    why_not=CORES.why_absent,
    workspace_bytes=_workspace_bytes,
    will_compile=_will_compile,
    jobs=frozenset({"all", "largest", "vertices"}),
)
