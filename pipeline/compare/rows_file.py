"""Writes rows of a run into one Parquet file of the layout of parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.pipeline.output import stretch
from bicliques.pipeline.output.part_writer import LAYOUT, part_schema, to_batch
from bicliques.pipeline.output.stretch import LabelRoom, Stretch, pieces_of, row_groups
from bicliques.pipeline.run.files import whole_file
from bicliques.pipeline.run.labels import Tables
from bicliques.schemas.bicliques import Bicliques, Provenance, fingerprint
from bicliques.schemas.difference import Counted


def write_rows(
    target: Path, batches: Iterable[Bicliques], tables: Tables, provenance: Provenance, near: bool = False
) -> Counted:
    """Write all rows to a file, in stretches that are sorted by size.

    Parameters
    ----------
    provenance : Provenance
        For the metadata of the file.
    near : bool
        Whether pairs of the rows may be no edges.

    Returns
    -------
    Counted
        What was written.

    Raises
    ------
    ResourceError
        If the disk is full. Then there is no file.
    """
    room = LabelRoom(tables)
    rows = total = 0
    with whole_file(target) as file, part_file(file, part_schema(tables, provenance, near=near)) as writer:
        for group in _groups(batches, room):
            table = pa.Table.from_batches([to_batch(group, tables)])
            writer.write_table(table, row_group_size=2 * stretch.GROUP_ROWS)
            rows, total = rows + len(group), (total + fingerprint(group)) % 2**64
    return Counted(rows, total)


@contextmanager
def part_file(file: Any, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """A writer of Parquet in the layout of parts. `file` is closed by the caller, also after an error."""
    order = pq.SortingColumn.from_ordering(schema, [("n_left", "descending"), ("n_right", "descending")])
    writer = pq.ParquetWriter(file, schema, sorting_columns=order, **LAYOUT)
    try:
        yield writer
        writer.close()
    finally:
        writer.is_open = False  # after an error it would try to write the end of the file


def _groups(batches: Iterable[Bicliques], room: LabelRoom) -> Iterable[Bicliques]:
    waiting = Stretch()
    for batch in batches:
        for piece in pieces_of(batch, stretch.STRETCH_MEMBERS):
            waiting.add(piece)
            if waiting.is_full:
                yield from row_groups(waiting.take(), room)
    if len(waiting):
        yield from row_groups(waiting.take(), room)
