"""Labels of the vertices that every biclique is to contain. Imports no library, as `schemas.search`."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from bicliques.schemas.errors import InputError

#: A label of a vertex: text or a whole number. Text may stand for a number, because the command line has only text.
Label = str | int
Labels = Sequence[str | int]

#: Labels that a sentence names, and characters that it shows of one.
_NAMED, _SHOWN = 3, 40


def as_labels(name: str, given: object) -> tuple[Label, ...]:
    """Labels that a user gave, each once, in an order that does not depend on theirs.

    Parameters
    ----------
    name : str
        Name of the option, for the error sentence.
    given : object
        One label, or an iterable of labels. NumPy's whole numbers and text are labels, too.

    Raises
    ------
    InputError
        If something is no label.
    """
    if isinstance(given, (bytes, dict)) or not isinstance(given, (str, int, Iterable)):
        raise InputError(f"{name} must be labels, text or whole numbers, not {given!r} ({type(given).__name__})")
    several = [given] if isinstance(given, (str, int)) else list(given)
    labels = {_as_label(name, label) for label in several}
    return tuple(sorted(labels, key=lambda label: (isinstance(label, str), label)))


def _as_label(name: str, given: object) -> Label:
    if isinstance(given, str):
        try:
            given.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{name} has the label {given!r}, which is not UTF-8; give it as UTF-8") from error
        return str(given)
    try:
        if isinstance(given, bool):
            raise TypeError
        return operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(
            f"{name} must be labels, text or whole numbers, not {given!r} ({type(given).__name__})"
        ) from None


def label_words(labels: Labels) -> str:
    """The labels in a sentence, as "'ann', 'bob' and 3 more"."""
    shown = [_short(label) for label in labels[:_NAMED]]
    more = len(labels) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more:,} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _short(label: Label) -> str:
    if isinstance(label, int) or len(label) <= _SHOWN:
        return repr(label)
    return f"{label[:_SHOWN]!r} ..."
