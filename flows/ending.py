"""All that comes after the proof of a run. What goes wrong here is said, and does not make the run fail."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

from bicliques.flows import tasks
from bicliques.flows.cards import publish_changes, publish_run
from bicliques.flows.events import emit_complete, record_asset, record_published
from bicliques.flows.identity import nightly
from bicliques.flows.names import Keys
from bicliques.flows.progress import say
from bicliques.flows.publishing import Target
from bicliques.pipeline.compare.difference import Difference
from bicliques.pipeline.compare.in_run import new_doubts
from bicliques.pipeline.publishing.publish_run import Published
from bicliques.pipeline.results.results import Results
from bicliques.pipeline.run.progress import number
from bicliques.pipeline.run.store import shown_address
from bicliques.pipeline.series.runs import mark_refused
from bicliques.schemas.errors import BicliqueError

T = TypeVar("T")

Announce: TypeAlias = Callable[[bool, Published | None], None]


@dataclass
class Ending:
    """What came of all that comes after the proof.

    Parameters
    ----------
    problems : list of str
        What went wrong.
    published : Published or None
        None if the run was not published.
    refused : str or None
        Why a gate does not let the run pass, in one clause. Such a run is neither published nor linked.
    """

    problems: list[str] = field(default_factory=list)
    published: Published | None = None
    refused: str | None = None


def compare(path: Path, keys: Keys, problems: list[str]) -> Difference | None:
    """What changed since the run before. A reason why that could not be found is added to `problems`."""
    found = _tried(problems, lambda: tasks.compare(path), "what changed could not be found")
    if found is not None:
        publish_changes(found, keys)
    return found


def find_new_doubts(path: Path, problems: list[str]) -> None:
    """Add what is doubtful about the input, and was not doubtful in the run before, to `problems`."""
    found = _tried(problems, lambda: new_doubts(path), "the doubts of the run before could not be read") or []
    problems += [f"the input has a doubt that it did not have in the run before: {text}" for text in found]


def much(found: Difference | None, above: float | None) -> str | None:
    """A clause that says how much has changed, if that is more than was asked to be told of."""
    if found is None or above is None or found.share is None or found.share <= above:
        return None
    words = f"{number(len(found.gone), 'is', 'are')} gone and {number(len(found.new), 'is', 'are')} new since "
    words += shown_address(found.old_run.folder)
    words += f", {100 * found.share:.3g} % of all"
    say(f"much has changed: {words}", logging.WARNING)
    return words


def refusal(
    count: int, below: int | None, found: Difference | None, above: float | None, problems: list[str]
) -> str | None:
    """Why a run does not pass `refuse_below` or `refuse_above`. One that nothing could be compared with passes this.

    `problems` has what went wrong in the comparison.
    """
    if below is not None and count < below:
        return f"it has fewer bicliques than refuse_below ({below:,})"
    if above is None:
        return None
    if problems:
        return "it could not be compared, and refuse_above is set"
    is_much = found is not None and (found.share is None or found.share > above)
    return f"more than refuse_above ({above}) has changed" if is_much else None


def finish(
    results: Results,
    keys: Keys,
    report: bool,
    latest: bool,
    keep: tuple[int | None, int],
    target: Target | None,
    announce: Announce,
    ending: Ending,
) -> None:
    """Do all that comes after the proof and the comparison.

    Parameters
    ----------
    results : Results
        Of a complete run.
    report, latest
        As of `flows.mine.mine`.
    keep : (int or None, int)
        `keep` and `keep_created` of `flows.mine.mine`.
    target : Target or None
        Where the run is published.
    announce : callable
        Called with whether the run has just become complete, which is when the mark is put on it, and with what was
        published; if either is new.
    ending : Ending
        Says whether the run is refused. Gets what was published, and what went wrong.
    """
    path, problems = results.path, ending.problems
    page = _tried(problems, lambda: tasks.report(path), "the page could not be written") if report else None
    if not ending.refused:
        _tried(problems, lambda: mark_refused(path, False))  # what has the mark is not published
        if target is not None:
            ending.published = _tried(problems, lambda: target.publish(path, keys), "it could not be published")
    published = ending.published
    publish_run(results, keys, page, None if published is None else published.url)
    is_new = _tried(problems, lambda: tasks.mark(path, bool(ending.refused)))
    if latest and is_new is not None:
        _tried(problems, lambda: tasks.link(path))
    if is_new or (published is not None and published.changed):
        # only now, because whoever hears of it may follow the link, or read what was published
        _tried(problems, lambda: announce(bool(is_new), published), "the run could not be announced")
    newest, created = keep
    if newest is not None and (pruning := _tried(problems, lambda: tasks.prune(path, newest, created))) is not None:
        problems += pruning.problems


def announce_complete(
    results: Results,
    series: str,
    output: str,
    found: Difference | None,
    above: float | None,
    target: Target | None,
    is_new: bool,
    published: Published | None,
) -> None:
    """Tell the Prefect server that a run has become complete, or was published: as assets, and as events.

    Parameters
    ----------
    series : str
        The input, as a run records it, with ``{date}`` in place of days.
    output : str
        The folder of the run, or the template of it.
    found, above
        As of `flows.events.emit_complete`.
    target : Target or None
        Where the run is published.
    is_new : bool
        Whether the run has become complete. If not, it was only published.
    published : Published or None
        What was published.
    """
    folder = nightly(output)
    url = None if published is None else published.url
    emit_complete(results, series, found, above, url, is_new)  # first, because programs wait for it
    if is_new:
        record_asset(results, series, folder)
    if target is not None and published is not None:
        record_published(published, results, folder, target.place)


def _tried(problems: list[str], do: Callable[[], T], words: str = "") -> T | None:
    """What `do` returns. None if it fails; then the reason is added to `problems`.

    Parameters
    ----------
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
