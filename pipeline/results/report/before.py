"""What the page says of the run before: how many bicliques there were then, and how large they were."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa

from bicliques.pipeline.compare.difference import Difference
from bicliques.pipeline.compare.in_run import known_changes
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.store import shown_address
from bicliques.pipeline.series.runs import run_before
from bicliques.schemas.errors import BicliqueError
from bicliques.schemas.manifest import Manifest
from bicliques.schemas.sizes import SizeCounts

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
