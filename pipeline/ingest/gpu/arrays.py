"""The operations of reading on a device, which cuDF implements. In tests NumPy and Arrow do.

A column is an int64 array (of the module `Arrays.xp`) or a column of strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa


class Arrays(Protocol):
    """Arrays of a device, and columns of labels there."""

    #: numpy or cupy
    xp: Any

    def free_bytes(self) -> int:
        """Device memory that can still be allocated."""
        ...

    def upload(self, text: memoryview) -> Any:
        """Bytes of main memory, uint8, on the device."""
        ...

    def on_device(self, array: Any) -> Any:
        """The array on the device. It is not copied if it is there already."""
        ...

    def on_host(self, array: Any) -> np.ndarray:
        """The array in main memory. It is not copied if it is there already."""
        ...

    def read_csv(self, raw: Any, delimiter: str, text: Sequence[bool]) -> list[Any] | None:
        """Columns of a text whose lines all end in LF. They are strings where `text` is true, and int64 otherwise.

        Nothing is trimmed. None when the reader finds a row that is not as expected.
        """
        ...

    def read_parquet(self, path: Path, row_groups: list[int], names: list[str]) -> list[Any] | None:
        """Two columns of some row groups. None when they are neither integers nor strings, or have a null."""
        ...

    def from_arrow(self, labels: pa.Array) -> Any:
        """A column of int64 or of strings."""
        ...

    def to_arrow(self, column: Any) -> pa.Array:
        """int64 or large_string."""
        ...

    def rows(self, column: Any) -> int:
        """The number of rows of a column."""
        ...

    def concat(self, columns: list[Any]) -> Any:
        """One column of all rows. The columns have the same type."""
        ...

    def take(self, column: Any, rows: Any) -> Any:
        """The rows of a column at the positions `rows`."""
        ...

    def unique(self, column: Any) -> tuple[Any, Any]:
        """Distinct values in ascending order (strings by UTF-8 bytes), and the position of every row's, as an array."""
        ...

    def lengths(self, column: Any) -> Any:
        """Bytes of every string, int64."""
        ...

    def is_utf8(self, column: Any) -> bool:
        """Whether every string is valid UTF-8. A file may say so although it is not."""
        ...

    def integers(self, column: Any) -> Any | None:
        """Strings as int64. None unless all strings are of one to eighteen digits."""
        ...

    def are_numbers(self, column: Any) -> bool:
        """Whether every string is a plain decimal number, as ``-12`` or ``3.5``."""
        ...

    def write_edges(self, path: Path, words: Iterable[Any]) -> None:
        """Write sorted words as a file of `schemas.edges.EDGES`."""
        ...
