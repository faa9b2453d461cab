"""What is made from the table of options: docs/options.md, and the keywords of the Python calls.

    python -m tests.options --write

writes both anew; run it after a change of the table, and ``ruff format`` after it. Tests compare them with the table.
"""

from __future__ import annotations

import argparse
import ast
from pathlib import Path

from pipeline.api.table import AS_BEFORE, TABLE, Entry, entries_of
from pipeline.cli.options import word
from schemas.option import GROUPS, Call

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "options.md"

#: The Python calls, and where they are.
CALLS: dict[Call, Path] = {
    "mine": ROOT / "pipeline" / "api" / "runs.py",
    "largest": ROOT / "pipeline" / "api" / "runs.py",
    "count": ROOT / "pipeline" / "api" / "counting.py",
    "resume": ROOT / "pipeline" / "api" / "runs.py",
    "look": ROOT / "pipeline" / "api" / "looking.py",
    "dry_run": ROOT / "pipeline" / "api" / "dry_running.py",
}

_INTRO = """# Options

Every option that a run has, and where it can be given: to the commands `bicliques mine`, `largest`, `count`, `look`,
`resume` and `demo`, to `mine --dry-run` (from Python, `pipeline.dry_run`), and to the [flow](operations.md) `mine`.
From Python they are keywords with underscores, `pipeline.mine(..., min_left=3)`, and seconds may be a
`datetime.timedelta`. Limits of `resume` stay as they were unless they are given, and the word `none` lifts one (from
Python, `None`). The flow takes them in groups, which the headings name: `thresholds={"min_left": 3}`. Commands also
take them from the environment and from a file: [install.md](install.md#options-that-are-always-the-same).

This page is made from the fields of the records in `schemas/options.py`, `schemas/search.py` and
`pipeline/workers/options.py`, by `python -m tests.options --write`.
"""


def page() -> str:
    """The page of all options."""
    parts = [_INTRO]
    for key, group in GROUPS.items():
        rows = [_row(entry) for entry in TABLE if entry.told.group == key]
        head = "| option | default | what it is | given to |\n|---|---|---|---|"
        parts.append(f"## `{key}`\n\n{group.help}\n\n{head}\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _row(entry: Entry) -> str:
    calls = entry.told.on
    value = "" if entry.is_switch else f" {'/'.join(entry.choices) if entry.choices else entry.told.metavar or ''}"
    whats = [entry.help_on(calls[0]), *(f"`{call}`: {words}" for call, words in entry.told.words.items())]
    default = entry.otherwise_on(calls[0]) or ("yes" if entry.default else "no")
    places = ", ".join("`mine --dry-run`" if call == "dry_run" else f"`{call}`" for call in calls)
    cells = (f"`{word(entry)}{value.rstrip()}`", default, "; ".join(whats), places)
    return f"| {' | '.join(cells)} |"


def keywords(call: Call) -> list[str]:
    """The lines of a call's signature that the table says."""
    return [_keyword(entry, call) for entry in entries_of(call)]


def _keyword(entry: Entry, call: Call) -> str:
    default = entry.default_on(call)
    if default == AS_BEFORE:
        kinds = entry.annotation.removesuffix(" | None")
        return f'    {entry.name}: {kinds} | Literal["{AS_BEFORE}"] | None = AS_BEFORE,'
    value = f'"{default}"' if isinstance(default, str) else repr(default)
    return f"    {entry.name}: {entry.annotation} = {value},"


def with_keywords(source: str, call: Call) -> str:
    """The text of a module in which the signature of `call` is as the table says."""
    (function,) = (each for each in ast.parse(source).body if isinstance(each, ast.FunctionDef) and each.name == call)
    assert function.returns is not None
    end = next((each.lineno for each in function.args.kwonlyargs if each.arg == "progress"), function.returns.lineno)
    lines = source.splitlines(keepends=True)
    lines[function.args.kwonlyargs[0].lineno - 1 : end - 1] = [f"{line}\n" for line in keywords(call)]
    return "".join(lines)


def main() -> None:
    """Write the page and the keywords."""
    parser = argparse.ArgumentParser("python -m tests.options", description=__doc__)
    parser.add_argument("--write", action="store_true", required=True, help="docs/options.md and the Python calls")
    parser.parse_args()
    PAGE.write_text(page())
    for call, file in CALLS.items():
        file.write_text(with_keywords(file.read_text(), call))


if __name__ == "__main__":
    main()
