"""Publishes what a run found as Prefect artifacts: a few short tables, with no more than a few bicliques.

Text from files is shown as it is, because everything in it that would be Markdown is escaped.
Prefect's page takes what it shows of an artifact for Markdown: descriptions, and Markdown artifacts. So a label would
be a link, a picture or a line of HTML there, or would end the cell that it is in.

Of a table artifact the first version of the page takes every cell for Markdown, and the second version none. No text is
shown alike by both: the second shows backslashes, and both show references such as ``&#42;``. So text from files is in
tables of Markdown artifacts, which both show as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import pyarrow as pa
from prefect.artifacts import create_markdown_artifact, create_table_artifact

from bicliques.flows.names import Keys
from bicliques.pipeline.cli import cards
from bicliques.pipeline.compare.difference import Difference
from bicliques.pipeline.proof.verification import Verification
from bicliques.pipeline.results.listing import cut, shortened, shown
from bicliques.pipeline.results.results import Results
from bicliques.pipeline.rows.printable import pairs_of
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.store import shown_address, store_at
from bicliques.schemas.search import By

_LARGEST = 10
#: What begins something in Markdown.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|&~=-])|(:(?=//)|(?<=\bwww)\.|@)", re.IGNORECASE)
#: Columns of a text in a table of rows, of which so many are in a line.
_TEXT_WIDTH, _LINE_WIDTH = 80, 40
#: What begins a list at the beginning of a line.
_NUMBERED = re.compile(r"^(\d+)\.")
#: Columns of a list of members.
_MEMBERS = 150
#: Largest number of characters in a line on Prefect's page, for a value of the card and for a list of members.
_CARD_WIDTH, _LIST_WIDTH = 72, 30
_TOPS: dict[By, tuple[str, str]] = {
    "edges": ("largest", "The largest bicliques of"),
    "balance": ("balanced", "The bicliques with the largest smaller side of"),
}


def publish_run(results: Results, keys: Keys, page: Path | None = None, url: str | None = None) -> None:
    """Publish the run card. Of a complete run also its numbers, the shares of the workers and the largest bicliques.

    Parameters
    ----------
    keys : Keys
        The keys of the artifacts.
    page : Path or None
        The page of the run. If there is one, the labels that are in most bicliques are published, too.
    url : str or None
        Where there is a copy of the run for other programs. The card says so.
    """
    where = plain(store_at(results.path).shown())
    card = cards.run_card(results) + (f"\npublished: {shown(url)}" if url is not None else "")
    create_markdown_artifact(facts_of(card), key=keys.key("run-card"), description=where)
    if not results.complete:
        return
    manifest = results.manifest
    numbers = {"bicliques": manifest.count, **{name: manifest.input[name] for name in ("n_left", "n_right", "n_edges")}}
    numbers |= {"bytes": manifest.bytes, **{f"seconds: {step}": round(s, 3) for step, s in manifest.seconds.items()}}
    create_table_artifact(
        [{"name": name, "value": value} for name, value in numbers.items()],
        key=keys.key("numbers"),
        description=f"Bicliques, input, bytes written and seconds of each step of {where}",
    )
    if workers := manifest.mining["workers"]:
        text = table_of_rows([_worker(name, facts) for name, facts in workers.items()])
        words = f"Slices, bicliques and busy seconds of every worker of {where}"
        create_markdown_artifact(text, key=keys.key("workers"), description=words)
    if manifest.parts:
        for by, (key, words) in _TOPS.items():
            text = table_of(results.top(_LARGEST, by))
            create_markdown_artifact(text, key=keys.key(key), description=f"{words} {where}")
    if page is not None:
        _publish_page(results, where, keys)


def _worker(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    rounded = {key: round(value, 3) if isinstance(value, float) else value for key, value in facts.items()}
    return {"worker": name} | {key.replace("_", " "): value for key, value in rounded.items()}


def publish_changes(found: Difference, keys: Keys) -> None:
    """Publish what changed since the run before: numbers, the largest new bicliques, the vertices that changed most."""
    where = plain(" since ".join(shown_address(run.folder) for run in (found.new_run, found.old_run)))
    numbers = {
        "before": found.old_run.found and found.old_run.found.count,
        "gone": len(found.gone),
        "new": len(found.new),
        "unchanged": found.unchanged,
        "after": found.new_run.found and found.new_run.found.count,
        "share that changed": None if found.share is None else round(found.share, 6),
    }
    rows = [{"name": name, "value": value} for name, value in numbers.items()]
    create_table_artifact(rows, key=keys.key("changes"), description=f"What changed in {where}")
    if len(found.new):
        text = table_of(found.new.top(_LARGEST))
        create_markdown_artifact(text, key=keys.key("largest-new"), description=f"The largest new bicliques of {where}")
    if vertices := found.most_changed(_LARGEST):
        words = f"The vertices that changed most in {where}"
        create_markdown_artifact(table_of_rows(vertices), key=keys.key("vertices"), description=words)


def _publish_page(results: Results, where: str, keys: Keys) -> None:
    """Publish the labels that are in most bicliques."""
    from bicliques.pipeline.results.report.content import content_of  # here, because a run without a page needs it not

    content = content_of(Run.with_holes(results.path))
    rows = [
        {"side": side, "label": one.label, "bicliques": one.bicliques, "neighbours": one.degree}
        for side, found in content.participants.items()
        for one in found
    ]
    if rows:
        words = f"In how many bicliques a label is, and how many neighbours it has, of {where}"
        create_markdown_artifact(table_of_rows(rows), key=keys.key("participants"), description=words)


def publish_verification(found: Verification, path: Path, keys: Keys) -> None:
    """Publish what was proven about all rows, what about a sample, and what was not proven."""
    title, *lines = cards.verify_card(found).splitlines()
    text = [f"**{plain(title)}**", *(_item(line) for line in lines)]
    create_markdown_artifact("\n".join(text), key=keys.key("verification"), description=plain(store_at(path).shown()))


def facts_of(card: str) -> str:
    """The lines ``key: value`` of a card, as a Markdown table."""
    return table(["", ""], [line.partition(": ")[::2] for line in card.splitlines()], _CARD_WIDTH)


def _item(line: str) -> str:
    """A line of a card in Markdown: a heading, or an item below it."""
    words = line.strip()
    return f"- {plain(words[2:])}" if words.startswith("- ") else f"\n{plain(words)}\n"


def table_of(rows: pa.Table) -> str:
    """Rows of a result, the first with rank 1, as a Markdown table."""
    sizes = zip(rows["n_left"].to_pylist(), rows["n_right"].to_pylist(), strict=True)
    lines = [
        (k + 1, f"{a:,}", f"{b:,}", f"{a * b:,}", *(cut(rows[side][k].values, _MEMBERS) for side in ("left", "right")))
        for k, (a, b) in enumerate(sizes)
    ]
    return table(["#", "left", "right", pairs_of(rows.schema), "left members", "right members"], lines, _LIST_WIDTH)


def plain(text: object) -> str:
    r"""Markdown that shows a text on one line. What breaks a line or turns its direction is shown as an escape.

    Notes
    -----
    The second version of Prefect's page looks for addresses in what is left when backslashes are taken away. It finds
    none where a tag is, and ``<wbr>`` shows nothing.

    Examples
    --------
    >>> print(plain("see <b> at http://x"))
    see \<b\> at http<wbr>\://x
    """
    line = _SPECIAL.sub(
        lambda found: f"\\{found[0]}" if found[1] else f"<wbr>\\{found[0]}", " ".join(shown(text).split())
    )
    return _NUMBERED.sub(r"\1\\.", line)


def table(names: Sequence[str], rows: Iterable[Sequence[object]], width: int) -> str:
    """A Markdown table. Cells are broken into lines of at most `width` characters, because Prefect's page does not."""
    lines = [names, ["---"] * len(names)]
    cells = [["<br>".join(map(plain, wrap(str(cell), width, break_on_hyphens=False))) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *cells])


def table_of_rows(rows: Sequence[Mapping[str, object]]) -> str:
    """A Markdown table of rows with the same names, of which there is at least one. A long text is cut."""
    cells = [[shortened(str(value), _TEXT_WIDTH) for value in row.values()] for row in rows]
    return table(list(rows[0]), cells, _LINE_WIDTH)
