"""Writes the same parts on several threads. One thread needs half a minute to encode a second's results of a GPU."""

from __future__ import annotations

import queue
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from bicliques.kernels.gpu.visible import named_devices
from bicliques.pipeline.output import stretch
from bicliques.pipeline.output.part_writer import PartWriter
from bicliques.pipeline.output.stretch import pieces_of
from bicliques.pipeline.process.cores import count_cores, processes_that_share
from bicliques.pipeline.run.labels import Tables
from bicliques.schemas.bicliques import UNKNOWN, Bicliques, Provenance
from bicliques.schemas.manifest import Part

#: Most threads. More would be faster than any disk.
_MOST_THREADS = 16


def writing_threads() -> int:
    """How many threads this worker may write with: its share of the cores, if each worker has a GPU of this machine.

    A process that this package starts is told how many share them. One that dask-cuda starts sees the GPUs of all.
    """
    workers = max(processes_that_share(), len(named_devices() or ()))
    return min(max(count_cores() // workers, 1), _MOST_THREADS)


class ParallelWriter:
    """An `Emit` that writes full stretches of the bicliques of one slice on threads. Each thread has its own parts.

    A call returns as soon as the arrays of the engine are copied. Sorting, encoding and writing go on while the engine
    works. Memory is bounded, because each thread has at most one stretch.

    Parameters
    ----------
    folder, slice_number, tables, provenance
        See `pipeline.output.part_writer.PartWriter`.
    threads : int
        Stretches that are written at a time. A slice with fewer than two makes one part.
    """

    on_device = False

    def __init__(
        self,
        folder: Path,
        slice_number: int,
        tables: Tables,
        threads: int,
        provenance: Provenance = UNKNOWN,
    ):
        self._writers = [PartWriter(folder, slice_number, tables, provenance) for _ in range(threads)]
        self._free: queue.LifoQueue[PartWriter] = queue.LifoQueue()  # last in, first out, so that few parts are opened
        for one in self._writers:
            self._free.put(one)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="write")
        self._stretches: list[Future[None]] = []
        self._filling: PartWriter | None = None

    def __call__(self, found: Bicliques, /) -> None:
        """Append a batch, whose arrays may change afterwards. Waits while all threads have stretches to write.

        Raises
        ------
        ResourceError
            A resource is missing, as when the disk is full.
        """
        for piece in pieces_of(found, stretch.STRETCH_MEMBERS):
            self._raise_errors()
            self._filling = self._filling or self._free.get()
            self._filling.stretch.add(piece)
            if self._filling.stretch.is_full:
                self._hand_over(self._filling)

    def close(self) -> list[Part]:
        """Wait until all is written, and name the last parts. Without rows there is no part."""
        if self._filling is not None:
            self._hand_over(self._filling)
        for written in self._stretches:
            written.result()
        parts = [part for some in self._threads.map(PartWriter.close, self._writers) for part in some]
        self._threads.shutdown()
        return parts

    def discard(self) -> None:
        """Remove all that was written, after an error."""
        self._threads.shutdown(cancel_futures=True)
        for one in self._writers:
            one.discard()

    def _hand_over(self, one: PartWriter) -> None:
        self._filling = None
        self._stretches.append(self._threads.submit(self._write, one))

    def _write(self, one: PartWriter) -> None:
        try:
            one.write_stretch()
        finally:
            self._free.put(one)

    def _raise_errors(self) -> None:
        ended = [written for written in self._stretches if written.done()]
        self._stretches = [written for written in self._stretches if not written.done()]
        for written in ended:
            written.result()
