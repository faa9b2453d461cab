"""The numbers of every vertex of a run: in how many bicliques it is, and the largest of them.

The slices have counted them, and the ledger keeps the sums. ``vertices/*.parquet`` has them with labels and degrees. If
the bicliques were listed, the proof has counted the members of all rows, too, and both have to agree.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.pipeline.prepare.build import read_edges
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.run.files import disk_errors, whole_file
from bicliques.pipeline.run.labels import open_labels
from bicliques.pipeline.run.names import refuse_url
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.outside import refuse_inside_run
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.run.tables import open_table
from bicliques.schemas.bicliques import ID
from bicliques.schemas.errors import IncompleteError, InputError, as_option
from bicliques.schemas.regular_files import open_regular, regular
from bicliques.schemas.search import Side
from bicliques.schemas.totals import PerVertex, Total
from bicliques.schemas.vertices import LARGEST_BY, SideTotals

_SIDES: tuple[Side, Side] = ("left", "right")


def write(run: Run, total: Total, summary: Summary | None = None) -> None:
    """Write a table per side into ``vertices/``.

    Raises `ResourceError` if the disk is full, or a file cannot be written for another reason.

    Parameters
    ----------
    total : PerVertex
        The total of the run.
    summary : Summary or None
        What the proof has counted in the rows. None if there are no rows, or if this was compared before.
    """
    assert isinstance(total, PerVertex)
    sizes = [run.input["n_left"], run.input["n_right"]]
    sides = [own.padded(n) for own, n in zip((total.left, total.right), sizes, strict=True)]
    for side, own in zip(_SIDES, sides, strict=True):
        if summary is not None and not np.array_equal(own.count, getattr(summary, side)):
            raise IncompleteError(
                f"the rows of {run.path} have other {side} members than the slices have counted; mine it again"
            )
    write_columns(run, [_columns(own) for own in sides])


def write_columns(run: Run, columns: Sequence[dict[str, Any]]) -> None:
    """Write these columns of each side behind the labels and degrees, a row per vertex. See `write` for errors."""
    with disk_errors(run.folder.vertices):
        run.folder.vertices.mkdir(exist_ok=True)
        for side, own, ids in zip(_SIDES, columns, read_edges(run.folder), strict=True):
            labels = open_labels(run.folder, side)
            degrees = np.bincount(ids, minlength=len(labels)).astype(np.int32)
            with whole_file(run.folder.vertices / f"{side}.parquet") as whole:
                table = pa.table({"label": labels, "degree": degrees} | own)
                pq.write_table(table, whole, compression="zstd", write_page_checksum=True)


def write_edges(run: Run, columns: dict[str, Any]) -> None:
    """Write a row per edge: the labels of both ends, of which the ids are given, and the other columns."""
    labels = {side: open_labels(run.folder, side).take(pa.array(columns[side])) for side in _SIDES}
    with disk_errors(run.folder.vertices), whole_file(run.folder.vertices / "edges.parquet") as whole:
        pq.write_table(pa.table(columns | labels), whole, compression="zstd", write_page_checksum=True)


def _columns(own: SideTotals) -> dict[str, Any]:
    columns: dict[str, Any] = {"bicliques": own.count}
    for by in LARGEST_BY:
        largest = own.largest[by]
        columns |= {f"{by}_left": largest.n_left, f"{by}_right": largest.n_right, f"{by}_id": largest.hash.view(ID)}
    return columns


def check(run: Run, summary: Summary) -> None:
    """Compare the numbers of bicliques in the tables with what was counted in the rows now."""
    reason = why_damaged(run)
    for side in _SIDES if reason is None else ():
        file = run.folder.vertices / f"{side}.parquet"
        with open_table(regular(file)) as table:
            counted = table.read(["bicliques"])["bicliques"].to_numpy()
        if not np.array_equal(counted, getattr(summary, side)):
            reason = f"{file} is not of these rows"
    if reason is not None:
        remedy = f"delete {run.folder.vertices}, and make it anew with: {how_to_resume(run.path)}"
        raise IncompleteError(f"{reason}; {remedy}")


def why_damaged(run: Run) -> str | None:
    """Why the tables of a complete run cannot be used, in words. None if they can be read and have a row per vertex."""
    for side in _SIDES:
        file = run.folder.vertices / f"{side}.parquet"
        try:
            with open_table(regular(run.store.local(file))) as table:
                rows = len(table.read())
        except (MemoryError, OSError, pa.ArrowException, ValueError) as error:
            return f"{file} cannot be read ({str(error).partition(chr(10))[0].rstrip('.')})"
        if rows != run.input[f"n_{side}"]:  # type: ignore[literal-required]
            return f"{file} has {rows} rows"
    return None


def refuse_full(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder for the tables that is none, or that has files in it."""
    refuse_url(folder)
    refuse_inside_run(folder)
    path = Path(folder)
    if path.is_dir() and any(path.iterdir()):
        raise InputError(f"{path} is not empty; name another folder with {as_option('per_vertex', True)}")
    if os.path.lexists(path) and not path.is_dir():
        raise InputError(f"{path} is no folder; name another one with {as_option('per_vertex', True)}")


def copy(run: Run, folder: Path) -> None:
    """Copy the tables of a run into another folder.

    Raises `ResourceError` if the disk is full, or the folder cannot be made.
    """
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in sorted(file.name for file in run.folder.vertices.glob("*.parquet")):
            with (
                open_regular(run.store.local(run.folder.vertices / name)) as table,
                whole_file(folder / name) as whole,
            ):
                shutil.copyfileobj(table, whole)
