"""Parts written by the GPU: arrays of the device become list columns, encoded and compressed there by cuDF.

A chunk of rows is copied on the device, and a thread of its own writes it while the engine goes on; two chunks
are in its hands at most. Who turns chunks into files is `pipeline.gpu.parquet`; tests have another one.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from pipeline.files import disk_errors, replace_file
from schemas.bicliques import Bicliques
from schemas.manifest import Part

__all__ = ["Backend", "DeviceWriter"]

#: Members (left and right together) of a chunk: large enough to fill the device, small enough for offsets of 32 bits.
CHUNK_MEMBERS = 1 << 25
#: A part that has reached so many bytes is closed: smaller than the host's, which come from several threads at once,
#: so that there are as many to be read back side by side.
PART_BYTES = 1 << 26
#: Chunks copied and not yet written.
_CHUNKS = 2


class ChunkFile(Protocol):
    """A Parquet file that grows by chunks."""

    def write(self, chunk: Any) -> None:
        """Append a chunk as row groups."""
        ...

    def close(self) -> None:
        """Write the end of the file."""
        ...


class Backend(Protocol):
    """What is done on the device."""

    def cut(self, found: Bicliques, members: int) -> list[int]:
        """Row numbers, from 0 to the end, between which there are about `members` members, or one row."""
        ...

    def copy(self, found: Bicliques, start: int, stop: int) -> Any:
        """A chunk of these rows, which no longer refers to the arrays of `found`."""
        ...

    def open(self, path: Path) -> ChunkFile:
        """A new file."""
        ...


class DeviceWriter:
    """Collects nothing: every batch of a GPU engine is large enough to be written at once.

    An engine hands over device arrays to an `Emit` whose ``on_device`` is true (`schemas.work.Emit`).

    Parameters
    ----------
    folder, slice_number
        See `pipeline.writer.PartWriter`.
    backend : Backend
    """

    #: Of `add`, for engines: it takes arrays of the device.
    on_device = True

    def __init__(self, folder: Path, slice_number: int, backend: Backend):
        self.folder = folder
        self.backend = backend
        self.stem = f"part-{slice_number:06d}-{uuid.uuid4().hex[:12]}"
        self.parts: list[Part] = []
        self._file: ChunkFile | None = None
        self._rows_of_part = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cudf")
        self._room = threading.BoundedSemaphore(_CHUNKS)
        self._chunks: list[Future[None]] = []

    def add(self, found: Bicliques) -> None:
        """Copy a batch on the device and have it written; waits while two chunks are being written.

        Raises
        ------
        ResourceError
            If the disk is full, or the like.
        """
        for start, stop in self._pieces(found):
            self._raise_errors()
            self._room.acquire()
            chunk = self.backend.copy(found, start, stop)
            self._chunks.append(self._thread.submit(self._write, chunk, stop - start))

    def close(self) -> list[Part]:
        """Wait for what is being written, and name the last part. No rows, no part."""
        for chunk in self._chunks:
            chunk.result()
        self._thread.submit(self._close_part).result()
        self._thread.shutdown()
        return self.parts

    def discard(self) -> None:
        """Remove everything written, after an error."""
        self._thread.shutdown(cancel_futures=True)
        self._file = None
        for path in [self._temporary(), *(self.folder / part.name for part in self.parts)]:
            path.unlink(missing_ok=True)
        self.parts = []

    def _pieces(self, found: Bicliques) -> Iterator[tuple[int, int]]:
        bounds = self.backend.cut(found, CHUNK_MEMBERS) if len(found) else [0]
        return pairwise(bounds)

    def _write(self, chunk: Any, rows: int) -> None:
        try:
            with disk_errors(self._temporary()):
                if self._file is None:
                    self._file = self.backend.open(self._temporary())
                self._file.write(chunk)
                self._rows_of_part += rows
                if self._temporary().stat().st_size >= PART_BYTES:
                    self._close_part()
        finally:
            self._room.release()

    def _close_part(self) -> None:
        if self._file is None:
            return
        name = f"{self.stem}-{len(self.parts)}.parquet"
        with disk_errors(self.folder / name):
            self._file.close()
            size = self._temporary().stat().st_size
            replace_file(self._temporary(), self.folder / name)
        self.parts.append(Part(name, self._rows_of_part, size))
        self._file, self._rows_of_part = None, 0

    def _temporary(self) -> Path:
        return self.folder / f".{self.stem}-{len(self.parts)}.tmp"

    def _raise_errors(self) -> None:
        ended = [chunk for chunk in self._chunks if chunk.done()]
        self._chunks = [chunk for chunk in self._chunks if not chunk.done()]
        for chunk in ended:
            chunk.result()
