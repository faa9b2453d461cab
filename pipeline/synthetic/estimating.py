"""What generating a graph would take, for ``bicliques generate --dry-run``."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nlargest
from typing import Any

from pipeline.synthetic.generate_on import choose_drawer
from pipeline.synthetic.models import Part, random_graph
from pipeline.synthetic.wanted import Labels, Wanted, wanted
from pipeline.synthetic.writing import PART_EDGES, threads_of
from schemas.options import Where

__all__ = ["Estimate", "estimate"]

#: Bytes of memory of the process, and for an edge and a vertex of a part that is being written; bytes of a file for an
#: edge; edges of a core per second. docs/lab/generate.md has what was measured.
_PROCESS_BYTES = 256 << 20
_EDGE_BYTES: dict[Labels, int] = {"integers": 24, "text": 75}
_VERTEX_BYTES = 60
_DISK: dict[Labels, float] = {"integers": 4.2, "text": 4.5}
_RATE: dict[Labels, float] = {"integers": 3.8e6, "text": 2.4e6}
#: The same where a GPU draws, somewhat less than an H100 beside 16 cores gave for 10^9 integers and for text.
_RATE_BESIDE_GPU: dict[Labels, float] = {"integers": 1.0e7, "text": 2.9e6}


@dataclass(frozen=True)
class Estimate:
    """What generating a graph would take, about.

    Parameters
    ----------
    edges, parts, disk_bytes, memory_bytes : int
    seconds : float
    threads : int
    drawn_on : str
        Where the edges are drawn, and why there.
    device_bytes : int
        Device memory, besides what CUDA takes.
    """

    edges: int
    parts: int
    disk_bytes: int
    memory_bytes: int
    seconds: float
    threads: int
    drawn_on: str
    device_bytes: int


def estimate(
    threads: int | None = None, part_edges: int = PART_EDGES, generate_on: Where = "auto", **options: Any
) -> Estimate:
    """What `generate` would take with these options. Nothing is drawn or written.

    Raises
    ------
    InputError
        If there is no such graph.
    ResourceError
        If a GPU was asked for and cannot be used.
    """
    graph, threads = wanted(**options), threads_of(threads, part_edges)
    parts = random_graph(graph).parts(part_edges)
    busy = min(threads, len(parts))
    memory = _PROCESS_BYTES + 8 * graph.n_right + sum(nlargest(busy, (_part_bytes(part, graph) for part in parts)))
    disk = round(graph.edges * _DISK[graph.labels])
    choice = choose_drawer(generate_on, graph, parts)
    rate = (_RATE if choice.device is None else _RATE_BESIDE_GPU)[graph.labels]
    seconds = graph.edges / rate / busy
    return Estimate(graph.edges, len(parts), disk, memory, seconds, threads, choice.text, choice.device_bytes)


def _part_bytes(part: Part, graph: Wanted) -> int:
    """Memory that a part takes while it is drawn and written, without planted edges."""
    return part.edges * _EDGE_BYTES[graph.labels] + min(part.stop - part.first, part.edges) * _VERTEX_BYTES
