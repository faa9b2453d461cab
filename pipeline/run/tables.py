"""Opening a part, or a table of the input, whatever has become of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from pipeline.run.resuming import how_to_resume
from schemas.errors import IncompleteError

__all__ = ["LOCAL", "open_part", "read_table"]

#: For reading files of a run: pyarrow would take a missing ``s3:/a/b`` for a place in a cloud, and ask there.
LOCAL = LocalFileSystem()


@contextmanager
def open_part(path: Path, **options: Any) -> Iterator[pq.ParquetFile]:
    """A part as a `pyarrow.parquet.ParquetFile`, which takes `options`; closed after the block.

    Raises
    ------
    IncompleteError
        If it is missing or damaged, as far as the block reads it.
    """
    try:
        with pq.ParquetFile(path, filesystem=LOCAL, page_checksum_verification=True, **options) as part:
            yield part
    except (KeyError, OSError, ValueError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        if path.exists():
            remedy = "delete it and resume the run"  # which looks at the sizes of parts only
        else:
            reason, remedy = "it is missing", f"mend it with: {how_to_resume(path.parent.parent)}"
        raise IncompleteError(f"{path} cannot be read ({reason}); {remedy}") from error


def read_table(path: Path) -> pa.Table:
    """All rows of a file as `open_part` opens it, which raises the same."""
    with open_part(path) as part:
        return part.read()
