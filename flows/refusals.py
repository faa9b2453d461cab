"""What the flow `mine` is asked for and cannot do. It is refused before anything is read."""

from __future__ import annotations

from bicliques.pipeline.remote.urls import has_secrets, place_of, without_secrets
from bicliques.pipeline.run.names import store_url, url_of
from bicliques.schemas.errors import InputError


def refuse_secrets(what: str, place: str) -> None:
    """Refuse a URL with a password or a key, because Prefect records the parameters of a flow and shows them.

    Parameters
    ----------
    what : str
        The parameter.
    place : str
        A path or a URL.

    Raises
    ------
    InputError
    """
    url = url_of(place)
    if url is not None and has_secrets(url):
        raise InputError(
            f"the {what} {without_secrets(url)} has a password or a key, and Prefect records what a flow is started "
            "with; let the worker have credentials instead"
        )


def check_beside(output: str, keep: int | None, latest: bool, gate: str | None) -> bool:
    """Whether a run is to be kept in a store. What changes the folder above a run is refused then, and a `gate`.

    Raises
    ------
    InputError
    """
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
    """Refuse a share that is none, or that nothing is compared with. Shares are given by the names of parameters.

    Raises
    ------
    InputError
    """
    for name, share in shares.items():
        if share is None:
            continue
        if not 0 <= share <= 1:
            raise InputError(f"{name} is a share from 0 to 1, not {share}")
        if not changes:
            raise InputError(f"{name} is {share}, but nothing is compared; set changes, too")
