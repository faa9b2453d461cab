"""Reading parts back on a GPU: cuDF decodes them, and a kernel hashes the rows and compares their ids.

The members, which are most of a part, never reach the host. Sizes and hashes do, 16 bytes per row.
`pipeline.proof.read_back` does the same on the host, and decides which of the two is used.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.kernels.gpu.device import CudaDevice, Device
from bicliques.kernels.gpu.row_hashes import Lists, RowHasher
from bicliques.pipeline.output.cudf_parquet import CudfParquet, column_values, take_from_pool, why_no_cudf
from bicliques.pipeline.output.device_writer import DeviceWriter
from bicliques.pipeline.run.labels import Tables
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.bicliques import ID, Bicliques, row_hashes
from bicliques.schemas.errors import DeviceMemoryError, IncompleteError, ResourceError
from bicliques.schemas.options import Where
from bicliques.schemas.platform import Platform

logger = logging.getLogger(__name__)

#: Threads that read onto one device at a time. While one sums up on the host, the device works for the others.
READERS = 4
#: Bytes of free device memory per member that a thread reads, times the threads. A thread holds what it decompresses,
#: and takes 32 bytes with what cuDF needs beside that. As many bytes stay free for a search and its writer at work. The
#: labels are not in it. Then the most members that a thread reads at a time.
_BYTES_A_MEMBER, _MOST_MEMBERS = 2 * 32 * READERS, 1 << 27
#: Positions of the columns of members.
_SIDES = (1, 2)
#: Rows that are written and read before the first part is there.
_WARM_UP = 1 << 14


class HashedGroup(NamedTuple):
    """A row group: its number, the sizes of its rows (int32), and their hashes (uint64)."""

    group: int
    n_left: np.ndarray
    n_right: np.ndarray
    hashes: np.ndarray


class Columns(NamedTuple):
    """The columns of some row groups on the device. `n_left` and `n_right` are the lengths of `left` and `right`."""

    left: Lists
    right: Lists
    roots: Any
    ids: Any
    n_rows: int


class Reader(Protocol):
    """Reads row groups onto a device."""

    device: Device

    def columns(self, path: Path, groups: list[int]) -> Columns:
        """The columns of these row groups, one group behind the other, ready to be used.

        Raises
        ------
        DeviceMemoryError
            The device has no room for them.
        IncompleteError
            The file is damaged.
        """
        ...

    def host(self, array: Any) -> np.ndarray:
        """A copy of an array of `columns` in main memory."""
        ...


def why_not(platform: Platform, tables: Tables, write_on: Where) -> str | None:
    """Why parts are not read back on a GPU, in words. None if they can be.

    Parameters
    ----------
    platform : Platform
        The platform of the engine that mined.
    tables : Tables
        Labels of the parts.
    write_on : Where
        Where the user wants results to be encoded. Parts are decoded in the same place.
    """
    if not platform.works_with_cudf:
        return f"cuDF does not work with {platform.devices}"
    if write_on == "cpu":
        return "the CPU is asked to write"
    if tables is not None and not all(pa.types.is_integer(labels.type) for labels in tables):
        return "the labels are text"
    return why_no_cudf()


def warm_up(run: Run) -> None:
    """Write and read some rows in a temporary folder. The first use of the decoder takes longer than a million rows.

    Errors are only logged, because a part that cannot be read is an error of its own.
    """
    rows = Bicliques.from_pairs([([0], [0])] * _WARM_UP, [0] * _WARM_UP)
    rows.ids[:] = row_hashes(rows, run.hashes).view(ID)
    try:
        reader, hasher = _open(run)
        with tempfile.TemporaryDirectory() as folder:
            writer = DeviceWriter(Path(folder), 0, CudfParquet(run.tables, provenance=run.provenance))
            writer(rows)
            (part,) = writer.close()
            columns = reader.columns(Path(folder) / part.name, [0])
        hasher.rows(*columns)
    except (DeviceMemoryError, IncompleteError, OSError, ResourceError) as error:
        logger.info("the device was not used before the first part: %s", error)


def hashed_groups(
    run: Run, path: Path, metadata: pq.FileMetaData, groups: tuple[int, int] | None
) -> Iterator[tuple[list[HashedGroup], np.ndarray, np.ndarray]]:
    """Row groups of a part, as many at a time as fit on the device.

    Raises `DeviceMemoryError`: the device has no room for a row group.

    Parameters
    ----------
    path : Path
        The part. Its schema is checked already.
    metadata : FileMetaData
        The metadata of the part.
    groups : (int, int) or None
        As of `pipeline.proof.read_back.ProofTask`.

    Yields
    ------
    (list of HashedGroup, ndarray, ndarray)
        The row groups, and in how many of their rows each left and each right vertex is, int64.
    """
    reader, hasher = _open(run)
    for some, rows in _portions(metadata, groups, reader.device.free_bytes() // _BYTES_A_MEMBER):
        columns = reader.columns(path, some)
        if columns.n_rows != sum(rows):
            raise IncompleteError(f"{path} holds {columns.n_rows} rows in row groups of {sum(rows)}")
        try:
            found = hasher.rows(*columns)
        except IncompleteError as error:
            raise IncompleteError(f"{path}: {error}") from error
        n_left, n_right = reader.host(columns.left.lengths), reader.host(columns.right.lengths)
        ends = np.cumsum(rows)
        cut = [
            HashedGroup(group, *(own[end - n : end] for own in (n_left, n_right, found.hashes)))
            for group, n, end in zip(some, rows, ends, strict=True)
        ]
        yield cut, found.left, found.right


def _portions(
    metadata: pq.FileMetaData, groups: tuple[int, int] | None, members: int
) -> Iterator[tuple[list[int], list[int]]]:
    """Numbers and rows of successive row groups that have at most so many members together, or of one of them."""
    some: list[int] = []
    rows: list[int] = []
    held = 0
    for k in range(*(groups or (0, metadata.num_row_groups))):
        group = metadata.row_group(k)
        own = sum(group.column(side).num_values for side in _SIDES)
        if some and held + own > min(members, _MOST_MEMBERS):
            yield some, rows
            some, rows, held = [], [], 0
        some, rows, held = [*some, k], [*rows, group.num_rows], held + own
    if some:
        yield some, rows


class CudfReader:
    """The `Reader` of real devices."""

    def __init__(self) -> None:
        import cupy
        import pylibcudf

        self._cupy, self._plc = cupy, pylibcudf
        self.device: Device = CudaDevice()
        take_from_pool()

    def columns(self, path: Path, groups: list[int]) -> Columns:
        """See `Reader`."""
        io = self._plc.io.parquet
        options = io.ParquetReaderOptions.builder(self._plc.io.SourceInfo([str(path)])).build()
        options.set_row_groups([groups])
        with self.device.active():
            stream = self._cupy.cuda.get_current_stream()
            try:
                ids, left, right, n_left, n_right, roots = io.read_parquet(options, stream=stream).columns
            except MemoryError as error:
                raise DeviceMemoryError(f"there is no device memory left to read {path} back ({error})") from error
            except (RuntimeError, ValueError) as error:
                raise IncompleteError(f"{path} cannot be read ({error})") from error
            lists = self._lists(path, left, n_left), self._lists(path, right, n_right)
            numbers = self._array(path, roots), self._array(path, ids)
            stream.synchronize()
        return Columns(*lists, *numbers, roots.size())

    def host(self, array: Any) -> np.ndarray:
        """See `Reader`."""
        with self.device.active():
            return self.device.download(array)

    def _lists(self, path: Path, column: Any, lengths: Any) -> Lists:
        offsets, values = column.children()
        if column.null_count():
            raise IncompleteError(f"{path} has rows without members")
        return Lists(*(self._array(path, each) for each in (values, offsets, lengths)))

    def _array(self, path: Path, column: Any) -> Any:
        """The fixed-width values of a column. They keep the column alive."""
        if column.null_count():
            raise IncompleteError(f"{path} has a column with missing values")
        return column_values(self._cupy, column)


_opening = threading.Lock()
#: What is on the device of each run, as long as the run is open.
_opened: weakref.WeakKeyDictionary[Run, tuple[Reader, RowHasher]] = weakref.WeakKeyDictionary()


def _open(run: Run) -> tuple[Reader, RowHasher]:
    with _opening:  # otherwise several threads would upload the labels
        if run not in _opened:
            reader = CudfReader()
            left, right = (None, None) if run.tables is None else (table.to_numpy() for table in run.tables)
            _opened[run] = reader, RowHasher(reader.device, (left, right), run.hashes, run.graph.root_side)
        return _opened[run]
