"""The writers of the bicliques of a slice: one thread, or beside a device several threads or the device itself."""

from __future__ import annotations

import queue
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from bicliques.pipeline.output import stretch
from bicliques.pipeline.output.cudf_parquet import CudfParquet, why_no_cudf
from bicliques.pipeline.output.device_writer import DeviceWriter
from bicliques.pipeline.output.part_writer import PartWriter, writing_threads
from bicliques.pipeline.output.stretch import pieces_of
from bicliques.pipeline.run.labels import Tables
from bicliques.schemas.bicliques import UNKNOWN, Bicliques, Emit, Provenance
from bicliques.schemas.errors import ResourceError, as_option
from bicliques.schemas.manifest import Part
from bicliques.schemas.options import Where
from bicliques.schemas.platform import Platform


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

        Raises `ResourceError`: a resource is missing, as when the disk is full.
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


#: Where the bicliques of a GPU engine are encoded. ``auto`` is the GPU if cuDF is there, which was 13 times as fast as
#: 16 threads of the same machine (docs/multi-gpu.md).
WriteOn = Where


class Writer(Emit, Protocol):
    """Takes the bicliques of a slice, and makes parts of them."""

    def close(self) -> list[Part]:
        """Name the last parts. Without rows there is no part."""
        ...

    def discard(self) -> None:
        """Remove all that was written, after an error."""
        ...


def open_writer(
    folder: Path,
    slice_number: int,
    tables: Tables,
    platform: Platform,
    where: WriteOn = "auto",
    provenance: Provenance = UNKNOWN,
) -> Writer:
    """The writer of a slice.

    Parameters
    ----------
    folder, slice_number, tables
        See `pipeline.output.part_writer.PartWriter`.
    platform : Platform
        The platform of the engine.
    provenance : Provenance
        See `pipeline.output.part_writer.PartWriter`.
    """
    if not platform.leaves_cores:
        return PartWriter(folder, slice_number, tables, provenance)
    if where == "gpu" and (reason := _why_no_cudf(platform)) is not None:
        raise ResourceError(f"cuDF cannot write the bicliques: {reason}; choose {as_option('write_on', 'cpu')}")
    if is_on_device(platform, where):
        return DeviceWriter(folder, slice_number, _backend(_Tables(tables), provenance))
    return ParallelWriter(folder, slice_number, tables, writing_threads(), provenance)


def is_on_device(platform: Platform, where: WriteOn) -> bool:
    """Whether the device of an engine writes, or would, if it has memory for that."""
    return platform.leaves_cores and where != "cpu" and _why_no_cudf(platform) is None


def forget() -> None:
    """Free the labels on the device."""
    _backend.cache_clear()


def _why_no_cudf(platform: Platform) -> str | None:
    return why_no_cudf() if platform.works_with_cudf else f"it does not work with {platform.devices} of this kind"


class _Tables:
    """Label tables. They are equal only when they are the same objects."""

    def __init__(self, tables: Tables):
        self.tables = tables

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Tables) and self.tables is other.tables

    def __hash__(self) -> int:
        return id(self.tables)


@lru_cache(maxsize=1)
def _backend(tables: _Tables, provenance: Provenance) -> CudfParquet:
    return CudfParquet(tables.tables, provenance=provenance)
