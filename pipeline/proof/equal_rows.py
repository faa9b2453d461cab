"""Finds rows that are there twice. Rows with equal hashes are compared in full, because a hash may agree by chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.proof.read_back import read_part
from pipeline.proof.summary import Tally
from pipeline.run.opened import Run
from schemas.errors import IncompleteError
from schemas.manifest import Part

__all__ = ["refuse_equal_rows"]


def refuse_equal_rows(
    run: Run,
    parts: Sequence[Part],
    suspects: np.ndarray,
) -> None:
    """Read the parts once more and compare the rows whose hash is among `suspects`.

    Parameters
    ----------
    run : Run
    parts : sequence of Part
    suspects : ndarray, uint64
        Hashes that more than one row has. If there are none, nothing is read.

    Raises
    ------
    IncompleteError
        If two rows have the same members. The error names the parts that hold them.
    """
    if len(suspects) == 0:
        return
    seen: dict[tuple[bytes, bytes], str] = {}
    tally = Tally(run.hashes)
    for part in parts:
        for batch in read_part(run.folder.bicliques / part.name, run.tables):
            for row in np.flatnonzero(np.isin(tally.add(batch), suspects)).tolist():
                left = np.sort(batch.left[batch.left_indptr[row] : batch.left_indptr[row + 1]]).tobytes()
                right = np.sort(batch.right[batch.right_indptr[row] : batch.right_indptr[row + 1]]).tobytes()
                if (left, right) in seen:
                    raise IncompleteError(
                        f"a row of {part.name} is also in {seen[left, right]}, so a file is not as the run has "
                        "written it; mine again, into another folder"
                    )
                seen[left, right] = part.name
