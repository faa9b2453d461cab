"""Writes results as text that other programs read. Rows are read and written a few thousand at a time.

``csv``, ``jsonl`` and ``spmf`` hold the bicliques; ``cxt`` and ``adj`` hold the graph that the run has read, for
programs that search it themselves.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa

from bicliques.pipeline.rows.tabular import json_text
from bicliques.pipeline.run.files import whole_file
from bicliques.pipeline.run.labels import ids_of
from bicliques.pipeline.run.outside import refuse_inside_run
from bicliques.pipeline.run.tables import check_ids, open_part
from bicliques.schemas.errors import InputError

if TYPE_CHECKING:
    from bicliques.pipeline.rows.collection import Rows
    from bicliques.pipeline.run.opened import Run

#: Bytes that are written together.
_PIECE = 1 << 20
#: Edges that are in memory together.
_EDGES = 1 << 20
#: Most cells of a cross table, which is a byte per cell.
_MOST_CELLS = 1 << 33


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of text.

    Parameters
    ----------
    help : str
        What is written, in one clause.
    of : "bicliques" or "graph"
    lines : callable
        (rows, run) -> pieces of the text.
    """

    help: str
    of: str
    lines: Callable[[Rows, Run], Iterator[str]]


def export(rows: Rows, run: Run, name: str, to: Path | IO[bytes]) -> None:
    """Write results as text in UTF-8.

    Raises `IncompleteError` if a file of the run is missing or damaged, and `ResourceError` if the file cannot be
    written.

    Parameters
    ----------
    rows : Rows
        The results.
    run : Run
        Their run.
    name : str
        A key of `FORMATS`.
    to : Path or binary file
        A file is either written as a whole, in place of one that is there, or not at all.
    """
    if not isinstance(name, str) or name not in FORMATS:
        raise InputError(f"results are exported as {', '.join(FORMATS)}, not as {name!r}")
    if not isinstance(to, Path) and not hasattr(to, "write"):
        raise InputError(f"text goes to a path or a binary file, not to {to!r:.60}")
    pieces = _joined(FORMATS[name].lines(rows, run))
    first = next(pieces, b"")  # what is wrong is said before a file is touched
    if isinstance(to, Path):
        refuse_inside_run(to)
        if to.is_dir():
            raise InputError(f"{to} is a folder; name a file")
        if not to.absolute().parent.is_dir():
            raise InputError(f"the folder of {to} does not exist; make it or name another file")
        with whole_file(to) as file:
            for piece in chain([first], pieces):
                file.write(piece)
    else:
        for piece in chain([first], pieces):
            to.write(piece)
        to.flush()


def _joined(lines: Iterator[str]) -> Iterator[bytes]:
    """The text in pieces of about `_PIECE` bytes."""
    waiting, n = [], 0
    for line in lines:
        waiting.append(line)
        n += len(line)
        if n >= _PIECE:
            yield "".join(waiting).encode()
            waiting, n = [], 0
    if waiting:
        yield "".join(waiting).encode()


def _csv(rows: Rows, run: Run) -> Iterator[str]:
    """A line per biclique. A list is a JSON array in one cell, so no cell begins with a character of a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    more = ["missing"] if "missing" in rows.schema.names else []
    writer.writerow(["id", "n_left", "n_right", *more, "left", "right"])
    for row, told in zip(rows, _more(rows), strict=True):
        sides = (json_text(row.left), json_text(row.right))
        writer.writerow([row.id, len(row.left), len(row.right), *told.values(), *sides])
        yield text.getvalue()
        text.seek(0)
        text.truncate()
    yield text.getvalue()


def _jsonl(rows: Rows, run: Run) -> Iterator[str]:
    """A JSON object per biclique. Its id is text, because many programs read numbers of 64 bits as floats."""
    for row, more in zip(rows, _more(rows), strict=True):
        told = {"id": str(row.id), "n_left": len(row.left), "n_right": len(row.right)} | more
        yield json_text(told | {"left": row.left, "right": row.right}) + "\n"


def _more(rows: Rows) -> Iterator[dict[str, int]]:
    """By row, what only rows have of which pairs may be no edges."""
    if "missing" not in rows.schema.names:
        yield from repeat({}, len(rows))
        return
    for batch in rows.batches(["missing"]):
        yield from batch.to_pylist()


def _spmf(rows: Rows, run: Run) -> Iterator[str]:
    """The right side as a closed itemset, and the number of left members as its support."""
    run.exact("the support of an itemset counts who has all of its items")
    labels = run.labels[1]
    are_numbers = pa.types.is_integer(labels.type)  # of 0 or more, as all labels that are integers
    if not are_numbers:
        yield "@CONVERTED_FROM_TEXT\n"
        for number, label in enumerate(_names(labels, "spmf")):
            yield f"@ITEM={number}={label}\n"
    as_they_are = are_numbers or run.options.ids == "dense"
    for batch in rows.batches(["right", "n_left"]):
        lists = batch.column("right")
        members = lists.flatten()
        items = members.to_numpy() if as_they_are else ids_of(members, labels)
        ends = np.cumsum(lists.value_lengths().to_numpy())
        for own, support in zip(np.split(items, ends[:-1]), batch.column("n_left").to_pylist(), strict=True):
            yield f"{' '.join(map(str, np.sort(own).tolist()))} #SUP: {support}\n"


def _adjacency(rows: Rows, run: Run) -> Iterator[str]:
    """Line k has the dense ids of the right neighbours of left vertex k."""
    begin = ""
    for is_new, right in _neighbours(run):
        yield (begin if is_new else " ") + " ".join(map(str, right.tolist()))
        begin = "\n"
    yield "\n"


def _cross_table(rows: Rows, run: Run) -> Iterator[str]:
    """Burmeister's format: the numbers and names of objects (left) and attributes (right), and the table of crosses."""
    left, right = run.labels
    if len(left) * len(right) > _MOST_CELLS:
        raise InputError(
            f"the table of {len(left):,} x {len(right):,} vertices would take {len(left) * len(right) / 1e9:,.0f} GB; "
            "choose another format"
        )
    yield f"B\n\n{len(left)}\n{len(right)}\n\n"
    for labels in (left, right):
        for label in _names(labels, "cxt"):
            yield f"{label}\n"
    row = np.full(len(right), ord("."), np.uint8)
    is_first = True
    for is_new, neighbours in _neighbours(run):
        if is_new and not is_first:
            yield row.tobytes().decode() + "\n"
            row[:] = ord(".")
        row[neighbours] = ord("X")
        is_first = False
    yield row.tobytes().decode() + "\n"


def _names(labels: pa.Array, name: str) -> Iterator[str]:
    """The labels in order of dense ids. A label with a line break is refused, because its line would be two."""
    for begin in range(0, len(labels), _EDGES):
        for label in labels[begin : begin + _EDGES].to_pylist():
            text = str(label)
            if len(text.splitlines()) > 1 or text.endswith(("\n", "\r")):
                raise InputError(f"the label {text!r} has a line break, which {name} cannot hold; choose csv or jsonl")
            yield text


def _neighbours(run: Run) -> Iterator[tuple[bool, np.ndarray]]:
    """The right neighbours of each left vertex in turn, as (is it another one than before, dense ids).

    Many neighbours come in several parts. Every left vertex has some.
    """
    before, sizes = -1, (run.input["n_left"], run.input["n_right"])
    for file in run.folder.edge_files():
        with open_part(file) as part:
            for batch in part.iter_batches(_EDGES, columns=["left", "right"]):
                left, right = (check_ids(own.to_numpy(), n) for own, n in zip(batch.columns, sizes, strict=True))
                cuts = np.flatnonzero(np.diff(left)) + 1
                for vertex, own in zip(left[np.r_[0, cuts]].tolist(), np.split(right, cuts), strict=True):
                    yield vertex != before, own
                    before = vertex


#: The formats by name.
FORMATS: Mapping[str, Format] = {
    "csv": Format(help="a line per biclique, its lists as JSON in a cell", of="bicliques", lines=_csv),
    "jsonl": Format(help="a JSON object per biclique", of="bicliques", lines=_jsonl),
    "spmf": Format(help="closed itemsets (right) with their support (left)", of="bicliques", lines=_spmf),
    "cxt": Format(help="the graph as a cross table, as concept explorers read it", of="graph", lines=_cross_table),
    "adj": Format(help="the graph as adjacency lists of dense ids", of="graph", lines=_adjacency),
}
