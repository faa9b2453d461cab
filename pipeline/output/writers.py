"""The writers of the bicliques of a slice: one thread, or beside a device several threads or the device itself."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Protocol

from bicliques.pipeline.output.cudf_parquet import CudfParquet, why_no_cudf
from bicliques.pipeline.output.device_writer import DeviceWriter
from bicliques.pipeline.output.parallel_writer import ParallelWriter, writing_threads
from bicliques.pipeline.output.part_writer import PartWriter
from bicliques.pipeline.run.labels import Tables
from bicliques.schemas.bicliques import UNKNOWN, Provenance
from bicliques.schemas.emit import Emit
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.manifest import Part
from bicliques.schemas.options import Where
from bicliques.schemas.platform import Platform

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

    Raises
    ------
    ResourceError
        The GPU is asked to write and cannot.
    """
    if not platform.leaves_cores:
        return PartWriter(folder, slice_number, tables, provenance)
    if where == "gpu" and (reason := _why_no_cudf(platform)) is not None:
        raise ResourceError(f"cuDF cannot write the bicliques: {reason}; choose --write-on cpu")
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
