"""Where a complete run of the flow `mine` is published, and what the flow refuses before anything is read.

What is copied, and how, is `pipeline.publishing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bicliques.flows import tasks
from bicliques.flows.identity import depends_on_moment, fill_in, nightly
from bicliques.flows.names import Keys
from bicliques.pipeline.publishing.publish_run import Published
from bicliques.pipeline.remote.urls import has_secrets, place_of, without_secrets
from bicliques.pipeline.run.names import store_url, url_of, without_days
from bicliques.schemas.errors import InputError
from bicliques.schemas.values import at_home


def refuse_secrets(what: str, place: str) -> None:
    """Refuse a URL with a password or a key, because Prefect records the parameters of a flow and shows them."""
    url = url_of(place)
    if url is not None and has_secrets(url):
        raise InputError(
            f"the {what} {without_secrets(url)} has a password or a key, and Prefect records what a flow is started "
            "with; let the worker have credentials instead"
        )


def check_beside(output: str, keep: int | None, latest: bool, gate: str | None) -> bool:
    """Whether a run is to be kept in a store. What changes the folder above a run is refused then, and a `gate`."""
    url = store_url(output)
    if url is None:
        return False
    refuse_secrets("output", output)
    asked = next((word for word, given in (("keep", keep), ("latest", latest)) if given), None)
    if asked is not None:
        raise InputError(
            f"{asked} changes the folder above a run, and {place_of(url)} is in a store, which has none; leave it out, "
            "or mine into a folder and publish to that place"
        )
    if gate is not None:
        raise InputError(
            f"a run in {place_of(url)} can be read there before {gate} could refuse it; mine into a folder, and "
            "publish to that place"
        )
    return True


def check_shares(changes: bool, **shares: float | None) -> None:
    """Refuse a share that is none, or that nothing is compared with. Shares are given by the names of parameters."""
    for name, share in shares.items():
        if share is None:
            continue
        if not 0 <= share <= 1:
            raise InputError(f"{name} is a share from 0 to 1, not {share}")
        if not changes:
            raise InputError(f"{name} is {share}, but nothing is compared; set changes, too")


@dataclass(frozen=True)
class Target:
    """A place that runs are published to.

    Parameters
    ----------
    template : str
        A path or a URL, which may have placeholders.
    url : str
        The place of the run at hand.
    """

    template: str
    url: str

    @classmethod
    def of(cls, template: str | None, moment: datetime, lists: bool) -> Target | None:
        """The place that a flow is asked for; None if it is asked for none.

        Parameters
        ----------
        moment : datetime
            What is filled in.
        lists : bool
            Whether the run lists bicliques.
        """
        if template is None:
            return None
        refuse_secrets("parameter publish", template)
        if not lists:
            raise InputError(
                "publish asks for a copy of the bicliques, and with count_only there are none; leave one out"
            )
        template = at_home(template)
        return cls(template, fill_in(template, moment))

    @property
    def place(self) -> str:
        """The same of every night, for an asset: with ``{date}`` in place of days, and without options of Arrow."""
        if url_of(self.template) is None:
            return nightly(self.template)
        return without_days(place_of(self.template))

    def publish(self, path: Path, keys: Keys) -> Published | None:
        """Publish the run in a folder. None if the place is the same every night, and a newer run has to be there."""
        return tasks.publish(path, self.url, keys, only_newest=not depends_on_moment(self.template))
