"""Batches of bicliques that are made up, for writers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.schemas.bicliques import Bicliques, statement

#: Of four left and three right vertices.
LABELS = (pa.array([10, 20, 30, 40]), pa.array(["a", "b", "c"]))


def random_batch(
    rng: np.random.Generator, n: int, sizes: tuple[int, int], most: int, least: int = 1, root_side: str = "left"
) -> Bicliques:
    """So many rows of at least `least` and at most `most` members per side, of so many vertices. Roots are members."""
    left, right = (
        [rng.choice(size, rng.integers(least, most + 1), replace=False).tolist() for _ in range(n)] for size in sizes
    )
    pairs = list(zip(left, right, strict=True))
    roots = [int(rng.choice(pair[root_side == "right"])) for pair in pairs]
    return Bicliques.from_pairs(pairs, roots)


def some(n: int, seed: int = 0) -> Bicliques:
    """So many, at random."""
    rng = np.random.default_rng(seed)
    pairs = [
        (
            rng.choice(4, rng.integers(1, 5), replace=False).tolist(),
            rng.choice(3, 2, replace=False).tolist(),
        )
        for _ in range(n)
    ]
    return Bicliques.from_pairs(pairs, list(range(n)))


def hashes_of(batch: Bicliques) -> np.ndarray:
    """The ids as hashes, uint64."""
    return batch.ids.view(np.uint64)


def state_anew(part: Path) -> None:
    """Write a part again, with metadata that says what it holds."""
    with pq.ParquetFile(part) as file:
        groups = [file.read_row_group(k) for k in range(file.num_row_groups)]
        schema = file.schema_arrow
    ids = np.concatenate([np.empty(0, np.int64), *(group["id"].to_numpy() for group in groups)])
    total = int(np.add.reduce(ids.view(np.uint64), dtype=np.uint64))
    with pq.ParquetWriter(part, schema) as writer:
        for group in groups:
            writer.write_table(group, row_group_size=max(len(group), 1))
        writer.add_key_value_metadata(statement(len(ids), total))
