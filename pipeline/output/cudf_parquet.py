"""List columns and Parquet files on a device, by CuPy and by pylibcudf, the smallest part of cuDF that can do it.

All imports of GPU packages are inside functions. Every file has a stream of its own. It does not wait for the engine's
kernels, and they do not wait for it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bicliques.pipeline.output.part_writer import part_schema, writing_threads
from bicliques.pipeline.run.labels import Tables
from bicliques.schemas import bicliques
from bicliques.schemas.bicliques import ID, UNKNOWN, Bicliques, Provenance
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.errors import DeviceMemoryError

#: Bytes of a row group before encoding. It also ends with a block of `schemas.bicliques`.
_GROUP_BYTES = 128 << 20
#: There is one thread per so many bytes of the device, up to a largest number of threads.
_BYTES_A_THREAD, _MOST_THREADS = 4 << 30, 8
#: Bytes of a page. The device compresses all pages of a chunk in parallel, so there must be many.
_PAGE_BYTES = 64 << 10
#: Positions of the lists in a table.
_LISTS = (1, 2)


def why_no_cudf() -> str | None:
    """Why cuDF cannot be used in this process, or None if it can. It never raises."""
    from bicliques.kernels.gpu.device import why_no_gpu

    if (reason := why_no_gpu()) is not None:
        return reason
    try:
        import pylibcudf  # noqa: F401
    except ImportError as error:
        return f"{error.name or 'cuDF'} cannot be imported (pip install 'bicliques[gpu]')"
    return None


class CudfParquet:
    """The `pipeline.output.device_writer.Backend` of real devices.

    Parameters
    ----------
    tables : Tables
        Label tables, which are uploaded here once. None leaves dense ids in the lists.
    compression : str
        "zstd" or "snappy", by nvCOMP.
    provenance : Provenance
        For the metadata of the parts.
    """

    def __init__(self, tables: Tables, compression: str = "zstd", provenance: Provenance = UNKNOWN):
        import cupy
        import pylibcudf

        self.cupy, self.plc = cupy, pylibcudf
        self.schema = part_schema(tables, provenance)
        self.compression = compression
        self.threads = min(max(device_bytes() // _BYTES_A_THREAD, 1), _MOST_THREADS)
        # Threads that copy from the device to the disk, for all files together. The default is four. libcudf reads this
        # when it opens its first file.
        os.environ.setdefault("KVIKIO_NTHREADS", str(writing_threads()))
        take_from_pool()
        with _memory_errors("hold the labels"):
            self.labels = None if tables is None else tuple(self._upload(labels) for labels in tables)
            #: Table with which files are opened, because they may be opened before there are rows.
            stream = cupy.cuda.Stream(non_blocking=True)
            self.empty = self._labelled(self._dense(Bicliques.from_pairs([], []), stream), stream)
        self.has_text = tables is not None and not all(pa.types.is_integer(labels.type) for labels in tables)

    def pieces(self, found: Bicliques, members: int) -> list[Bicliques]:
        """See `Backend`. It synchronises."""
        with _memory_errors("cut bicliques into chunks"):
            pieces = [found] if len(found.left) + len(found.right) <= members else self._cut(found, members)
            self.cupy.cuda.get_current_stream().synchronize()
        return pieces

    def open(self, path: Path) -> CudfFile:
        """See `Backend`."""
        with writing_errors(), _memory_errors(f"open {path}"):
            return CudfFile(self, path)

    def table(self, piece: Bicliques, stream: Any) -> Any:
        """The rows as a table of `schemas.bicliques.biclique_schema`, in the blocks of `schemas.bicliques`.

        Rows on the device are in them already. Those on the host are from an engine that found no room on the device.
        """
        if isinstance(piece.root, np.ndarray) and len(piece) > bicliques.BLOCK_ROWS:
            keys = np.diff(piece.left_indptr) << 32 | np.diff(piece.right_indptr)
            piece = piece.pick(bicliques.block_order(keys, len(piece)))
        return self._labelled(self._dense(piece, stream), stream)

    def fingerprint(self, piece: Bicliques, stream: Any) -> int:
        """The sum of the ids, modulo 2**64. It synchronises."""
        with stream:
            return int(self.cupy.asarray(piece.ids).view(np.uint64).sum(dtype=np.uint64))

    def _dense(self, piece: Bicliques, stream: Any) -> Any:
        """The columns of `schemas.bicliques.biclique_schema` with dense ids in the lists."""
        lists, sizes = [], []
        with stream:
            for indptr, members in ((piece.left_indptr, piece.left), (piece.right_indptr, piece.right)):
                offsets = self.cupy.asarray(indptr, dtype=VERTEX)
                values = self._column(self.cupy.asarray(members, dtype=VERTEX), stream)
                lists.append(self._list_column(self._column(offsets, stream), values))
                sizes.append(offsets[1:] - offsets[:-1])
            ids, root = self.cupy.asarray(piece.ids, dtype=ID), self.cupy.asarray(piece.root, dtype=VERTEX)
        first, *numbers = (self._column(array, stream) for array in (ids, *sizes, root))
        return self.plc.Table([first, *lists, *numbers])

    def _labelled(self, rows: Any, stream: Any) -> Any:
        """The same rows with labels in the place of dense ids, if labels are written."""
        if self.labels is None:
            return rows
        columns = list(rows.columns())
        for at, labels in zip(_LISTS, self.labels, strict=True):
            offsets, ids = columns[at].children()
            (values,) = self._gather(self.plc.Table([labels]), ids, stream).columns()
            columns[at] = self._list_column(offsets, values)
        return self.plc.Table(columns)

    def _cut(self, found: Bicliques, members: int) -> list[Bicliques]:
        left, right = self.cupy.asarray(found.left_indptr), self.cupy.asarray(found.right_indptr)
        until = left + right
        targets = self.cupy.arange(members, int(until[-1]) + members, members, dtype=until.dtype)
        inner = self.cupy.searchsorted(until, targets, side="right").get() - 1
        cuts = bicliques.cuts_between_blocks(sorted({int(row) for row in inner if 0 < row < len(found)}))
        rows = [0, *cuts, len(found)]
        bounds = zip(rows, left[rows].get().tolist(), right[rows].get().tolist(), strict=True)
        return [
            Bicliques(
                left[row : next_row + 1] - in_left,
                found.left[in_left:next_left],
                right[row : next_row + 1] - in_right,
                found.right[in_right:next_right],
                found.root[row:next_row],
                found.ids[row:next_row],
            )
            for (row, in_left, in_right), (next_row, next_left, next_right) in pairwise(bounds)
        ]

    def _upload(self, labels: Any) -> Any:
        return self.plc.Column.from_arrow(labels)

    def _column(self, array: Any, stream: Any) -> Any:
        return self.plc.Column.from_cuda_array_interface(array, stream=stream)

    def _gather(self, table: Any, rows: Any, stream: Any) -> Any:
        return self.plc.copying.gather(table, rows, self.plc.copying.OutOfBoundsPolicy.DONT_CHECK, stream=stream)

    def _list_column(self, offsets: Any, values: Any) -> Any:
        kind = self.plc.DataType(self.plc.TypeId.LIST)
        return self.plc.Column(kind, offsets.size() - 1, None, None, 0, 0, [offsets, values])


@contextmanager
def _memory_errors(purpose: str) -> Iterator[None]:
    """Turn the errors of CuPy and RMM about memory into a `DeviceMemoryError`."""
    try:
        yield
    except MemoryError as error:
        raise DeviceMemoryError(f"there is no device memory left to {purpose} ({error})") from error


@contextmanager
def writing_errors() -> Iterator[None]:
    """Turn the errors of libcudf about writing into `OSError`, because it has no type for a full disk."""
    try:
        yield
    except RuntimeError as error:
        raise OSError(errno.EIO, f"cuDF cannot write: {error}") from error


class CudfFile:
    """A Parquet file that cuDF writes chunk by chunk. See `pipeline.output.device_writer.ChunkFile`."""

    def __init__(self, backend: CudfParquet, path: Path):
        self.backend, self.path = backend, path
        self._fingerprint = 0
        self.stream = backend.cupy.cuda.Stream(non_blocking=True)
        # For lists of integers, zstd alone makes smaller files in less time than dictionaries do. Numbers that hardly
        # change from row to row are written as differences, which leave zstd little to do.
        encoding = Encoding(backend.compression, backend.has_text, ["n_left", "n_right", "root"], ["id"], indexed=True)
        of_file = backend.plc, path, backend.empty, backend.schema, bicliques.BLOCK_ROWS
        self._writer = chunked_writer(*of_file, encoding, self.stream)

    def write(self, piece: Bicliques) -> None:
        """Append these rows.

        Raises `DeviceMemoryError`: the device has no memory left for the rows. Raises `OSError`: the file cannot be
        written.
        """
        with writing_errors(), _memory_errors(f"write {self.path}"):
            self._writer.write(self.backend.table(piece, self.stream))
            self._fingerprint = (self._fingerprint + self.backend.fingerprint(piece, self.stream)) % 2**64
            self.stream.synchronize()

    def close(self) -> int:
        """Write the footer. Returns the sum of the ids, modulo 2**64."""
        with writing_errors():
            self._writer.close([])
        return self._fingerprint


def column_values(cupy: ModuleType, column: Any) -> Any:
    """The values of a column of numbers as an array, without a copy. They keep the column alive."""
    dtype = np.dtype(column.type().typestr)
    if column.size() == 0:
        return cupy.empty(0, dtype)
    return cupy.asarray(column.data()).view(np.uint8)[: column.size() * dtype.itemsize].view(dtype)


class Encoding(NamedTuple):
    """How a file is encoded.

    Integer columns named in `differences` are encoded as such (``DELTA_BINARY_PACKED``), and those named in `plain` are
    not encoded. A file that is `indexed` has a page index.
    """

    compression: str = "zstd"
    dictionary: bool = False
    differences: Collection[str] = ()
    plain: Collection[str] = ()
    indexed: bool = False


_PLAINEST = Encoding()


def chunked_writer(
    plc: Any,
    path: Path,
    table: Any,
    schema: pa.Schema,
    group_rows: int,
    encoding: Encoding = _PLAINEST,
    stream: Any = None,
) -> Any:
    """CuDF's writer of a file of this schema, whose columns have no nulls. `table` has the types of later tables.

    CuDF leaves a column uncompressed that compression does not make smaller. (`set_skip_compression` would save no
    time, and left the lists uncompressed, too.)
    """
    io = plc.io
    metadata = io.types.TableInputMetadata(table)
    for column, field in zip(metadata.column_metadata, schema, strict=True):
        column.set_name(field.name).set_nullability(False)
        if pa.types.is_list(field.type):
            column.child(1).set_nullability(False)  # child 0 has the offsets
        if field.name in encoding.differences:
            column.set_encoding(io.types.ColumnEncoding.DELTA_BINARY_PACKED)
        if field.name in encoding.plain:
            column.set_encoding(io.types.ColumnEncoding.PLAIN)
    pairs = {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
    statistics = io.types.StatisticsFreq
    options = (
        io.parquet.ChunkedParquetWriterOptions.builder(io.SinkInfo([str(path)]))
        .metadata(metadata)
        .key_value_metadata([pairs])
        .compression(io.types.CompressionType[encoding.compression.upper()])
        .row_group_size_rows(group_rows)
        .row_group_size_bytes(_GROUP_BYTES)
        .max_page_size_bytes(_PAGE_BYTES)
        .stats_level(statistics.STATISTICS_COLUMN if encoding.indexed else statistics.STATISTICS_ROWGROUP)
        .build()
    )
    if not encoding.dictionary:
        options.set_dictionary_policy(io.types.DictionaryPolicy.NEVER)
    return io.parquet.ChunkedParquetWriter.from_options(options, stream=stream)


#: Share of the device's memory that the pool keeps while it is not used. Memory beyond that is freed at each
#: synchronisation, and to allocate it again takes milliseconds. Other users of the device can get the kept memory, too.
_KEPT = 1 / 8


def device_bytes() -> int:
    """Memory of the current device, in use or not."""
    import cupy

    return int(cupy.cuda.runtime.memGetInfo()[1])


def take_from_pool() -> None:
    """Give RMM an asynchronous pool on the current device, unless a memory resource was chosen already.

    By default RMM calls ``cudaMalloc`` and ``cudaFree`` for every temporary of libcudf, which has dozens per call.
    ``cudaFree`` waits for the kernels of all streams, so writing would wait for the engine.
    """
    import rmm

    if type(rmm.mr.get_current_device_resource()) is rmm.mr.CudaMemoryResource:
        kept = int(device_bytes() * _KEPT)
        rmm.mr.set_current_device_resource(rmm.mr.CudaAsyncMemoryResource(release_threshold=kept))
