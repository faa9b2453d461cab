"""Finds the vertices that every biclique is to contain by their labels, and says why there is none."""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.kernels.graph.members import Restricted, restrict
from bicliques.pipeline.run.names import LEFT_LABELS_FILE, RIGHT_LABELS_FILE
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.tables import read_table
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.search import Label, Labels, Search, Side, label_words

#: From so many labels on, an unknown label is compared only with those that share a part with it.
MANY = 20_000
#: Labels on each side of the place of an unknown label in the sorted ones, which begin as it does, and most labels that
#: end as it does or contain it. Labels of more characters are not compared, because that takes too long.
_AROUND, _SHORT = 2_000, 200
_FILES = {"left": LEFT_LABELS_FILE, "right": RIGHT_LABELS_FILE}
_OTHER: dict[Side, Side] = {"left": "right", "right": "left"}


class Members(NamedTuple):
    """Dense ids of the vertices that every biclique is to contain, ascending, each once."""

    left: np.ndarray
    right: np.ndarray


def find_members(run: Run, search: Search | None = None) -> Members:
    """The vertices that a search names, or that of the options of a run. The input of the run has been read.

    Raises `InputError` if a label is none of its side. The sentence says what is near it, or that it is on the other
    side.
    """
    search = search or run.options.search
    return Members(_Side(run, "left").ids(search.containing_left), _Side(run, "right").ids(search.containing_right))


def restricted(run: Run, left: np.ndarray, right: np.ndarray) -> Restricted:
    """The edges of a run, as `pipeline.prepare.build.read_edges` gives them, among which its bicliques are."""
    if not run.options.search.is_containing:
        return Restricted(left, right)
    sizes, near = (run.input["n_left"], run.input["n_right"]), run.options.search.near
    return restrict(left, right, *sizes, *find_members(run), near)


def why_nothing(run: Run, kept: Restricted) -> str | None:
    """Why no biclique contains the given vertices, in one clause. None if some do, or if none are given."""
    search = run.options.search
    if len(kept.left) or not search.is_containing:
        return None
    if kept.first_missing is not None and search.near is not None:
        return f"{kept.missing:,} pairs of the given members are no edges, which is more than may be missing"
    if kept.first_missing is not None:
        pair = " and ".join(
            f"{side} {_Side(run, side).labels[vertex].as_py()!r}"
            for side, vertex in zip(_OTHER, kept.first_missing, strict=True)
        )
        n = kept.missing - 1
        others = (
            f", nor {'is' if n == 1 else 'are'} {n:,} other pair{'' if n == 1 else 's'} of given members" if n else ""
        )
        return f"{pair} are not joined by an edge{others}"
    side: Side = "left" if search.containing_left else "right"
    given = search.containing_left or search.containing_right
    return f"no {_OTHER[side]} vertex is joined to {'all' if search.near is None else 'enough'} of {label_words(given)}"


def refuse_unknown(run: Run, label: Label) -> None:
    """Refuse a label that no vertex of the input of a run has."""
    sides = [_Side(run, side) for side in _OTHER]
    if not any(side.has(label) for side in sides):
        near = [one for side in sides for one in side.near(label)]
        raise InputError(f"no vertex of {run.input['source']} has the label {label!r}; {_near_words(near)}")


def _near_words(near: list[Label]) -> str:
    return f"near it are {', '.join(map(repr, near))}" if near else "no label is near it"


class _Side:
    """The labels of one side of the input of a run."""

    def __init__(self, run: Run, side: Side):
        self._run, self._side = run, side
        self._labels: pa.ChunkedArray | None = None

    @property
    def labels(self) -> pa.ChunkedArray:
        """Sorted: integers by value, text by its bytes."""
        if self._labels is None:
            self._labels = read_table(self._run.path / _FILES[self._side])["label"]
        return self._labels

    def ids(self, asked: Labels) -> np.ndarray:
        """Dense ids of the labels, ascending, each once."""
        found = {label: self._place(label) for label in asked}
        unknown = [label for label, place in found.items() if place is None]
        if unknown:
            others = f"; {len(unknown) - 1:,} more of the labels are not there, either" if len(unknown) > 1 else ""
            raise InputError(f"{self._objection(unknown[0])}{others}")
        return np.unique(np.array(list(found.values()), VERTEX))

    def has(self, label: Label) -> bool:
        """Whether a vertex has the label."""
        return self._place(label) is not None

    def _place(self, label: Label) -> int | None:
        key = self._key(label)
        if key is None:
            return None
        place = self._first_not_below(key)
        return place if place < len(self.labels) and self.labels[place].as_py() == self._value(key) else None

    def _key(self, label: Label) -> int | bytes | None:
        """What the label is sorted by. None if no label of this side can be equal to it."""
        if not self._are_numbers:
            return label.encode() if isinstance(label, str) else None
        if isinstance(label, int):
            return label
        # as when a file is read: 007 and +7 are not 7
        return int(label) if label.isascii() and label.isdecimal() and str(int(label[:20])) == label else None

    def _value(self, key: int | bytes) -> Label:
        return key if isinstance(key, int) else key.decode()

    def _first_not_below(self, key: int | bytes) -> int:
        def key_at(place: int) -> int | bytes:
            value = self.labels[place].as_py()
            return value if self._are_numbers else value.encode()

        return bisect_left(range(len(self.labels)), key, key=key_at)

    @property
    def _are_numbers(self) -> bool:
        return pa.types.is_integer(self.labels.type)

    @property
    def _name(self) -> str:
        own = self._run.names[self._side == "right"]
        return "" if own == self._side else f" ({own})"

    def _objection(self, label: Label) -> str:
        """Why a label is none of this side, in one sentence."""
        side, other = self._side, _Side(self._run, _OTHER[self._side])
        source, option = self._run.input["source"], as_option(f"containing_{side}")
        if other.has(label):
            there = f"a {other._side} label{other._name} of {source}, not a {side} one{self._name}"
            return f"{label!r} is {there}; give it as {as_option(f'containing_{other._side}')}"
        if self._key(label) is None:
            kind, what = ("whole numbers", "none") if self._are_numbers else ("text", "a number")
            remedy = f"correct {option}" if self._are_numbers else f"give it as '{label}'"
            return f"the {side} labels{self._name} of {source} are {kind}, and {label!r} is {what}; {remedy}"
        who = f"no {side} vertex{self._name} of {source} has the label {label!r}"
        return f"{who}; {_near_words(self.near(label))}; correct {option}"

    def near(self, label: Label) -> list[Label]:
        """A few labels that may be meant."""
        key = self._key(label)
        if key is None:
            return []
        place = self._first_not_below(key)
        if self._are_numbers:
            return self.labels[max(place - 1, 0) : place + 1].to_pylist()
        assert isinstance(label, str)
        if len(label) > _SHORT:
            return []
        folded = label.casefold()
        by_folded = {one.casefold(): one for one in self._candidates(label, place) if len(one) <= _SHORT}
        close = difflib.get_close_matches(folded, by_folded, 3)
        within = (key for key in by_folded if folded in key)
        return [by_folded[key] for key in close or sorted(within, key=len)[:3]]

    def _candidates(self, label: str, place: int) -> Iterable[str]:
        labels = self.labels
        if len(labels) <= MANY:
            return labels.to_pylist()
        found = labels[max(place - _AROUND, 0) : place + _AROUND].to_pylist()
        for part in labels.iterchunks():
            for is_like in (
                pc.ends_with(part, label[-max(len(label) // 3, 3) :]),
                pc.match_substring(part, label, ignore_case=True),
            ):
                found += part.filter(is_like)[:_AROUND].to_pylist()
        return found
