"""Files of typed tables, of which only the label columns are read: what Parquet and Arrow share, and Arrow."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from pipeline.ingest.readers.columns import index_first
from pipeline.ingest.readers.lists import refuse_lone_list
from pipeline.ingest.readers.opening import COMPRESSIONS, file_digest, open_file
from pipeline.ingest.readers.tables import FURTHER_ROWS, REFUSALS, Table, TableStream, fit_for_cells, reason_of
from schemas.errors import InputError
from schemas.options import IngestOptions
from schemas.reading import Reading

__all__ = ["ArrowTable", "TableFile"]


class TableFile(TableStream):
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
        refuse_lone_list(str(path), self.schema)
        self.order, n_index = index_first(self.schema)
        frame = f"pandas.read_{'parquet' if format == 'parquet' else 'feather'}({str(path)!r})"
        names = [self.names[k] for k in self.order]
        super().__init__(str(path), format, options, Table(names, self._take, self._first, frame, n_index))

    @abstractmethod
    def open(self) -> pa.Schema:
        """Open the file. Returns its columns."""

    @abstractmethod
    def read(self, columns: list[int]) -> Iterable[pa.RecordBatch]:
        """Open the file for these columns. Returns batches of them, in this order."""

    def first_rows(self, columns: list[int]) -> Iterable[pa.RecordBatch]:
        """Batches of other columns, of which the first one is enough."""
        return self.read(columns)

    def _take(self, wanted: tuple[int, ...]) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
        #: Positions in the file of the columns that are read.
        self.columns = [self.order[k] for k in wanted]
        try:
            return pa.schema([self.schema.field(k) for k in self.columns]), self.read(self.columns)
        except REFUSALS as error:
            raise self.damaged(reason_of(error)) from error

    def _first(self, positions: list[int]) -> Iterator[Iterable[object]]:
        """See `Table`. It yields nothing if the columns cannot be read."""
        columns = [k for k in (self.order[k] for k in positions) if fit_for_cells(self.schema.types[k])]
        try:
            for batch in islice(self.first_rows(columns) if columns else (), 1):
                for column in batch.slice(0, FURTHER_ROWS).columns:
                    column.validate(full=True)
                    yield column.to_pylist()
        except REFUSALS:
            return

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
            f"{self.path} is not a whole {self.reading.format} file ({reason}); copy it again, or name its --format"
        )


class ArrowTable(TableFile):
    """Edges of an Arrow IPC file or stream (Feather version 2 is the former).

    It is memory-mapped, and only the label columns of each batch are decompressed.
    """

    def open(self) -> pa.Schema:
        """Read the schema."""
        with pa.memory_map(str(self.path)) as file:
            return _reader(file).schema

    def read(self, columns: list[int]) -> Iterable[pa.RecordBatch]:
        """Batches of the mapped file. Only pages that are read are in memory."""
        file = pa.memory_map(str(self.path))
        return _batches(file, _reader(file, columns), columns)


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
