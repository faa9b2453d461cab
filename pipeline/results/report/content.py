"""Gathers what the page of a run shows, in bounded memory, however many bicliques there are.

Of the run before it says how many bicliques there were then, and how large they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa

from bicliques.kernels import engines
from bicliques.pipeline.compare.difference import Difference
from bicliques.pipeline.compare.in_run import known_changes
from bicliques.pipeline.proof.read_back import read_part
from bicliques.pipeline.proof.summary import LARGEST, Summary, read_largest
from bicliques.pipeline.results.by_community import Communities, kept_communities
from bicliques.pipeline.results.edges import degrees_of
from bicliques.pipeline.results.facts import input_rows, reduced_words, run_facts, why_none
from bicliques.pipeline.results.report.listed import RANKINGS, Listed, chosen
from bicliques.pipeline.results.report.timeline import Timeline, timeline
from bicliques.pipeline.results.results import Results
from bicliques.pipeline.results.run_status import Status, status_of
from bicliques.pipeline.run.accounts import seconds_of
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import number, size
from bicliques.pipeline.run.session import busy_ratio_of
from bicliques.pipeline.run.store import shown_address
from bicliques.pipeline.run.tables import open_part
from bicliques.pipeline.series.runs import run_before
from bicliques.pipeline.slices.power import NOT_READABLE, energy_facts
from bicliques.schemas.errors import BicliqueError
from bicliques.schemas.facts import MiningSession
from bicliques.schemas.manifest import LedgerEntry, Manifest
from bicliques.schemas.search import Search, search_words
from bicliques.schemas.sizes import SizeCounts

#: Largest number of rows of the lists of vertices.
_PARTICIPANTS = 20


@dataclass(frozen=True)
class Participant:
    """A vertex, the number of bicliques that it is in, and the number of its neighbours in the input."""

    label: str
    bicliques: int
    degree: int


@dataclass(frozen=True, eq=False)
class Content:
    """Everything on the page.

    Parameters
    ----------
    listing : bool
        Whether the run lists its bicliques, or only counts.
    names : dict of str to str
        What the input calls each side.
    search : Search
        Which bicliques were asked for.
    none : str
        Why a complete run found no biclique. Empty otherwise.
    facts : tuple of (str, str)
        The run card, as pairs of name and value.
    not_measured : tuple of (str, str)
        Names of the facts that the card lacks, and why.
    sizes : SizeCounts or None
        Number of bicliques of each size. None if sizes were not counted.
    listed : Listed or None
        The bicliques of the page. None if the run lists none.
    participants : dict of str to tuple of Participant
        For each side, the vertices that are in most bicliques, these first. Empty if the run lists none.
    degrees : dict of str to ndarray, int64
        For each side, at position k the number of vertices with k neighbours.
    steps : tuple of (str, float)
        Name and seconds of each step.
    before : Before or None
        The run before, and what has changed since. None if there is none, or this run is not complete.
    communities : Communities or None
        Those that the run keeps.
    holes : dict of int to int or None
        How many rows have how many missing pairs, ascending. None if every pair of a row is an edge.
    busy_ratio : float or None
        Share of the time of all workers that was spent in slices, 0 to 1, over all sessions.
    """

    status: Status
    listing: bool
    names: dict[str, str]
    search: Search
    none: str
    facts: tuple[tuple[str, str], ...]
    not_measured: tuple[tuple[str, str], ...]
    sizes: SizeCounts | None
    listed: Listed | None
    participants: dict[str, tuple[Participant, ...]]
    degrees: dict[str, np.ndarray]
    steps: tuple[tuple[str, float], ...]
    timeline: Timeline
    before: Before | None
    communities: Communities | None
    holes: dict[int, int] | None
    busy_ratio: float | None


def content_of(run: Run) -> Content:
    """Gather the content of a run, complete or not.

    Raises `IncompleteError` if a file of the run is damaged.

    Notes
    -----
    For a complete run, reads the summary, the edges (by row groups), the ledger, and what `chosen` reads. For an
    incomplete run, reads all committed rows once. Memory: a row group, 16 bytes per vertex, and the ledger.
    """
    results, surveyed = Results(run), run.survey()
    now, search = status_of(run, surveyed), run.options.search
    listing = run.job.rows != "none"
    entries = list(surveyed[0].entries.values())
    names = dict(zip(("left", "right"), run.names, strict=True))
    degrees = dict(zip(names, degrees_of(run), strict=True)) if run.has("ingest") else {}
    summary = _summary(run, results) if listing and run.has("build") else None
    sizes = summary.sizes if summary else results.sizes() if search.sizes else None
    mined = run.sessions()
    measured, not_measured = _energy(run, entries, mined)
    return Content(
        status=now,
        listing=listing,
        names=names,
        search=search,
        none=why_none(run.input, run.built, search) if results.complete and len(results) == 0 else "",
        facts=(*((k, str(v)) for k, v in _facts(run, results, now)), *measured),
        not_measured=not_measured,
        sizes=sizes,
        listed=chosen(run, results, summary, list(degrees.values())) if summary and results.files else None,
        participants=_participants(run, summary, degrees) if summary and results.files else {},
        degrees={side: np.bincount(own) for side, own in degrees.items()},
        steps=tuple((results.manifest.seconds if results.complete else seconds_of(run)).items()),
        timeline=timeline(entries, mined),
        before=before(run.folder, results.manifest, sizes, names) if results.complete else None,
        communities=kept_communities(run, results.manifest) if results.complete else None,
        holes=_holes(results) if results.has_holes and listing else None,
        busy_ratio=busy_ratio_of(mined),
    )


def _holes(results: Results) -> dict[int, int]:
    found = Counter[int]()
    for file in results.files:
        with open_part(file) as part:
            for group in range(part.num_row_groups):
                counts = part.read_row_group(group, columns=["missing"])["missing"].value_counts()
                found.update(dict(zip(counts.field(0).to_pylist(), counts.field(1).to_pylist(), strict=True)))
    return dict(sorted(found.items()))


def _summary(run: Run, results: Results) -> Summary:
    """The summary that the proof made, or else a summary of the rows that are there so far."""
    if results.complete and run.store.local(run.folder.summary).exists():
        known = [read_largest(run.folder, results.manifest, by, LARGEST) for by in RANKINGS]  # or it is damaged
        if all(places is not None for places in known):  # a summary of an earlier version has fewer
            return Summary.read(run.folder)
    summary = Summary(*map(len, run.labels))
    for k, file in enumerate(results.files):
        for group, batch in enumerate(read_part(file, run.tables)):
            summary.add(batch, run.hashes, k, group)
    return summary


def _participants(run: Run, summary: Summary, degrees: dict[str, np.ndarray]) -> dict[str, tuple[Participant, ...]]:
    found = {}
    sides = (("left", summary.left, run.labels[0]), ("right", summary.right, run.labels[1]))
    for side, total, known in sides:
        members = np.flatnonzero(total)  # first, because many equal numbers make a partition slow
        n = min(_PARTICIPANTS, len(members))
        best = members[np.argpartition(total[members], len(members) - n)[len(members) - n :]] if n else members
        best = best[np.lexsort((best, -total[best]))]
        labels = known.take(pa.array(best)).to_pylist()
        found[side] = tuple(
            Participant(str(label), int(total[i]), int(degrees[side][i])) for label, i in zip(labels, best, strict=True)
        )
    return found


def _facts(run: Run, results: Results, now: Status) -> Iterable[tuple[str, object]]:
    """The run card, or the part of it that an incomplete run has."""
    if results.complete:
        yield from (fact for fact in run_facts(results) if fact[0] not in ("seconds", "manifest", "report", "files"))
        if results.files:
            yield "files", f"{len(results.files)} Parquet, {size(results.manifest.bytes)}"
    else:
        yield "bicliques", f"{len(results):,} so far"
        if run.has("ingest"):
            yield from input_rows(run.input)
        if run.has("build"):
            yield "after reduction", reduced_words(run.built)
            yield "root side", run.built["root_side"]
        if wanted := search_words(run.options.search):
            yield "only with", wanted
        yield "engine", run.options.engine
        if now.share is not None:
            yield "mined", f"{100 * now.share:.1f} % of the estimated work in {number(now.slices, 'slice')}"
        if now.gap is not None:
            yield "so far", now.gap
    if run.has("ingest"):
        yield "BLAKE3 of the input", run.input["digest"]
    if run.origin.date is not None:
        yield "stands for", run.origin.date
    if results.complete:
        yield "made", f"{results.manifest.created} by bicliques {results.manifest.version}"
    else:
        yield "begun", run.origin.created


def _energy(
    run: Run, entries: list[LedgerEntry], mined: list[MiningSession]
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Names and values of the energies that were measured; names of the others, and why they were not measured."""
    platform = engines.kind(run.options.engine).platform
    count = sum(entry.result.total.seen for entry in entries)
    measured, missing = [], []
    for device, facts in energy_facts(entries, mined, platform).items() if mined else ():
        name = f"energy of the {device}"
        if "joules" not in facts:
            missing.append((name, str(facts[NOT_READABLE])))
            continue
        words = [f"{facts['joules']:,.0f} J", f"{facts['mean_watts']:,.0f} W on average"]
        words += [f"{1e6 * facts['joules'] / count:,.1f} J per million bicliques"] if count else []
        measured.append((name, ", ".join(words)))
    return tuple(measured), tuple(missing)


#: How many of the largest new bicliques are shown, and of how many they are looked for.
_NEW, _MOST_NEW = 5, 2_000_000


@dataclass(frozen=True)
class Change:
    """A number of the run before, and the same number now."""

    what: str
    then: int
    now: int


@dataclass(frozen=True)
class Before:
    """The run before, and what has changed since.

    Parameters
    ----------
    day : str
        The day that it stands for.
    page : str or None
        The address of its page, relative to that of this run. None if it has no page.
    same_input : bool
        Whether both have read the same input.
    same_bicliques : bool
        Whether both have found the same bicliques, which then have nothing to show.
    difference : Difference or None
        What is gone and new, if that was found out, as it is for a run on a schedule.
    largest_new : Table or None
        The largest of the bicliques that are new. None if there is none, if nobody knows, or if there are so many that
        finding the largest would take long.
    """

    day: str
    page: str | None
    same_input: bool
    same_bicliques: bool
    changes: tuple[Change, ...]
    difference: Difference | None
    largest_new: pa.Table | None


def before(run: RunFolder, manifest: Manifest, sizes: SizeCounts | None, names: dict[str, str]) -> Before | None:
    """Compare a complete run with the one before it, by what both have already added up.

    Parameters
    ----------
    sizes : SizeCounts or None
        Number of bicliques of each size. None if that is not known.
    names : dict of str to str
        What the input calls each side.

    Returns
    -------
    Before or None
        None if there is no run before; see `pipeline.series.runs.run_before`.
    """
    try:
        found = run_before(run.path)
        old = found.manifest() if found else None
    except BicliqueError:  # the folder beside cannot be read, which is no fault of this run
        return None
    if found is None or old is None:
        return None
    changes = [Change("bicliques", old.count, manifest.count)]
    counted = {f"n_{side}": f"{name} of the input" for side, name in names.items()} | {"n_edges": "edges of the input"}
    changes += [Change(words, old.input[key], manifest.input[key]) for key, words in counted.items()]
    then = _largest(_sizes(found))
    changes += [Change(what, then[what], now) for what, now in _largest(sizes).items() if what in then]
    origin = found.origin()
    page = f"../{quote(_name(found))}/{found.report.name}" if found.store.local(found.report).exists() else None
    same = old.input["digest"] == manifest.input["digest"]
    difference = known_changes(found, run)
    day = origin.date or origin.created[:10]
    found_same = same and (old.count, old.fingerprint) == (manifest.count, manifest.fingerprint)
    return Before(day, page, same, found_same, tuple(changes), difference, _largest_new(difference))


def _largest_new(difference: Difference | None) -> pa.Table | None:
    if difference is None or not 0 < len(difference.new) <= _MOST_NEW:
        return None
    try:
        return difference.new.top(_NEW)
    except BicliqueError:
        return None


def _name(run: RunFolder) -> str:
    place = run.store.address
    return place.name if isinstance(place, Path) else unquote(shown_address(place).rpartition("/")[2])


def _sizes(run: RunFolder) -> SizeCounts | None:
    try:
        return Summary.read(run).sizes if run.store.local(run.summary).exists() else None
    except BicliqueError:
        return None


def _largest(sizes: SizeCounts | None) -> dict[str, int]:
    if sizes is None or not len(sizes):
        return {}
    left, right = sizes.n_left.astype(np.int64), sizes.n_right.astype(np.int64)
    return {"most edges": int((left * right).max()), "largest smaller side": int(np.minimum(left, right).max())}
