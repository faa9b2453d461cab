"""What is known of the reference engine before it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bicliques.schemas.platform import CORES, EngineKind
from bicliques.schemas.search import Search

if TYPE_CHECKING:
    from bicliques.schemas.graph import MiningGraph
    from bicliques.schemas.work import Engine


def _make(halvings: int) -> Engine:
    from bicliques.kernels.reference.engine import ReferenceEngine

    return ReferenceEngine()


def _workspace_bytes(graph: MiningGraph, search: Search) -> int:
    return 400 * graph.n_edges + (1 << 20)


KIND = EngineKind(
    name="reference",
    description="the definition in plain Python, for graphs of a few hundred edges",
    platform=CORES,
    make=_make,
    why_not=CORES.why_absent,
    workspace_bytes=_workspace_bytes,
    jobs=frozenset({"all", "cliques", "largest", "marked", "near", "near-largest", "pq", "vertices"}),
)
