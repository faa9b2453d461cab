"""What is known of the CPU engine before it is made."""

from __future__ import annotations

from pathlib import Path

from schemas.engine_kind import EngineKind
from schemas.graph import MiningGraph
from schemas.jobs import AllMaximal, LargestFew
from schemas.platform import CORES
from schemas.work import Engine, Search

__all__ = ["KIND"]

#: The file of machine code that Numba writes when everything that `explore` calls has been compiled.
_OUTERMOST = "explore.explore-*.nbi"


def _make(halvings: int) -> Engine:
    from kernels.cpu.engine import CpuEngine

    return CpuEngine()


def _workspace_bytes(graph: MiningGraph, search: Search) -> int:
    from kernels.cpu.workspace import workspace_bytes

    return workspace_bytes(graph, search)


def _will_compile() -> bool:
    import numba

    import kernels.compiled.jit  # noqa: F401 - says where machine code is kept

    return not any(Path(numba.config.CACHE_DIR).glob(f"*/{_OUTERMOST}"))


KIND = EngineKind(
    name="cpu",
    description="compiled bit-matrix search, one core per worker",
    platform=CORES,
    make=_make,
    why_not=CORES.why_absent,
    workspace_bytes=_workspace_bytes,
    will_compile=_will_compile,
    jobs=frozenset({AllMaximal.name, LargestFew.name}),
)
