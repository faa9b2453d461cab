"""Batches of bicliques that are made up, for writers."""

import numpy as np
import pyarrow as pa

from bicliques.schemas.bicliques import Bicliques

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
