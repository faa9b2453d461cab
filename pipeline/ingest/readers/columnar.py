"""The common part of the readers of Parquet and Arrow files, which read only the two label columns of a table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from pipeline.ingest.readers.columns import choose, index_first
from pipeline.ingest.readers.lists import is_list, refuse_lone_list
from pipeline.ingest.readers.opening import COMPRESSIONS, file_digest, open_file
from pipeline.ingest.readers.sieve import integers_of, kinds_of
from pipeline.ingest.readers.tables import REFUSALS, Pair, TableStream, fit_for_cells, reason_of
from schemas.errors import InputError
from schemas.options import IngestOptions

__all__ = ["TableFile"]


class TableFile(TableStream):
    """Edges of a Parquet or Arrow file."""

    def __init__(self, path: Path, options: IngestOptions, format: str):
        self.path = path
        self.format = format
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
            schema = self.open()
            self.names = list(schema.names)
        except REFUSALS as error:
            raise self.damaged(reason_of(error)) from error
        refuse_lone_list(str(path), schema)
        order, n_index = index_first(schema)
        shown = [self.names[k] for k in order]
        choice = choose(str(path), options, shown, len(shown), format, n_index)
        frame = f"pandas.read_{'parquet' if format == 'parquet' else 'feather'}({str(path)!r})"
        super().__init__(str(path), format, options, "row", choice, shown, frame)
        left, right, *weight = (order[k] for k in choice.wanted)
        self.columns, self.weight = (left, right), (weight[0] if weight else None)
        self.integers = integers_of(schema, self.columns)
        self.kinds = kinds_of(schema, self.columns, options.label_type)
        #: Positions of the columns that are read.
        self.wanted = (left, right, *weight)
        self.has_lists = any(is_list(schema.types[k]) for k in self.columns)
        self._others = [k for k in order if k not in self.wanted and fit_for_cells(schema.types[k])]
        try:
            self.select()
        except REFUSALS as error:
            raise self.damaged(reason_of(error)) from error

    @abstractmethod
    def open(self) -> pa.Schema:
        """Open the file. Returns its columns."""

    @abstractmethod
    def select(self) -> None:
        """Open it again for the label columns, which are known now."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches of the file, with at least its label columns."""

    def further(self) -> Iterable[Iterable[object]]:
        """See `TableStream`. It yields nothing if the columns cannot be read."""
        try:
            batch = self.first_rows(self._others) if self._others else None
            for column in batch.columns if batch is not None else ():
                column.validate(full=True)
                yield column.to_pylist()
        except REFUSALS:
            return

    @abstractmethod
    def first_rows(self, columns: list[int]) -> pa.RecordBatch | None:
        """`FURTHER_ROWS` of some columns. None if there are no rows."""

    @abstractmethod
    def places(self, batch: pa.RecordBatch) -> tuple[int, ...]:
        """Positions of the wanted columns in a batch."""

    def pairs(self) -> Iterator[Pair]:
        """See `TableStream`."""
        return map(self.pair, self.batches())

    def pair(self, batch: pa.RecordBatch) -> Pair:
        """The wanted columns of a batch."""
        batch.validate()
        return tuple(batch.column(k) for k in self.places(batch))

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
            f"{self.path} is not a whole {self.format} file ({reason}); copy it again, or name its --format"
        )
