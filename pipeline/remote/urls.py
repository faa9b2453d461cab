"""URLs as they may be shown and recorded: without passwords, keys and signatures."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from bicliques.schemas.errors import InputError

#: What stands in the place of a secret.
HIDDEN = "***"
#: Options of Arrow's file systems that are no secrets.
_HARMLESS = "endpoint_override|scheme|region|retry_limit_seconds|allow_bucket_creation"
#: Shorter pieces tell nothing.
_SHORTEST = 3
#: Variables that name the endpoint of S3, the strongest first.
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_ENDPOINT = re.compile(r"(https?)://([\w.:%~\[\]-]+(?:/[\w.%~-]+)*)/?", re.ASCII)


def as_asked(url: str) -> str:
    """The URL of a bucket with the endpoint of the environment, if it names none itself.

    Every client of a bucket opens this URL. So a variable means the same to a run in a store, a publication and a
    source, and ``http://`` in it says that plain http is allowed.

    Raises
    ------
    InputError
        If the variable holds no address.
    """
    scheme, _, query = url.partition("?")
    name = next(filter(os.environ.get, _ENDPOINTS), None)
    if name is None or not scheme.lower().startswith("s3:") or re.search("(^|&)endpoint_override=", query):
        return url
    endpoint = _ENDPOINT.fullmatch(os.environ[name])
    if endpoint is None:
        raise InputError(f"{name} is no address of a store; write it as in http://minio:9000")
    own = "" if re.search("(^|&)scheme=", query) else f"&scheme={endpoint[1]}"
    return f"{url}{'&' if query else '' if '?' in url else '?'}endpoint_override={endpoint[2]}{own}"


def without_secrets(url: str) -> str:
    """The URL without a user and a password, and without a query, which may be a signature."""
    scheme, user, place, query = _parts(url)
    return f"{scheme}://{HIDDEN + '@' if user else ''}{place}{'?' + HIDDEN if query else ''}"


def place_of(url: str) -> str:
    """What people are told of a URL: nothing that is secret, no options, and no slash at its end."""
    return without_secrets(url).partition("?")[0].rstrip("/")


def secrets_of(url: str) -> tuple[str, ...]:
    """The pieces of the hidden parts of a URL that an exception could tell."""
    _, user, _, query = _parts(url)
    query = _unknown(query)
    texts = [text for part in (user, query) for text in (part, unquote(part))]
    pieces = {piece for text in texts for piece in re.split("[:/@&=;#]", text)}
    return tuple(piece for piece in pieces if len(piece) >= _SHORTEST)


def has_secrets(url: str) -> bool:
    """Whether the URL has a user, or in its query more than options of Arrow that are known to be no secrets."""
    _, user, _, query = _parts(url)
    return bool(user) or "@" in unquote(query) or _unknown(query) != ""


def _unknown(query: str) -> str:
    """A query without the options of Arrow that are no secrets."""
    return re.sub(rf"(^|&)({_HARMLESS})=[^&#]*", "", query)


def _parts(url: str) -> tuple[str, str, str, str]:
    """Scheme, user with password, host with path, and query with fragment."""
    scheme, _, rest = url.partition("://")
    place, *query = re.split("[?#]", rest, maxsplit=1)
    user, at, host = place.rpartition("@")
    # a password may have a slash, and a path may have an @, but mostly no colon before it
    if at and (":" in user or "/" not in user):
        return scheme, user, host, "".join(query)
    return scheme, "", place, "".join(query)
