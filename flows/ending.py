"""All that comes after the proof of a run. What goes wrong here is said, and does not make the run fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from prefect.logging import get_run_logger

from flows import tasks
from flows.assets import record_asset
from flows.cards import publish_changes, publish_run
from flows.events import emit_complete
from flows.identity import nightly
from flows.keys import Keys
from pipeline.compare.difference import Difference
from pipeline.results.results import Results
from schemas.errors import BicliqueError

__all__ = ["announce_complete", "compare", "finish", "much"]

T = TypeVar("T")


def compare(path: Path, keys: Keys, problems: list[str]) -> Difference | None:
    """What changed since the run before. A reason why that could not be found is added to `problems`."""
    found = _tried(problems, lambda: tasks.compare(path), "what changed could not be found")
    if found is not None:
        publish_changes(found, keys)
    return found


def much(found: Difference | None, above: float | None) -> str | None:
    """A clause that says how much has changed, if that is more than was asked to be told of."""
    if found is None or above is None or found.share <= above:
        return None
    words = f"{len(found.gone):,} are gone and {len(found.new):,} are new since {found.old_run.folder}"
    words += f", {100 * found.share:.3g} % of all"
    get_run_logger().warning("much has changed: %s", words)
    return words


def finish(
    results: Results, keys: Keys, report: bool, latest: bool, keep: int | None, announce: Callable[[], None]
) -> list[str]:
    """Do all that comes after the proof and the comparison.

    Parameters
    ----------
    results : Results
        Of a complete run.
    keys : Keys
    report, latest, keep
        As of `flows.mine.mine`.
    announce : callable
        Is called once in the life of a run that is and stays complete: when the mark is put on it.

    Returns
    -------
    list of str
        What went wrong.
    """
    path = results.path
    problems: list[str] = []
    page = _tried(problems, lambda: tasks.report(path), "the page could not be written") if report else None
    publish_run(results, keys, page)
    is_new = _tried(problems, lambda: tasks.mark(path))
    if latest and is_new is not None:
        _tried(problems, lambda: tasks.link(path))
    if is_new:  # only now, because whoever hears of it may follow the link
        _tried(problems, announce, "the run could not be announced")
    if keep is not None and (pruning := _tried(problems, lambda: tasks.prune(path, keep))) is not None:
        problems += pruning.problems
    return problems


def announce_complete(
    results: Results, series: str, output: str, found: Difference | None, above: float | None
) -> None:
    """Tell the Prefect server that a run has become complete: as an asset, and as events.

    Parameters
    ----------
    results : Results
    series : str
        The input, as a run records it, with ``{date}`` in place of days.
    output : str
        The folder of the run, or the template of it.
    found, above
        As of `flows.events.emit_complete`.
    """
    record_asset(results, series, nightly(output))
    emit_complete(results, series, found, above)


def _tried(problems: list[str], do: Callable[[], T], words: str = "") -> T | None:
    """What `do` returns. None if it fails; then the reason is added to `problems`.

    Parameters
    ----------
    problems : list of str
    do : callable
    words : str
        A clause before the reason. With it, any error is a reason, because the bicliques are there. Without it only
        ours are, which speak for themselves.
    """
    try:
        return do()
    except Exception as error:
        if not words and not isinstance(error, BicliqueError):
            raise
        problems.append(f"{words}: {error}" if words else str(error))
        return None
