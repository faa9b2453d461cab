"""What is known of one biclique, as tables, and as text, JSON or HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bicliques.pipeline.results.listing import aligned, columns_of, cut, listed, shortened, shown
from bicliques.pipeline.rows.collection import Biclique
from bicliques.pipeline.rows.printable import html_table
from bicliques.pipeline.run.progress import number
from bicliques.schemas.search import By, Side

#: Columns of a line when the width is not known, and the fewest columns of a label or a list.
_WIDTH, _LEAST_ROOM = 120, 16
_OTHER: dict[Side, Side] = {"left": "right", "right": "left"}

#: A cell of a table: a number or a word that is shown as it is, or labels, of which as many are shown as fit.
Cell = Any  # str or pa.Array


class Standing(NamedTuple):
    """The place of a biclique among all of its run.

    Parameters
    ----------
    place : int
        1 for the largest.
    others : int
        How many others have the same place.
    """

    place: int
    others: int


class _Part(NamedTuple):
    """A sentence and the table below it. Columns with labels come last."""

    heading: str
    titles: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]


@dataclass(frozen=True, eq=False)
class Explanation:
    """One biclique and what is around it in its run and its graph. `Results.explain` returns such an object.

    It prints as text, and a notebook shows it as tables.

    Parameters
    ----------
    biclique : Biclique
        Its members and its id.
    run : Path or str
        Folder of the run, or its address if it is kept in a store.
    names : (str, str)
        What the input calls the left and the right side.
    count : int
        Number of bicliques of the run.
    standings : dict of str to Standing
        By measure ("edges", "vertices", "balance", "left", "right"), its place among them.
    surprise : float
        How unlikely it is by chance, in bits; see `pipeline.results.surprise.Surprise`.
    members : dict of str to Table
        By side, its members in their order: ``label``; ``degree``, the number of neighbours in the input; and
        ``bicliques``, in how many the vertex is, or null if the run is not complete.
    near : dict of str to Table
        By side, vertices that nearly belong, the nearest first: the columns of `members`, and ``missing``, the members
        of the other side that it is not joined to.
    n_near : dict of str to int
        How many such vertices there are.
    missing : int
        How many members a vertex in `near` may miss.
    n : int
        The most rows of `near` and `overlapping`, and of `members` where they are shown.
    overlapping : Table
        The bicliques that share most edges with it. Beside the columns of the run: ``share`` (float64) of its edges
        that are edges of the other one, too; ``shared_edges``, ``shared_left`` and ``shared_right`` (int64).
    holes : Table or None
        Its missing pairs: the ``label`` of each left member that misses some, and in ``missing`` the right members that
        it is not joined to. None if every pair of a row of the run is an edge.
    """

    biclique: Biclique
    run: Path | str
    names: tuple[str, str]
    count: int
    standings: dict[By, Standing]
    surprise: float
    members: dict[Side, pa.Table]
    near: dict[Side, pa.Table]
    n_near: dict[Side, int]
    missing: int
    n: int
    overlapping: pa.Table
    holes: pa.Table | None = None

    def __repr__(self) -> str:
        return f"<explanation of the {self.kind} {self.biclique.id} in {self.run}>"

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int | None = _WIDTH) -> str:
        """All of it in lines.

        Parameters
        ----------
        width : int or None
            Columns of a line. None: all members, in lines of any length.
        """
        lines = [self._title(), *self._facts()]
        for part in self._parts(None if width is None else self.n):
            lines += ["", part.heading, *_lines(part, width)]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """All of it for JSON, with full lists."""
        left, right = self.biclique
        return {
            "run": str(self.run),
            "id": self.biclique.id,
            "left": left,
            "right": right,
            "n_left": len(left),
            "n_right": len(right),
            "bicliques": self.count,
            "standings": {by: standing._asdict() for by, standing in self.standings.items()},
            "surprise": self.surprise,
            "members": {side: table.to_pylist() for side, table in self.members.items()},
            "missing": self.missing,
            "n_near": self.n_near,
            "near": {side: table.to_pylist() for side, table in self.near.items()},
            "overlapping": self.overlapping.to_pylist(),
            **({} if self.holes is None else {"holes": self.holes.to_pylist()}),
        }

    @property
    def kind(self) -> str:
        """What it is: a biclique, or a near-biclique."""
        return "biclique" if self.holes is None else "near-biclique"

    @property
    def n_holes(self) -> int:
        """How many of its pairs are no edges."""
        return 0 if self.holes is None else sum(map(len, self.holes["missing"]))

    def _repr_html_(self) -> str:
        parts = [html_table([part.heading], part.titles, part.rows) for part in self._parts(self.n)]
        return f"<div>{html_table([self._title(), *self._facts()])}{''.join(parts)}</div>"

    def _title(self) -> str:
        n_left, n_right = map(len, self.biclique)
        edges = number(n_left * n_right - self.n_holes, "edge")
        holes = "" if self.holes is None else f", {number(self.n_holes, 'missing pair')}"
        return f"{self.kind} {self.biclique.id} of {shown(self.run)}: {n_left:,} x {n_right:,}, {edges}{holes}"

    def _facts(self) -> list[str]:
        places = []
        for by in ("edges", "balance"):
            place, others = self.standings[by]
            what = "pairs" if by == "edges" and self.holes is not None else by
            places.append(f"{place:,} by {what}{f' (as {others:,} more)' if others else ''}")
        return [f"place among {self.count:,}: {', '.join(places)}", f"surprise: {self.surprise:,.1f} bits"]

    def _parts(self, most: int | None) -> list[_Part]:
        """The tables, with at most so many members of a side."""
        sides: list[Side] = list(self.members)
        members = [self._members(side, most) for side in sides]
        near = [self._near(side) for side in sides]
        return [*self._holes(most), *members, *near, self._overlapping()]

    def _holes(self, most: int | None) -> list[_Part]:
        """The missing pairs, by left member."""
        if self.holes is None or not self.n_holes:
            return []
        table = self.holes.slice(0, most)
        rows = [(f"{len(missing):,}", label, missing) for label, missing in _columns(table, "label", "missing")]
        are = "pair of it is no edge" if self.n_holes == 1 else "pairs of it are no edges"
        few = f", those of {number(len(table), 'left member')} below" if len(table) < len(self.holes) else ""
        return [_Part(f"{self.n_holes:,} {are}{few}", ("misses", self._name("left"), self._name("right")), rows)]

    def _members(self, side: Side, most: int | None) -> _Part:
        table = self.members[side]
        order = np.argsort(table["degree"].to_numpy(), kind="stable")[:most]
        few = f", the {_many(len(order))} with fewest neighbours" if len(order) < len(table) else ""
        others = len(self.members[_OTHER[side]])
        rows = [
            (_percent(others, degree), *_numbers(degree, bicliques), label)
            for degree, bicliques, label in _columns(table.take(pa.array(order)), "degree", "bicliques", "label")
        ]
        heading = f"{len(table):,} {self._name(side)} member{'s' if len(table) > 1 else ''}{few}"
        return _Part(heading, ("inside", "neighbours", "bicliques", self._name(side)), rows)

    def _near(self, side: Side) -> _Part:
        table, n, other = self.near[side], self.n_near[side], _OTHER[side]
        rows = [
            (f"{len(missing):,}", *_numbers(degree, bicliques), label, missing)
            for degree, bicliques, label, missing in _columns(table, "degree", "bicliques", "label", "missing")
        ]
        some = f"; the nearest {_many(len(rows))}" if len(rows) < n else ""
        name = self._name(side)
        who = f"{n or 'no'} other {name} vertex misses" if n < 2 else f"{n:,} other {name} vertices miss"
        of = len(self.members[other])
        heading = (
            f"{who} at most {self.missing:,} of the {of:,} {self._name(other)} member{'s' if of > 1 else ''}{some}"
        )
        return _Part(heading, ("misses", "neighbours", "bicliques", name, "which"), rows)

    def _overlapping(self) -> _Part:
        table = self.overlapping
        names = ("share", "shared_edges", "n_left", "n_right", "id", "left", "right")
        rows = [
            (f"{share:.1%}", f"{edges:,}", f"{n_left:,}", f"{n_right:,}", str(id), left, right)
            for share, edges, n_left, n_right, id, left, right in _columns(table, *names)
        ]
        that = "that shares" if len(rows) == 1 else "that share"
        heading = f"the {_many(len(rows))} {that} most of its edges" if rows else "no other shares an edge with it"
        return _Part(heading, ("share", "edges", "left", "right", "id", *map(str, self.names)), rows)

    def _name(self, side: Side) -> str:
        name = self.names[side == "right"]
        return side if name == side else f"{side} ({shortened(name, 60)})"


def _columns(table: pa.Table, *names: str) -> Any:
    """The rows of some columns: numbers as they are, and labels and lists of labels as arrays."""
    columns = []
    for name in names:
        column = table[name].combine_chunks()
        if name == "label":
            columns.append([column[k : k + 1] for k in range(len(column))])
        elif pa.types.is_list(column.type):
            columns.append([column[k].values for k in range(len(column))])
        else:
            columns.append(column.to_pylist())
    return zip(*columns, strict=True)


def _many(n: int) -> str:
    """A number behind "the"."""
    return "one" if n == 1 else f"{n:,}"


def _percent(part: int, whole: int) -> str:
    """A share. Only all is 100 %, and nothing that is there is 0 %."""
    return f"{100 * part // whole}%" if 100 * part >= whole else "<1%"


def _numbers(degree: int, bicliques: int | None) -> tuple[str, str]:
    return f"{degree:,}", "" if bicliques is None else f"{bicliques:,}"


def _lines(part: _Part, width: int | None) -> list[str]:
    """A table in lines of `width` columns. Labels and lists share what the numbers leave."""
    if not part.rows:
        return []
    first = next(k for k, cell in enumerate(part.rows[0]) if not isinstance(cell, str))
    numbers = aligned([part.titles[:first], *([*map(str, row[:first])] for row in part.rows)], ">" * first)
    taken, columns = max(map(columns_of, numbers)), len(part.titles) - first
    texts: list[list[str]] = [[] for _ in numbers]
    for k in range(first, first + columns):
        room = None if width is None else max((width - taken) // (first + columns - k) - 2, _LEAST_ROOM)
        cells = [_cell(cell, room) for cell in (pa.array([part.titles[k]]), *(row[k] for row in part.rows))]
        for own, cell in zip(texts, cells, strict=True):
            own.append(cell)
        taken += 2 + max(map(columns_of, cells))
    return aligned([(a, *b) for a, b in zip(numbers, texts, strict=True)], "<" * (columns + 1))


def _cell(labels: Cell, room: int | None) -> str:
    return cut(labels, room) if room is not None else ", ".join(map(listed, labels.to_pylist()))
