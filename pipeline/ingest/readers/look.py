"""What the first lines of a text file show: what stands above the edges, the separator, names of columns.

Where the lines allow two readings, the file is refused and the sentence names the option of each.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from bicliques.pipeline.ingest.readers.base import shorten
from bicliques.pipeline.ingest.readers.blocks import LINE_BYTES, numbered_lines
from bicliques.pipeline.ingest.readers.columns import is_usual
from bicliques.schemas.errors import InputError, as_option, as_word, in_both
from bicliques.schemas.options import IngestOptions

#: Number and text of a line.
Line = tuple[int, str]

#: Separators of columns in order of preference. A blank is not among them, because it is too often part of a label.
_SEPARATORS = (",", "\t", ";", "|")
_WORDS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", " ": "blanks"}
#: What separates items that stand in one field, if the field was split at blanks.
_WITHIN = ("::", ",", ";", "|")

#: What a line that is read as a wrong format may need.
ANOTHER_FORMAT = f"another {as_option('format')} (`bicliques look` shows the lines)"
#: How lines begin that are no edges, above a header or the first edge.
_COMMENTS = ("#", "%", "//")
#: What stands for a missing value. It is neither a number nor a name.
_MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "-", "?", ".", "\\n"))

#: Most lines, and about as many bytes, that are looked at.
_SAMPLE_LINES, HEAD_BYTES = 100, 1 << 20
#: Most columns of a list of edges: left, right, weight, time. Of more columns without names none are guessed.
MOST_COLUMNS = 4


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


def lines_above(options: IngestOptions, sample: Sequence[Line]) -> Sequence[Line]:
    """The lines at the beginning that look like comments. There are none if all lines do, which are labels then."""
    if options.skip_lines is not None:
        return ()
    return sample[: next((k for k, (_, text) in enumerate(sample) if not text.startswith(_COMMENTS)), 0)]


def may_be(path: Path, line: Line, what: str, last: int | None = None) -> InputError:
    """The error for a line that may be an edge or something else, to which all lines up to `last` belong then."""
    return InputError(
        f"{path}, line {line[0]}: {shorten(line[1])} may be {what}; say {as_option('skip_lines', last or line[0])} to "
        f"leave it out, or {as_option('skip_lines', 0)} to read it"
    )


def refuse_comment_or_edge(path: Path, above: Sequence[Line], is_edge: Callable[[str], bool]) -> None:
    """Refuse a line that begins like a comment, but without a blank behind the sign, if it may be an edge, too."""
    for line in above:
        if is_edge(line[1]) and line[1].lstrip("#%/")[:1].strip():
            raise may_be(path, line, "a comment or an edge", above[-1][0])


def as_edges(path: Path) -> str:
    """What to do with lines that have a vertex and its neighbours."""
    awk = f"awk -F '[: \\t]+' '{{for (i = 2; i <= NF; i++) print $1, $i}}' {as_word(str(path))}"
    return f"make lines of edges if it has all neighbours of its first vertex: {awk} | bicliques count - --format snap"


def split_fields(line: str, delimiter: str, strict: bool = False) -> list[str]:
    """Columns of a line, without quotes. csv.Error: a quote is out of place, and `strict` is true."""
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
    """The option that names a separator."""
    quoted = "'\\t'" if delimiter == "\t" else f"'{delimiter}'"
    return in_both(f"--delimiter {quoted}", f"delimiter={quoted}", "delimiter")


def find_delimiter(path: Path, body: Sequence[Line]) -> str:
    """The separator with which most lines have the same number of columns. Two with which all have are refused."""

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


def _chosen(options: IngestOptions, row: Sequence[str]) -> list[int]:
    columns = (0, 1) if options.left is None or options.right is None else (options.left, options.right)
    return [k for k in columns if isinstance(k, int) and k < len(row)]


def are_usual(options: IngestOptions, row: Sequence[str]) -> bool:
    """Whether a row has usual names in the two columns that are read."""
    return all(is_usual(row[k]) for k in _chosen(options, row))


def has_names(options: IngestOptions, rows: Sequence[Sequence[str]]) -> bool | None:
    """Whether the first row has the names of the columns, by the two columns that are read. None: it may have.

    Usual names win. A label is not empty, so a row that begins with an empty one has names, as pandas writes an index.
    A word above numbers is a name, unless the other column has numbers only; a number above words may be one. Where
    the two columns have words only, a name above numbers in another column says it, and a word that comes again below
    is a label.
    """
    first, rest = list(rows[0]), [row for row in rows[1:] if list(row) != list(rows[0])]
    chosen = _chosen(options, first)
    if are_usual(options, first):
        return True
    below = [[row[k] for row in rest if k < len(row)] for k in range(len(first))]
    filled = [[cell for cell in column if cell.strip()] for column in below]
    blank = [k for k in chosen if not first[k].strip()]
    is_alone = len(rest) == len(rows) - 1 and not any({*first} - {""} & {*column} for column in below)
    if blank == [0] and is_alone and all(label.strip() for label in below[0]):
        return True
    over_numbers = [2 * sum(map(is_number, column)) > len(column) for column in filled]
    numbers = [is_number(field) for field in first]
    named = [not numbers[k] and over_numbers[k] and first[k].strip().lower() not in _MISSING for k in range(len(first))]
    if any(named[k] for k in chosen):
        labels = [k for k in chosen if numbers[k] and over_numbers[k]]
        return (False if any(first[k] in below[k] for k in labels) else None) if labels else True
    if any(numbers[k] for k in chosen):
        is_like_below = all(numbers[k] == over_numbers[k] for k in chosen) or not rest
        are_positions = first == [str(k) for k in range(len(first))] and len(rest) == len(rows) - 1
        return None if not is_like_below or are_positions or any(is_usual(first[k]) for k in chosen) else False
    if any(named):
        return True
    if len(rest) < len(rows) - 1:
        return None  # a header that is repeated, or an edge
    return False if any(first[k] in below[k] for k in chosen) else None


def number_in(text: str) -> float | None:
    """The number that a text is, which may be infinite or NaN."""
    try:
        return float(text)
    except ValueError:
        return None


def is_number(text: str) -> bool:
    """Whether a text is a number in digits."""
    return number_in(text) is not None and any(character.isdigit() for character in text)


def are_numbered(names: Sequence[object] | None) -> bool:
    """Whether columns have no names of their own, but at most numbers behind one word."""
    return len({str(name).rstrip("0123456789") for name in names or ("",)}) == 1


def are_shared(each: Sequence[Sequence[str]]) -> bool:
    """Whether columns of words share some, or the last one is empty in some rows, as of lists that are padded."""
    while len(each) > 2 and not any(cell.strip() for cell in each[-1]):
        each = each[:-1]  # separators at the ends of all lines
    texts = [{text for text in column if text.strip() and not is_number(text)} for column in each]
    is_padded = len(each) > 2 and any(texts) and any(not cell.strip() for cell in each[-1])
    return is_padded or any(texts[k] & (texts[0] | texts[1]) for k in range(2, len(each)))
