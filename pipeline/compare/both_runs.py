"""Opens the two runs of a comparison. What cannot be compared is refused, and other differences are put into words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from bicliques.pipeline.run.labels import Tables
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.run.store import store_at
from bicliques.schemas.bicliques import Provenance
from bicliques.schemas.difference import ComparedRun, Counted
from bicliques.schemas.errors import IncompleteError, InputError, as_option, as_options
from bicliques.schemas.manifest import Manifest
from bicliques.schemas.search import Search

#: Labels of both sides by dense id.
Labels = tuple[pa.Array, pa.Array]

_THRESHOLDS = ("min_left", "min_right", "max_left", "max_right", "containing_left", "containing_right")


@dataclass(frozen=True, eq=False)
class CompleteRun:
    """One of the two runs.

    Parameters
    ----------
    labels : (Array, Array)
        Labels of both sides by dense id, of the types that both runs can have.
    """

    run: Run
    manifest: Manifest
    labels: Labels

    @property
    def path(self) -> Path:
        """Folder of the run."""
        return self.run.path

    @property
    def tables(self) -> Tables:
        """The labels as the parts of the run hold them."""
        return self.run.tables

    @property
    def provenance(self) -> Provenance:
        """What the metadata of rows of this run says of it."""
        return self.run.provenance

    @property
    def found(self) -> Counted:
        """What the manifest says of its bicliques."""
        assert self.manifest.fingerprint is not None, "a run that lists has a fingerprint"
        return Counted(self.manifest.count, self.manifest.fingerprint)

    def record(self) -> ComparedRun:
        """The run in the record of the comparison."""
        facts, where = self.run.input, str(store_at(self.path.absolute()).address)
        names = self.run.names
        return ComparedRun(
            where, self.run.identity, self.manifest.created, facts["source"], facts["digest"], *names, self.found
        )


@dataclass(frozen=True, eq=False)
class BothRuns:
    """Two runs that can be compared.

    Parameters
    ----------
    notes : tuple of str
        In which way their questions differ.
    """

    old: CompleteRun
    new: CompleteRun
    notes: tuple[str, ...]

    def __iter__(self) -> Iterator[CompleteRun]:
        yield self.old
        yield self.new


def open_both(old: Path, new: Path) -> BothRuns:
    """Open two runs.

    Raises `IncompleteError` if one is not complete, or a part of it is missing.
    """
    runs = [_complete(path) for path in (old, new)]
    if runs[0][0].options.search.near != runs[1][0].options.search.near:
        raise InputError(
            f"{old} and {new} do not allow the same missing pairs, so what is gone or new would say nothing of edges; "
            "mine one of them again with the same"
        )
    labels = fitting(
        [run for run, _ in runs], [run.labels for run, _ in runs], (str(old), str(new)), "mine one of them"
    )
    opened = [CompleteRun(run, manifest, own) for (run, manifest), own in zip(runs, labels, strict=True)]
    return BothRuns(opened[0], opened[1], tuple(notes(runs[0][0], runs[1][0])))


def fitting(runs: list[Run], labels: list[Labels], where: tuple[str, str], again: str) -> list[Labels]:
    """The labels of two runs, of types that both can have.

    Parameters
    ----------
    where : (str, str)
        What a sentence calls them.
    again : str
        How one of them can be had in another way, as "mine one of them".
    """
    old, new = where
    names = [run.names for run in runs]
    if names[0] == names[1][::-1] != names[1]:
        left, right = names[0]
        raise InputError(
            f"left is {left} and right is {right} in {old}, and the other way round in {new}; {again} again, with "
            f"{as_options(as_option('left', left), as_option('right', right))}"
        )
    common = [_common(labels[0][k].type, labels[1][k].type) for k in (0, 1)]
    for side, kind, types in zip(("left", "right"), common, zip(*labels, strict=True), strict=True):
        if kind is None:
            first, second = ("integers" if pa.types.is_integer(own.type) else "text" for own in types)
            raise InputError(
                f"the {side} labels are {first} in {old} and {second} in {new}; {again} again, with "
                f"{as_option('label_type', 'string')} or with labels as in the other"
            )
    return [(own[0].cast(common[0]), own[1].cast(common[1])) for own in labels]


def _complete(path: Path) -> tuple[Run, Manifest]:
    run = Run.with_holes(path)
    if run.job.rows == "none":
        raise InputError(
            f"{path} was mined with {as_option('count_only', True)} and holds no bicliques; mine it again without"
        )
    run.refuse_one_kind()
    if run.options.search.largest is not None:
        raise InputError(
            f"{path} holds only the largest bicliques, so others may be gone or new, too; compare runs of `mine`"
        )
    manifest = run.folder.manifest()
    if manifest is None:
        raise IncompleteError(f"{path} is not complete; continue with: {how_to_resume(path, run.ended())}")
    damage = run.folder.damage(manifest)
    if damage:
        raise IncompleteError(f"{damage}; mend it with: {how_to_resume(path)}")
    return run, manifest


def _common(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """The type that labels of both types can have. None if some are integers and the others are text."""
    if pa.types.is_integer(first) != pa.types.is_integer(second):
        return None
    if pa.types.is_integer(first):
        return first if first.bit_width >= second.bit_width else second
    return first if pa.types.is_large_string(first) else second


def notes(old: Run, new: Run) -> Iterator[str]:
    """One sentence for each way in which the questions of the two runs differ."""
    for side, before, after in zip(("left", "right"), old.names, new.names, strict=True):
        if before != after:
            yield f"The {side} side was called {before}, and is called {after}."
    was, now = old.options.search, new.options.search
    changed = [
        f"{name} was {_words(was, name)} and is {_words(now, name)}"
        for name in _THRESHOLDS
        if _value(was, name) != _value(now, name)
    ]
    if changed:
        words = "; ".join(changed)
        yield f"The thresholds differ, so bicliques may be gone or new although no edge has changed: {words}."


def _value(search: Search, name: str) -> object:
    value = getattr(search, name)
    return frozenset(map(str, value)) if isinstance(value, (list, tuple)) else value


def _words(search: Search, name: str) -> str:
    value = getattr(search, name)
    if value is None:
        return "any"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(repr, value)) or "any"
    return str(value)
