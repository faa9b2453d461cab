"""The vertices of both runs under common numbers, and in how many bicliques each was and is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.compare.both_runs import BothRuns
from bicliques.schemas.dtypes import COUNT
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.search import Side


@dataclass(frozen=True, eq=False)
class CommonNumbers:
    """Numbers of the vertices of one side. Vertices with equal labels have the same number in both runs.

    Parameters
    ----------
    labels : Array
        The label of every number.
    old, new : ndarray of int64
        The number of every dense id of each run.
    """

    labels: pa.Array
    old: np.ndarray
    new: np.ndarray


def common_numbers(both: BothRuns) -> tuple[CommonNumbers, CommonNumbers]:
    """Number the vertices of the left and of the right side. It takes some 30 bytes per vertex."""
    left, right = (_numbered(was, now) for was, now in zip(both.old.labels, both.new.labels, strict=True))
    return left, right


def _numbered(was: pa.Array, now: pa.Array) -> CommonNumbers:
    found = _places(was, now)
    missing = found < 0
    found[missing] = len(now) + np.arange(int(missing.sum()))
    labels = pa.concat_arrays([now, was.filter(pa.array(missing))])
    return CommonNumbers(labels, found, np.arange(len(now), dtype=np.int64))


def _places(values: pa.Array, among: pa.Array) -> np.ndarray:
    """Positions of labels among other labels, which ascend if they are integers. -1 for those that are not there."""
    if not pa.types.is_integer(among.type):
        return pc.fill_null(pc.index_in(values, value_set=among), -1).to_numpy().astype(np.int64)
    wanted, known = values.to_numpy(), among.to_numpy()
    if len(known) == 0:
        return np.full(len(wanted), -1, np.int64)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[at] == wanted, at, -1)


def vertex_table(
    side: Side,
    numbers: CommonNumbers,
    were: np.ndarray,
    are: np.ndarray,
    gone: np.ndarray,
    new: np.ndarray,
) -> pa.Table:
    """The vertices of a side that are in a biclique that is gone or new, sorted by label.

    Parameters
    ----------
    side : "left" or "right"
    numbers : CommonNumbers
    were, are : ndarray of int64
        By dense id of the old and of the new run: in how many bicliques the vertex is, as its summary says.
    gone, new : ndarray of int64
        By dense id of the old and of the new run: in how many bicliques that are gone, or new, the vertex is.

    Returns
    -------
    Table
        Columns ``label``, ``before``, ``after``, ``gone`` and ``new``.

    Raises
    ------
    IncompleteError
        If a vertex was not in as many bicliques as the others say, so that the files of a run contradict each other.
    """
    columns = {}
    for name, own, counts in (
        ("before", numbers.old, were),
        ("after", numbers.new, are),
        ("gone", numbers.old, gone),
        ("new", numbers.new, new),
    ):
        columns[name] = np.zeros(len(numbers.labels), COUNT)
        columns[name][own] = counts
    wrong = np.flatnonzero(columns["before"] - columns["gone"] + columns["new"] != columns["after"])
    if len(wrong):
        at = int(wrong[0])
        told = ", ".join(f"{name} {int(column[at])}" for name, column in columns.items())
        raise IncompleteError(
            f"the {side} vertex {numbers.labels[at].as_py()!r} is not in as many bicliques as the rows say ({told}); "
            "find the run that is damaged with: bicliques verify"
        )
    changed = np.flatnonzero(columns["gone"] + columns["new"])
    labels = numbers.labels.take(pa.array(changed))
    order = pc.array_sort_indices(labels)
    rows = changed[order.to_numpy()]
    return pa.table({"label": labels.take(order), **{name: column[rows] for name, column in columns.items()}})
