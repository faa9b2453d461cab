"""What reading on a device does with labels and edges, by cuDF, or by NumPy and Arrow in tests.

A column is an int64 array (of the module `Arrays.xp`) or a column of strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

__all__ = ["Arrays"]


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
        """The array, on the device; itself if it is there."""
        ...

    def on_host(self, array: Any) -> np.ndarray:
        """The array, in main memory; itself if it is there."""
        ...

    def read_csv(self, raw: Any, delimiter: str, text: Sequence[bool]) -> list[Any] | None:
        """Columns of a text whose lines all end in LF: strings where `text` is true, else int64; nothing is trimmed.

        None when a row is not what it should be, as far as the reader notices.
        """
        ...

    def read_parquet(self, path: Path, row_groups: list[int], names: list[str]) -> list[Any] | None:
        """Two columns of some row groups; None when they are neither integers nor strings, or hold a null."""
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
        """One column of all rows; the columns have the same type."""
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
        """Whether every string is valid; the file may claim it without being so."""
        ...

    def integers(self, column: Any) -> Any | None:
        """Strings as int64; None unless every one consists of digits, eighteen at most."""
        ...

    def are_numbers(self, column: Any) -> bool:
        """Whether every string is a plain decimal number, as ``-12`` or ``3.5``."""
        ...

    def write_edges(self, path: Path, words: Iterable[Any]) -> None:
        """`schemas.edges.EDGES` from sorted words."""
        ...
