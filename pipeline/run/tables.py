"""Opens parts, and tables of the input. A missing or damaged file is one error, with a remedy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from bicliques.pipeline.run.names import MANIFEST_FILE
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.run.store import store_of
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.regular_files import open_regular, read_regular, regular

#: The file system of this machine. Without it pyarrow would look for a missing ``s3:/a/b`` in a cloud.
LOCAL = LocalFileSystem()
#: Rows that a row group may have. Runs write a million at most.
_MOST_ROWS = 1 << 26


def found_at(path: Path) -> dict[str, Any]:
    """Arguments for a reader of Parquet that find a part, also one in the store that its run is kept in.

    Raises `OSError` if it is on this machine, and is missing or no regular file.
    """
    source, system = store_of(path).for_arrow(path) or (str(regular(path)), LOCAL)
    return {"source": source, "filesystem": system}


@contextmanager
def open_part(path: Path, **options: Any) -> Iterator[pq.ParquetFile]:
    """A part as a `pyarrow.parquet.ParquetFile` made with `options`. It is closed after the block.

    Raises `ResourceError` if the store of the part does not answer.
    """
    store = store_of(path)
    store.local(path)
    try:
        with open_table(**found_at(path), **options) as part:
            yield part
    except (KeyError, MemoryError, OSError, ValueError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        if (stored := store.unreadable(path, reason, error)) is not None:
            raise stored from error
        if path.exists():
            remedy = "delete it and resume the run"  # resuming alone does not help: it checks only the sizes of parts
        elif _is_of_a_run_before(path):
            reason, remedy = "it is missing", "another run was made in its folder, so open that again"
        else:
            reason, remedy = "it is missing", f"mend it with: {how_to_resume(path.parent.parent)}"
        raise IncompleteError(f"{path} cannot be read ({reason}); {remedy}") from error


def open_table(source: Any, filesystem: Any = LOCAL, **options: Any) -> pq.ParquetFile:
    """A Parquet file that a run has written. Readers ask for memory by the numbers of rows in it, so these are checked.

    Raises `ArrowException`, `OSError` or `ValueError` if it is damaged, or promises more rows than any run writes.
    """
    file = pq.ParquetFile(source, filesystem=filesystem, page_checksum_verification=True, **options)
    told = file.metadata
    rows = [told.row_group(k).num_rows for k in range(told.num_row_groups)]
    if sum(rows) != told.num_rows or not all(0 <= n <= _MOST_ROWS for n in rows):
        file.close()
        raise ValueError(f"it promises {told.num_rows:,} rows, and {max(rows, default=0):,} in a row group")
    return file


def _is_of_a_run_before(path: Path) -> bool:
    """Whether the run that is complete in the folder of a part has no such part. Names of parts do not come again."""
    if path.parent.name != "bicliques":  # another file of the run, which all runs have
        return False
    try:
        return path.name.encode() not in read_regular(path.parent.parent / MANIFEST_FILE)
    except OSError:
        return False


def open_bytes(path: Path) -> tuple[Any, int]:
    """The bytes of a part as a file that can be sought, and their number.

    Raises `OSError` if it is missing, or its store does not answer.
    """
    stored = store_of(path).for_arrow(path)
    if stored is None:
        local = open_regular(path)
        return local, os.fstat(local.fileno()).st_size
    file = stored[1].open_input_file(stored[0])
    return file, file.size()


def read_schema(path: Path) -> pa.Schema:
    """The Arrow schema of a part, as no option of a reader changes it."""
    found = found_at(path)
    return pq.read_schema(found["source"], filesystem=found["filesystem"])


def read_table(path: Path) -> pa.Table:
    """All rows of a file that `open_part` opens.

    Raises `IncompleteError` where `open_part` raises it.
    """
    with open_part(path) as part:
        return part.read()


def check_ids(ids: np.ndarray, n: int) -> np.ndarray:
    """Dense ids of `n` vertices, as a file has them. Compiled code would look for others outside of its arrays."""
    if len(ids) and not 0 <= ids.min() <= ids.max() < n:
        raise ValueError(f"it has the vertices {ids.min()} to {ids.max()}, and the run has 0 to {n - 1}")
    return ids


def check_edges(path: Path, n: int, sizes: Iterable[int]) -> None:
    """Refuse more vertices than edges. Each vertex has an edge, and whoever asks needs memory for each."""
    if max(sizes) > n:
        raise IncompleteError(
            f"{path} has {n:,} edges, too few for {max(sizes):,} vertices; delete it and resume the run"
        )


def read_integers(files: Sequence[Path], threads: int, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """The columns of files of dense ids without nulls that `open_part` opens, as arrays that cannot be written.

    Raises `IncompleteError` where `open_part` raises it.

    Parameters
    ----------
    files : sequence of Path
        At least one. Their rows follow one another.
    threads : int
        Threads that decode row groups.
    sizes : dict of str to int
        By column, the number of vertices that there are.
    """
    groups: list[tuple[Path, int, int]] = []  # file, number in the file, and first row of each row group
    n = 0
    for file in files:
        with open_part(file) as part:
            schema = part.schema_arrow
            for group in range(part.metadata.num_row_groups):
                groups.append((file, group, n))
                n += part.metadata.row_group(group).num_rows
    # by their names, because Arrow's own table of types asks for pandas, which commands hide
    columns = {field.name: np.empty(n, np.dtype(str(field.type))) for field in schema}

    def read(some: np.ndarray) -> None:
        for file, own in groupby((groups[k] for k in some.tolist()), itemgetter(0)):
            with open_part(file) as part:  # a reader of its own, as readers do not say that threads can share them
                for _, group, start in own:
                    table = part.read_row_group(group, use_threads=False)
                    for name, column in columns.items():
                        rows = column[start : start + len(table)]
                        np.concatenate(table[name].chunks, out=rows)
                        check_ids(rows, sizes[name])

    with ThreadPoolExecutor(threads) as pool:
        at_a_time = pool.map if len(groups) > 1 else map
        list(at_a_time(read, np.array_split(np.arange(len(groups)), max(min(threads, len(groups)), 1))))
    for column in columns.values():
        column.flags.writeable = False
    return columns
