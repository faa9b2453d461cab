"""What the sentence of a refusal offers: options, Python and commands, to be followed literally."""

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

import bicliques as bq
from bicliques.schemas.errors import InputError

#: Options without a value, and what they mean.
_SWITCHES: dict[str, tuple[str, Any]] = {
    "--header": ("header", True),
    "--no-header": ("header", False),
    "--skip-bad-lines": ("skip_bad_lines", True),
}
#: Options with a value, and the values that are not a word of the sentence.
_VALUES = {
    "--format": r"konect|snap|csv|tsv|matrix-market|fimi|adjacency|parquet|arrow|table|cxt",
    "--label-type": "auto|int|string",
    "--skip-lines": r"\d+",
    "--delimiter": r"\W+|\\t",
    "--min-weight": r"[\d.]+",
    "--left": r"(?!and$|or$).+",
    "--right": r"(?!and$|or$).+",
    "--weight": r"(?!and$|or$).+",
}
#: An option in the words of Python.
_KEYWORD = re.compile(r"""(?<![\w.(])([a-z_]+)=('[^']*'|"[^"]*"|True|False|\d+(?:\.\d+)?)""")
_QUOTED = re.compile(r"""(?<!\w)(['"`])(?:(?!\1).)*\1(?!\w)""")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_COMMAND = re.compile(
    r"\b(?:unzip|cut|sed|tail|grep|iconv|tr|awk)\b.*?\| *bicliques \w+ -(?: --[a-z-]+(?: [^\s`;),]+)?)*"
)
_CODE = re.compile(r"(?<![\w.'])(?:bq|bicliques|pandas|pd|frame|table)(?=[.\[(]| [><])")


@dataclass(frozen=True)
class Advice:
    """One thing that a sentence offers.

    Parameters
    ----------
    text : str
        The part of the sentence.
    options : dict
        Options to add to those that were given.
    code : str
        Instead of options: Python that makes a source, or counts. `frame` and `table` are the source.
    command : str
        Instead of options: a line for the shell that pipes something into `bicliques`.
    """

    text: str
    options: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    command: str = ""

    def applied(self, source: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The source and the options of somebody who follows it.

        Raises
        ------
        InputError
            The call refuses, or needs a frame and the source is a file.
        """
        if not self.code:
            return source, {**options, **self.options}
        names: dict[str, Any] = {"bq": bq, "bicliques": bq, "pandas": pd, "pd": pd}
        if not isinstance(source, str | Path):
            names |= {"frame": source, "table": source}
        try:
            return eval(self.code, names), options
        except (ArithmeticError, AttributeError, LookupError, NameError, OSError, TypeError, ValueError) as error:
            raise InputError(f"{self.code} cannot be followed literally ({error})") from error


def advised(sentence: str) -> Iterator[Advice]:
    """What is offered behind the first semicolon, in order. Alternatives are parted by "; ", ", or " and " or "."""
    bare = _QUOTED.sub(lambda found: "\0" * len(found[0]), sentence)
    start = bare.find("; ") + 1
    cuts = [found.span() for found in re.finditer(r"; |, or | or (?=[^,;]*(?:--|bq\.|frame|[a-z]=))", bare[start:])]
    begins = [start, *(start + end for _, end in cuts)]
    ends = [*(start + begin for begin, _ in cuts), len(sentence)]
    if not start:
        return
    for begin, end in zip(begins, ends, strict=True):
        yield from _among(sentence[begin:end].strip())


def _among(part: str) -> Iterator[Advice]:
    if command := _COMMAND.search(part):
        yield Advice(part, command=command[0])
        return
    if code := _code(part):
        yield Advice(part, code=code)
        return
    options: dict[str, Any] = {}
    for found in _OPTION.finditer(part):
        name, rest = found[0], part[found.end() :]
        if name in _SWITCHES:
            key, value = _SWITCHES[name]
            options[key] = value
        elif name in _VALUES:
            word = _word(rest)
            if word is None or not re.fullmatch(_VALUES[name], word):
                return  # it says where to put a value, and not which
            word = "\t" if word == r"\t" else word
            options[name[2:].replace("-", "_")] = int(word) if word.isdecimal() and name != "--delimiter" else word
        else:
            return
    options |= {name: ast.literal_eval(value) for name, value in _KEYWORD.findall(part)}
    if "min_weight" in options:
        options["min_weight"] = float(options["min_weight"])
    if options and "look" not in part.split():
        yield Advice(part, options)


def _word(rest: str) -> str | None:
    """The value of an option: the next word, as a shell takes it."""
    if rest[:1] not in (" ", "="):
        return None
    quoted = re.match(r"""[ =]('[^']*'|"[^"]*"|\S+)""", rest)
    if quoted is None:
        return None
    word = quoted[1]
    if word[0] in "'\"":
        return shlex.split(word)[0]
    if re.fullmatch(r"\W+", word):  # a delimiter, and what ends the clause
        return re.sub(r"(?<=.)[,)`]+$", "", word)
    return word.rstrip(",):`")


def _code(part: str) -> str:
    """The longest piece of Python that begins with one of our names, or with `frame`."""
    for found in _CODE.finditer(part):
        for end in range(len(part), found.end(), -1):
            try:
                tree = ast.parse(part[found.start() : end].strip(), mode="eval")
            except SyntaxError:
                continue
            if not isinstance(tree.body, ast.Name | ast.Tuple | ast.BoolOp):
                return part[found.start() : end].strip()
    return ""
