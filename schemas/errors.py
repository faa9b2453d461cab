"""The exceptions that a user can meet.

    BicliqueError               every error this project raises on purpose
    +-- InputError              the data or the options are wrong (CLI exit code 2)
    |   +-- UnknownIdError      no biclique has the id; it is a KeyError, too
    +-- ResourceError           memory, disk or device is too small, or missing (exit code 1)
    |   +-- DeviceMemoryError   a GPU has too little memory; the engine can ask for less
    +-- IncompleteError         a run's files do not agree with one another (exit code 1)

A message is one sentence that names the thing, the number and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Literal

#: Who reads the sentences of a process: "python" has keywords and calls, and "shell" options and commands.
Voice = Literal["python", "shell"]

_voice: Voice = "python"
#: What people call folders that they do not know, by their paths.
_names: dict[str, str] = {}


@contextmanager
def speaking(voice: Voice) -> Iterator[None]:
    """Say all sentences of this process in the words of `voice`, until the block ends."""
    global _voice
    before, _voice = _voice, voice
    try:
        yield
    finally:
        _voice = before


def spoken(sentence: str) -> str:
    """A sentence in the words of this process. All are written in those of the shell, and stored so."""
    if _voice == "shell":
        return sentence
    # by name, because schemas import from no room above them
    return str(import_module("bicliques.pipeline.api.python_words").in_python(sentence))


def called(folder: str, name: str) -> None:
    """From now on sentences about data say `name` in the place of the path of a folder."""
    _names[folder] = name


def said(text: str) -> str:
    """A sentence with the names that people know; see `called`."""
    for folder, name in _names.items():
        text = text.replace(folder, name)
    return text


def on_terminal(text: str) -> str:
    """A text as people see it: its lines, in which a record, a file or an argument of a command moves no cursor."""
    return "\n".join(map(in_one_line, text.split("\n")))


def in_one_line(text: str) -> str:
    """A text in which what breaks a line or cannot be printed, as an escape sequence, is written as an escape."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in text)


class BicliqueError(Exception):
    """Base of every error raised on purpose. What breaks a line or cannot be printed is written as an escape.

    So a sentence is one line, on a terminal, in a log and on a page, whatever the names of files in it are. A byte of a
    name that is no UTF-8 could not even be sent to a server. A command in a sentence, which people paste into a shell,
    has the name as `pipeline.process.shell.word` writes it.
    """

    def __init__(self, *args: object):
        super().__init__(*(in_one_line(each) if isinstance(each, str) else each for each in args))

    def __str__(self) -> str:
        return spoken(self.written)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    @property
    def written(self) -> str:
        """The sentence as records have it, in the words of the shell."""
        return Exception.__str__(self)


@contextmanager
def renaming(names: Mapping[Path, str]) -> Iterator[None]:
    """Let the errors of the block say how people call copies, by their paths. The block may add some to `names`."""
    try:
        yield
    except BicliqueError as error:
        for path, name in names.items():
            error.args = (error.written.replace(str(path), in_one_line(name)),)
        raise


class _OfDataError(BicliqueError):
    """Names folders as people do. Errors of the machine do not: where a disk is full, its folder has to be named."""

    def __init__(self, *args: object):
        super().__init__(*(said(each) if isinstance(each, str) else each for each in args))


class InputError(_OfDataError):
    """The input or an option is wrong. Nothing was written."""


class UnknownIdError(InputError, KeyError):
    """A run has no biclique with this id."""


class ResourceError(BicliqueError):
    """Memory, disk or a device is too small, or missing."""


class DeviceMemoryError(ResourceError):
    """A device has less memory than was asked for. An engine with smaller buffers may fit."""


class IncompleteError(_OfDataError):
    """The files of a run are missing, damaged or contradict each other."""
