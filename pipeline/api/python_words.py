"""Sentences in the words of Python. They are written in those of the shell; see `schemas.errors.spoken`."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache

from bicliques.pipeline.process import shell

#: How a sentence says how to go on; the path is quoted for a shell.
_RESUME = re.compile(rf"bicliques resume ((?:{shell.PATTERN}|[^\s;,'\"])+)( --max-results none)?")
#: Another command. The sentence has named the runs before.
_VERIFY = re.compile(r"with: bicliques verify\b")
#: Two columns that are named or numbered.
_COLUMNS = re.compile(rf"--left (?!and\b|or\b)((?:{shell.PATTERN}|[^\s,;])+) --right ((?:{shell.PATTERN}|[^\s,;])+)")
#: A switch that is to be on or off.
_EITHER = re.compile(r"--([a-z]+) or --no-\1\b")
#: An option, and what may be its value. No option stands in quotes: that is a label.
_OPTION = re.compile(r"(?<![\w'\"-])(with )?--(no-)?([a-z]+(?:-[a-z]+)*)(?: ([a-z]+(?:-[a-z]+)*\b|\d+\b|'[^']*'))?")
#: Two keywords that were options behind one another.
_TWO = re.compile(r"(?<==)('[^']*'|\w+) (?=[a-z_]+=)")


def in_python(sentence: str) -> str:
    """The sentence of an error with keywords in place of options, and calls in place of commands.

    Examples
    --------
    >>> in_python("x.csv, line 3: too few columns; leave such lines out with --skip-bad-lines")
    'x.csv, line 3: too few columns; leave such lines out with skip_bad_lines=True'
    >>> in_python("OUT is not complete; continue with: bicliques resume OUT --max-results none")
    "OUT is not complete; continue with: bicliques.resume('OUT', max_results=None)"
    """
    sentence = _RESUME.sub(_call, sentence)
    sentence = _VERIFY.sub("with: bicliques.verify", sentence)
    sentence = _EITHER.sub(r"\1=True or \1=False", sentence)
    sentence = _COLUMNS.sub(lambda found: f"left={_column(found[1])}, right={_column(found[2])}", sentence)
    return _TWO.sub(r"\1, ", _OPTION.sub(_keyword, sentence))


def _call(found: re.Match[str]) -> str:
    return f"bicliques.resume({shell.read(found[1])!r}{', max_results=None' if found[2] else ''})"


def _column(text: str) -> str:
    word = shell.read(text)
    return word if word.isdecimal() else repr(word)


@cache
def _options() -> dict[str, tuple[bool, tuple[str, ...]]]:
    """For every option: whether it is a switch, and its words. Those of `bicliques.generate` are not in the table."""
    from bicliques.pipeline.api.table import TABLE
    from bicliques.pipeline.ingest.readers import formats
    from bicliques.pipeline.synthetic.wanted import Wanted

    found: dict[str, tuple[bool, tuple[str, ...]]]
    found = {name: (False, ()) for name in (*(each.name for each in fields(Wanted)), "part_edges", "threads")}
    found |= {entry.name: (entry.is_switch, entry.choices or ()) for entry in TABLE}
    found["format"] = (False, tuple(format.name for format in formats()))
    return {name.replace("_", "-"): told for name, told in found.items()}


def _keyword(found: re.Match[str]) -> str:
    before, no, name, value = found[1] or "", found[2], found[3], found[4]
    if name not in _options():
        return found[0]
    is_switch, choices = _options()[name]
    keyword, rest = name.replace("-", "_"), f" {value}" if value is not None else ""
    if no:
        return f"{before}{keyword}=False{rest}"
    if value == "none":
        return f"{before}{keyword}=None"
    if value is not None and (value in choices or value.isdecimal() or value[0] == "'"):
        return f"{before}{keyword}={repr(value) if value in choices else value}"
    return f"{before}{keyword}{'=True' if is_switch and before else ''}{rest}"
