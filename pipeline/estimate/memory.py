"""How much memory mining takes: a bound that is known before it starts and does not depend on the results."""

from __future__ import annotations

from dataclasses import dataclass

from kernels import engines
from pipeline.output.part_writer import writer_bytes
from pipeline.run.opened import Run

__all__ = ["MemoryBound", "memory_bound"]

#: A worker before its first slice: the interpreter, the libraries (150 MB of them are files that all processes
#: share), the machine code. Measured with the pinned versions on 64-bit Linux: 280 MiB in the driver's own process,
#: 310 MiB in a Dask worker.
PROCESS_BYTES = 384 << 20


@dataclass(frozen=True)
class MemoryBound:
    """Peak memory of a run, in bytes.

    Parameters
    ----------
    shared : int
        Graph and labels, memory-mapped: once a machine, however many workers.
    process : int
        Of each worker: interpreter, libraries and machine code; `PROCESS_BYTES`.
    workspace : int
        Of each worker: the engine's arrays.
    writing : int
        Of each worker: a row group being collected, and another one being encoded.
    """

    shared: int
    process: int
    workspace: int
    writing: int

    @property
    def worker(self) -> int:
        """Bytes of each worker, besides what all workers share."""
        return self.process + self.workspace + self.writing

    def total(self, workers: int) -> int:
        """Of a machine with so many workers, and the driver."""
        return self.shared + self.worker * workers + self.process


def memory_bound(run: Run) -> MemoryBound:
    """The bound for a run whose graph is built.

    Notes
    -----
    It holds as long as no single biclique has more members than a row group; such a one needs room for itself.
    Not part of it: reading the input and building the graph, and the first run in a new environment, in which the
    driver compiles, which takes 200 MB more.
    """
    options, graph, tables = run.options, run.graph, run.tables
    return MemoryBound(
        shared=graph.nbytes + sum(table.nbytes for table in tables or ()),
        process=PROCESS_BYTES,
        workspace=engines.kind(options.engine).workspace_bytes(graph, options.search),
        writing=writer_bytes(tables) if run.job.rows == "slices" else 0,
    )
