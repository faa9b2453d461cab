"""The readers, one module per family of formats, and the table of formats."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from pipeline.ingest.readers.arrow import open_arrow
from pipeline.ingest.readers.base import ON_LABELS, ON_TABLES, ON_WEIGHTS, EdgeStream, Format, refuse_unused
from pipeline.ingest.readers.blocks import beginning
from pipeline.ingest.readers.delimited import open_csv, open_tsv
from pipeline.ingest.readers.edge_list import open_konect, open_snap
from pipeline.ingest.readers.files import Files, find, is_named
from pipeline.ingest.readers.fimi import open_adjacency, open_fimi
from pipeline.ingest.readers.matrix_market import open_matrix_market
from pipeline.ingest.readers.objects import open_object
from pipeline.ingest.readers.opening import open_file, plain_name
from pipeline.ingest.readers.parquet import open_parquet
from pipeline.ingest.readers.several import SeveralFiles
from schemas.errors import InputError
from schemas.options import IngestOptions

__all__ = ["EdgeStream", "Format", "formats", "infer", "open_source"]

_LIST = ON_LABELS | ON_WEIGHTS
_CSV = ON_TABLES | {"delimiter", "header"}

_FORMATS = (
    Format("konect", ("out.*",), "left and right in blanks or tabs, both from 1, comments %", _LIST, open_konect),
    Format("snap", ("*.el", "*.edges", "*.edgelist"), "left and right in blanks or tabs, comments #", _LIST, open_snap),
    Format("csv", ("*.csv",), "columns between commas, semicolons, bars or tabs; named or counted", _CSV, open_csv),
    Format("tsv", ("*.tsv", "*.tab"), "the same with tabs", _CSV, open_tsv),
    Format(
        "matrix-market", ("*.mtx",), "coordinate matrix: rows are left, columns right", ON_WEIGHTS, open_matrix_market
    ),
    Format("fimi", ("*.dat",), "line k lists the items (right) of transaction k (left)", ON_LABELS, open_fimi),
    Format(
        "adjacency", ("*.adj",), "line k lists the right neighbours of left vertex k, from 0", ON_LABELS, open_adjacency
    ),
    Format("parquet", ("*.parquet", "*.pq"), "two columns, named or the first two", ON_TABLES, open_parquet),
    Format(
        "arrow", ("*.arrow", "*.feather", "*.ipc"), "Arrow IPC file or stream, columns as above", ON_TABLES, open_arrow
    ),
)

#: How files of a format begin, for files whose name does not show the format.
_BEGINNINGS = (
    (b"%%MatrixMarket", "matrix-market"),
    (b"%", "konect"),
    (b"#", "snap"),
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
)


def formats() -> tuple[Format, ...]:
    """The table of formats, in the order in which it is shown."""
    return _FORMATS


def infer(path: Path) -> str:
    """Name of the format of a file, by the file's name, or else by its beginning.

    Raises
    ------
    InputError
        Neither shows the format, or the file is empty.
    """
    name = plain_name(path)
    named = [format.name for format in _FORMATS if any(fnmatch(name, pattern) for pattern in format.patterns)]
    if len(named) == 1:
        return named[0]
    start = beginning(path)
    for mark, format_name in _BEGINNINGS:
        if start.startswith(mark) and (not named or format_name in named):
            return format_name
    if named:
        return named[-1]  # out.NAME.csv: the suffix says more than the prefix
    if not start:
        raise InputError(f"{path} is empty; name a file that holds edges")
    names = ", ".join(format.name for format in _FORMATS)
    raise InputError(f"neither the name nor the first line of {path} tells its format; say --format, one of {names}")


def open_source(source: Any, options: IngestOptions) -> EdgeStream:
    """The stream of raw edges of files or of an object in memory.

    Parameters
    ----------
    source : path, sequence of paths, Files or object
        See `pipeline.ingest.readers.files.find`.

    Raises
    ------
    InputError
        The source cannot be read, its format is not known, or an option does not apply to it.
    """
    if is_named(source):
        source = find(source, options.where)
    if not isinstance(source, Files):
        return open_object(source, options)
    for path in source.paths:
        open_file(path).close()
    format = _format_of(source, options.format)
    refuse_unused(format.name, format.options | {"where"}, options)
    if len(source.paths) > 1 or not source.is_one:
        return SeveralFiles(source, format, options)
    stream = format.open(source.paths[0], options)
    stream.source = source.title
    return stream


def _infer_among(files: Files, path: Path) -> str:
    """`infer` with another remedy for one of several files."""
    try:
        return infer(path)
    except InputError as error:
        if len(files.paths) == 1:
            raise
        raise InputError(f"{error}, or choose among the files with a pattern such as 'in/*.csv'") from error


def _format_of(files: Files, given: str | None) -> Format:
    """The format of all files. `given` is its name, if the user says it."""
    name = _infer_among(files, files.paths[0]) if given is None else given
    for path in files.paths[1:] if given is None else ():
        if (other := _infer_among(files, path)) != name:
            raise InputError(
                f"the files of {files.title} have two formats: {files.paths[0]} is {name}, and {path} is {other}; "
                "choose files with a pattern such as '*.csv', or say --format"
            )
    for format in _FORMATS:
        if format.name == name:
            return format
    raise InputError(f"there is no format {name!r}; choose one of {', '.join(format.name for format in _FORMATS)}")
