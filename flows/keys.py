"""Keys of artifacts. A key belongs to one deployment and one series of runs, so its history has no other runs."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from prefect.runtime import deployment, flow_run

__all__ = ["Keys"]


@dataclass(frozen=True)
class Keys:
    """The keys of a run's artifacts, such as ``refresh-purchases-3f2a91-largest``.

    Parameters
    ----------
    begin : str
        Beginning of all keys: lower-case letters, digits and dashes, as Prefect requires.
    """

    begin: str

    @classmethod
    def of(cls, series: str | None) -> Keys:
        """The keys of the current flow run, from the name of its deployment (or else of its flow) and from `series`."""
        owner = deployment.name or flow_run.flow_name or "flow"
        name = Path(series or "memory").name.partition(".")[0]
        words = re.sub("[^a-z0-9]+", "-", f"{owner} {name}".lower()).strip("-")
        return cls(f"{words[:60]}-{hashlib.blake2b((series or '').encode(), digest_size=3).hexdigest()}")

    def key(self, what: str) -> str:
        """The key of the artifact `what`."""
        return f"{self.begin}-{what}"
