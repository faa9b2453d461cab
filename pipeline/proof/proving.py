"""The step ``prove`` of a run: the proof that the run is complete, and the manifest that says so.

``manifest.json`` is written only if all of this holds:

- Every node of every source was taken exactly once, and nothing is outstanding.
- The parts are the files that the ledger names.
- The rows of each slice, read back from Parquet, have the count and the fingerprint that its engine computed.
- No two rows are equal. This is checked for at most 2**23 rows; see `pipeline.proof.reading.COMPARED_ROWS`.
- If the largest were wanted: the bands hold all sizes that could be among them (`pipeline.proof.certificate`).
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from bicliques.kernels import engines
from bicliques.pipeline import __version__
from bicliques.pipeline.output.part_writer import PartWriter
from bicliques.pipeline.process import startup
from bicliques.pipeline.process.logs import tell
from bicliques.pipeline.proof import vertices
from bicliques.pipeline.proof.certificate import certify
from bicliques.pipeline.proof.equal_rows import refuse_equal_rows
from bicliques.pipeline.proof.reading import PartRead, Reading
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.proof.wholeness import check_cover
from bicliques.pipeline.run.accounts import by_worker, peak_rss, peak_rss_of, seconds_of
from bicliques.pipeline.run.files import disk_errors, write_json
from bicliques.pipeline.run.ledger import Ledger
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.plan import BandOf, Plan
from bicliques.pipeline.run.progress import OnProgress, number
from bicliques.pipeline.run.session import busy_ratio_of
from bicliques.pipeline.slices.power import energy_facts
from bicliques.pipeline.workers.thread_pool import Pool
from bicliques.schemas.bicliques import SCHEMA_VERSION
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.facts import BEFORE_MINING, MiningSession
from bicliques.schemas.manifest import Manifest, Part
from bicliques.schemas.platform import Platform
from bicliques.schemas.totals import Best


def rank_correlation(pairs: list[tuple[float, float]]) -> float | None:
    """Spearman's correlation of the two numbers of each pair. Equal numbers share their mean rank.

    None if there are fewer than three pairs, or all numbers of a column are equal.
    """
    if len(pairs) < 3:
        return None
    first, second = (_ranks(np.array(column)) for column in zip(*pairs, strict=True))
    if first.std() == 0 or second.std() == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, slot, counts = np.unique(values, return_inverse=True, return_counts=True)
    until = np.cumsum(counts)
    ranks: np.ndarray = (until - (counts - 1) / 2)[slot]
    return ranks


logger = logging.getLogger(__name__)


def prove(
    run: Run, pool: Pool, on_progress: OnProgress, on_device: bool = False, reading: Reading | None = None
) -> Manifest:
    """Prove a run and write its manifest. `on_device` and `reading` are as of `prove_parts`.

    Raises `IncompleteError` if something is missing or does not agree. The error names it. Raises `ResourceError` if
    the disk is full, or workers fail again and again.

    Parameters
    ----------
    run : Run
        A run whose work is all mined.
    pool : Pool
        The workers that read the parts back.
    on_progress : callable
        Called with a `Progress` after each part.
    """
    started = time.perf_counter()
    facts = {step: run.facts(step) for step in BEFORE_MINING}
    ledger = run.ledger()
    check_cover(ledger)
    ledger.tidy()  # attempts that were interrupted may have left parts
    parts, proven, compared = _written(run, ledger), 0, 0
    listing = ledger.job.rows != "none"
    certificate = dict(certify(run, ledger)) if run.is_in_bands else None
    if listing:
        proven, compared, summary = prove_parts(run, ledger, parts, pool, on_progress, on_device, reading)
        summary.write(run.folder)
    if run.options.search.per_vertex:
        vertices.write(run, ledger.total, summary if listing else None)
    mined, seconds, taken = run.sessions(), seconds_of(run), peak_rss_of(run, ledger.entries.values())
    seconds["startup"] += startup.take()
    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        version=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        count=ledger.total.count,
        fingerprint=ledger.total.fingerprint,
        proven_rows=proven,
        compared_rows=compared,
        certificate=certificate,
        parent=next((entry.parent for entry in ledger.entries.values() if entry.parent is not None), None),
        run=asdict(run.origin),
        options=run.options.to_json(),
        input=facts["ingest"],
        graph=facts["build"],
        plan=facts["plan"] | _compare_times(ledger, run.plan),
        parts=parts,
        mining=_mining_facts(ledger, parts, mined, engines.kind(run.options.engine).platform),
        seconds=seconds | {"prove": time.perf_counter() - started},
        peak_rss=taken | {"driver": max(taken["driver"], peak_rss())},
    )
    with suppress(OSError):  # files of others in it keep it
        run.folder.pending.rmdir()
    write_json(run.folder.manifest_file, manifest.to_json())
    run.store.keep_result()
    word = "proven" if listing else "counted"  # a run that only counts has no rows to read back
    fingerprint = None if manifest.fingerprint is None else str(manifest.fingerprint)
    text = f"{word}: {number(manifest.count, 'biclique')}" + (f", fingerprint {fingerprint}" if fingerprint else "")
    tell(logger, word, text, count=manifest.count, fingerprint=fingerprint, rows_read=proven)
    return manifest


def sum_up(run: Run, pool: Pool, on_progress: OnProgress, on_device: bool = False) -> None:
    """Make the summary of a complete run anew. Its parts are proven once more at the same time.

    Raises `IncompleteError` where `prove_parts` raises it. The summary is not changed then.
    """
    manifest = run.folder.manifest()
    assert manifest is not None
    *_, summary = prove_parts(run, run.ledger(), manifest.parts, pool, on_progress, on_device)
    summary.write(run.folder)


def _written(run: Run, ledger: Ledger) -> tuple[Part, ...]:
    """The parts of the run. If its total holds the rows, they are written now."""
    if ledger.job.rows != "total":
        return ledger.parts
    for place in (run.folder.bicliques, run.folder.pending):
        with disk_errors(place):
            place.mkdir(exist_ok=True)
    writer = PartWriter(run.folder.pending, 0, run.tables, run.provenance)
    assert isinstance(ledger.total, Best)
    try:
        writer(ledger.total.rows)
        parts = tuple(writer.close())
    except BaseException:
        writer.discard()
        raise
    run.store.admit(parts)
    return parts


def prove_parts(
    run: Run,
    ledger: Ledger,
    of_run: tuple[Part, ...],
    pool: Pool,
    on_progress: OnProgress,
    on_device: bool = False,
    reading: Reading | None = None,
) -> tuple[int, int, Summary]:
    """Read every part back and compare it with what the ledger says of its rows.

    Parameters
    ----------
    of_run : tuple of Part
        The parts of the run.
    pool : Pool
        The workers that read.
    on_progress : callable
        Called with a `Progress` after every task.
    on_device : bool
        Whether the GPU of each worker reads and hashes the rows; see `pipeline.proof.on_device.why_not`.
    reading : Reading or None
        What was read while the run was mined, and is not read again. None: nothing.

    Returns
    -------
    (int, int, Summary)
        The number of rows; the number of rows that were compared with each other, which is none or all; the summary of
        the rows.

    Notes
    -----
    Memory: 8 bytes per row if rows are compared, so at most 64 MB.
    """
    found, hashes, summary = (reading or Reading(run, on_device)).finish(of_run, pool, on_progress)
    for claim in _claims(ledger, of_run):
        own = [found[part.name] for part in claim.parts]
        for read in own:
            if read.rows != read.part.rows:
                raise IncompleteError(
                    f"{run.folder.bicliques / read.part.name} holds {read.rows} rows instead of {read.part.rows}; "
                    "delete it and resume the run"
                )
        _check_claim(claim, own)
    if hashes is not None:
        check_repeats(run, list(of_run), hashes)
    total = sum(part.rows for part in of_run)
    return total, 0 if hashes is None else total, summary


def check_repeats(run: Run, parts: list[Part], hashes: np.ndarray) -> None:
    """Refuse rows of `parts` that are there twice. `hashes` are those of all rows, and are sorted in place."""
    hashes.sort()
    suspects = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    if len(suspects):
        refuse_equal_rows(run, parts, suspects)


class _Claim(NamedTuple):
    """What the ledger says of some parts: number and fingerprint of their rows, and the remedy if that is wrong."""

    what: str
    parts: tuple[Part, ...]
    rows: int
    fingerprint: int | None
    remedy: str


def _claims(ledger: Ledger, of_run: tuple[Part, ...]) -> list[_Claim]:
    """One claim per slice, or one for the whole run if its total holds the rows."""
    if ledger.job.rows == "total":
        total = ledger.total
        return [_Claim("the run", of_run, total.count, total.fingerprint, "resume the run")]
    results = [entry.result for entry in ledger.entries.values()]
    return [
        _Claim(
            f"slice {own.slice}",
            own.parts,
            own.total.count,
            own.total.fingerprint,
            f"delete ledger/{own.slice}.json and resume the run",
        )
        for own in results
    ]


def _check_claim(claim: _Claim, parts: list[PartRead]) -> None:
    rows, fingerprint = sum(part.rows for part in parts), sum(part.fingerprint for part in parts) % 2**64
    if (rows, fingerprint) != (claim.rows, claim.fingerprint):
        raise IncompleteError(
            f"the Parquet rows of {claim.what} ({rows}, fingerprint {fingerprint}) are not what its engine "
            f"reported ({claim.rows}, {claim.fingerprint}); {claim.remedy}"
        )
    for part in parts:
        if part.part.fingerprint not in ("", str(part.fingerprint)):
            raise IncompleteError(
                f"{part.part.name} has rows with fingerprint {part.fingerprint}, but its ledger entry says "
                f"{part.part.fingerprint}; {claim.remedy}"
            )


def _compare_times(ledger: Ledger, plan: Plan) -> dict[str, Any]:
    """Spearman's correlation of estimated weight and measured time, over the roots that were mined alone."""
    weight_of, band_of = {}, BandOf(plan, ledger.entries)
    for band, _ in plan.bands:
        start, stop = plan.stretch_of(band)
        weight_of[band] = np.empty(stop - start)
        weight_of[band][plan.roots[start:stop]] = plan.weights[start:stop]
    timed = [
        (float(weight_of[band_of(*entry.took[0][:2])][root]), seconds)
        for entry in ledger.entries.values()
        for root, seconds in entry.result.timed
    ]
    return {"rank_correlation": rank_correlation(timed), "roots_timed": len(timed)}


def _mining_facts(
    ledger: Ledger, parts: tuple[Part, ...], mined: list[MiningSession], platform: Platform
) -> dict[str, Any]:
    workers = {
        worker: {"slices": own.slices, "bicliques": own.bicliques, "busy_seconds": own.busy_seconds}
        | ({"device_bytes": own.device_bytes} if own.device_bytes else {})
        for worker, own in by_worker(ledger.entries.values()).items()
    }
    return {
        "slices": len(ledger.entries),
        "seen": ledger.total.seen,
        "retries": sum(session.retries for session in mined),
        "bytes": sum(part.bytes for part in parts),
        "busy_ratio": busy_ratio_of(mined) or 0.0,
        "workers": workers,
        "sessions": list(map(asdict, mined)),
        "energy": energy_facts(ledger.entries.values(), mined, platform),
    }
