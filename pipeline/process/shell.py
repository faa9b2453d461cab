r"""Words of a command that people paste into a shell.

A word with characters that cannot be printed is written as ``$'a\nb'``, which bash, ksh and zsh know, and POSIX since
2024. So a sentence with it is one line, and what is pasted is the very name, also if its bytes are no UTF-8.
"""

from __future__ import annotations

import re
import shlex

#: A part of what `word` returns that is in quotes.
PATTERN = r"\$'(?:[^'\\]|\\.)*'|'[^']*'|\"'\""
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")
#: Escapes with a name of their own.
_NAMED = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\\": r"\\", "'": r"\'"}
_NAMES = {said[1]: mark for mark, said in _NAMED.items()}


def word(text: str) -> str:
    r"""A text as one word of a shell, printable in one line.

    Examples
    --------
    >>> print(word("OUT"), word("it's"), word("a b\n"))
    OUT 'it'"'"'s' $'a b\n'
    """
    if text.isprintable():
        return shlex.quote(text)
    return f"$'{''.join(map(_escaped, text))}'"


def read(quoted: str) -> str:
    """The text of a `word`."""
    if not quoted.startswith("$'"):
        (text,) = shlex.split(quoted)
        return text
    found = _ESCAPE.sub(
        lambda escape: _NAMES.get(escape[1]) or bytes([int(escape[1], 8)]).decode("ascii", "surrogateescape"),
        quoted[2:-1],
    )
    return found.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def _escaped(mark: str) -> str:
    if mark in _NAMED:
        return _NAMED[mark]
    if mark.isprintable():
        return mark
    return "".join(rf"\{byte:03o}" for byte in mark.encode("utf-8", "surrogateescape"))
