"""The results of a run in forms of other libraries: a long table, a sparse matrix, a graph, text."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from bicliques.pipeline.results.by_community import ByCommunity
from bicliques.pipeline.results.exporting import export
from bicliques.pipeline.run.labels import ids_of
from bicliques.schemas.errors import InputError, ResourceError
from bicliques.schemas.search import Side
from bicliques.schemas.values import local_path

if TYPE_CHECKING:
    import networkx as nx
    import scipy.sparse as sp

    from bicliques.pipeline.run.opened import Run


class Arrays(NamedTuple):
    """The members of bicliques, one after the other, and where those of each begin.

    Parameters
    ----------
    left_indptr : ndarray, shape (n_bicliques + 1,), int64
        Where the left members of each biclique begin in `left`. The last number is where they end.
    left : ndarray, shape (n_members,), int32, int64 or object
        The members: labels, or row numbers of the label tables for a run with dense ids. Text is object.
    right_indptr, right : ndarray, shape and dtype as of the left side
        The same of the right side.
    """

    left_indptr: np.ndarray
    left: np.ndarray
    right_indptr: np.ndarray
    right: np.ndarray


class Forms(ByCommunity):
    """What `pipeline.results.results.Results` gives to other libraries."""

    _mined: Run

    def memberships(self, side: Side = "left", by: Literal["biclique", "community"] = "biclique") -> pa.Table:
        """The members of one side as a long table, with a row per biclique, or community, and member.

        Parameters
        ----------
        side : "left" or "right"
            Whose members.
        by : "biclique" or "community"
            Communities are those that were found last (`communities`). Their ids are labels for a plot.

        Returns
        -------
        Table
            Columns ``id``, the biclique, or ``community``, and ``left`` or ``right``, the member. Bicliques come in the
            order of the files. In main memory, about 16 bytes per row and the labels.

        Raises
        ------
        InputError
            If the run only counted or keeps no communities, or there is no such side.
        """
        ids, lists = self._lists(side, by)
        lengths = lists.value_lengths().to_numpy()
        name = "id" if by == "biclique" else by
        return pa.table({name: ids.take(pa.array(np.repeat(np.arange(len(ids)), lengths))), side: lists.flatten()})

    def to_sparse(self, side: Side = "left") -> sp.csr_array:
        """Which vertices of a side are in which bicliques, as a sparse matrix of SciPy with the entries 1.

        Parameters
        ----------
        side : "left" or "right"
            Whose vertices.

        Returns
        -------
        csr_array, shape (len(results), number of vertices of the side), uint8
            Row k is the biclique ``results[k]``, and column j the vertex ``results.labels(side)[j]``.

        Raises
        ------
        InputError
            If the run only counted, or there is no such side.
        ResourceError
            If SciPy is not installed.
        """
        try:
            from scipy.sparse import csr_array
        except ModuleNotFoundError as error:
            raise _missing("to_sparse", "SciPy") from error
        _, lists = self._lists(side)
        labels = self.labels(side)
        members = lists.flatten()
        columns = members.to_numpy() if self._mined.options.ids == "dense" else ids_of(members, labels)
        starts = np.concatenate([[0], np.cumsum(lists.value_lengths().to_numpy())])
        shape = (len(lists), len(labels))
        return csr_array((np.ones(len(columns), np.uint8), columns, starts), shape=shape)

    def to_arrays(self) -> Arrays:
        """The members of all bicliques as NumPy arrays, in the form of a sparse matrix with compressed rows.

        Returns
        -------
        Arrays
            Biclique k has the left members ``left[left_indptr[k] : left_indptr[k + 1]]``, and so on the right.

        Raises
        ------
        InputError
            If the run only counted.
        """
        found = []
        for lists in map(_in_one, self.to_arrow(columns=["left", "right"]).itercolumns()):
            ends = np.cumsum(lists.value_lengths().to_numpy(), dtype=np.int64)
            found += [np.concatenate([[0], ends]), lists.flatten().to_numpy(zero_copy_only=False)]
        return Arrays(*found)

    def to_csv(self, to: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the results as text with commas, as ``export("csv", to)`` does.

        Parameters
        ----------
        to : path or binary file
            A file with this path is replaced.
        """
        self.export("csv", to)

    def to_networkx(self, which: slice = slice(None)) -> nx.Graph:
        """The graph that some bicliques form together.

        Parameters
        ----------
        which : slice
            Numbers of the rows: ``slice(0, 1)`` for the first one. All if it is left out.

        Returns
        -------
        Graph
            Nodes are pairs such as ``("left", "ann")``, because a label may be on both sides, with the attributes
            ``label`` and ``bipartite`` (0 left, 1 right). Edges say in ``bicliques`` in how many of the rows they are.

        Raises
        ------
        InputError
            If the run only counted, pairs of its rows may be no edges, or `which` is no slice.
        ResourceError
            If NetworkX is not installed.
        """
        try:
            import networkx as nx
        except ModuleNotFoundError as error:
            raise _missing("to_networkx", "NetworkX") from error
        if not isinstance(which, slice):
            raise InputError(f"which is a slice of the rows, as slice(0, 1) for the first one, not {which!r}")
        self._mined.exact("a graph made of them would have an edge for every pair")
        graph = nx.Graph()
        for row in self[which].select(["left", "right"]).to_pylist():
            for number, side in enumerate(("left", "right")):
                graph.add_nodes_from(((side, label), {"label": label, "bipartite": number}) for label in row[side])
            for left in row["left"]:
                for right in row["right"]:
                    ends = ("left", left), ("right", right)
                    before = graph.edges[ends]["bicliques"] if graph.has_edge(*ends) else 0
                    graph.add_edge(*ends, bicliques=before + 1)
        return graph

    def labels(self, side: Side) -> pa.Array:
        """The labels of all vertices of a side that the input has, sorted. The position is the dense id.

        Parameters
        ----------
        side : "left" or "right"
            Whose vertices.

        Raises
        ------
        InputError
            If there is no such side.
        """
        return self._mined.labels[_number(side)]

    def export(self, format: str, to: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the results as text, with a few thousand rows in memory at a time; see docs/output.md.

        Parameters
        ----------
        format : "csv", "jsonl", "spmf", "cxt" or "adj"
            The last two hold the graph that the run has read. "spmf" holds no rows of which pairs may be no edges.
        to : path or binary file
            A file with this path is replaced.

        Raises
        ------
        InputError
            If the run only counted, or the format cannot hold the results.
        ResourceError
            If the file cannot be written.
        """
        export(self, self._mined, format, local_path(to) if isinstance(to, (str, os.PathLike)) else to)

    def _lists(self, side: Side, by: str = "biclique") -> tuple[pa.Array, pa.ListArray]:
        """The id of every biclique or community, and its members on a side."""
        _number(side)
        if by not in ("biclique", "community"):
            raise InputError(f"memberships are by biclique or by community, not by {by!r}")
        table = self.to_arrow(columns=["id", side]) if by == "biclique" else self.communities().table
        return table["id"].combine_chunks(), _in_one(table[side])


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array. Arrow keeps chunks of lists that are too long together for it."""
    lists = column.combine_chunks()
    return pa.concat_arrays(lists.chunks) if isinstance(lists, pa.ChunkedArray) else lists


def _number(side: str) -> int:
    if side not in ("left", "right"):
        raise InputError(f"the side must be left or right, not {side!r}")
    return int(side == "right")


def _missing(call: str, library: str) -> ResourceError:
    return ResourceError(f"{call} needs {library}, which is not installed (pip install 'bicliques[notebook]')")
