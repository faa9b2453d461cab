"""Says what a text file is by its first lines: what stands above the edges, the separator, a header, the two columns.

Where the lines allow two readings, the file is refused and the sentence names the option of each.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from pipeline.ingest.readers.base import shorten
from pipeline.ingest.readers.blocks import LINE_BYTES, numbered_lines
from pipeline.ingest.readers.cells import cells_of
from pipeline.ingest.readers.columns import choose, is_usual
from pipeline.ingest.readers.header import are_usual, has_header, has_names, is_number, why_header
from pipeline.process import shell
from schemas.errors import InputError
from schemas.options import IngestOptions
from schemas.reading import Reading

__all__ = [
    "COMMENTS",
    "MOST_COLUMNS",
    "Layout",
    "Line",
    "are_numbered",
    "are_shared",
    "as_edges",
    "fields_of",
    "find_delimiter",
    "lines_above",
    "look_at_table",
    "option_of",
    "refuse_comment_or_edge",
    "sample_of",
    "separators_in",
    "shown_separator",
    "split_fields",
]

#: Number and text of a line.
Line = tuple[int, str]

#: Separators of columns in order of preference. A blank is not among them, because it is too often part of a label.
_SEPARATORS = (",", "\t", ";", "|")
_WORDS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", " ": "blanks"}
#: What separates items that stand in one field, if the field was split at blanks.
_WITHIN = ("::", ",", ";", "|")

#: How lines begin that are no edges, above a header or the first edge.
COMMENTS = ("#", "%", "//")
_EXCEL = re.compile(r'"?sep=(.)"?$', re.IGNORECASE)

#: Most lines, and about as many bytes, that are looked at.
_SAMPLE_LINES, HEAD_BYTES = 100, 1 << 20
#: Most columns of a list of edges: left, right, weight, time. Of more columns without names none are guessed.
MOST_COLUMNS = 4
#: Rows from which on a column of 0, 1, 2 and so on numbers the rows.
_NUMBERED_ROWS = 3


@dataclass(frozen=True)
class Layout:
    """How to read the lines of a table.

    Parameters
    ----------
    delimiter : str
    n_columns : int
        Number of columns that every line must have.
    columns : pair of int
        Positions of the left and of the right labels.
    first_line : int
        Number of the first line below the header.
    header : str
        The line of the header. Empty if there is none.
    first_labels : pair of str
        The first label of each side, empty if there is none in the sample.
    sample : tuple of tuple of str
        The first values of the columns: left, right, and the others.
    reading : Reading
    is_named : bool
        Whether the two columns have names that sides usually have.
    objection : str or None
        Why the first two columns are probably not the sides, and what to say, if nobody has named them.
    numbers_rows : bool
        Whether the first column only numbers the rows.
    weight : int or None
        Position of the weights, if they matter.
    """

    delimiter: str
    n_columns: int
    columns: tuple[int, int]
    first_line: int
    header: str
    first_labels: tuple[str, str]
    sample: tuple[tuple[str, ...], ...]
    reading: Reading
    is_named: bool
    objection: str | None
    numbers_rows: bool
    weight: int | None = None


def sample_of(path: Path, options: IngestOptions, is_comment: Callable[[str], bool] = lambda _: False) -> list[Line]:
    """The first lines that are neither blank nor a comment: at most a hundred, and about `HEAD_BYTES`.

    A file that is damaged further down is refused when it is read to there.
    """
    sample: list[Line] = []
    n_bytes = 0
    try:
        with closing(numbered_lines(path)) as lines:
            for number, line in lines:
                text = line.decode(errors="replace")
                if number > (options.skip_lines or 0) and text.strip(" \t\r") and not is_comment(text):
                    sample.append((number, text))
                    n_bytes += len(line)
                if len(sample) == _SAMPLE_LINES or n_bytes > HEAD_BYTES:
                    break
    except InputError:
        if not sample:
            raise
    if sample and "\r" in sample[0][1].removesuffix("\r"):
        raise InputError(
            f"{path}, line {sample[0][0]}: a carriage return inside the line; save the file with Unix line ends"
        )
    return sample


def look_at_table(path: Path, options: IngestOptions, format: str, delimiter: str | None) -> Layout:
    """How to read a CSV file, by its first hundred lines.

    Raises
    ------
    InputError
        There is only one column, a named column is missing, or the lines can be read in two ways.
    """
    sample = sample_of(path, options)
    if not sample:
        raise InputError(f"{path} holds blank lines only; name a file that holds edges")
    if options.skip_lines is None and (found := _EXCEL.match(sample[0][1])) and len(sample) > 1:
        delimiter, sample = delimiter or found[1], sample[1:]
    above = lines_above(options, sample)
    body = sample[len(above) :]
    number, text = body[0]
    if delimiter is None:
        delimiter = find_delimiter(path, body)
    rows = [fields_of(line, delimiter) for _, line in body]
    n = len(rows[0])
    place = f"{path}, line {number}"
    _refuse_title(path, body, rows)
    if n < 2:
        raise InputError(f"{place}: 1 column where 2 are needed ({shorten(text)}); {_one_column(text, format)}")
    (top, header), names = _header(path, options, above, body, rows, delimiter)
    first = number + (header == text)
    below = [row for row in rows[first - number :] if len(row) == n]
    choice = choose(place, options, names, n, format)
    columns, is_named = choice.columns, bool(header) and choice.is_named
    each = tuple(tuple(row[k] for row in below) for k in (*columns, *(k for k in range(n) if k not in columns)))
    numbers = _row_numbers(names, each[0]) if n > 2 else None
    objection = None
    if choice.reading.is_guess and n > 2 and not is_named:
        objection = numbers or (_baskets(delimiter, each, names, top) if are_numbered(names) else None)
    left, right = (next((label for label in each[k] if label.strip()), "") for k in (0, 1))
    reading = replace(
        choice.reading,
        separator=shown_separator(delimiter),
        header=bool(header),
        header_why=why_header(options, bool(header), is_named),
        lines_above=top - 1,
    )
    return Layout(
        delimiter,
        n,
        columns,
        first,
        header,
        (left, right),
        each,
        reading,
        is_named,
        objection,
        numbers is not None,
        choice.weight,
    )


def lines_above(options: IngestOptions, sample: Sequence[Line], signs: Sequence[str] = COMMENTS) -> Sequence[Line]:
    """The lines at the beginning that look like comments. There are none if all lines do, which are labels then."""
    if options.skip_lines is not None:
        return ()
    n = next((k for k, (_, text) in enumerate(sample) if not text.startswith(tuple(signs))), 0)
    return sample[:n]


def refuse_comment_or_edge(path: Path, above: Sequence[Line], is_edge: Callable[[str], bool]) -> None:
    """Refuse a line that begins like a comment, but without a blank behind the sign, if it may be an edge, too."""
    for place, text in above:
        if is_edge(text) and text.lstrip("#%/")[:1].strip():
            raise InputError(
                f"{path}, line {place}: {shorten(text)} may be a comment or an edge; "
                f"say --skip-lines {above[-1][0]} to leave it out, or --skip-lines 0 to read it"
            )


def as_edges(path: Path) -> str:
    """What to do with lines that have a vertex and its neighbours."""
    awk = f"awk -F '[: \\t]+' '{{for (i = 2; i <= NF; i++) print $1, $i}}' {shell.word(str(path))}"
    return f"make lines of edges if it has all neighbours of its first vertex: {awk} | bicliques count - --format snap"


def _header(
    path: Path,
    options: IngestOptions,
    above: Sequence[Line],
    body: Sequence[Line],
    rows: list[list[str]],
    delimiter: str,
) -> tuple[Line, list[str] | None]:
    """The line of the header, with its names. Without a header, the number of the first edge and an empty text."""
    number, text = body[0]
    has = has_header(options, rows)
    if above and (has is None or options.header is None or options.header):
        comment = above[-1][1]
        names = fields_of(comment.lstrip("#%/").strip(), delimiter)
        if len(names) == len(rows[0]) and has_names(options, [names, *rows]) and not are_usual(options, rows[0]):
            return above[-1], names
        if not has:
            refuse_comment_or_edge(path, above, lambda text: len(fields_of(text, delimiter)) == len(rows[0]))
    if has is None:
        columns = tuple(zip(*(row for row in rows if len(row) == len(rows[0])), strict=True))
        if cells_of([column[1:] for column in columns[1:]]) == "marks":
            return (number, text), rows[0]  # which is refused as a table with a column per vertex
        if len(rows[0]) > 2 and options.left is None and are_shared(columns):
            raise InputError(f"{path}, line {number}: {_baskets(delimiter, columns, None, number)}")
        raise InputError(
            f"{path}, line {number}: {shorten(text)} may be column names or an edge; say --header or --no-header"
        )
    return ((number, text), rows[0]) if has else ((number, ""), None)


def split_fields(line: str, delimiter: str, strict: bool = False) -> list[str]:
    """Columns of a line, without quotes.

    Raises
    ------
    csv.Error
        A quote is out of place, and `strict` is true.
    """
    if len(delimiter) > 1:
        return line.split(delimiter)
    before = csv.field_size_limit(LINE_BYTES)  # a limit of the whole process; the default is 128 KiB
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=strict))
    finally:
        csv.field_size_limit(before)


def fields_of(line: str, delimiter: str) -> list[str]:
    """Columns of a line, however its quotes are placed. None if they cannot be found."""
    try:
        return split_fields(line.removesuffix("\r"), delimiter)
    except csv.Error:
        return []


def shown_separator(delimiter: str) -> str:
    """A separator in words."""
    return _WORDS.get(delimiter, shorten(delimiter))


def separators_in(items: Iterable[str]) -> list[str]:
    """The separators that occur in items which were split at blanks."""
    text = "\n".join(items)
    return [separator for separator in _WITHIN if separator in text]


def option_of(delimiter: str) -> str:
    """The option that names a separator, for a shell."""
    return "--delimiter '\\t'" if delimiter == "\t" else f"--delimiter '{delimiter}'"


def find_delimiter(path: Path, body: Sequence[Line]) -> str:
    """The separator with which most lines have the same number of columns.

    Raises
    ------
    InputError
        All lines have several columns with either of two separators.
    """

    def agreeing(delimiter: str) -> int:
        counts = [len(fields_of(line, delimiter)) for _, line in body]
        usual = max(set(counts), key=counts.count)
        return counts.count(usual) if usual > 1 else 0

    agree = {delimiter: agreeing(delimiter) for delimiter in _SEPARATORS}
    whole = [delimiter for delimiter in _SEPARATORS if agree[delimiter] == len(body) > 1]
    if len(whole) > 1:
        named = [d for d in whole if all(map(is_usual, fields_of(body[0][1], d)[:2]))]
        if len(named) == 1:
            return named[0]
        raise InputError(
            f"{path}, line {body[0][0]}: {' or '.join(map(shown_separator, whole))} may stand between the columns "
            f"({shorten(body[0][1])}); say {' or '.join(map(option_of, whole))}"
        )
    return max(_SEPARATORS, key=lambda delimiter: agree[delimiter])  # of equal ones, the first


def _one_column(text: str, format: str) -> str:
    """What to do with a line of one column."""
    if text.strip() == "B":
        return "say --format cxt if this is a context of Burmeister"
    if "::" in text:
        return f"name the separator with {option_of('::')}"
    if format == "tsv" and any(separator in text for separator in (",", ";", "|")):
        return "say --format csv"
    if text.strip().replace("\t", " ").count(" "):
        return "say --format snap if blanks stand between the columns, or name the separator with --delimiter"
    return "name the character between columns with --delimiter, or another --format (`bicliques look` shows the lines)"


def _refuse_title(path: Path, body: Sequence[Line], rows: list[list[str]]) -> None:
    """Refuse first lines that have another number of columns than all others, which agree."""
    counts = [len(row) for row in rows]
    usual = max(set(counts), key=counts.count)
    first = next(k for k, count in enumerate(counts) if count == usual)
    if first and usual > 1 and all(count == usual for count in counts[first:]) and len(counts) - first > 1:
        names = first == 1 and counts[0] > 1 and all(map(is_usual, rows[0]))
        remedy = f"leave it out with --skip-lines {body[first][0] - 1}, or mend it"
        raise InputError(
            f"{path}, line {body[0][0]}: {counts[0]} {'column' if counts[0] == 1 else 'columns'} where the lines below "
            f"have {usual} ({shorten(body[0][1])}); {'give a name to every column' if names else remedy}"
        )


def _row_numbers(names: Sequence[str] | None, column: Sequence[str]) -> str | None:
    """The objection that the first column only numbers the rows, as the index of a frame does."""
    numbers = [int(text) if text.isascii() and text.isdigit() else -1 for text in column]
    if len(numbers) < _NUMBERED_ROWS or numbers[0] not in (0, 1) or any(b != a + 1 for a, b in pairwise(numbers)):
        return None
    left, right = map(shell.word, names[1:3]) if names and names[1].strip() else ("1", "2")
    return (
        f"the first column only numbers the rows; say --left {left} --right {right} if these are the sides, "
        "or --left 0 --right 1 if the first one is a side"
    )


def are_numbered(names: Sequence[object] | None) -> bool:
    """Whether columns have no names of their own, but at most numbers behind one word."""
    return len({str(name).rstrip("0123456789") for name in names or ("",)}) == 1


def _baskets(delimiter: str, each: Sequence[Sequence[str]], names: Sequence[str] | None, top: int) -> str | None:
    """The objection that several columns without names may be the items of transactions."""
    if not are_shared(each) and (names or len(each) <= MOST_COLUMNS):
        return None
    skip = f" --skip-lines {top}" if names else ""
    return (
        f"{len(each)} columns without names may be the items of a transaction, or the two sides and more; "
        f"say --format fimi {option_of(delimiter)}{skip} if they are, or "
        "--left 0 --right 1 if the first two are the sides"
    )


def are_shared(each: Sequence[Sequence[str]]) -> bool:
    """Whether columns of words share some, or the last one is empty in some rows, as of lists that are padded."""
    while len(each) > 2 and not any(cell.strip() for cell in each[-1]):
        each = each[:-1]  # separators at the ends of all lines
    texts = [{text for text in column if text.strip() and not is_number(text)} for column in each]
    is_padded = len(each) > 2 and any(texts) and any(not cell.strip() for cell in each[-1])
    return is_padded or any(texts[k] & (texts[0] | texts[1]) for k in range(2, len(each)))
