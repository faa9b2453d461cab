"""Parts written by the GPU: arrays of the device become list columns, encoded and compressed there by cuDF.

A batch is cut into chunks of rows, and threads write them while the engine goes on. There are several threads, each
with a part and a stream of its own: one alone leaves the device idle while its bytes go to the disk.
`pipeline.output.cudf_parquet` turns chunks into files; tests use another writer.
"""

from __future__ import annotations

import itertools
import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pipeline.run.files import create, disk_errors, flush, replace_file
from pipeline.run.names import part_name, part_stem, unnamed_part
from schemas.bicliques import Bicliques
from schemas.manifest import Part

__all__ = ["Backend", "DeviceWriter"]

#: Members (left and right together) of a chunk: large enough to fill the device, small enough for offsets of 32 bits.
CHUNK_MEMBERS = 1 << 26
#: A part that has reached so many bytes is closed: smaller than the host's, which come from several threads at once,
#: so that there are as many to be read back side by side.
PART_BYTES = 1 << 26


class ChunkFile(Protocol):
    """A Parquet file that grows by chunks."""

    def write(self, piece: Bicliques) -> None:
        """Append these rows as row groups."""
        ...

    def close(self) -> None:
        """Write the end of the file."""
        ...


class Backend(Protocol):
    """What is done on the device."""

    #: Threads that write, a chunk in the hands of each at most.
    threads: int

    def pieces(self, found: Bicliques, members: int) -> list[Bicliques]:
        """All rows in order, in pieces of about `members` members or one row; their arrays may be those of `found`.

        Waits until the arrays are filled, because the thread that writes them reads them on another stream.
        """
        ...

    def open(self, path: Path) -> ChunkFile:
        """A new file. A thread that does not write to it does not close it either."""
        ...


@dataclass
class _OpenPart:
    """A file that one thread at a time writes to, under the name it has until it is whole."""

    path: Path
    file: ChunkFile
    rows: int = 0


class DeviceWriter:
    """An `Emit` that collects nothing: every batch of a GPU engine is large enough to be written at once.

    Parameters
    ----------
    folder, slice_number
        See `pipeline.output.part_writer.PartWriter`.
    backend : Backend
    """

    on_device = True

    def __init__(self, folder: Path, slice_number: int, backend: Backend):
        self.folder = folder
        self.backend = backend
        self.stem = part_stem(slice_number)
        self.parts: list[Part] = []
        self._free: queue.LifoQueue[_OpenPart] = queue.LifoQueue()  # the last one used, so that few parts are opened
        self._opener = ThreadPoolExecutor(1, thread_name_prefix="opener")
        self._next: Future[_OpenPart] | None = None
        self._numbers = itertools.count()
        self._threads = ThreadPoolExecutor(backend.threads, thread_name_prefix="cudf")
        self._room = threading.BoundedSemaphore(backend.threads)
        self._chunks: list[Future[None]] = []
        self._lock = threading.Lock()

    def __call__(self, found: Bicliques, /) -> None:
        """Have a batch written, whose arrays are not to change any more; waits while every thread has a chunk in hand.

        Raises
        ------
        ResourceError
            If the disk is full, or the like.
        """
        for piece in self.backend.pieces(found, CHUNK_MEMBERS) if len(found) else []:
            self._raise_errors()
            self._room.acquire()
            self._chunks.append(self._threads.submit(self._write, piece))

    def close(self) -> list[Part]:
        """Wait for what is being written, and name the last parts. No rows, no part."""
        for chunk in self._chunks:
            chunk.result()
        self._opener.shutdown()
        free = [self._free.get() for _ in range(self._free.qsize())]
        for named in [self._threads.submit(self._name, part) for part in free]:
            named.result()
        self._threads.shutdown()
        self._remove_unnamed()  # what was opened in advance
        return self.parts

    def discard(self) -> None:
        """Remove everything written, after an error."""
        self._threads.shutdown(cancel_futures=True)
        self._opener.shutdown(cancel_futures=True)
        self._remove_unnamed()
        for part in self.parts:
            (self.folder / part.name).unlink(missing_ok=True)
        self.parts = []

    def _write(self, piece: Bicliques) -> None:
        try:
            part = self._any_part()
            with disk_errors(part.path):
                part.file.write(piece)
                part.rows += len(piece)
                flush(part.path)  # while the other threads have the device
                is_full = part.path.stat().st_size >= PART_BYTES
            if is_full:
                self._name(part)
            else:
                self._free.put(part)
        finally:
            self._room.release()

    def _any_part(self) -> _OpenPart:
        try:
            return self._free.get_nowait()
        except queue.Empty:
            with self._lock:
                part = self._next or self._opener.submit(self._open_part)
                self._next = self._opener.submit(self._open_part)
            return part.result()

    def _open_part(self) -> _OpenPart:
        """In advance: while the disk is busy, a new file takes tens of milliseconds to open."""
        path = self.folder / unnamed_part(self.stem, next(self._numbers))
        with disk_errors(path):
            create(path).close()
            return _OpenPart(path, self.backend.open(path))

    def _name(self, part: _OpenPart) -> None:
        """Close a part's file and give it a name of its own."""
        with disk_errors(part.path):
            part.file.close()
            with self._lock:
                name = part_name(self.stem, len(self.parts))
                self.parts.append(Part(name, part.rows, part.path.stat().st_size))
            replace_file(part.path, self.folder / name)

    def _remove_unnamed(self) -> None:
        for path in self.folder.glob(f".{self.stem}-*.tmp"):
            path.unlink()

    def _raise_errors(self) -> None:
        ended = [chunk for chunk in self._chunks if chunk.done()]
        self._chunks = [chunk for chunk in self._chunks if not chunk.done()]
        for chunk in ended:
            chunk.result()
