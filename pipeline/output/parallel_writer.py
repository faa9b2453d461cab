"""Writes the same parts on several threads. One thread needs half a minute to encode a second's results of a GPU."""

from __future__ import annotations

import os
import queue
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from pipeline.output import part_writer
from pipeline.output.part_writer import PartWriter, pieces_of, to_batch
from pipeline.process.cores import count_cores
from pipeline.run.labels import Tables
from schemas.bicliques import Bicliques
from schemas.manifest import Part

__all__ = ["ParallelWriter", "writing_threads"]

#: Most threads. More would be faster than any disk.
_MOST_THREADS = 16


def writing_threads() -> int:
    """How many threads this worker may write with: its share of the cores, if each worker has a GPU of this machine."""
    workers = len(os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(","))
    return min(max(count_cores() // workers, 1), _MOST_THREADS)


class ParallelWriter:
    """An `Emit` that writes full row groups of the bicliques of one slice on threads. Each thread has its own parts.

    A call returns as soon as the engine's arrays are copied into columns. Encoding and writing go on while the engine
    works. Memory is bounded, because each thread has at most one row group.

    Parameters
    ----------
    folder, slice_number, tables, names
        See `pipeline.output.part_writer.PartWriter`.
    threads : int
        Row groups that are encoded at a time. A slice with fewer than two row groups makes one part.
    """

    on_device = False

    def __init__(
        self,
        folder: Path,
        slice_number: int,
        tables: Tables,
        threads: int,
        names: tuple[str, str] = ("left", "right"),
    ):
        self.tables = tables
        self._writers = [PartWriter(folder, slice_number, tables, names) for _ in range(threads)]
        self._room = self._writers[0].room
        self._free: queue.LifoQueue[PartWriter] = queue.LifoQueue()  # last in, first out, so that few parts are opened
        for one in self._writers:
            self._free.put(one)
        # one thread per writer encodes, and as many others turn arrays into columns meanwhile
        self._threads = ThreadPoolExecutor(2 * threads, thread_name_prefix="write")
        self._groups: list[Future[None]] = []
        self._collected: list[pa.RecordBatch] = []
        self._members = self._rows = self._bytes = 0

    def __call__(self, found: Bicliques, /) -> None:
        """Append a batch, whose arrays may change afterwards. Waits while all threads have row groups to write.

        Raises
        ------
        ResourceError
            A resource is missing, as when the disk is full.
        """
        pieces = pieces_of(found, part_writer.GROUP_MEMBERS, self._room)
        for piece, batch in zip(pieces, self._threads.map(self._to_batch, pieces), strict=True):
            size = self._room.of(piece)
            if self._collected and self._bytes + size > part_writer.GROUP_BYTES:
                self._hand_over()
            self._collected.append(batch)
            self._bytes += size
            self._members += len(piece.left) + len(piece.right)
            self._rows += len(piece)
            if self._members >= part_writer.GROUP_MEMBERS or self._rows >= part_writer.GROUP_ROWS:
                self._hand_over()

    def close(self) -> list[Part]:
        """Wait until all is written, and name the last parts. Without rows there is no part."""
        if self._collected:
            self._hand_over()
        for group in self._groups:
            group.result()
        parts = [part for some in self._threads.map(PartWriter.close, self._writers) for part in some]
        self._threads.shutdown()
        return parts

    def discard(self) -> None:
        """Remove all that was written, after an error."""
        self._threads.shutdown(cancel_futures=True)
        for one in self._writers:
            one.discard()

    def _to_batch(self, piece: Bicliques) -> pa.RecordBatch:
        return to_batch(piece, self.tables)

    def _hand_over(self) -> None:
        self._raise_errors()
        collected = self._collected
        self._collected, self._members, self._rows, self._bytes = [], 0, 0, 0
        self._groups.append(self._threads.submit(self._write, self._free.get(), collected))

    def _write(self, one: PartWriter, batches: list[pa.RecordBatch]) -> None:
        try:
            one.write_group(batches)
        finally:
            self._free.put(one)

    def _raise_errors(self) -> None:
        ended = [group for group in self._groups if group.done()]
        self._groups = [group for group in self._groups if not group.done()]
        for group in ended:
            group.result()
