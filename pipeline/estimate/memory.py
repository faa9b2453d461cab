"""A bound on the memory that mining takes. It is known before mining starts, and does not depend on the results."""

from __future__ import annotations

from dataclasses import dataclass

from kernels import engines
from pipeline.output.part_writer import writer_bytes
from pipeline.run.opened import Run

__all__ = ["MemoryBound", "memory_bound"]

#: Bytes of a worker before its first slice: the interpreter, the libraries (150 MB of them are files that all
#: processes share), and the machine code. It was measured with the pinned versions on 64-bit Linux: 182 MiB in the
#: driver's own process, and 310 MiB in a Dask worker when that still loaded Numba.
PROCESS_BYTES = 320 << 20
#: Bytes per vertex with ``per_vertex``: the totals of a slice (`schemas.vertices`), twice while they grow.
VERTEX_BYTES = 2 * 56


@dataclass(frozen=True)
class MemoryBound:
    """Peak memory of a run, in bytes.

    Parameters
    ----------
    shared : int
        Graph and labels, memory-mapped. They are in memory once per machine, however many workers there are.
    process : int
        Interpreter, libraries and machine code of each worker; `PROCESS_BYTES`.
    workspace : int
        Arrays of the engine of each worker.
    writing : int
        What each worker needs to write: a row group that is collected, and another one that is encoded. Also what it
        needs to look at all members, if it does.
    device : int
        Device memory of the search of each worker as it begins: the graph, and buffers. Scratch memory comes on top. It
        takes up to 60 % of what is free then. 0 for an engine without a device.
    """

    shared: int
    process: int
    workspace: int
    writing: int
    device: int

    @property
    def worker(self) -> int:
        """Bytes of each worker, besides what all workers share."""
        return self.process + self.workspace + self.writing

    def total(self, workers: int) -> int:
        """Bytes of a machine that runs the driver and `workers` workers."""
        return self.shared + self.worker * workers + self.process


def memory_bound(run: Run) -> MemoryBound:
    """The bound for a run whose graph is built.

    Notes
    -----
    The bound holds as long as no single biclique has more members than a row group. A larger biclique needs room of its
    own. Reading the input and building the graph are not in the bound. In the first run in a new environment the driver
    compiles, which takes 200 MB more.
    """
    options, graph, tables = run.options, run.graph, run.tables
    kind = engines.kind(options.engine)
    return MemoryBound(
        shared=graph.nbytes + sum(table.nbytes for table in tables or ()),
        process=PROCESS_BYTES,
        workspace=kind.workspace_bytes(graph, run.job.of_engine),
        writing=(writer_bytes(tables) if run.job.rows == "slices" else 0)
        + (VERTEX_BYTES * (graph.n_left + graph.n_right) if run.job.looks_on else 0),
        device=kind.device_bytes(graph, run.job.of_engine),
    )
