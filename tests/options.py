"""docs/options.md, which is made from the table of options.

    python -m tests.options --write

writes it anew; run it after a change of the table. A test compares them.
"""

import argparse
from pathlib import Path

from bicliques.pipeline.api.table import TABLE, Entry
from bicliques.pipeline.cli.options import word
from bicliques.schemas.option import GROUPS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "options.md"

_INTRO = """# Options

Every option that a run has, and where it can be given: to the commands `bicliques mine`, `largest`, `count`,
`cliques`, `diff`, `look`, `resume` and `demo`, to `mine --dry-run` (from Python, `bicliques.dry_run`), and to the
[flow](operations.md) `mine`. From Python they are keywords with underscores, `bicliques.mine(..., min_left=3)`, and
seconds may be a `datetime.timedelta`. Limits of `resume` stay as they were unless they are given, and the word `none`
lifts one (from Python, `None`). The flow takes them in groups, which the headings name: `thresholds={"min_left": 3}`.
Commands also take them from the environment and from a file:
[install.md](install.md#options-that-are-always-the-same).

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


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser("python -m tests.options", description=__doc__)
    parser.add_argument("--write", action="store_true", required=True, help="docs/options.md")
    parser.parse_args()
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
