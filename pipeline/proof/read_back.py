"""Reads parts back from Parquet: rows, hashes and counts, one row group at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.pipeline.output.part_writer import part_schema
from bicliques.pipeline.proof.coded_groups import CodedGroups, not_ascending
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.run.labels import Tables, ids_of
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.tables import open_part, read_schema
from bicliques.pipeline.slices.worker import open_in_worker
from bicliques.schemas.bicliques import READ_VERSIONS, Bicliques
from bicliques.schemas.dtypes import OFFSET, VERTEX
from bicliques.schemas.errors import DeviceMemoryError, IncompleteError
from bicliques.schemas.manifest import Part

logger = logging.getLogger(__name__)

#: A part of more bytes is divided between several workers. Each reads about this number of bytes.
PIECE_BYTES = 1 << 23
#: The columns beside the lists.
_NUMBERS = ["id", "n_left", "n_right", "root"]


@dataclass(frozen=True)
class ProofTask:
    """A part, or some row groups of it, that any worker can read back.

    Parameters
    ----------
    folder, run : str
        As in `pipeline.slices.worker.SliceTask`.
    file : int
        Position of the part among those of the run.
    groups : (int, int) or None
        Row groups start to stop - 1. None: all.
    keep_hashes : bool
        Whether to return the hashes of all rows, 8 bytes per row.
    on_device : bool
        Whether the GPU of the worker reads the part; see `pipeline.proof.on_device`. If its memory does not suffice,
        the CPU reads the part, and the log says so.
    """

    folder: str
    run: str
    part: Part
    file: int = 0
    groups: tuple[int, int] | None = None
    keep_hashes: bool = False
    on_device: bool = False


@dataclass(frozen=True, eq=False)
class PartProof:
    """What a task has read.

    Parameters
    ----------
    rows : int
        Number of rows.
    fingerprint : int
        Sum of the hashes of the rows, modulo 2**64.
    hashes : ndarray, shape (rows,), uint64, or None
        The hashes, if the task says `keep_hashes`.
    """

    rows: int
    fingerprint: int
    hashes: np.ndarray | None = None


def in_pieces(part: Part, row_groups: int, piece_bytes: int | None = None) -> Iterator[tuple[int, int]]:
    """Divide the row groups of a part between tasks that can run at the same time: start and stop of each.

    A task reads about `piece_bytes`, or one row group. None: `PIECE_BYTES`.
    """
    pieces = max(1, min(-(-part.bytes // (piece_bytes or PIECE_BYTES)), row_groups))
    return pairwise(row_groups * k // pieces for k in range(pieces + 1))


def proof_tasks(task: ProofTask) -> list[ProofTask]:
    """Divide the task of a whole part by `in_pieces`. A device takes the part as a whole.

    Raises `IncompleteError` if the part is large enough to be divided, and cannot be read.
    """
    if task.part.bytes <= PIECE_BYTES or task.on_device:
        return [task]
    run = open_in_worker(task.folder, task.run)
    with open_part(run.folder.bicliques / task.part.name) as file:
        n = file.num_row_groups
    return [replace(task, groups=groups) for groups in in_pieces(task.part, n)]


def prove_part(task: ProofTask) -> tuple[PartProof, Summary]:
    """Count, hash and sum up the rows of a part, or of some of its row groups.

    Raises `IncompleteError` if the part cannot be read, has another schema, or holds a label that the input does not
    have.
    """
    run = open_in_worker(task.folder, task.run)
    path = run.folder.bicliques / task.part.name
    if task.on_device:
        try:
            return _prove(task, run, path, _hashed_on_device(task, run, path))
        except DeviceMemoryError as error:
            logger.warning("the CPU reads %s back: %s", path, error)
    return _prove(task, run, path, _hashed_here(task, run, path))


def warm_up_device(task: tuple[str, str]) -> None:
    """Load what a device needs to read parts of a run back. The task is folder and identity of the run."""
    from bicliques.pipeline.proof.on_device import warm_up  # only where there is a device

    warm_up(open_in_worker(*task))


class _Group(NamedTuple):
    """A row group that was read: its number, the ids of its rows, and what adds it to a summary and hashes its rows.

    The ids are None if they were compared with the hashes already.
    """

    number: int
    ids: np.ndarray | None
    add: Callable[[Summary], np.ndarray]


def _prove(task: ProofTask, run: Run, path: Path, groups: Iterator[_Group]) -> tuple[PartProof, Summary]:
    summary = Summary(*map(len, run.hashes))
    rows = total = 0
    hashes: list[np.ndarray] = []
    for group in groups:
        own = group.add(summary)
        if group.ids is not None:
            check_ids(path, group.number, group.ids, own)
        rows += len(own)
        total += int(np.add.reduce(own, dtype=np.uint64))
        if task.keep_hashes:
            hashes.append(own)
    kept = np.concatenate([np.empty(0, np.uint64), *hashes]) if task.keep_hashes else None
    return PartProof(rows, total % 2**64, kept), summary.compact()


def _hashed_here(task: ProofTask, run: Run, path: Path) -> Iterator[_Group]:
    with _opened(path, run.tables) as file, CodedGroups(path, file.metadata, run.tables, run.hashes) as coded:
        for group in range(*(task.groups or (0, file.num_row_groups))):
            found = coded.read(group)
            if found is None:
                batch = _batch(path, group, file.read_row_group(group, use_threads=False), run.tables)
                yield _Group(
                    group, batch.ids, partial(Summary.add, batch=batch, known=run.hashes, file=task.file, group=group)
                )
                continue
            numbers = file.read_row_group(group, columns=_NUMBERS, use_threads=False)
            for side, sizes in (("left", found.n_left), ("right", found.n_right)):
                _check_sizes(path, numbers, side, sizes)
            ids = numbers["id"].to_numpy()
            yield _Group(group, ids, partial(Summary.add_coded, found=found, file=task.file, group=group))


def _hashed_on_device(task: ProofTask, run: Run, path: Path) -> Iterator[_Group]:
    from bicliques.pipeline.proof.on_device import hashed_groups  # only where there is a device

    with open_part(path) as file:
        _check_schema(path, read_schema(path), run.tables)
        metadata = file.metadata
    for groups, left, right in hashed_groups(run, path, metadata, task.groups):
        counted: tuple[np.ndarray, np.ndarray] | None = (left, right)
        for group, n_left, n_right, hashes in groups:
            add = partial(
                Summary.add_hashed,
                n_left=n_left,
                n_right=n_right,
                hashes=hashes,
                file=task.file,
                group=group,
                counted=counted,
            )
            yield _Group(group, None, add)
            counted = None


def read_part(
    path: Path, tables: Tables, groups: tuple[int, int] | None = None, at_once: int = 1 << 31
) -> Iterator[Bicliques]:
    """The rows of a part as dense ids, one batch per row group.

    Raises `IncompleteError` if the file is damaged, has another schema, or its columns contradict each other.

    Parameters
    ----------
    tables : Tables
        Labels by dense id. None if the part holds dense ids.
    groups : (int, int) or None
        Row groups start to stop - 1. None: all.
    at_once : int
        Rows that are decoded together. 2**15 need half the memory of a whole row group, and a third more time.
    """
    with _opened(path, tables) as file:
        for group in range(*(groups or (0, file.num_row_groups))):
            # without Arrow's threads, because callers that need speed read several parts at the same time
            n_rows = file.metadata.row_group(group).num_rows
            if n_rows <= at_once:
                yield _batch(path, group, file.read_row_group(group, use_threads=False), tables)
            else:
                some = file.iter_batches(at_once, row_groups=[group], use_threads=False)
                yield Bicliques.concat([_batch(path, group, pa.Table.from_batches([rows]), tables) for rows in some])


@contextmanager
def _opened(path: Path, tables: Tables) -> Iterator[pq.ParquetFile]:
    """A part whose schema is that of the run."""
    with open_part(path, read_dictionary=_texts(tables)) as file:
        _check_schema(path, read_schema(path), tables)
        yield file


def _texts(tables: Tables) -> list[str]:
    """The columns of text. They are read as dictionaries, because Parquet stores them so."""
    if tables is None:
        return []
    return [f"{side}.list.element" for side, t in zip(("left", "right"), tables, strict=True) if t.type == pa.string()]


def _check_schema(path: Path, schema: pa.Schema, tables: Tables) -> None:
    version = (schema.metadata or {}).get(b"bicliques.schema", b"none").decode()
    versions = list(map(str, READ_VERSIONS))
    if version not in versions:
        raise IncompleteError(
            f"{path} has schema version {version}, and this package reads versions {' and '.join(versions)}; mine again"
        )
    expected = part_schema(tables, near="missing" in schema.names)
    if not schema.equals(expected):
        raise IncompleteError(f"{path} has the columns {_columns(schema)} instead of {_columns(expected)}")


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def check_ids(path: Path, group: int, ids: np.ndarray, hashes: np.ndarray) -> None:
    """Refuse rows of a row group whose ids are not the hashes of their members."""
    wrong = np.flatnonzero(ids.view(np.uint64) != hashes)
    if len(wrong):
        row = int(wrong[0])
        raise IncompleteError(
            f"{path}: row {row} of row group {group} has the id {ids[row]}, and its members have "
            f"{hashes.view(ids.dtype)[row]}; delete the file and resume the run"
        )


def _batch(path: Path, group: int, table: pa.Table, tables: Tables) -> Bicliques:
    sides = []
    for k, side in enumerate(("left", "right")):
        lists = pa.concat_arrays(_plain(table[side])) if table[side].num_chunks != 1 else table[side].chunk(0)
        indptr = lists.offsets.to_numpy().astype(OFFSET)
        values = lists.values.slice(int(indptr[0]), int(indptr[-1] - indptr[0]))
        # even ids are copied, because Numba would compile the code again for arrays that are read-only
        ids = values.to_numpy().astype(VERTEX) if tables is None else ids_of(values, tables[k])
        indptr = indptr - indptr[0]
        _check_sizes(path, table, side, np.diff(indptr))
        _check_order(path, group, side, indptr, ids)
        sides.append((indptr, ids))
    missing = table["missing"].to_numpy() if "missing" in table.column_names else None
    return Bicliques(*sides[0], *sides[1], table["root"].to_numpy(), table["id"].to_numpy(), missing)


def _check_sizes(path: Path, table: pa.Table, side: str, sizes: np.ndarray) -> None:
    """Refuse rows of a side that have other sizes than they state, or none."""
    if not np.array_equal(sizes, table[f"n_{side}"].to_numpy()) or (sizes <= 0).any():
        raise IncompleteError(f"{path}: column n_{side} is not the length of column {side}")


def _check_order(path: Path, group: int, side: str, indptr: np.ndarray, ids: np.ndarray) -> None:
    """Refuse rows of a side whose members do not ascend. No row is empty."""
    ascends = ids[1:] > ids[:-1]
    ascends[indptr[1:-1] - 1] = True  # from one row to the next
    if not ascends.all():
        row = int(np.searchsorted(indptr, np.argmin(ascends), side="right")) - 1
        raise IncompleteError(f"{path}: {not_ascending(side, group, row)}; delete the file and resume the run")


def _plain(column: pa.ChunkedArray) -> list[pa.Array]:
    """The chunks of a column without dictionaries. Each chunk has a dictionary of its own, so they cannot be joined."""
    return [pa.ListArray.from_arrays(c.offsets, _decoded(c.values)) for c in column.chunks]


def _decoded(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
