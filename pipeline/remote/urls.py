"""URLs as they may be shown and recorded: without passwords, keys and signatures."""

from __future__ import annotations

import re
from urllib.parse import unquote

#: What stands in the place of a secret.
HIDDEN = "***"
#: Options of Arrow's file systems that are no secrets.
_HARMLESS = "endpoint_override|scheme|region|retry_limit_seconds|allow_bucket_creation"
#: Shorter pieces tell nothing.
_SHORTEST = 3


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
