"""Keys of artifacts. A key belongs to one deployment and one series of runs, so its history has no other runs."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from prefect.runtime import deployment, flow_run

from bicliques.flows.identity import nightly

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
