"""The tables of the interesting rows: the best, the most surprising, the distinct, and those that cover most edges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.pipeline.prepare.members import Members
from bicliques.pipeline.proof.selection import places_of, rows_at
from bicliques.pipeline.results.candidates import Dropped, Score, SizeScore, best_rows
from bicliques.pipeline.results.cover import cover_rows, distinct_rows
from bicliques.pipeline.results.edges import degrees_of
from bicliques.pipeline.results.parts import Parts
from bicliques.pipeline.results.surprise import UNIT, Surprise
from bicliques.pipeline.run.files import whole_file
from bicliques.pipeline.run.names import url_of
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.outside import refuse_inside_run
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.dtypes import offsets_of
from bicliques.schemas.errors import InputError
from bicliques.schemas.search import By


def top_rows(
    run: Run,
    files: Sequence[Path],
    schema: pa.Schema,
    n: int,
    by: By | Literal["surprise"],
    distinct: float | None,
    members: Members | None = None,
    ids: np.ndarray | None = None,
) -> pa.Table:
    """The best rows of these parts, of those with some members and ids; see `pipeline.results.results.Results.top`.

    Raises
    ------
    IncompleteError
        If a part or the edge table is missing or damaged.
    """
    ranks = np.empty((0, 7), np.int64)
    if files:
        score: Score = Surprise(run, degrees_of(run)) if by == "surprise" else SizeScore(by)
        drops: list[Dropped] = [] if members is None else [_lacking(members)]
        if ids is not None:
            drops.append(lambda rows, some: ~np.isin(rows.ids[some], ids))
        if distinct is None:
            ranks = best_rows(Parts(run, files), score, n, hold=False, drops=drops).ranks
        else:
            ranks = distinct_rows(Parts(run, files), score, n, distinct, drops)
    rows = rows_at(files, places_of(ranks), schema)
    return rows.append_column("surprise", pa.array(ranks[:, 0] / UNIT)) if by == "surprise" else rows


def _lacking(members: Members) -> Dropped:
    """Drops the rows that lack one of these members."""

    def dropped(rows: Bicliques, some: np.ndarray) -> np.ndarray:
        lacks = np.zeros(len(some), bool)
        sides = ((rows.left_indptr, rows.left, members.left), (rows.right_indptr, rows.right, members.right))
        for indptr, flat, wanted in sides:
            before = offsets_of(np.isin(flat, wanted))
            lacks |= before[indptr[some + 1]] - before[indptr[some]] < len(wanted)
        return lacks

    return dropped


def cover_table(run: Run, files: Sequence[Path], schema: pa.Schema, n: int) -> pa.Table:
    """The rows of a cover; see `pipeline.results.results.Results.cover`.

    Raises
    ------
    IncompleteError
        If a part is missing or damaged.
    """
    chosen = cover_rows(Parts(run, files), n) if files else []
    rows = rows_at(files, [one.place for one in chosen], schema)
    new = np.array([one.new for one in chosen], np.int64)
    columns = {
        "rank": pa.array(np.arange(1, len(chosen) + 1)),
        "edges": pa.array(rows["n_left"].to_numpy().astype(np.int64) * rows["n_right"].to_numpy()),
        "new_edges": pa.array(new),
        "covered": pa.array(np.cumsum(new) / run.input["n_edges"]),
    }
    return pa.table(columns | {name: rows[name] for name in rows.column_names})


def refuse_target(path: Path) -> None:
    """Refuse a path where `write_table` could not write.

    Raises
    ------
    InputError
        If its folder is not there or one of a run, or it is a folder itself.
    """
    if (url := url_of(path)) is not None:
        raise InputError(f"{url} is a URL, and tables are written to this machine; name a file, and copy it afterwards")
    refuse_inside_run(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written, because there is no folder {path.parent}; make it")


def write_table(rows: pa.Table, path: Path) -> None:
    """Write a table to a Parquet file, which is there as a whole or not at all. A file of this name is replaced.

    Raises
    ------
    ResourceError
        If the file cannot be written.
    """
    with whole_file(path) as file:
        pq.write_table(rows, file)
