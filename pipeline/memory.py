"""How much memory mining takes: a bound that is known before it starts and does not depend on the results."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline import engines
from pipeline.folder import RunFolder
from pipeline.labels import open_labels
from pipeline.writer import Tables, writer_bytes
from schemas.graph import MiningGraph

__all__ = ["MemoryBound", "memory_bound"]

#: A Python process with everything imported and the machine code loaded; measured, 64-bit Linux.
PROCESS_BYTES = 320 << 20


@dataclass(frozen=True)
class MemoryBound:
    """Peak memory of a run, in bytes.

    Parameters
    ----------
    shared : int
        Graph and labels, memory-mapped: once a machine, however many workers.
    worker : int
        Of each worker besides: the process, the engine's workspace, two row groups being written.
    """

    shared: int
    worker: int

    def total(self, workers: int) -> int:
        """Of a machine with so many workers, and the driver."""
        return self.shared + self.worker * workers + PROCESS_BYTES


def memory_bound(folder: RunFolder) -> MemoryBound:
    """The bound for a run whose graph is built.

    Notes
    -----
    It holds as long as no single biclique has more members than a row group; such a one needs room for itself.
    """
    options = folder.options()
    graph = MiningGraph.open(folder.graph)
    labels = (open_labels(folder, "left"), open_labels(folder, "right"))
    tables: Tables = labels if options.ids == "labels" else None
    workspace = engines.kind(options.engine).workspace_bytes(graph, options.search)
    writing = writer_bytes(tables) if options.search.mode == "list" else 0
    return MemoryBound(
        shared=graph.nbytes + (sum(table.nbytes for table in labels) if tables else 0),
        worker=PROCESS_BYTES + workspace + writing,
    )
