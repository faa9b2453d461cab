"""The first step of a run. It makes the normalised edge table and the label tables of any edge list."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bicliques.pipeline.ingest.doubts import Seen, read_as
from bicliques.pipeline.ingest.from_run import all_or_nothing
from bicliques.pipeline.ingest.gpu.ingest_on import IngestOn, choose_reader, memory_errors, read_on_device
from bicliques.pipeline.ingest.readers import EdgeStream, open_source
from bicliques.pipeline.ingest.readers.files import Files
from bicliques.pipeline.ingest.sources.at_hand import at_hand
from bicliques.pipeline.ingest.table.normalise import EdgeTable, Labels
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import MOST_THREADS
from bicliques.pipeline.run.names import LEFT_LABELS_FILE, RIGHT_LABELS_FILE
from bicliques.pipeline.run.progress import number
from bicliques.schemas.errors import DeviceMemoryError, InputError, as_option
from bicliques.schemas.options import IngestOptions
from bicliques.schemas.reading import Doubt, Reading

if TYPE_CHECKING:
    from bicliques.pipeline.ingest.gpu.edge_table import DeviceEdgeTable

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class IngestSummary:
    """Facts about the input.

    Parameters
    ----------
    n_left, n_right : int
        Vertices with an edge. Of a graph of one kind of vertices both sides have all of them.
    n_edges : int
        Distinct edges. Of a graph of one kind of vertices each counts in both directions.
    duplicates : int
        Edges that occurred before.
    skipped_lines : int
        Lines left out because of ``skip_bad_lines``.
    light_rows : int
        Edges left out because their weight is below ``min_weight``.
    format : str
        Name of the format, or of the library for an object in memory.
    source : str
        The path as given, or several of them in words, or the object's type.
    digest : str
        BLAKE3 (hex) of the file's bytes as stored; of several files, as
        `pipeline.ingest.readers.opening.list_digest`. For an object in memory, of the labels and edges.
    left_label, right_label : str
        "int64", "int32" or "string".
    left_name, right_name : str
        Names of the two columns that were read. "left" and "right" if the input has no names.
    left_variants, right_variants : int or None
        Labels that differ from another label of their side only in blanks or capitals. None when there were too many
        labels to compare.
    notes : tuple of str
        Doubts about the input, in sentences: the texts of those of `reading`.
    reading : Reading
        What the input was taken for, with every doubt about it.
    read_on : str
        "gpu", or "cpu" and why not on a GPU.
    pieces : int
        In how many pieces the edges went through main memory, because the GPU had no room for all. 1: it had.
    undirected : bool
        Whether it is a graph of one kind of vertices, and the tables have its double cover.
    tables_seconds : float
        Seconds until the tables were written. On a GPU the digest of a large file takes longer.
    """

    n_left: int
    n_right: int
    n_edges: int
    duplicates: int
    skipped_lines: int
    format: str
    source: str
    digest: str
    left_label: str
    right_label: str
    left_name: str
    right_name: str
    left_variants: int | None
    right_variants: int | None
    notes: tuple[str, ...]
    reading: Reading
    seconds: float
    read_on: str = "cpu"
    tables_seconds: float = 0.0
    light_rows: int = 0
    pieces: int = 1
    undirected: bool = False


def ingest(
    source: Any,
    options: IngestOptions,
    folder: Path,
    ingest_on: IngestOn = "auto",
    keep: Callable[[Any], None] | None = None,
) -> IngestSummary:
    """Read `source` and write the tables of edges and labels into `folder`.

    Raises `InputError`: the input or an option is wrong; the sentence names the file, the line and the remedy. Or
    `folder` does not exist, or may not be written into. Raises `ResourceError`: writing fails half-way, as on a full
    disk. Or a GPU was asked for and has too little memory.

    Parameters
    ----------
    source : path, sequence of paths, or object
        A file in one of `pipeline.ingest.readers.formats`, several of one format, a folder, a pattern such as
        ``in/*.csv``, or ``-`` for standard input. Or an object of
        `pipeline.ingest.readers.objects`, which is not modified.
    folder : Path
        An existing folder. After an error it is as it was before.
    ingest_on : "auto", "cpu" or "gpu"
        See `pipeline.ingest.gpu.ingest_on.choose_reader`. The tables are the same, wherever they are made. With
        "auto" the CPU reads what a GPU has too little memory for.
    keep : callable or None
        Gets the sorted edges on the device (`DeviceEdgeTable.on_device`), if a device has read and has room for them.
    """
    started = time.perf_counter()
    with at_hand(source, options.where) as there:

        def read(on: IngestOn) -> IngestSummary:
            stream = open_source(there, options)  # first, because it has sentences for files that are not there
            n_bytes = there.n_bytes if isinstance(there, Files) else 0
            return _ingest(stream, n_bytes, options, folder, on, keep, started)

        try:
            return read(ingest_on)
        except DeviceMemoryError as error:
            if ingest_on != "auto":
                raise
            logger.warning("the input is read again, on the CPU: %s", str(error))
        from bicliques.kernels.gpu.device import release_memory  # only where a GPU is

        release_memory()  # after the error, whose frames have arrays on the GPU
        return replace(read("cpu"), read_on="cpu: the GPU had too little memory")


def _ingest(
    stream: EdgeStream,
    n_bytes: int,
    options: IngestOptions,
    folder: Path,
    ingest_on: IngestOn,
    keep: Callable[[Any], None] | None,
    started: float,
) -> IngestSummary:
    reader, read_on = choose_reader("cpu" if options.undirected else ingest_on, n_bytes)
    table: EdgeTable | DeviceEdgeTable
    if reader is not None:
        table = read_on_device(stream, reader)
    else:
        table = EdgeTable(stream.integers)
        for batch in stream.chunks():
            if len(batch):
                table.add(batch)
    refuse_empty(stream, table.n_rows, n_bytes > 0)
    guard = partial(memory_errors, stream) if reader is not None else nullcontext
    with guard():
        left, right, duplicates = table.finish()
    pieces = 1 if isinstance(table, EdgeTable) else table.n_chunks
    if pieces > 1:
        logger.warning(
            "the GPU has no room for all %d edges at once: they are sorted in %d pieces", table.n_rows, pieces
        )
    stream.check(left.values, right.values, table.n_rows)
    seen = Seen(stream, (left.values, right.values), table.n_rows, duplicates, n_bytes > 0, options.left is not None)
    n_edges, loops = table.n_rows - duplicates, 0
    if options.undirected:
        assert isinstance(table, EdgeTable)
        refuse_two_kinds(stream, left, right)
        left, loops = table.double(left, right)
        right, n_edges = left, table.n_rows
        refuse_empty(stream, n_edges, n_bytes > 0, loops)
    with all_or_nothing(folder) as staging, ThreadPoolExecutor(2) as threads:
        at_a_time = min(count_cores(), MOST_THREADS)
        labels = [threads.submit(left.write, staging / LEFT_LABELS_FILE, at_a_time)]
        labels.append(threads.submit(right.write, staging / RIGHT_LABELS_FILE, at_a_time))
        with guard():
            table.write(staging)
        for written in labels:
            written.result()
    if keep is not None and not isinstance(table, EdgeTable):
        keep(table.on_device)
    tables_seconds = time.perf_counter() - started
    reading = read_as(seen)
    if loops:
        told = number(loops, "edge joins a vertex with itself and is", "edges join a vertex with itself and are")
        reading = replace(reading, doubts=(*reading.doubts, Doubt("loops", f"{told} left out")))
    for doubt in reading.doubts:
        logger.warning("%s: %s", stream.source, doubt.text)
    return IngestSummary(
        n_left=len(left),
        n_right=len(right),
        n_edges=n_edges,
        duplicates=duplicates,
        skipped_lines=stream.skipped,
        format=stream.reading.format,
        source=stream.source,
        digest=stream.digest() or table.digest(left, right),
        left_label=str(left.type),
        right_label=str(right.type),
        left_name=stream.side_names[0],
        right_name=stream.side_names[1],
        left_variants=None if seen.variants[0] is None else seen.variants[0].count,
        right_variants=None if seen.variants[1] is None else seen.variants[1].count,
        notes=tuple(doubt.text for doubt in reading.doubts),
        reading=reading,
        seconds=time.perf_counter() - started,
        read_on=read_on,
        tables_seconds=tables_seconds,
        light_rows=stream.light,
        undirected=options.undirected,
        pieces=pieces,
    )


def refuse_two_kinds(stream: EdgeStream, left: Labels, right: Labels) -> None:
    """Refuse labels of which one side has integers and the other one text, if they have to be one set."""
    if pa.types.is_integer(left.values.type) != pa.types.is_integer(right.values.type):
        names, integers = stream.side_names, pa.types.is_integer(left.values.type)
        number, text = names if integers else names[::-1]
        raise InputError(
            f"{stream.source}: {number} has integers and {text} has text, so they are not labels of one kind of "
            f"vertices; take both as text with {as_option('label_type', 'string')}"
        )


def refuse_empty(stream: EdgeStream, n_rows: int, is_file: bool, loops: int = 0) -> None:
    """Refuse an input of which no edge is left."""
    if n_rows:
        return
    left_out = f" ({number(stream.skipped, 'bad line was', 'bad lines were')} left out)" if stream.skipped else ""
    light = number(stream.light, "edge has", "edges have")
    left_out += f" ({light} a weight below the smallest one)" if stream.light else ""
    left_out += f" ({number(loops, 'edge joins', 'edges join')} a vertex with itself)" if loops else ""
    remedy = f"check the input and its {as_option('format')}" if is_file else "give one with edges"
    raise InputError(f"there are no edges in {stream.source}{left_out}; {remedy}")
