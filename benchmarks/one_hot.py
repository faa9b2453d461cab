r"""Writes the edges of a seeded one-hot table: 32,561 rows, each with one column of each of 15 groups, 611 in all.

    python -m benchmarks.one_hot one_hot.parquet
    python -m benchmarks.cpu one_hot.parquet@20x1

A group stands for an attribute with so many values. Small values are common in it, and large ones are rare.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.command import new_parser, run

ROWS = 32_561
#: How many columns each group has.
GROUPS = (2, 3, 5, 5, 6, 7, 9, 14, 16, 16, 42, 73, 94, 119, 200)


def edges() -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns, in the order of the rows. A column is that of value ``floor(n u^3)`` of n, with u uniform."""
    draws = np.random.default_rng(20261129).random((ROWS, len(GROUPS)))
    columns = np.floor(draws**3 * GROUPS).astype(np.int32) + np.cumsum((0, *GROUPS[:-1]), dtype=np.int32)
    return np.repeat(np.arange(ROWS, dtype=np.int32), len(GROUPS)), columns.reshape(-1)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("one_hot", __doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="Parquet file for the edges")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the file."""
    words = parser().parse_args(arguments)
    pq.write_table(pa.table(dict(zip(("row", "column"), edges(), strict=True))), words.file)


if __name__ == "__main__":
    run(main)
