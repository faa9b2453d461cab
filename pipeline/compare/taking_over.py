"""Makes the rows of a run from those of a complete run before it: what is gone is left out, and what is new is added.

Parts without a gone row are taken over as files. They are shared where the file system can do that, because a run
never changes a part, it only removes it. Other parts are written again without these rows. New rows get parts of their
own. Rows that were taken over keep their `root`, and their part keeps its metadata, because both tell of the run that
has found them. If rows hold dense ids, and vertices have come or gone, the ids of all are others, and every part is
written again. Labels, ids of rows and their order stay.

All of it is one slice, which took the whole plan. So the run is proven as any other: its rows are read back, and have
to have the count and the fingerprint that follow from those of the run before. If a part is lost, the slice does not
count any more, and resuming the run mines it anew.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bicliques.pipeline.compare.refreshed import Ids, ids_in
from bicliques.pipeline.compare.rows import CommonNumbers, part_file
from bicliques.pipeline.ingest.from_run import link_or_copy
from bicliques.pipeline.output import stretch
from bicliques.pipeline.output.part_writer import PartWriter
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import in_order
from bicliques.pipeline.proof.read_back import read_part
from bicliques.pipeline.run.accounts import peak_rss
from bicliques.pipeline.run.files import create, disk_errors, flush, replace_file
from bicliques.pipeline.run.names import part_name, part_stem, unnamed_part
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import OnProgress, Progress
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.run.session import remember
from bicliques.pipeline.run.tables import open_part, read_schema
from bicliques.pipeline.slices.power import ProcessorEnergy
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.facts import MiningSession
from bicliques.schemas.manifest import PLAN, LedgerEntry, Manifest, Parent, Part, SliceResult
from bicliques.schemas.totals import Found

#: By side, the dense ids of a run by those of the run before. None: its rows keep what they hold.
_Renumbered = tuple[np.ndarray, np.ndarray] | None


class _Taken(NamedTuple):
    """What has become of a part: the new part, unless all of its rows are gone, and how many of them are."""

    part: Part | None
    n_gone: int


def take_over(
    run: Run,
    before: tuple[Run, Manifest],
    numbers: tuple[CommonNumbers, CommonNumbers],
    gone: np.ndarray,
    new: Iterable[Bicliques],
    began: float,
    on_progress: OnProgress,
) -> None:
    """Fill a run of which nothing is mined yet from a complete one.

    Raises `ResourceError` if the disk is full. Nothing counts of `run` then.

    Parameters
    ----------
    run : Run
        Its steps before mining are done, and the caller holds its lock.
    before : (Run, Manifest)
        The complete run, with the same thresholds.
    numbers : (CommonNumbers, CommonNumbers)
        The vertices of both runs, left and right.
    gone : ndarray, int64
        Ids of the rows that only the run before has.
    new : iterable of Bicliques
        The rows that it lacks, by the dense ids of `run`.
    began : float
        When the work began, in seconds since 1970 (UTC).
    on_progress : callable
        Called with a `Progress` after every part.
    """
    parent, manifest = before
    for place in (run.folder.bicliques, run.folder.pending, run.folder.ledger):
        with disk_errors(place):
            place.mkdir(exist_ok=True)
    energy, ledger, stem = ProcessorEnergy(), run.repaired_ledger(), part_stem(0)
    lookup, added = Ids(gone), _written(run, new)
    take = partial(_take, run, parent, stem, lookup, _renumbering(parent, numbers))
    taken: list[_Taken] = []
    for each in in_order(lambda item: take(*item), enumerate(manifest.parts), count_cores()):
        taken.append(each)
        rows = sum(one.part.rows for one in taken if one.part is not None)
        seconds = time.time() - began
        on_progress(
            Progress("mine", min(rows / manifest.count, 0.999), rows, rows / max(seconds, 1e-3), seconds=seconds)
        )
    if (found := sum(each.n_gone for each in taken)) != len(gone):
        raise IncompleteError(
            f"{parent.path} has {found:,} of the {len(gone):,} bicliques that are gone, so it did not have all; mine "
            "it anew"
        )
    parts = [each.part for each in taken if each.part is not None]
    flush(run.folder.pending)
    count = manifest.count - len(gone) + sum(part.rows for part in added)
    total = (manifest.fingerprint or 0) - int(np.add.reduce(lookup.ids, dtype=np.uint64))
    total = (total + sum(int(part.fingerprint) for part in added)) % 2**64
    told = Parent(
        parent.identity,
        str(parent.path),
        manifest.count,
        str(manifest.fingerprint),
        len(gone),
        sum(part.rows for part in added),
        mined_seconds(manifest),
    )
    result = SliceResult(
        slice=0,
        attempt=0,
        parts=(*parts, *added),
        total=Found(count, total),
        n_left_over=0,
        began=began,
        seconds=time.time() - began,
        worker=f"{socket.gethostname()}:{os.getpid()}",
    )
    took = ((PLAN, 0, len(run.plan.roots)),)
    ledger.commit(LedgerEntry(result, took, float(run.plan.weights.sum()), told), b"")
    session = MiningSession(
        outcome="complete",
        count=count,
        began=began,
        seconds=result.seconds,
        slices=1,
        retries=0,
        workers="this process",
        busy_seconds=result.seconds,
        idle_seconds=0.0,
        processors=energy.facts(),
        peak_rss=peak_rss(),
    )
    remember(run.folder, session)


def mined_seconds(manifest: Manifest) -> float:
    """Wall time of mining a run, or the last one that it follows from and that was mined."""
    return manifest.seconds["mine"] if manifest.parent is None else manifest.parent.mined_seconds


def _written(run: Run, new: Iterable[Bicliques]) -> list[Part]:
    writer = PartWriter(run.folder.pending, 0, run.tables, run.provenance)
    try:
        for batch in new:
            writer(batch)
        return writer.close()
    except BaseException:
        writer.discard()
        raise


def _renumbering(parent: Run, numbers: tuple[CommonNumbers, CommonNumbers]) -> _Renumbered:
    """By side, the dense ids of a run by those of the run before. None if the rows are the same in both."""
    if parent.options.ids == "labels" or all(np.array_equal(own.old, own.new) for own in numbers):
        return None
    found = []
    for own in numbers:
        now = np.full(len(own.labels), -1, VERTEX)
        now[own.new] = np.arange(len(own.new), dtype=VERTEX)
        found.append(now[own.old])
    return found[0], found[1]


def _take(
    run: Run,
    parent: Run,
    stem: str,
    gone: Ids,
    renumbered: _Renumbered,
    number: int,
    part: Part,
) -> _Taken:
    source, target = parent.folder.bicliques / part.name, run.folder.pending / part_name(stem, number)
    list(read_part(source, parent.tables, (0, 0)))  # checks the schema
    with open_part(source) as file:
        ids = ids_in(file)
        total = int(np.add.reduce(ids, dtype=np.uint64))
        if (len(ids), str(total)) != (part.rows, part.fingerprint or str(total)):
            raise IncompleteError(
                f"{source} has {len(ids):,} rows with fingerprint {total}, but the manifest says {part.rows:,} and "
                f"{part.fingerprint}; delete it, and mend the run with: {how_to_resume(parent.path)}"
            )
        is_gone = gone.have(ids)
        n_gone = int(np.count_nonzero(is_gone))
        if n_gone == len(ids):
            return _Taken(None, n_gone)
        if n_gone == 0 and renumbered is None:
            with disk_errors(target):
                link_or_copy(source, target)
                flush(target)
            return _Taken(Part(target.name, part.rows, part.bytes, str(total)), 0)
        temporary = target.with_name(unnamed_part(stem, number))
        with disk_errors(target):
            with create(temporary) as out, part_file(out, read_schema(source)) as writer:
                row = 0
                for group in range(file.num_row_groups):
                    rows = file.read_row_group(group, use_threads=False)
                    stays = ~is_gone[row : row + len(rows)]
                    row += len(rows)
                    if stays.any():
                        rows = _with_ids(rows.filter(pa.array(stays)), renumbered)
                        writer.write_table(rows, row_group_size=2 * stretch.GROUP_ROWS)
            replace_file(temporary, target)
    left = (total - int(np.add.reduce(ids[is_gone], dtype=np.uint64))) % 2**64
    return _Taken(Part(target.name, len(ids) - n_gone, target.stat().st_size, str(left)), n_gone)


def _with_ids(rows: pa.Table, renumbered: _Renumbered) -> pa.Table:
    """The rows with other dense ids."""
    for side, now in zip(("left", "right"), renumbered or (), strict=False):
        field, starts = rows.schema.field(side), np.zeros(len(rows) + 1, np.int32)
        np.cumsum(rows[f"n_{side}"].to_numpy(), out=starts[1:])
        members = pa.array(now[rows[side].combine_chunks().flatten().to_numpy()])
        lists = pa.ListArray.from_arrays(pa.array(starts), members, type=field.type)
        rows = rows.set_column(rows.schema.get_field_index(side), field, lists)
    return rows
