"""`pipeline.ingest.gpu.arrays.Arrays` by NumPy and Arrow: what a device does, where there is none."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from bicliques.pipeline.ingest.readers.sieve import not_utf8
from bicliques.schemas.edges import EDGES


class HostArrays:
    xp = np

    def __init__(self, free: int = 1 << 32) -> None:
        self.parsed = self.refused = self.longest = 0
        self.free = free

    def free_bytes(self) -> int:
        return self.free

    def upload(self, text: memoryview) -> np.ndarray:
        return np.frombuffer(text, dtype=np.uint8).copy()

    def on_device(self, array: Any) -> np.ndarray:
        self.longest = max(self.longest, len(array))
        return np.array(array)  # a device has arrays of its own

    def on_host(self, array: Any) -> np.ndarray:
        return np.asarray(array)

    def read_csv(self, raw: np.ndarray, delimiter: str, text: Sequence[bool]) -> list[Any] | None:
        names = [str(k) for k in range(len(text))]
        try:
            table = pa_csv.read_csv(
                pa.BufferReader(raw.tobytes()),
                read_options=pa_csv.ReadOptions(column_names=names),
                parse_options=pa_csv.ParseOptions(delimiter=delimiter, quote_char=False),
                convert_options=pa_csv.ConvertOptions(
                    column_types={n: pa.large_string() if t else pa.int64() for n, t in zip(names, text, strict=True)},
                    null_values=[],
                    check_utf8=False,
                ),
            )
        except pa.ArrowInvalid:
            self.refused += 1
            return None
        self.parsed += 1
        columns = [column.combine_chunks() for column in table.columns]
        return [column if t else column.to_numpy() for column, t in zip(columns, text, strict=True)]

    def read_parquet(self, path: Path, row_groups: list[int], names: list[str]) -> list[Any] | None:
        with pq.ParquetFile(path) as file:
            table = file.read_row_groups(row_groups, columns=names)
        columns = [table[name].combine_chunks() for name in names]
        decoded = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in columns]
        if any(c.null_count or not (pa.types.is_integer(c.type) or is_text(c)) for c in decoded):
            self.refused += 1
            return None
        self.parsed += 1
        return [self.from_arrow(c.cast(pa.int64(), safe=False) if not is_text(c) else c) for c in decoded]

    def from_arrow(self, labels: pa.Array) -> Any:
        return labels.cast(pa.large_string()) if is_text(labels) else labels.to_numpy()

    def to_arrow(self, column: Any) -> pa.Array:
        return pa.array(column) if isinstance(column, np.ndarray) else column

    def rows(self, column: Any) -> int:
        return len(column)

    def concat(self, columns: list[Any]) -> Any:
        return np.concatenate(columns) if isinstance(columns[0], np.ndarray) else pa.concat_arrays(columns)

    def take(self, column: Any, rows: np.ndarray) -> Any:
        return column[rows] if isinstance(column, np.ndarray) else column.take(pa.array(rows))

    def unique(self, column: Any) -> tuple[Any, np.ndarray]:
        if isinstance(column, np.ndarray):
            return np.unique(column, return_inverse=True)
        keys = column.unique()
        keys = keys.take(pc.array_sort_indices(keys))
        return keys, pc.index_in(column, keys).to_numpy().astype(np.int64)

    def lengths(self, column: pa.Array) -> np.ndarray:
        return pc.binary_length(column).to_numpy().astype(np.int64)

    def is_utf8(self, column: pa.Array) -> bool:
        return not_utf8(column) is None

    def integers(self, column: pa.Array) -> np.ndarray | None:
        if not pc.all(pc.match_substring_regex(column, "^[0-9]{1,18}$")).as_py():
            return None
        return column.cast(pa.int64()).to_numpy()

    def are_numbers(self, column: pa.Array) -> bool:
        return bool(pc.all(pc.match_substring_regex(column, r"^-?[0-9]+(\.[0-9]+)?$")).as_py())

    def write_edges(self, path: Path, words: Iterable[np.ndarray]) -> None:
        with pq.ParquetWriter(path, EDGES, compression="zstd", use_dictionary=False) as writer:
            for part in words:
                columns = [pa.array((part >> 32).astype(np.int32)), pa.array((part & 0xFFFFFFFF).astype(np.int32))]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=EDGES))


def is_text(column: pa.Array) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(kind(column.type) for kind in kinds)
