"""The flow `verify`: read the bicliques of a complete run again and check them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from flows import stages
from flows.cards import publish_verification
from flows.notify import notify_of_failure

__all__ = ["verify"]


@flow(name="verify", on_failure=[notify_of_failure], on_crashed=[notify_of_failure])
def verify(output: str, sample: int = 1000, seed: int = 0, notify: str | None = None) -> dict[str, Any]:
    """Check the results of a complete run from its files alone; it fails when anything does not hold.

    Parameters
    ----------
    output : str
        Folder of the run.
    sample : int
        Rows to compare with the input, chosen at random.
    seed : int
        Of that choice.
    notify : str or None
        See `flows.mine.mine`.

    Returns
    -------
    dict
        ``folder``, ``count`` and ``fingerprint`` (decimal string) of the rows that were read.
    """
    path = Path(output)
    found = stages.verify(path, sample, seed)
    publish_verification(found, path)
    return {"folder": str(path.absolute()), "count": found.count, "fingerprint": str(found.fingerprint)}
