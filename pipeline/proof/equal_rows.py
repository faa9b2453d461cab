"""Finds rows that are there twice. Rows with equal ids are compared in full, because ids may agree by chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.proof.read_back import read_part
from pipeline.run.opened import Run
from schemas.errors import IncompleteError
from schemas.manifest import Part

__all__ = ["refuse_equal_rows"]


def refuse_equal_rows(
    run: Run,
    parts: Sequence[Part],
    suspects: np.ndarray,
) -> None:
    """Read the parts once more and compare the rows whose id is among `suspects`.

    Parameters
    ----------
    run : Run
    parts : sequence of Part
    suspects : ndarray, uint64
        Ids, as hashes, that more than one row has. If there are none, nothing is read.

    Raises
    ------
    IncompleteError
        If two rows have the same members. The error names the parts that hold them.
    """
    if len(suspects) == 0:
        return
    seen: dict[tuple[bytes, bytes], str] = {}
    for part in parts:
        for batch in read_part(run.folder.bicliques / part.name, run.tables):
            for row in np.flatnonzero(np.isin(batch.ids.view(np.uint64), suspects)).tolist():
                left = batch.left[batch.left_indptr[row] : batch.left_indptr[row + 1]].tobytes()
                right = batch.right[batch.right_indptr[row] : batch.right_indptr[row + 1]].tobytes()
                if (left, right) in seen:
                    raise IncompleteError(
                        f"a row of {part.name} is also in {seen[left, right]}, so a file is not as the run has "
                        "written it; mine again, into another folder"
                    )
                seen[left, right] = part.name
