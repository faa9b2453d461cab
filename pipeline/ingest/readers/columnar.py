"""Files of typed tables, of which only the label columns are read: Parquet and Arrow."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.pipeline.ingest.readers.opening import COMPRESSIONS, file_digest, open_file
from bicliques.pipeline.ingest.readers.sieve import is_list, is_text
from bicliques.pipeline.ingest.readers.tables import FURTHER_ROWS, REFUSALS, ROWS, Table, TableStream, reason_of
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.options import IngestOptions
from bicliques.schemas.reading import Reading

#: Bytes of a batch, by the sizes that the file states for its row groups.
BATCH_BYTES = 64 << 20
#: Rows of a batch of text that is stored as differences from the row before, because the file does not state its size.
DIFFERENCE_ROWS = 1 << 12
#: Most rows, and most bytes by the sizes that it states, of a file that is read beside others.
SMALL_ROWS, SMALL_BYTES = 1 << 23, 1 << 28
#: If a column of a row group has more bytes than the first number, it may have at most the second number per row.
WIDE_GROUP, _WIDE_ROW = 1 << 28, 1 << 16

#: A batch without columns.
_NOTHING = pa.RecordBatch.from_arrays([], names=[])


class _TableFile(TableStream):
    """Edges of a Parquet or Arrow file."""

    def __init__(self, path: Path, options: IngestOptions, format: str):
        self.path, self.reading = path, Reading(format=format)
        open_file(path).close()
        try:
            str(path).encode()
        except UnicodeEncodeError as error:
            raise InputError(f"the name {path} is not UTF-8, and pyarrow opens no such file; rename it") from error
        if path.suffix.lower() in COMPRESSIONS:
            raise InputError(
                f"{path} is compressed once more around {format}; decompress it, for {format} compresses inside"
            )
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty; name a file that holds edges")
        try:
            self.schema = self.open()
            self.names = list(self.schema.names)
        except REFUSALS as error:
            raise self.damaged(reason_of(error)) from error
        frame = f"pandas.read_{'parquet' if format == 'parquet' else 'feather'}({str(path)!r})"
        super().__init__(str(path), format, options, Table.of_arrow(self.schema, self._chosen, self.head, frame))

    @abstractmethod
    def open(self) -> pa.Schema:
        """Open the file. Returns its columns."""

    @abstractmethod
    def read(self) -> Iterable[pa.RecordBatch]:
        """Open the file for the label `columns`. Returns batches of them, in this order."""

    @abstractmethod
    def head(self, columns: list[int]) -> pa.RecordBatch:
        """The `FURTHER_ROWS` first rows of other columns."""

    def _chosen(self, columns: list[int]) -> Iterable[pa.RecordBatch]:
        self.columns = columns
        return self.read()

    def digest(self) -> str | None:
        """Digest of the file as stored. See `EdgeStream.digest`."""
        return file_digest(self.path)

    def damaged(self, reason: str) -> InputError:
        """See `TableStream`."""
        if reason.startswith("Expected all lists to be of size"):  # as PyArrow before 26 says
            return InputError(
                f"{self.path} has lists of a fixed length of which one is missing, which PyArrow {pa.__version__} "
                "cannot read; install PyArrow 26, or write lists of any length"
            )
        return InputError(
            f"{self.path} is not a whole {self.reading.format} file ({reason}); copy it again, or name its "
            f"{as_option('format')}"
        )


class ArrowTable(_TableFile):
    """Edges of an Arrow IPC file or stream (Feather version 2 is the former).

    It is memory-mapped, and only the label columns of each batch are decompressed.
    """

    def open(self) -> pa.Schema:
        """Read the schema."""
        with pa.memory_map(str(self.path)) as file:
            return _reader(file).schema

    def read(self) -> Iterable[pa.RecordBatch]:
        """Batches of the mapped file. Only pages that are read are in memory."""
        file = pa.memory_map(str(self.path))
        return _batches(file, _reader(file, self.columns), self.columns)

    def head(self, columns: list[int]) -> pa.RecordBatch:
        """See `_TableFile`."""
        with pa.memory_map(str(self.path)) as file:
            batches = _batches(file, _reader(file, columns), columns)
            return next(batches, _NOTHING).slice(0, FURTHER_ROWS)


def _reader(file: pa.NativeFile, columns: Iterable[int] = ()) -> pa.RecordBatchReader | pa.ipc.RecordBatchFileReader:
    """A reader of some columns, or of all. It has them in the order of the file."""
    options = pa.ipc.IpcReadOptions(included_fields=sorted(columns))
    try:
        return pa.ipc.open_file(file, options=options)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file, options=options)


def _batches(file: pa.NativeFile, reader: pa.RecordBatchReader, columns: list[int]) -> Iterator[pa.RecordBatch]:
    is_file = isinstance(reader, pa.ipc.RecordBatchFileReader)
    with file:
        for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
            yield batch.select([sorted(columns).index(k) for k in columns])


class ParquetTable(_TableFile):
    """Edges of a Parquet file, row group after row group.

    A batch has as many rows as make about 64 MiB, by the sizes that the file states for its row groups. Text that is
    stored with dictionaries keeps them.
    """

    def open(self) -> pa.Schema:
        """Read the footer."""
        self.file = pq.ParquetFile(self.path)
        return self.file.schema_arrow

    def read(self) -> Iterable[pa.RecordBatch]:
        """Find the label columns among the stored columns. Structs and lists are several stored columns."""
        kinds, metadata = self.schema.types, self.file.metadata
        leaves = [metadata.schema.column(k).path for k in range(metadata.num_columns)]
        # For Arrow, a dot in a name is a path into a struct, and a name that occurs twice means both columns.
        wanted = [self.names[k] for k in self.columns]
        leaves_of = {n: [k for k, leaf in enumerate(leaves) if leaf == n or leaf.startswith(f"{n}.")] for n in wanted}
        self.is_exact = all(self.names.count(n) == 1 == len(leaves_of[n]) and "." not in n for n in wanted)
        read = [leaves_of[name][0] for name in wanted] if self.is_exact else []
        self._texts = [leaf for leaf, k in zip(read, self.columns[:2], strict=False) if is_text(kinds[k])]
        self._refuse_wide(metadata, read)
        self.has_lists = any(is_list(kinds[k]) for k in self.columns[:2])
        self.batch_rows = _rows_of(metadata)
        self.is_small = metadata.num_rows <= SMALL_ROWS and not self.has_lists and self._states_few_bytes(metadata)
        return self._batches()

    def _states_few_bytes(self, metadata: pq.FileMetaData) -> bool:
        """Whether all of the file has few bytes. Where text is differences, it does not say how many."""
        groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
        shares = any("DELTA_BYTE_ARRAY" in group.column(leaf).encodings for group in groups for leaf in self._texts)
        return sum(group.total_byte_size for group in groups) <= SMALL_BYTES and not shares

    def _refuse_wide(self, metadata: pq.FileMetaData, leaves: Iterable[int]) -> None:
        """Refuse very wide rows. Whole pages are decompressed, so kilobytes of the file can be gigabytes of labels."""
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            for column in map(group.column, leaves) if _is_wide(group.total_byte_size, group.num_rows) else ():
                if _is_wide(n_bytes := column.total_uncompressed_size, group.num_rows):
                    raise InputError(
                        f"{self.path}: column {column.path_in_schema!r} holds {n_bytes:,} bytes in {group.num_rows:,} "
                        f"rows of row group {number}, and {_WIDE_ROW:,} bytes per row are the most; give shorter labels"
                    )

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with self.file:
            yield from self._iterate(range(self.file.metadata.num_row_groups))

    def head(self, columns: list[int]) -> pa.RecordBatch:
        """See `_TableFile`."""
        names = [self.names[k] for k in columns if self.names.count(self.names[k]) == 1]
        with pq.ParquetFile(self.path) as file:
            batch = next(file.iter_batches(FURTHER_ROWS, columns=names), None)
        return _NOTHING if batch is None else batch.select(names)

    def groups(self, row_groups: list[int], n_before: int) -> Iterator[pa.RecordBatch]:
        """Batches of edges of some row groups, which begin behind `n_before` rows. It needs `is_exact`."""
        return self.labelled(self._iterate(row_groups), n_before)

    def _iterate(self, row_groups: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """Batches of the label columns. If their names are not unique, all columns are read."""
        names = [self.names[k] for k in self.columns] if self.is_exact else None
        # Arrow joins no lists of dictionaries of different row groups
        for (behind, rows, _), run in groupby(row_groups, lambda k: (*self.layout_of(k), k if self.has_lists else 0)):
            # With a buffer size Arrow reads a column chunk in pieces.
            how = {"metadata": self.file.metadata, "buffer_size": 1 << 20, "read_dictionary": list(behind)}
            with pq.ParquetFile(self.path, **how) as file:
                for batch in file.iter_batches(rows, list(run), names):
                    yield batch.select(names or self.columns)

    def layout_of(self, number: int) -> tuple[tuple[int, ...], int]:
        """The columns of a row group whose text has dictionaries, and the rows of a batch."""
        group = self.file.metadata.row_group(number)
        if not self._texts or group.num_rows == 0:
            return (), self.batch_rows
        # pyarrow ends the process at damaged facts of a column. Reading one row before that raises an error.
        next(self.file.iter_batches(1, [number], [self.names[k] for k in self.columns]), None)
        encodings = {leaf: set(group.column(leaf).encodings) for leaf in self._texts}
        behind = tuple(leaf for leaf in self._texts if can_stay_behind(encodings[leaf]))
        shares = any("DELTA_BYTE_ARRAY" in own for own in encodings.values())
        return behind, min(self.batch_rows, DIFFERENCE_ROWS) if shares else self.batch_rows


def can_stay_behind(encodings: set[str]) -> bool:
    """Whether Arrow can keep the dictionaries of text with these encodings. It cannot if some text is differences."""
    return any("DICTIONARY" in name for name in encodings) and not any(name.startswith("DELTA") for name in encodings)


def _is_wide(n_bytes: int, rows: int) -> bool:
    return n_bytes > WIDE_GROUP and n_bytes > _WIDE_ROW * rows


def _rows_of(metadata: pq.FileMetaData) -> int:
    """Number of the widest rows that make `BATCH_BYTES`, by the sizes that the file states."""
    rows = ROWS
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        rows = min(rows, BATCH_BYTES * group.num_rows // max(group.total_byte_size, 1))
    return max(rows, 1)
