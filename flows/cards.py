"""What a run found, as Prefect artifacts: a few short tables, never bicliques by the thousand."""

from __future__ import annotations

from pathlib import Path

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from pipeline import cards
from pipeline.results import Results
from pipeline.verification import Verification

__all__ = ["publish_run", "publish_verification"]

_LARGEST = 10


def publish_run(results: Results, page: Path | None) -> None:
    """The run card; when it is complete the largest bicliques and the share of every worker; a link to its page."""
    create_markdown_artifact(_block(cards.run_card(results)), key="run-card", description=str(results.path))
    if page is not None:
        create_link_artifact(page.absolute().as_uri(), "report.html", key="report", description=str(results.path))
    if not results.complete:
        return
    workers = results.manifest.mining["workers"]
    create_table_artifact(
        [{"worker": name, **facts} for name, facts in workers.items()],
        key="workers",
        description=f"Slices, bicliques and busy seconds of every worker of {results.path}",
    )
    if results.manifest.parts:
        top = cards.top_table(results.top(_LARGEST))
        create_markdown_artifact(_block(top), key="largest", description=f"The largest bicliques of {results.path}")


def publish_verification(found: Verification, path: object) -> None:
    """What was proven, what only in a sample, and what not."""
    create_markdown_artifact(_block(cards.verify_card(found)), key="verification", description=str(path))


def _block(text: str) -> str:
    return f"```\n{text}\n```"
