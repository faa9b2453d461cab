"""What changed between two edge lists, from the edges that only one of them has. Neither is mined whole.

Maximal bicliques with an edge that only their own graph has are mined (`schemas.jobs.Marked`), in a run for each graph.
All others that changed are what these leave in the other graph (`kernels.graph.remains`), so they are made of the rows
of the other run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from bicliques.kernels.compiled.lists import count_members
from bicliques.kernels.graph.csr import from_sorted_pairs, transpose
from bicliques.kernels.graph.remains import Changed, Lists, edges_apart, remains_of
from bicliques.pipeline import __version__
from bicliques.pipeline.compare.both_runs import Labels, fitting, notes
from bicliques.pipeline.compare.difference import GONE_FILE, NEW_FILE, VERTEX_FILES
from bicliques.pipeline.compare.diffing import write_table
from bicliques.pipeline.compare.rows import CommonNumbers, numbered, vertex_table, write_rows
from bicliques.pipeline.prepare.build import read_edges
from bicliques.pipeline.prepare.members import Members
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import in_order
from bicliques.pipeline.proof.read_back import read_part
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.run.labels import hashes_of
from bicliques.pipeline.run.names import LEFT_LABELS_FILE, RIGHT_LABELS_FILE
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.tables import open_part, read_table
from bicliques.schemas.bicliques import ID, SCHEMA_VERSION, Bicliques, row_hashes
from bicliques.schemas.difference import ComparedRun, Counted, Record
from bicliques.schemas.dtypes import COUNT, VERTEX
from bicliques.schemas.search import Search

#: Rows whose remains are looked for together.
_ROWS = 1 << 14
_PROVEN = (
    "the bicliques with an edge that only their own edge list has have the count and the fingerprint of their search",
    "every other one is what one of these leaves in the other edge list, and is maximal there",
)
#: By graph: in how many of its bicliques each vertex is, if a run tells.
Summaries = tuple[Summary | None, Summary | None]


def labels_of(run: Run) -> Labels:
    """The labels of both sides of a run that has read its input."""
    left, right = (read_table(run.path / file)["label"] for file in (LEFT_LABELS_FILE, RIGHT_LABELS_FILE))
    return left.combine_chunks(), right.combine_chunks()


class TwoGraphs:
    """The edge tables of two runs that have read their inputs, and the rows of the runs once they are mined.

    Raises `InputError` if their labels or their sides do not fit together.

    Parameters
    ----------
    runs : (Run, Run)
        The old and the new one. Their rows have dense ids.
    where : (str, str)
        What a sentence calls them.
    search : Search
        Which bicliques are wanted.

    Notes
    -----
    It takes 17 bytes per edge of both, and some 60 per vertex. To look for what the rows leave takes up to 32 bytes
    more per edge of both that ends in a member of a row.
    """

    def __init__(self, runs: tuple[Run, Run], where: tuple[str, str], search: Search) -> None:
        self.runs, self.where, self._search = runs, where, search
        old, new = fitting(list(runs), [labels_of(run) for run in runs], where, "read one of them")
        self.labels = old, new
        self.numbers: tuple[CommonNumbers, CommonNumbers] = numbered(old[0], new[0]), numbered(old[1], new[1])
        self._edges = [read_edges(run.folder) for run in runs]
        tables = [(*self._edges[k], self._common(k, 0), self._common(k, 1)) for k in (0, 1)]
        #: By graph: where in its edge table the edges are that only it has.
        self.only = edges_apart(tables[0], tables[1], count_cores())
        #: Of how many bicliques with an edge of its own what they leave was looked for, in both graphs.
        self.looked_at = 0
        #: By graph: the dense ids that every biclique has to contain. None: it lacks one, so it has no such biclique.
        self.given: list[Members | None] = [None, None]

    def _common(self, k: int, side: int) -> np.ndarray:
        """The common number of every dense id of a graph."""
        numbers = self.numbers[side]
        return (numbers.old, numbers.new)[k]

    def mark(self, k: int) -> bool:
        """Mark the edges that only one of the graphs has in its run. Returns whether there are any."""
        left, right = self._edges[k]
        self.runs[k].mark(left[self.only[k]], right[self.only[k]])
        return len(self.only[k]) > 0

    def rows(self, k: int) -> Iterator[Bicliques]:
        """The bicliques that only one of the graphs has, by its dense ids."""
        for own in (self._with_own_edge(k), self._remains(k)):
            for batch in own:
                wanted = batch.pick(np.flatnonzero(self._is_wanted(k, batch)))
                if len(wanted):
                    yield wanted

    def _with_own_edge(self, k: int) -> Iterator[Bicliques]:
        for path, group in self._groups(k):
            yield from read_part(path, None, (group, group + 1))

    def _remains(self, k: int) -> Iterator[Bicliques]:
        """What the bicliques of the other graph with an edge of its own leave in this one."""
        _ = self._changed, self._hashes  # now, because several threads would each make them
        pieces = (
            batch.rows(start, min(start + _ROWS, len(batch)))
            for batch in self._with_own_edge(1 - k)
            for start in range(0, len(batch), _ROWS)
        )
        for found, n in in_order(partial(self._remains_of, k), pieces, count_cores()):
            self.looked_at += n
            yield found

    def _remains_of(self, k: int, batch: Bicliques) -> tuple[Bicliques, int]:
        rows = (
            (batch.left_indptr, self._common(1 - k, 0)[batch.left].astype(VERTEX)),
            (batch.right_indptr, self._common(1 - k, 1)[batch.right].astype(VERTEX)),
        )
        found = remains_of(rows, self._changed[k], self._search.min_left, self._search.min_right)
        (left_indptr, left), (right_indptr, right) = found
        left, right = (np.searchsorted(self._common(k, side), found[side][1]).astype(VERTEX) for side in (0, 1))
        n = len(left_indptr) - 1
        is_left = not self.runs[k].has("build") or self.runs[k].built["root_side"] == "left"
        root = left[left_indptr[:-1]] if is_left else right[right_indptr[:-1]]
        made = Bicliques(left_indptr, left, right_indptr, right, root, np.empty(n, ID))
        made.ids[:] = row_hashes(made, self._hashes[k]).view(ID)
        return made, len(batch)

    @property
    def n_with_own_edge(self) -> int:
        """Bicliques with an edge that only their own graph has, in both graphs."""
        return sum(found.count for run in self.runs if (found := run.folder.manifest()) is not None)

    def _groups(self, k: int) -> Iterator[tuple[Path, int]]:
        """The row groups of a run. One without marked edges was not mined, and has none."""
        manifest = self.runs[k].folder.manifest()
        for part in manifest.parts if manifest is not None else ():
            path = self.runs[k].folder.bicliques / part.name
            with open_part(path) as file:
                n = file.num_row_groups
            for group in range(n):
                yield path, group

    def _is_wanted(self, k: int, batch: Bicliques) -> np.ndarray:
        """Which rows have the sizes and the members that are asked for."""
        search, given = self._search, self.given[k]
        wanted = np.full(len(batch), given is not None)
        for indptr, ids, most, members in (
            (batch.left_indptr, batch.left, search.max_left, given.left if given is not None else ()),
            (batch.right_indptr, batch.right, search.max_right, given.right if given is not None else ()),
        ):
            if most is not None:
                wanted &= np.diff(indptr) <= most
            if len(members):
                wanted &= np.add.reduceat(np.isin(ids, members), indptr[:-1], dtype=np.int64) == len(members)
        return wanted

    @cached_property
    def _hashes(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [(hashes_of(left, "left"), hashes_of(right, "right")) for left, right in self.labels]

    @cached_property
    def _changed(self) -> list[Changed]:
        """By graph: what came before it, and what became of that in it."""
        members = self._in_rows()
        own = [self._lists(k, (only, only)) for k, only in enumerate(self.only)]
        around = [self._lists(k, self._at_members(k, members)) for k in (0, 1)]
        self._edges = []  # the lists take their place
        return [Changed(around[1 - k][1], *around[k], *own[1 - k], *own[k]) for k in (0, 1)]

    def _in_rows(self) -> list[np.ndarray]:
        """Which vertices of both sides, by common number, are in a biclique with an edge that only its graph has."""
        found = [np.zeros(len(numbers.labels), np.bool_) for numbers in self.numbers]
        for k, run in enumerate(self.runs):
            if run.folder.manifest() is not None:
                summary = Summary.read(run.folder)
                for side, total in enumerate((summary.left, summary.right)):
                    found[side][self._common(k, side)[np.flatnonzero(total)]] = True
        return found

    def _at_members(self, k: int, members: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The edges of a graph with such a left vertex, and those with such a right one: no others are looked at."""
        left, right = (np.flatnonzero(members[side][self._common(k, side)][self._edges[k][side]]) for side in (0, 1))
        return left, right

    def _lists(self, k: int, which: tuple[np.ndarray, np.ndarray]) -> tuple[Lists, Lists]:
        """Adjacency lists of some edges by left vertex, and of some by right vertex, in common numbers."""
        n_left, n_right = (len(numbers.labels) for numbers in self.numbers)
        by_left, of_right = (from_sorted_pairs(*self._numbers_of(k, some), n_left) for some in which)
        return by_left, transpose(*of_right, n_right, count_cores())

    def _numbers_of(self, k: int, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The common numbers of both ends of some edges, int32."""
        left, right = (self._common(k, side)[self._edges[k][side][some]].astype(VERTEX) for side in (0, 1))
        return left, right


def write_changes(
    place: Path, two: TwoGraphs, compared: tuple[ComparedRun, ComparedRun], summaries: Summaries
) -> Record:
    """Write the rows and the vertices that changed into a folder.

    Parameters
    ----------
    two : TwoGraphs
        Its runs are mined.
    compared : (ComparedRun, ComparedRun)
        What the record says of the two. At most one tells how many bicliques it has, and the other follows.
    summaries : (Summary or None, Summary or None)
        In how many bicliques each vertex of it is.
    """
    started = time.perf_counter()
    members = [tuple(np.zeros(len(own), COUNT) for own in labels) for labels in two.labels]
    gone, new = (
        write_rows(place / name, _counting(two.rows(k), members[k]), two.labels[k], two.runs[k].provenance)
        for k, name in enumerate((GONE_FILE, NEW_FILE))
    )
    vertices = []
    for s, (side, file) in enumerate(VERTEX_FILES.items()):
        were, are = (None if own is None else (own.left, own.right)[s] for own in summaries)
        table = vertex_table(side, two.numbers[s], were, are, members[0][s], members[1][s])
        write_table(place / file, table)
        vertices.append(len(table))
    old_run, new_run = compared
    if old_run.found is not None:
        new_run = replace(new_run, found=_moved(old_run.found, gone, new))
    elif new_run.found is not None:
        old_run = replace(old_run, found=_moved(new_run.found, new, gone))
    return Record(
        schema_version=SCHEMA_VERSION,
        version=__version__,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        old_run=old_run,
        new_run=new_run,
        gone=gone,
        new=new,
        unchanged=None if old_run.found is None else old_run.found.count - gone.count,
        vertices_left=vertices[0],
        vertices_right=vertices[1],
        notes=tuple(notes(*two.runs)),
        proven=_PROVEN,
        seconds=time.perf_counter() - started,
    )


def _moved(found: Counted, less: Counted, more: Counted) -> Counted:
    """The bicliques of one graph from those of the other."""
    total = (found.fingerprint - less.fingerprint + more.fingerprint) % 2**64
    return Counted(found.count - less.count + more.count, total)


def _counting(batches: Iterator[Bicliques], members: tuple[np.ndarray, ...]) -> Iterator[Bicliques]:
    """The batches. In how many of their rows each vertex is, by dense id, is added to `members`."""
    for batch in batches:
        for ids, total in zip((batch.left, batch.right), members, strict=True):
            count_members(ids, total)
        yield batch


def with_delta(old: Run, added: Run | None, removed: Run | None) -> pa.Table:
    """The edges of a run without those of another one, and with those of a third one, as labels.

    An edge of `removed` that is not there, and one of `added` that is there, changes nothing. An edge of both stays.
    Raises `InputError` if their labels or sides do not fit together.
    """
    parts = [_labelled(old, np.ones(old.input["n_edges"], np.bool_))]
    if removed is not None:
        two = TwoGraphs((old, removed), ("the old edge list", "the edges to remove"), Search())
        stays = np.zeros(old.input["n_edges"], np.bool_)
        stays[two.only[0]] = True
        parts = [_labelled(old, stays)]
    if added is not None:
        two = TwoGraphs((old, added), ("the old edge list", "the edges to add"), Search())
        parts = [*parts, _labelled(added, np.ones(added.input["n_edges"], np.bool_))]
    left, right = old.names
    names = ("left", "right") if left == right else (left, right)
    return pa.concat_tables([part.rename_columns(names) for part in parts], promote_options="permissive")


def _labelled(run: Run, which: np.ndarray) -> pa.Table:
    columns = (
        labels.take(pa.array(ids[which])) for labels, ids in zip(labels_of(run), read_edges(run.folder), strict=True)
    )
    return pa.table(dict(zip(("left", "right"), columns, strict=True)))
