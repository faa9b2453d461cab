"""Labels and edges on a device, by CuPy and, for text and Parquet, by pylibcudf."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bicliques.kernels.gpu.buffers import Staging
from bicliques.kernels.gpu.device import free_memory
from bicliques.pipeline.ingest.readers.sieve import not_utf8
from bicliques.pipeline.output.cudf_parquet import chunked_writer, column_values, take_from_pool, writing_errors
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.edges import EDGES

#: Bytes from which on an array is copied through page-locked memory.
_LARGE = 1 << 26
#: Rows of a row group of edges. The host has the same.
_GROUP_ROWS = 1 << 20


class CudfArrays:
    """Arrays of CuPy and pylibcudf. They need `pipeline.output.cudf_parquet.why_no_cudf` to be None."""

    def __init__(self) -> None:
        import cupy
        import pylibcudf

        self.xp, self._plc = cupy, pylibcudf
        self._staging: Staging | None = None
        take_from_pool()

    def free_bytes(self) -> int:
        """See `Arrays`."""
        return free_memory(self.xp)

    def upload(self, text: memoryview) -> Any:
        """See `Arrays`. Copies through page-locked memory are several times as fast as from pageable memory."""
        return self._through().upload(np.frombuffer(text, dtype=np.uint8))

    def on_device(self, array: Any) -> Any:
        """See `Arrays`."""
        if isinstance(array, np.ndarray) and array.nbytes >= _LARGE:
            return self._through().upload(array)
        return self.xp.asarray(array)

    def on_host(self, array: Any) -> np.ndarray:
        """See `Arrays`."""
        is_large = isinstance(array, self.xp.ndarray) and array.nbytes >= _LARGE
        host: np.ndarray = self._through().download(array) if is_large else self.xp.asnumpy(array)
        return host

    def read_csv(self, raw: Any, delimiter: str, text: Sequence[bool]) -> list[Any] | None:
        """See `Arrays`."""
        io, types = self._plc.io, self._plc.types
        options = (
            io.csv.CsvReaderOptions.builder(io.SourceInfo([self._plc.gpumemoryview(raw)]))
            .delimiter(delimiter)
            .lineterminator("\n")
            .quoting(io.types.QuoteStyle.NONE)
            .compression(io.types.CompressionType.NONE)
            .na_filter(False)
            .keep_default_na(False)
            .build()
        )
        options.set_header(-1)
        options.set_names([str(k) for k in range(len(text))])
        options.set_dtypes([types.DataType(types.TypeId.STRING if t else types.TypeId.INT64) for t in text])
        try:
            columns = io.csv.read_csv(options).columns
        except RuntimeError:  # libcudf has one type for all errors of a text
            return None
        if len(columns) != len(text) or any(column.null_count() for column in columns):
            return None
        return [column if t else column_values(self.xp, column) for column, t in zip(columns, text, strict=True)]

    def read_parquet(self, path: Path, row_groups: list[int], names: list[str]) -> list[Any] | None:
        """See `Arrays`."""
        io, plc = self._plc.io, self._plc
        options = io.parquet.ParquetReaderOptions.builder(io.SourceInfo([str(path)])).column_names(names).build()
        options.set_row_groups([row_groups])
        try:
            read = io.parquet.read_parquet(options)
        except RuntimeError:  # the host's reader says what is wrong with the file
            return None
        by_name = dict(zip(read.column_names(), read.columns, strict=True))
        columns = []
        for column in (by_name[name] for name in names):
            if column.null_count():
                return None
            if column.type().id() == plc.TypeId.STRING:
                columns.append(column)
            elif plc.traits.is_integral_not_bool(column.type()):
                # an unsigned number beyond int64 becomes negative, and is refused as such
                columns.append(column_values(self.xp, column).astype(np.int64))
            else:
                return None
        return columns

    def from_arrow(self, labels: pa.Array) -> Any:
        """See `Arrays`."""
        if pa.types.is_integer(labels.type):
            return self.xp.asarray(labels.to_numpy())
        return self._plc.Column.from_arrow(labels.cast(pa.large_string()))

    def to_arrow(self, column: Any) -> pa.Array:
        """See `Arrays`."""
        if isinstance(column, self.xp.ndarray):
            return pa.array(self.on_host(column))
        return column.to_arrow().cast(pa.large_string())

    def rows(self, column: Any) -> int:
        """See `Arrays`."""
        return len(column) if isinstance(column, self.xp.ndarray) else int(column.size())

    def concat(self, columns: list[Any]) -> Any:
        """See `Arrays`."""
        if len(columns) == 1:
            return columns[0]
        if isinstance(columns[0], self.xp.ndarray):
            return self.xp.concatenate(columns)
        return self._plc.concatenate.concatenate(columns)

    def take(self, column: Any, rows: Any) -> Any:
        """See `Arrays`."""
        if isinstance(column, self.xp.ndarray):
            return column[rows]
        unchecked = self._plc.copying.OutOfBoundsPolicy.DONT_CHECK
        table = self._plc.Table([column])
        return self._plc.copying.gather(table, self._column(rows.astype(VERTEX)), unchecked).columns()[0]

    def unique(self, column: Any) -> tuple[Any, Any]:
        """See `Arrays`."""
        if isinstance(column, self.xp.ndarray):
            keys = self.xp.unique(column)  # and then a search, which needs less memory than the inverse of a sort
            return keys, self.xp.searchsorted(keys, column)
        keys, codes = self._plc.transform.encode(self._plc.Table([column]))
        return keys.columns()[0], column_values(self.xp, codes)

    def lengths(self, column: Any) -> Any:
        """See `Arrays`."""
        return column_values(self.xp, self._plc.strings.attributes.count_bytes(column)).astype(np.int64)

    def is_utf8(self, column: Any) -> bool:
        """See `Arrays`. The host checks it, unless all of it is ASCII."""
        if column.data() is None or bool((self.xp.asarray(column.data()).view(np.uint8) < 128).all()):
            return True
        return not_utf8(self.to_arrow(column)) is None

    def integers(self, column: Any) -> Any | None:
        """See `Arrays`."""
        if int(self.lengths(column).max()) > 18 or not self._all_match(column, "^[0-9]+$"):
            return None
        kind = self._plc.DataType(self._plc.TypeId.INT64)
        return column_values(self.xp, self._plc.strings.convert.convert_integers.to_integers(column, kind))

    def are_numbers(self, column: Any) -> bool:
        """See `Arrays`."""
        return self._all_match(column, r"^-?[0-9]+(\.[0-9]+)?$")

    def write_edges(self, path: Path, words: Iterable[Any]) -> None:
        """See `Arrays`."""
        writer: Any = None
        with writing_errors():
            for part in words:
                halves = ((part >> 32).astype(VERTEX), (part & 0xFFFFFFFF).astype(VERTEX))
                table = self._plc.Table([self._column(half) for half in halves])
                if writer is None:
                    writer = chunked_writer(self._plc, path, table, EDGES, _GROUP_ROWS)
                writer.write(table)
            writer.close([])

    def _through(self) -> Staging:
        """Page-locked memory for copies. The thread that reads uses it."""
        self._staging = self._staging or Staging(self.xp)
        return self._staging

    def _column(self, array: Any) -> Any:
        return self._plc.Column.from_cuda_array_interface(self.xp.ascontiguousarray(array))

    def _all_match(self, column: Any, pattern: str) -> bool:
        strings = self._plc.strings
        program = strings.regex_program.RegexProgram.create(pattern, strings.regex_flags.RegexFlags.DEFAULT)
        return bool(column_values(self.xp, strings.contains.matches_re(column, program)).all())
