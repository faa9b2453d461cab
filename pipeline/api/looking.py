"""Says how an input is read, and shows its first edges and every doubt. Nothing is written."""

from __future__ import annotations

import html
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from bicliques.pipeline.api import keywords
from bicliques.pipeline.api.table import record, with_options
from bicliques.pipeline.ingest.doubts import Seen, read_as, refuse_doubts
from bicliques.pipeline.ingest.from_run import is_run_folder
from bicliques.pipeline.ingest.readers import EdgeStream, open_source
from bicliques.pipeline.ingest.readers.base import SIDES
from bicliques.pipeline.ingest.readers.blocks import numbered_lines
from bicliques.pipeline.ingest.readers.files import Files
from bicliques.pipeline.ingest.sources.at_hand import at_hand
from bicliques.pipeline.ingest.step import refuse_empty
from bicliques.pipeline.ingest.table.normalise import EdgeTable, Labels
from bicliques.pipeline.results.listing import aligned, beginning, columns_of, shortened, shown, width
from bicliques.pipeline.run.progress import number
from bicliques.schemas.errors import BicliqueError, InputError
from bicliques.schemas.options import CallOptions, IngestOptions
from bicliques.schemas.reading import Doubt, Reading

#: Edges from which on no more are looked at, unless all are.
_SAMPLE = 200_000
#: Edges, lines and fullest vertices that are shown.
_EDGES, _LINES, _FULLEST = 10, 10, 5

Label = int | str
Vertices = tuple[tuple[Label, int], ...]


@dataclass(frozen=True)
class Look:
    """How an input is read, by its first edges.

    Parameters
    ----------
    source : str
        The path as given, or several of them in words, or the object's type.
    reading : Reading
        What it is taken for, with every doubt about it.
    n_rows, n_left, n_right, n_edges : int
        Edges that were looked at, with duplicates, and the vertices and distinct edges among them.
    is_all : bool
        Whether these are all.
    edges : tuple of (label, label)
        The first ones.
    fullest : (left, right)
        The vertices of each side with the most edges, and how many these are.
    """

    source: str
    reading: Reading
    n_rows: int
    n_left: int
    n_right: int
    n_edges: int
    is_all: bool
    edges: tuple[tuple[Label, Label], ...]
    fullest: tuple[Vertices, Vertices]

    def to_json(self) -> dict[str, Any]:
        """A dictionary of plain values, for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        reading, part = self.reading, "all" if self.is_all else "the first"
        counts = f"{self.n_left:,} left, {self.n_right:,} right, {number(self.n_edges, 'distinct edge')}"
        lines = [f"source: {shown(self.source)}", f"read as: {reading}"]
        whys = (("header", reading.header_why), ("columns", reading.columns_why))
        lines += [f"{what}: {why}" for what, why in whys if why]
        lines += [f"looked at: {part} {number(self.n_rows, 'edge')}: {counts}{'' if self.is_all else ' (--all: all)'}"]
        tables = [("first edges", [reading.columns, *(_texts(*edge) for edge in self.edges)], "<<")]
        for side, name, vertices in zip(SIDES, reading.columns, self.fullest, strict=True):
            title = f"most edges, {side}{'' if name == side else f' ({name})'}"
            tables.append((title, [(*_texts(label), f"{n:,}") for label, n in vertices], "<>"))
        for title, rows, sides in tables:
            lines += ["", f"{title}:", *(f"  {line}" for line in aligned(rows, sides))]
        doubts = [f"  {doubt.kind}: {doubt.text}" for doubt in reading.doubts]
        return "\n".join([*lines, "", "doubts:" if doubts else "doubts: none", *doubts])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


@with_options("look")
def look(
    source: Any,
    **given: Unpack[keywords.Look],
) -> Look:
    """Say how an input is read, show its first edges and its fullest vertices, and say every doubt about it.

    Parameters
    ----------
    source : path, sequence of paths, or object
        As for `bicliques.mine`, but no run.
    {options}

    Returns
    -------
    Look
        ``print`` shows it in words.

    Raises
    ------
    InputError
        If `mine` would refuse the input. The notes of the error are the first lines of the file.

    Examples
    --------
    >>> import bicliques
    >>> seen = bicliques.look("examples/debian12_package_tag.parquet", all=True)
    >>> str(seen.reading), seen.n_edges
    ('Parquet, left = package (text), right = tag (text)', 112118)
    """
    options, call = record(IngestOptions, given), record(CallOptions, given)
    if is_run_folder(source):
        raise InputError(f"{source} is a run, which has read its input already; see: bicliques status {source}")
    with at_hand(source, options.where) as there:
        is_file = isinstance(there, Files)
        try:
            seen = _look(
                open_source(there, options), None if call.all_edges else _SAMPLE, is_file, options.left is not None
            )
        except InputError as error:
            for line in _first_lines(there, str(error)) if is_file else ():
                error.add_note(line)
            raise
    if call.strict:
        refuse_doubts(seen.source, (doubt.text for doubt in seen.reading.doubts))
    return seen


def _look(stream: EdgeStream, most: int | None, is_file: bool, is_chosen: bool) -> Look:
    table, edges, batches = EdgeTable(stream.integers), list[tuple[Label, Label]](), filter(len, stream.chunks())
    for batch in batches:
        first = (batch[side].slice(0, _EDGES - len(edges)).to_pylist() for side in SIDES)
        edges += zip(*first, strict=True)
        table.add(batch)
        if most is not None and table.n_rows >= most:
            break
    is_all = next(batches, None) is None
    refuse_empty(stream, table.n_rows, is_file)
    left, right, duplicates = table.finish()
    labels = (left.values, right.values)
    reading = read_as(Seen(stream, labels, table.n_rows, duplicates, is_file, is_chosen))
    try:
        (stream.check if is_all else stream.check_table)(*labels, table.n_rows)
    except InputError as error:
        if is_all:
            raise
        # the other edges may show that it is no such table
        reading = replace(reading, doubts=(Doubt("a column per vertex", str(error)), *reading.doubts))
    words = np.concatenate(list(table.unique()))
    fullest = _fullest(left, words >> 32), _fullest(right, words & (1 << 32) - 1)
    counts = table.n_rows, len(left), len(right), len(words)
    return Look(stream.source, reading, *counts, is_all, tuple(edges), fullest)


def _fullest(labels: Labels, ids: np.ndarray) -> Vertices:
    """The vertices of a side with the most edges, by the ends of all edges. Equal ones in the order of labels."""
    degrees = np.bincount(ids)
    best = np.argsort(-degrees, kind="stable")[:_FULLEST]
    places = best if labels.order is None else labels.order[best]
    return tuple(zip(labels.values.take(pa.array(places)).to_pylist(), degrees[best].tolist(), strict=True))


def _first_lines(files: Files, reason: str) -> Iterator[str]:
    """The first lines of the file that a sentence names, as a terminal can show them. None of a binary file."""
    path = next((path for path in files.paths if str(path) in reason), files.paths[0])
    with suppress(BicliqueError), closing(numbered_lines(path)) as lines:
        found = list(islice(lines, _LINES))
        for place, text in [] if any(b"\0" in text for _, text in found) else found:
            line = shown(text.removesuffix(b"\r").decode(errors="backslashreplace"))
            room = width() - len("10  ")
            yield f"{place:>2}  {line if columns_of(line) <= room else beginning(line, room)}"


def _texts(*labels: Label) -> list[str]:
    return [shortened(label, width()) for label in labels]
