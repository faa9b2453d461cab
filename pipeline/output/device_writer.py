"""Parts that the GPU writes. Arrays of the device become list columns, which cuDF encodes and compresses there.

A batch is cut into chunks of rows, and threads write them while the engine goes on. Each thread has a part and a
stream of its own. There are several threads, because a single one leaves the device idle while its bytes go to the
disk. `pipeline.output.cudf_parquet` turns chunks into files; tests use another writer.
"""

from __future__ import annotations

import itertools
import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bicliques.pipeline.run.files import create, disk_errors, flush, replace_file
from bicliques.pipeline.run.names import part_name, part_stem, unnamed_part
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.manifest import Part

#: Members (left and right together) of a chunk. It fills the device, and fits offsets of 32 bits.
CHUNK_MEMBERS = 1 << 26
#: A part that has reached so many bytes is closed. Parts are smaller than the host's, so that there are enough of them
#: to be read back in parallel.
PART_BYTES = 1 << 26


class ChunkFile(Protocol):
    """A Parquet file that grows by chunks."""

    def write(self, piece: Bicliques) -> None:
        """Append these rows as row groups."""
        ...

    def close(self) -> int:
        """Write the end of the file. Returns the fingerprint of its rows."""
        ...


class Backend(Protocol):
    """The operations on the device."""

    #: Threads that write. Each has at most one chunk at a time.
    threads: int

    def pieces(self, found: Bicliques, members: int) -> list[Bicliques]:
        """All rows in order, in pieces of about `members` members or of one row. They may share arrays with `found`.

        It waits until the arrays are filled, because the thread that writes them reads them on another stream.
        """
        ...

    def open(self, path: Path) -> ChunkFile:
        """Open a new file. The thread that writes to it also closes it."""
        ...


@dataclass
class _OpenPart:
    """A file that is being written by one thread at a time. It has a temporary name until it is whole."""

    path: Path
    file: ChunkFile
    rows: int = 0


class DeviceWriter:
    """An `Emit` that writes every batch at once, because batches of a GPU engine are large.

    Parameters
    ----------
    folder, slice_number
        See `pipeline.output.part_writer.PartWriter`.
    """

    on_device = True

    def __init__(self, folder: Path, slice_number: int, backend: Backend):
        self.folder = folder
        self.backend = backend
        self.stem = part_stem(slice_number)
        self.parts: list[Part] = []
        self._free: queue.LifoQueue[_OpenPart] = queue.LifoQueue()  # last in, first out, so that few parts are opened
        self._opener = ThreadPoolExecutor(1, thread_name_prefix="opener")
        self._next: Future[_OpenPart] | None = None
        self._numbers = itertools.count()
        self._threads = ThreadPoolExecutor(backend.threads, thread_name_prefix="cudf")
        self._room = threading.BoundedSemaphore(backend.threads)
        self._chunks: list[Future[None]] = []
        self._lock = threading.Lock()

    def __call__(self, found: Bicliques, /) -> None:
        """Hand a batch to the threads. Its arrays must not change any more. Waits while all threads are writing.

        Raises `ResourceError`: a resource is missing, as when the disk is full.
        """
        for piece in self.backend.pieces(found, CHUNK_MEMBERS) if len(found) else []:
            self._raise_errors()
            self._room.acquire()
            self._chunks.append(self._threads.submit(self._write, piece))

    def close(self) -> list[Part]:
        """Wait until all is written, and name the last parts. Without rows there is no part."""
        for chunk in self._chunks:
            chunk.result()
        self._opener.shutdown()
        free = [self._free.get() for _ in range(self._free.qsize())]
        for named in [self._threads.submit(self._name, part) for part in free]:
            named.result()
        self._threads.shutdown()
        self._remove_unnamed()  # parts that were opened in advance
        return self.parts

    def discard(self) -> None:
        """Remove all that was written, after an error."""
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
                flush(part.path)  # other threads use the device meanwhile
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
        """Open a part. This is done in advance, because it takes tens of milliseconds while the disk is busy."""
        path = self.folder / unnamed_part(self.stem, next(self._numbers))
        with disk_errors(path):
            create(path).close()
            return _OpenPart(path, self.backend.open(path))

    def _name(self, part: _OpenPart) -> None:
        """Close a part's file and give it a name of its own."""
        with disk_errors(part.path):
            total = part.file.close()
            with self._lock:
                name = part_name(self.stem, len(self.parts))
                self.parts.append(Part(name, part.rows, part.path.stat().st_size, str(total)))
            replace_file(part.path, self.folder / name)

    def _remove_unnamed(self) -> None:
        for path in self.folder.glob(f".{self.stem}-*.tmp"):
            path.unlink()

    def _raise_errors(self) -> None:
        ended = [chunk for chunk in self._chunks if chunk.done()]
        self._chunks = [chunk for chunk in self._chunks if not chunk.done()]
        for chunk in ended:
            chunk.result()
