"""The readers, one module per family of formats, and the table of formats."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from bicliques.pipeline.ingest.readers.base import ON_LABELS, ON_TABLES, ON_WEIGHTS, EdgeStream, Format, refuse_unused
from bicliques.pipeline.ingest.readers.blocks import beginning
from bicliques.pipeline.ingest.readers.columnar import ArrowTable, ParquetTable
from bicliques.pipeline.ingest.readers.crossed import Context, CrossTable
from bicliques.pipeline.ingest.readers.delimited import Delimited
from bicliques.pipeline.ingest.readers.edge_list import EdgeList, Konect
from bicliques.pipeline.ingest.readers.files import Files, find, is_named
from bicliques.pipeline.ingest.readers.fimi import Fimi
from bicliques.pipeline.ingest.readers.matrix_market import MatrixMarket
from bicliques.pipeline.ingest.readers.objects import open_object
from bicliques.pipeline.ingest.readers.opening import COMPRESSIONS, open_file, plain_name, reading_errors, suffix_of
from bicliques.pipeline.ingest.readers.several import SeveralFiles
from bicliques.schemas.errors import InputError, as_option, as_word
from bicliques.schemas.options import IngestOptions

__all__ = ["EdgeStream", "Format", "formats", "infer", "open_source"]

_LINES = ON_LABELS | {"skip_lines"}
_EDGES = _LINES | ON_WEIGHTS
_LISTS = _LINES | {"delimiter"}
_CSV = ON_TABLES | {"delimiter", "header", "skip_lines"}
_CROSSED = _LISTS | {"header", "min_weight"}

_FORMATS = (
    Format("konect", ("out.*",), "left and right in blanks or tabs, both from 1, comments %", _EDGES, Konect),
    Format("snap", ("*.el", "*.edges", "*.edgelist"), "left, right in blanks or tabs, comments #", _EDGES, EdgeList),
    Format("csv", ("*.csv",), "columns between commas, semicolons, bars or tabs; named or counted", _CSV, Delimited),
    Format("tsv", ("*.tsv", "*.tab"), "the same with tabs", _CSV, Delimited),
    Format("matrix-market", ("*.mtx",), "coordinate matrix: rows left, columns right", ON_WEIGHTS, MatrixMarket),
    Format("fimi", ("*.dat",), "line k lists the items (right) of transaction k (left)", _LISTS, Fimi),
    Format("adjacency", ("*.adj",), "line k lists the right neighbours of left vertex k, from 0", _LISTS, Fimi),
    Format("table", (), "a row per left vertex, named in front, and a column per right one", _CROSSED, CrossTable),
    Format("cxt", ("*.cxt",), "Burmeister's context: objects are left, attributes right", ON_LABELS, Context),
    Format("parquet", ("*.parquet", "*.pq"), "two columns, named or the first two", ON_TABLES, ParquetTable),
    Format("arrow", ("*.arrow", "*.feather", "*.ipc"), "Arrow IPC, columns as above", ON_TABLES, ArrowTable),
)

#: How files of a format begin, for files whose name does not show the format.
_BEGINNINGS = {b"%%MatrixMarket": "matrix-market", b"%": "konect", b"#": "snap", b"PAR1": "parquet", b"ARROW1": "arrow"}

_TABLE = "write it as CSV or Parquet, as with pandas"
#: How files begin that none of the readers takes, what they are, and what to do with them.
_OTHERS = (
    (b"PK\x03\x04", "a ZIP archive", "read what is in it: unzip -p {} | bicliques count - --format csv"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook", _TABLE),
    (b"SQLite format 3", "an SQLite database", _TABLE),
    (b"ORC", "an ORC file", _TABLE),
    (b"Obj\x01", "an Avro file", _TABLE),
    (b"\x89HDF", "an HDF5 file", _TABLE),
    (b"<?xml", "an XML file, as of GraphML", "read it in Python, as with networkx.read_graphml, and give the graph"),
    (b"graph [", "a GML file", "read it in Python, as with networkx.read_gml, and give the graph"),
)
_MOST_MAGIC = 16


def formats() -> tuple[Format, ...]:
    """The table of formats, in the order in which it is shown."""
    return _FORMATS


def infer(path: Path, n_files: int = 1) -> str:
    """Name of the format of a file, by the file's name, or else by its beginning. It is refused if neither shows it."""
    name = plain_name(path)
    named = [format.name for format in _FORMATS if any(fnmatch(name, pattern) for pattern in format.patterns)]
    if len(named) == 1:
        return named[0]
    start = beginning(path).lstrip()
    for mark, format_name in _BEGINNINGS.items():
        if start.startswith(mark) and (not named or format_name in named):
            return format_name
    if named:
        return named[-1]  # out.NAME.csv: the suffix says more than the prefix
    more = ", or choose among the files with a pattern such as 'in/*.csv'" if n_files > 1 else ""
    if not start:
        raise InputError(f"{path} is empty; name a file that holds edges{more}")
    names = ", ".join(format.name for format in _FORMATS)
    raise InputError(
        f"neither the name nor the first line of {path} tells its format; say {as_option('format')}, one of {names} "
        f"(`bicliques look` shows the lines){more}"
    )


def open_source(source: Any, options: IngestOptions) -> EdgeStream:
    """The stream of raw edges of `Files`, of what `files.find` takes for them, or of an object in memory.

    Raises `InputError`: the source cannot be read, its format is not known, or an option does not apply to it.
    """
    if is_named(source):
        source = find(source, options.where)
    if not isinstance(source, Files):
        return open_object(source, options)
    for path in source.paths:
        _refuse_other(path)
    format = _format_of(source, options.format)
    refuse_unused(format.name, format.options | {"where"}, options)
    if len(source.paths) > 1 or not source.is_one:
        return SeveralFiles(source, format, options)
    stream = format.open(source.paths[0], options, format.name)
    stream.source = source.title
    return stream


def _refuse_other(path: Path) -> None:
    """Refuse a file that begins as those of other programs do, which no reader takes."""
    with open_file(path) as file, reading_errors(path):
        start = file.read(_MOST_MAGIC)
    for mark, what, how in _OTHERS:
        if start.startswith(mark):
            raise InputError(f"{path} is {what}; {how.format(as_word(str(path)))}")
    if (suffix := suffix_of(start)) and path.suffix.lower() not in COMPRESSIONS:
        raise InputError(f"{path} is compressed with {COMPRESSIONS[suffix]}; call it {path.name}{suffix}")


def _format_of(files: Files, given: str | None) -> Format:
    """The format of all files. `given` is its name, if the user says it."""
    n = len(files.paths)
    name = infer(files.paths[0], n) if given is None else given
    for path in files.paths[1:] if given is None else ():
        if (other := infer(path, n)) != name:
            raise InputError(
                f"the files of {files.title} have two formats: {files.paths[0]} is {name}, and {path} is {other}; "
                f"choose files with a pattern such as '*.csv', or say {as_option('format')}"
            )
    for format in _FORMATS:
        if format.name == name:
            return format
    names = ", ".join(format.name for format in _FORMATS)
    raise InputError(f"{as_option('format')} must be one of {names}, not {name!r}")
