"""The exceptions that a user can meet.

    BicliqueError               every error this project raises on purpose
    +-- InputError              the data or the options are wrong (CLI exit code 2)
    |   +-- UnknownIdError      no biclique has the id; it is a KeyError, too
    +-- ResourceError           memory, disk or device is too small, or missing (exit code 1)
    |   +-- DeviceMemoryError   a GPU has too little memory; the engine can ask for less
    +-- IncompleteError         a run's files do not agree with one another (exit code 1)

A message is one sentence that names the thing, the number and the remedy. Options, calls and commands in it stand
there in the words of a shell and of Python (`in_both`), until it is said to somebody.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

#: Who reads the sentences of a process: "python" has keywords and calls, and "shell" options and commands.
Voice = Literal["python", "shell"]

_voice: Voice = "python"
#: What stands around the words of `in_both` until a sentence is said. No text has these, which are no characters.
_BEGIN, _NEXT, _END = _MARKS = "\ufdd0\ufdd1\ufdd2"
_PART = f"([^{_MARKS}]*)"
_BOTH = re.compile(f"{_BEGIN}{_PART}{_NEXT}{_PART}{_NEXT}{_PART}{_END}")
#: Escapes of a shell with a name of their own.
_NAMED = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\\": r"\\", "'": r"\'"}
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


def in_both(shell: str, python: str, name: str = "") -> str:
    """A part of a sentence that a shell and Python have other words for. `spoken` and `written` choose.

    Parameters
    ----------
    name : str
        The keyword of the option that it names, if it names one.
    """
    return f"{_BEGIN}{name}{_NEXT}{shell}{_NEXT}{python}{_END}"


def as_option(name: str, *value: object) -> str:
    """An option in a sentence, by its keyword, with its value if there is one.

    A switch has True or False, and an option of several values a list.
    """
    if not value:
        return in_both(flag(name), name, name)
    (given,) = value
    word = flag(f"no_{name}" if given is False else name)
    if given is not True and given is not False:
        values = ["none" if given is None else given] if not isinstance(given, list) else given
        word = " ".join([word, *(as_word(str(each)) for each in values)])
    return in_both(word, f"{name}={given!r}", name)


def flag(name: str) -> str:
    """The option of the command line for a keyword."""
    return f"--{name.replace('_', '-')}"


def as_options(*options: str) -> str:
    """Options that are given together."""
    return in_both(" ", ", ").join(options)


def as_word(text: str) -> str:
    r"""A text as one word of a shell, printable in one line, so that what people paste is the very text.

    A word with characters that cannot be printed is written as ``$'a\nb'``, which bash, ksh and zsh know, and POSIX
    since 2024. Bytes that are no UTF-8 are kept.

    Examples
    --------
    >>> print(as_word("OUT"), as_word("it's"), as_word("a b\n"))
    OUT 'it'"'"'s' $'a b\n'
    """
    if text.isprintable():
        return shlex.quote(text)
    return f"$'{''.join(map(_escaped, text))}'"


def _escaped(mark: str) -> str:
    if mark in _NAMED:
        return _NAMED[mark]
    if mark.isprintable():
        return mark
    return "".join(rf"\{byte:03o}" for byte in mark.encode("utf-8", "surrogateescape"))


def spoken(sentence: str) -> str:
    """A sentence in the words of this process."""
    return _BOTH.sub(r"\2" if _voice == "shell" else r"\3", sentence)


def written(sentence: str) -> str:
    """A sentence as records have it, in the words of the shell."""
    return _BOTH.sub(r"\2", sentence)


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
    has the name as `as_word` writes it.
    """

    def __str__(self) -> str:
        return in_one_line(spoken(self.marked))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    @property
    def written(self) -> str:
        """The sentence as records have it."""
        return in_one_line(written(self.marked))

    @property
    def marked(self) -> str:
        """The sentence with its options in both voices; see `in_both`."""
        return Exception.__str__(self)

    @property
    def options(self) -> set[str]:
        """Keywords of the options that the sentence names."""
        return {name for name, _, _ in _BOTH.findall(self.marked) if name}


@contextmanager
def renaming(names: Mapping[Path, str]) -> Iterator[None]:
    """Let the errors of the block say how people call copies, by their paths. The block may add some to `names`."""
    try:
        yield
    except BicliqueError as error:
        for path, name in names.items():
            error.args = (error.marked.replace(str(path), name),)
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
