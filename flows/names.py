"""Names of flow runs, as a person looks for them, and keys of artifacts.

A name says what is read, and the folder that it goes to. Prefect asks for it before a run begins, so a run that is
refused has its name, too. It stores and shows names, so they hold no passwords and keys. A key belongs to one
deployment and one series of runs, so its history has no other runs.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from prefect.runtime import deployment, flow_run

from bicliques.flows.identity import fill_in, moment_of, nightly
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


#: Most characters of a key before its digest.
_LONGEST = 60


@dataclass(frozen=True)
class Keys:
    """The keys of a run's artifacts, such as ``largest-in-refresh-purchases-3f2a91``.

    Parameters
    ----------
    end : str
        End of all keys: lower-case letters, digits and dashes, as Prefect requires.
    """

    end: str

    @classmethod
    def of(cls, series: str | None, output: str) -> Keys:
        """The keys of the current flow run.

        Parameters
        ----------
        series : str or None
            The series of the run, with ``{date}`` in place of a day. None if the run does not say what it read.
        output : str
            The folder of the run, which may have placeholders or days. It tells apart the flow runs that belong to no
            deployment. Those of a deployment have its name instead.

        Notes
        -----
        The words are for people, and lose what Prefect does not take. Six digits of a digest of the whole names tell
        apart what has the same words.
        """
        flow, deployed = flow_run.flow_name or "flow", deployment.name
        folder = "" if deployed else nightly(output)
        owner = deployed or f"{flow} {_last(folder)}"
        text = re.sub("[^a-z0-9]+", "-", f"{owner} {_last(series or 'memory')}".lower())
        whole = "\0".join((flow, deployed or "", folder, series or ""))
        digest = hashlib.blake2b(whole.encode(errors="surrogateescape"), digest_size=3).hexdigest()
        return cls(f"{text[:_LONGEST].strip('-')}-{digest}".lstrip("-"))

    def key(self, what: str) -> str:
        """The key of the artifact `what`."""
        return f"{what}-in-{self.end}"


def _last(path: str) -> str:
    """The last name in a path that has no placeholder, without its ending. Empty if there is none."""
    names = [name for name in PurePosixPath(path).parts if "{" not in name]
    return names[-1].lstrip(".").partition(".")[0] if names else ""
