"""Names of flow runs, as a person looks for them: what is read, and the folder that it goes to.

Prefect asks for the name before a run begins, so a run that is refused has its name, too. It stores and shows names, so
they hold no passwords and keys.
"""

from __future__ import annotations

import datetime
from pathlib import PurePosixPath

from prefect.runtime import flow_run

from bicliques.flows.identity import fill_in, moment_of
from bicliques.pipeline.ingest.sources.names import recorded
from bicliques.pipeline.remote.urls import without_secrets
from bicliques.pipeline.results.listing import shown
from bicliques.pipeline.run.names import url_of
from bicliques.schemas.errors import InputError

#: The folder of a run of the flow `mine`, if nothing else is asked for.
OUTPUT = "runs/{date}"


def name_of(source: str, folder: str) -> str:
    """The name of a flow run that reads `source` and writes to `folder`.

    Examples
    --------
    >>> name_of("https://ann:geheim@host/in/purchases.csv?sig=c0ffee", "runs/2026-01-31")
    'purchases.csv?*** to runs/2026-01-31'
    """
    name = recorded(source)
    return shown(f"{PurePosixPath(name).name or name} to {_named(folder)}")


def name_of_mining() -> str:
    """The name of the current run of the flow `mine`. It never raises: the run itself says what is wrong with it."""
    try:
        given = flow_run.parameters
        days = [given.get("date"), *filter(None, [given.get("last_date")])]
        names = [
            name_of(_filled_in(given["source"], day), _filled_in(given.get("output", OUTPUT), day)) for day in days
        ]
        return " until ".join(names)
    except Exception:  # Prefect would end the run, and our sentence about the parameter would never be said
        return "mine"


def name_of_verifying() -> str:
    """The name of the current run of the flow `verify`. It never raises."""
    try:
        return shown(f"verify {_named(flow_run.parameters['output'])}")
    except Exception:  # as above
        return "verify"


def _filled_in(template: str, day: datetime.date | None) -> str:
    try:
        return fill_in(template, moment_of(day))
    except InputError:  # a placeholder that there is not
        return template


def _named(folder: str) -> str:
    url = url_of(folder)
    return str(PurePosixPath(folder)) if url is None else without_secrets(url)
