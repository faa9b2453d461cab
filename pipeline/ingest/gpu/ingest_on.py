"""Decides whether the input is read on a GPU, and reads it there.

What only a GPU needs is imported inside functions.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, get_args

from bicliques.pipeline.ingest.readers.base import EdgeStream
from bicliques.schemas.errors import DeviceMemoryError, InputError, ResourceError, as_option
from bicliques.schemas.options import Where

if TYPE_CHECKING:
    from bicliques.pipeline.ingest.gpu.arrays import Arrays
    from bicliques.pipeline.ingest.gpu.edge_table import DeviceEdgeTable

logger = logging.getLogger(__name__)

#: Where the input is read, numbered and sorted. ``auto`` is the GPU for a large file, if cuDF can be used.
IngestOn = Where

#: Batches of the input in a chunk of edges, at least.
_BATCHES = 4
#: Bytes of a file for which it is worth loading cuDF. That takes about two seconds.
WORTH_BYTES = 256 << 20


def choose_reader(ingest_on: IngestOn, n_bytes: int) -> tuple[Arrays | None, str]:
    """The device arrays to read with, or None for the host; and the choice in words.

    Parameters
    ----------
    ingest_on : "auto", "cpu" or "gpu"
    n_bytes : int
        Bytes of the files of the source. 0 for an object in memory.
    """
    if ingest_on not in get_args(Where):
        raise InputError(f"reading is on auto, cpu or gpu, not {ingest_on!r}")
    if ingest_on == "cpu":
        return None, "cpu: asked for"
    if ingest_on == "auto" and n_bytes < WORTH_BYTES:
        return None, f"cpu: the input is no file of {WORTH_BYTES >> 20} MiB or more, for which a GPU pays"
    from bicliques.pipeline.ingest.gpu.cudf_arrays import CudfArrays
    from bicliques.pipeline.output.cudf_parquet import why_no_cudf

    reason = why_no_cudf()
    if reason is None:
        return CudfArrays(), "gpu"
    if ingest_on == "gpu":
        raise ResourceError(f"the input cannot be read on a GPU: {reason}; choose {as_option('ingest_on', 'cpu')}")
    return None, f"cpu: {reason}"


def read_on_device(stream: EdgeStream, arrays: Arrays) -> DeviceEdgeTable:
    """All edges of a stream in a table on the device, in chunks if it has no room for all of them.

    Raises `DeviceMemoryError`: the device has too little memory even for one block of the input, or for all labels.
    """
    from bicliques.pipeline.ingest.gpu.edge_table import DeviceEdgeTable, edges_of_a_chunk
    from bicliques.pipeline.ingest.gpu.reading import device_batches

    capacity = edges_of_a_chunk(arrays)
    table = DeviceEdgeTable(arrays, stream.integers, capacity)
    with memory_errors(stream):
        for left, right in device_batches(stream, arrays, max(capacity // _BATCHES, 1)):
            table.add(left, right)
    return table


@contextmanager
def memory_errors(stream: EdgeStream) -> Iterator[None]:
    """Turn the error of a device with too little memory for the edges of a stream into a sentence."""
    try:
        yield
    except MemoryError as error:  # CuPy and RMM both raise it
        raise DeviceMemoryError(
            f"the GPU has too little memory to read {stream.source} ({error}); choose {as_option('ingest_on', 'cpu')}"
        ) from error
