"""The mixer behind all hashes, as `schemas.hashes` has it for arrays, here for one number inside compiled code."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled


@compiled
def splitmix64(x: np.uint64) -> np.uint64:
    """As `schemas.hashes.splitmix64`."""
    x += np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def mixed(left: np.uint64, right: np.uint64) -> np.uint64:
    """The hash of a row from the sums of its sides, as `schemas.hashes.mixed`."""
    return splitmix64(left ^ splitmix64(right))
