"""What a run found, as Prefect artifacts: a few short tables, never bicliques by the thousand."""

from __future__ import annotations

from pathlib import Path

from prefect.artifacts import (
    create_image_artifact,
    create_link_artifact,
    create_markdown_artifact,
    create_table_artifact,
)

from flows.pictures import pictures_of
from pipeline import cards
from pipeline.picking import By
from pipeline.reporting.content import Content, content_of
from pipeline.results import Results
from pipeline.verification import Verification

__all__ = ["publish_run", "publish_verification"]

_LARGEST = 10
_TOPS: dict[By, tuple[str, str]] = {
    "edges": ("largest", "The largest bicliques of"),
    "balance": ("balanced", "The bicliques with the largest smaller side of"),
}
_PICTURES = {
    "sizes": "How many bicliques have so many members on the left and on the right, of",
    "degrees": "How many vertices of each side have at least so many neighbours, of",
    "stages": "Seconds of each step of",
    "time-line": "What every worker did in",
}


def publish_run(results: Results, page: Path | None) -> None:
    """The run card; when it is complete the workers' shares and the largest; of its page a link and the pictures."""
    where = str(results.path)
    if page is not None:
        where += f", [report.html]({page.absolute().as_uri()})"
        create_link_artifact(page.absolute().as_uri(), "report.html", key="report", description=where)
    create_markdown_artifact(_block(cards.run_card(results)), key="run-card", description=where)
    if not results.complete:
        return
    workers = results.manifest.mining["workers"]
    create_table_artifact(
        [{"worker": name, **facts} for name, facts in workers.items()],
        key="workers",
        description=f"Slices, bicliques and busy seconds of every worker of {where}",
    )
    if results.manifest.parts:
        for by, (key, words) in _TOPS.items():
            top = cards.top_table(results.top(_LARGEST, by))
            create_markdown_artifact(_block(top), key=key, description=f"{words} {where}")
    if page is not None:
        _publish_page(content_of(results.path), where)


def _publish_page(content: Content, where: str) -> None:
    """Who takes part most, and the pictures."""
    rows = [
        {"side": side, "label": one.label, "bicliques": one.bicliques, "neighbours": one.degree}
        for side, found in content.participants.items()
        for one in found
    ]
    if rows:
        words = f"In how many bicliques a label is, and how many neighbours it has, of {where}"
        create_table_artifact(rows, key="participants", description=words)
    for name, address in pictures_of(content).items():
        create_image_artifact(address, key=name, description=f"{_PICTURES[name]} {where}")


def publish_verification(found: Verification, path: object) -> None:
    """What was proven, what only in a sample, and what not."""
    create_markdown_artifact(_block(cards.verify_card(found)), key="verification", description=str(path))


def _block(text: str) -> str:
    return f"```\n{text}\n```"
