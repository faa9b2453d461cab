"""Arrow IPC files and streams. They are memory-mapped, and only two columns of each batch are decompressed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from pipeline.ingest.readers.columnar import TableFile
from pipeline.ingest.readers.tables import FURTHER_ROWS

__all__ = ["ArrowTable"]


class ArrowTable(TableFile):
    """Edges of an Arrow IPC file or stream (Feather version 2 is the former)."""

    def open(self) -> pa.Schema:
        """Read the schema."""
        with self._mapped() as file:
            return _reader(file).schema

    def select(self) -> None:
        """Open the file again for the chosen columns, so that only these are decompressed."""
        self.file = self._mapped()
        self.reader = _reader(self.file, sorted(self.wanted))

    def first_rows(self, columns: list[int]) -> pa.RecordBatch | None:
        """See `TableFile`."""
        with self._mapped() as file:
            return next((batch.slice(0, FURTHER_ROWS) for batch in _batches(_reader(file, columns))), None)

    def _mapped(self) -> pa.MemoryMappedFile:
        return pa.memory_map(str(self.path))

    def places(self, batch: pa.RecordBatch) -> tuple[int, ...]:
        """Positions of the wanted columns, which are in the order of the file."""
        return tuple(sorted(self.wanted).index(k) for k in self.wanted)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches of the mapped file. Only pages that are read are in memory."""
        with self.file:
            yield from _batches(self.reader)


def _reader(file: pa.NativeFile, columns: Iterable[int] = ()) -> pa.RecordBatchReader | pa.ipc.RecordBatchFileReader:
    """A reader of some columns, or of all."""
    options = pa.ipc.IpcReadOptions(included_fields=list(columns))
    try:
        return pa.ipc.open_file(file, options=options)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file, options=options)


def _batches(reader: pa.RecordBatchReader | pa.ipc.RecordBatchFileReader) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.ipc.RecordBatchFileReader):
        return map(reader.get_batch, range(reader.num_record_batches))
    return iter(reader)
