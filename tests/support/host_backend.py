"""A backend of the GPU's writer that works on the CPU."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.pipeline.output.part_writer import part_schema, to_batch
from bicliques.pipeline.output.stretch import pieces_of
from bicliques.pipeline.run.labels import Tables
from bicliques.schemas.bicliques import Bicliques, fingerprint
from tests.support.batches import LABELS


class Host:
    """The same as `pipeline.output.cudf_parquet.CudfParquet`, by NumPy and pyarrow."""

    def __init__(self, threads: int = 4, tables: Tables = LABELS) -> None:
        self.threads, self.tables = threads, tables
        self.waiting = self.most = 0
        self.opened = 0
        self.written: list[Bicliques] = []
        self.lock = threading.Lock()
        self.go = threading.Event()
        self.go.set()

    def pieces(self, found: Bicliques, members: int) -> list[Bicliques]:
        return list(pieces_of(found, members))

    def open(self, path: Path) -> HostFile:
        return HostFile(self, path)


class HostFile:
    def __init__(self, host: Host, path: Path):
        self.host = host
        self.fingerprint = 0
        host.opened += 1
        self.writer = pq.ParquetWriter(path, part_schema(host.tables))

    def write(self, piece: Bicliques) -> None:
        with self.host.lock:
            self.host.waiting += 1
            self.host.most = max(self.host.most, self.host.waiting)
            self.host.written.append(piece)
        self.fingerprint += fingerprint(piece)
        self.host.go.wait(60)
        self.writer.write_table(pa.Table.from_batches([to_batch(piece, self.host.tables)]))
        with self.host.lock:
            self.host.waiting -= 1

    def close(self) -> int:
        self.writer.close()
        return self.fingerprint % 2**64
