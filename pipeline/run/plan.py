"""The stored plan of a run: its first-level subtrees in dealing order. `pipeline.prepare.plan` makes the plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.run.folder import RunFolder
from pipeline.run.resuming import how_to_resume
from schemas.errors import IncompleteError

__all__ = ["ROOTS_FILE", "WEIGHTS_FILE", "Plan"]

#: Names of the files below ``plan/``.
ROOTS_FILE, WEIGHTS_FILE = "roots.npy", "weights.npy"


@dataclass(frozen=True, eq=False)
class Plan:
    """The roots in dealing order, and their weights.

    Parameters
    ----------
    roots : ndarray, shape (n_roots,), int32
        Ranks of the roots, by descending weight.
    weights : ndarray, shape (n_roots,), float64
        Estimated work of each root, in the same order. Only the ratios of weights have a meaning.
    """

    roots: np.ndarray
    weights: np.ndarray

    @classmethod
    def read(cls, folder: RunFolder) -> Plan:
        """The plan in the folder of a run.

        Raises
        ------
        IncompleteError
            If a file is missing or damaged.
        """
        try:
            return cls(np.load(folder.plan / ROOTS_FILE), np.load(folder.plan / WEIGHTS_FILE))
        except (EOFError, MemoryError, OSError, ValueError) as error:
            remedy = f"mend it with: {how_to_resume(folder.path)}"
            raise IncompleteError(f"the plan in {folder.plan} cannot be read ({error}); {remedy}") from error
