"""What a reader is: a row in the table of formats, and the stream of raw edges it opens.

A stream yields batches of two columns, ``left`` and ``right``, each int64 or large_string, or large_string behind a
dictionary of which every value occurs; without nulls, labels exactly as in the input. A column is of integers in every
batch or of text in every batch. Numbering the
labels, sorting and removing duplicates is `pipeline.ingest.table.normalise`'s work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from schemas.errors import InputError
from schemas.options import IngestOptions

__all__ = ["SIDES", "SKIP", "BadLineError", "EdgeStream", "Format", "refuse_unused", "shorten", "to_batch"]

#: The two sides, and what they are called where the input has no names for them.
SIDES = ("left", "right")

#: The remedy that every bad line has, after the ones of its own.
SKIP = "leave such lines out with --skip-bad-lines"

_UNUSED = {
    "left": "--left names a column",
    "right": "--right names a column",
    "delimiter": "--delimiter separates columns",
    "header": "--header and --no-header are about column names",
    "label_type": "--label-type string takes labels as text",
}


class BadLineError(Exception):
    """A line that is not an edge of its format; the caller adds the file and the line number.

    Parameters
    ----------
    reason : str
        What is wrong, with the offending text.
    remedy : str
        What the user can do, besides leaving the line out.
    """

    def __init__(self, reason: str, remedy: str):
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy

    def at(self, place: str, otherwise: str | None = SKIP) -> InputError:
        """The error a user sees, one sentence; `place` is the file and the line."""
        return InputError(f"{place}: {self.reason}; {self.remedy}" + (f", or {otherwise}" if otherwise else ""))


class EdgeStream(ABC):
    """Raw edges of one source, batch after batch.

    Attributes
    ----------
    format : str
        Name of the format.
    source : str
        The path as the user gave it, or the type of the object.
    skipped : int
        Lines (rows of a table) left out so far because of ``skip_bad_lines``.
    integers : (DataType, DataType)
        What integer labels of the left and right side are to be in the end, int64 or int32.
    side_names : (str, str)
        Names of the two columns that are read, fit to be shown.
    guessed : bool
        Whether these columns were read because they are the first two, and others could be named.
    """

    format: str
    source: str
    skipped: int = 0
    integers: tuple[pa.DataType, pa.DataType] = (pa.int64(), pa.int64())
    side_names: tuple[str, str] = SIDES
    guessed: bool = False

    @abstractmethod
    def chunks(self) -> Iterator[pa.RecordBatch]:
        """Batches with the columns left and right; may be used once.

        Raises
        ------
        InputError
            At the first line that cannot be read, unless ``skip_bad_lines``.
        """

    def digest(self) -> str | None:
        """BLAKE3 (hex) of the file's bytes once `chunks` is exhausted; None for an object in memory."""
        return None

    def check(self, left: pa.Array, right: pa.Array) -> None:
        """Compare what is known of the source otherwise with what was read; for most formats nothing.

        Parameters
        ----------
        left, right : Array
            The distinct labels of each side, in any order.

        Raises
        ------
        InputError
            If they disagree.
        """
        return None


@dataclass(frozen=True)
class Format:
    """A row of the table of formats.

    Parameters
    ----------
    name : str
        What ``--format`` takes.
    patterns : tuple of str
        File names that mean this format, as shell patterns, without a compression suffix.
    description : str
        One line for ``bicliques formats``.
    options : frozenset of str
        The fields of `IngestOptions` this format can use; any other that is set is an error.
    open : callable
        (path, options) -> stream.
    """

    name: str
    patterns: tuple[str, ...]
    description: str
    options: frozenset[str]
    open: Callable[[Path, IngestOptions], EdgeStream]


def refuse_unused(name: str, used: frozenset[str], options: IngestOptions) -> None:
    """Refuse an option that would be ignored.

    Raises
    ------
    InputError
        Naming the option.
    """
    for option, meaning in _UNUSED.items():
        value = getattr(options, option)
        if option in used or value is None or (option == "label_type" and value != "string"):
            continue
        raise InputError(f"{meaning}, which format {name} does not have; leave the option out")
    if (options.left is None) != (options.right is None):
        raise InputError("only one of --left and --right is given; name both columns, or neither for the first two")


def shorten(text: str, most: int = 60) -> str:
    """`text` quoted for a message, cut to `most` characters."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def to_batch(left: pa.Array, right: pa.Array) -> pa.RecordBatch:
    """The two columns as one batch."""
    return pa.RecordBatch.from_arrays([left, right], names=["left", "right"])
