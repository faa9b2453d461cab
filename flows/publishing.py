"""Where a complete run of the flow `mine` is published. What is copied, and how, is `pipeline.publishing`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bicliques.flows import tasks
from bicliques.flows.identity import depends_on_moment, fill_in, nightly
from bicliques.flows.keys import Keys
from bicliques.flows.refusals import refuse_secrets
from bicliques.pipeline.publishing.publish_run import Published
from bicliques.pipeline.remote.urls import place_of
from bicliques.pipeline.run.names import url_of, without_days
from bicliques.schemas.errors import InputError
from bicliques.schemas.values import at_home


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

        Raises
        ------
        InputError
            If the template has a secret or another placeholder, or the run only counts.
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
