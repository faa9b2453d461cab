"""Finds labels by dense id, and dense ids by label."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import in_order
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.edges import bytes_of
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.hashes import vertex_hashes
from bicliques.schemas.regular_files import regular
from bicliques.schemas.search import Side

#: Labels by dense id, left and right; None where the rows of a run hold dense ids.
Tables = tuple[pa.Array, pa.Array] | None

#: Labels that are looked up together, so that there is no second copy of all of them.
_PART = 1 << 17
#: Labels that a thread hashes at a time.
_HASHED = 1 << 20
#: A table of all labels is made for more than one text per so many labels.
_TABLE = 10
#: And for fewer labels than this, because it is made sooner than compiled code is loaded.
_MANY = 1 << 17
_TEXTS = (pa.string(), pa.large_string())
#: The label tables as uncompressed Arrow files below ``graph/``, which workers share through the page cache.
LABEL_FILES = {"left": "left_labels.arrow", "right": "right_labels.arrow"}


def open_labels(folder: RunFolder, side: str) -> pa.Array:
    """The labels of a side in order of dense ids, memory-mapped."""
    file = folder.store.local(folder.graph / LABEL_FILES[side])
    try:
        column = pa.ipc.open_file(pa.memory_map(str(regular(file)))).read_all()["label"]
        column.validate(full=True)  # or offsets may lead anywhere
        if not (pa.types.is_integer(column.type) or column.type in _TEXTS) or column.null_count:
            raise TypeError(f"its labels are {column.type}, of which {column.null_count} are missing")
    except (KeyError, OSError, TypeError, ValueError, pa.ArrowException) as error:
        raise IncompleteError(f"{file} cannot be read ({error}); mend it with: {how_to_resume(folder.path)}") from error
    return pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)


def hashes_of(labels: pa.Array, side: Side) -> np.ndarray:
    """`schemas.hashes.vertex_hashes` of labels, by a thread per core where there are more than a million."""
    parts = [labels.slice(start, _HASHED) for start in range(0, len(labels), _HASHED)]
    if len(parts) < 2:
        return vertex_hashes(labels, side)
    threads = min(count_cores(), len(parts))
    return np.concatenate(list(in_order(lambda part: vertex_hashes(part, side), parts, threads)))


def ids_of(values: pa.Array, labels: pa.Array) -> np.ndarray:
    """Dense ids of labels.

    Raises `IncompleteError` if a value is not a label of this side.

    Parameters
    ----------
    values : Array
        The labels to look up: int64, string, or a dictionary of strings.
    labels : Array
        The labels of the side, sorted.

    Returns
    -------
    ndarray, shape (len(values),), int32

    Notes
    -----
    Every distinct value is looked up once, because labels repeat. If the labels are consecutive integers, an id is the
    difference to the first label, and nothing is looked up. Few texts are searched among many sorted labels. Otherwise
    a table of all labels is made, which takes 0.2 s for a million.
    """
    if pa.types.is_integer(labels.type) and _is_range(labels):
        return _places(values.to_numpy(), labels[0].as_py() if len(labels) else 0, len(labels))
    encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    distinct = encoded.dictionary
    if pa.types.is_integer(labels.type):
        known = labels.to_numpy()
        found = np.minimum(np.searchsorted(known, distinct.to_numpy()), len(known) - 1)
        missing = np.flatnonzero(known[found] != distinct.to_numpy())
    else:
        found = _find_texts(distinct, labels)
        missing = np.flatnonzero(found < 0)
    if len(missing):
        raise _unknown(distinct[int(missing[0])].as_py())
    ids: np.ndarray = found.astype(VERTEX)[encoded.indices.to_numpy()]
    return ids


def _find_texts(wanted: pa.Array, labels: pa.Array) -> np.ndarray:
    """The position of each text among sorted labels. -1 where it is none of them."""
    if len(labels) < _MANY or len(wanted) * _TABLE > len(labels):
        return pc.fill_null(pc.index_in(wanted, value_set=labels), -1).to_numpy()
    from bicliques.kernels.compiled.searching import find_texts  # here, because most commands look up no text

    found = np.empty(len(wanted), VERTEX)
    find_texts(*bytes_of(labels), *bytes_of(wanted), found)
    return found


def _is_range(labels: pa.Array) -> bool:
    return len(labels) == 0 or labels[-1].as_py() - labels[0].as_py() == len(labels) - 1


def _places(values: np.ndarray, first: int, n: int) -> np.ndarray:
    """Positions of values among `n` consecutive numbers."""
    found = np.empty(len(values), VERTEX)
    for begin in range(0, len(values), _PART):
        part = values[begin : begin + _PART]
        places = part - first  # a label that is far away wraps around, and as an unsigned number it is not below n
        numbers = places.view(f"u{places.itemsize}")
        if numbers.max() >= n:
            raise _unknown(int(part[np.argmax(numbers >= n)]))
        found[begin : begin + _PART] = places
    return found


def _unknown(label: object) -> IncompleteError:
    return IncompleteError(f"{label!r} is not the label of a vertex of the input")
