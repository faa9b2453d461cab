"""Bounds on the memory of a run, and the refusal of a graph that is too large for its device, before mining begins."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from bicliques.kernels import engines
from bicliques.kernels.gpu.cuda import CUDA
from bicliques.pipeline.output.part_writer import writer_bytes
from bicliques.pipeline.prepare.build import MOST_THREADS
from bicliques.pipeline.prepare.weights import ROOT_BYTES
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import size
from bicliques.schemas.errors import ResourceError, as_option

#: Bytes that any device has free on which engines run. For less no device is asked, because asking takes time.
_ANY_DEVICE = 1 << 30


def refuse_too_large(run: Run) -> None:
    """Refuse a run whose graph does not fit on this process's device, next to the smallest buffers of its engine."""
    kind = engines.kind(run.options.engine)
    for search, graph in run.bands:
        needed = kind.device_bytes(graph, search, kind.platform.most_halvings)
        free = kind.platform.free_bytes() if needed > _ANY_DEVICE else None
        if free is not None and needed > free:
            raise ResourceError(
                f"the graph of {graph.n_edges:,} edges takes {size(needed)} on the device with the smallest buffers "
                f"of engine {kind.name}, and {size(free)} are free there; raise {as_option('min_left')} and "
                f"{as_option('min_right')}, or begin anew with {as_option('engine', 'cpu')}"
            )


#: Bytes of a worker before its first slice: the interpreter, the libraries (150 MB of them are files that all
#: processes share), and the machine code. It was measured with the pinned versions on 64-bit Linux: 182 MiB in the
#: driver's own process, and 310 MiB in a Dask worker when that still loaded Numba.
PROCESS_BYTES = 320 << 20
#: Bytes per vertex with ``per_vertex``: the totals of a slice (`schemas.vertices`), twice while they grow.
VERTEX_BYTES = 2 * 56
#: Bytes per edge in main memory while a CPU or a GPU reads, and while either builds: the edge table of 8, and the graph
#: in both directions, before and after vertices have their ranks.
_READ_BYTES, _READ_BYTES_GPU, _BUILD_BYTES = 9, 18, 32
#: Bytes per vertex while the graph is built, besides 4 per thread that counts.
_BUILT_VERTEX_BYTES = 130
#: Bytes per label that is numbered, if it is an integer and if it is text, besides three times its bytes.
_INTEGER_BYTES, _TEXT_BYTES, _COPIES_OF_TEXT = 60, 200, 3
#: Bytes of a row group of the edge table that a thread encodes, and of a batch that a thread reads or has read.
_ROW_GROUP_BYTES, _BATCH_BYTES = 32 << 20, 64 << 20


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
        needs to look at all members, if it does. The driver takes no more to read rows for the page.
    device : int
        Device memory of the search of each worker as it begins: the graph, and buffers, which are smaller where the
        device of this process has no room for them. 0 for an engine without a device.
    scratch : int
        Most device memory that the search takes besides: a share of what is free on the device of this process then,
        within ``device_memory``. What is listed is put together in the rest. 0 where no device is.
    free : int
        Device memory that is free on the device of this process, within ``device_memory``. Reading and building take no
        more, and work in pieces where all edges need more. 0 where no device is, or neither reads nor searches.
    weights : int
        What the driver keeps of the roots, to estimate work. A worker whose threads share slices keeps as much.
    shares : bool
        Whether threads of workers share slices.
    """

    shared: int
    process: int
    workspace: int
    writing: int
    device: int
    scratch: int
    free: int
    weights: int
    shares: bool

    @property
    def worker(self) -> int:
        """Bytes of each worker, besides what all workers share. Each thread is a worker here."""
        return self.process + self.workspace + self.writing + (self.weights if self.shares else 0)

    def total(self, workers: int) -> int:
        """Bytes of a machine that runs the driver and `workers` workers. 0: the driver mines."""
        driver = self.process + self.writing if workers else 0
        return self.shared + self.weights + self.worker * max(workers, 1) + driver


def memory_bound(run: Run, shares: bool = False) -> MemoryBound:
    """The bound for a run whose graph is built, and for workers whose threads share slices, or do not.

    Notes
    -----
    The bound holds as long as no single biclique has more members than a row group. A larger biclique needs room of its
    own. Reading the input and building the graph are not in the bound. In the first run in a new environment the driver
    compiles, which takes 260 MB more.
    """
    options, graph, tables = run.options, run.graph, run.tables
    kind = engines.kind(options.engine)
    device = kind.device_bytes(graph, run.job.of_engine)
    free = kind.platform.free_bytes() if device else None
    if free is not None and device > free:  # a worker halves its buffers until there is room for them
        halved = (kind.device_bytes(graph, run.job.of_engine, n) for n in range(1, kind.platform.most_halvings + 1))
        device = next((n_bytes for n_bytes in halved if n_bytes <= free), device)
    return MemoryBound(
        shared=graph.nbytes + sum(table.nbytes for table in tables or ()),
        process=PROCESS_BYTES,
        workspace=kind.workspace_bytes(graph, run.job.of_engine),
        writing=(writer_bytes(tables) if run.job.rows == "slices" else 0)
        + (VERTEX_BYTES * (graph.n_left + graph.n_right) if run.job.looks_on else 0),
        device=device,
        scratch=int(kind.scratch_share * max(free - device, 0)) if free is not None else 0,
        free=(CUDA.free_bytes() if free is None and run.input.get("read_on") == "gpu" else free) or 0,
        weights=ROOT_BYTES * sum(band.n_roots for _, band in run.bands),
        shares=shares,
    )


@dataclass(frozen=True)
class PreparingBound:
    """Peak main memory of reading the input and of building the graph, in bytes.

    Parameters
    ----------
    reading, building : int
        Of the process that does it, with its interpreter and libraries. Both are for the input as it is: its edges with
        repetitions, and all of its vertices. Thresholds, which leave less of it, make building take less.
    """

    reading: int
    building: int


def preparing_bound(run: Run) -> PreparingBound:
    """The bound for a run that has read its input. A GPU takes the rest of what is free of its memory in pieces."""
    facts, threads = run.input, min(count_cores(), MOST_THREADS)
    rows, vertices = facts["n_edges"] + facts["duplicates"], facts["n_left"] + facts["n_right"]
    kept = sum(table.nbytes for table in run.labels)
    read_bytes = _READ_BYTES_GPU if facts.get("read_on") == "gpu" else _READ_BYTES
    labels = sum(_numbered_bytes(table) for table in run.labels)
    batch = min(_BATCH_BYTES, 64 * rows // threads)
    counts = 4 * min(threads * max(facts["n_left"], facts["n_right"]), rows)
    return PreparingBound(
        reading=PROCESS_BYTES + read_bytes * rows + labels + threads * max(_ROW_GROUP_BYTES, batch),
        building=PROCESS_BYTES + _BUILD_BYTES * facts["n_edges"] + _BUILT_VERTEX_BYTES * vertices + counts + kept,
    )


def _numbered_bytes(labels: pa.Array) -> int:
    """Bytes that the labels of a side take while they are numbered."""
    if pa.types.is_integer(labels.type):
        return _INTEGER_BYTES * len(labels)
    return int(_TEXT_BYTES * len(labels) + _COPIES_OF_TEXT * labels.nbytes)
