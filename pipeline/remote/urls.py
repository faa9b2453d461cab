"""URLs: what of them may be shown, the file systems that they are on, and the errors of those in one sentence.

Arrow has ``s3://``, ``gs://`` and some others, and fsspec everything else for which its package is installed. Each of
them is imported where it is needed. What is shown or recorded has no password, key or signature, and no sentence has
the text of an exception that may have one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import URLError
from urllib.parse import unquote

from bicliques.schemas.errors import BicliqueError, InputError

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


#: Schemes of Arrow's own file systems. Each of them is a store of objects, which has no folders.
_ARROW = ("s3", "gs", "gcs", "abfs", "abfss")
#: Seconds for which one request to Google is repeated. A file that cannot be reached takes two of them.
_RETRY_S = 20
#: Characters that are shown of a reason.
_SHOWN = 200
#: What curl says, inside of an error of Arrow, of a server that was silent for so long.
_SILENCE = re.compile(r"Timeout was reached.*?(?:last|after) (\d+) (m?)(?:illi)?s", re.DOTALL)
#: What obstore says of an ``http://`` that is not allowed, and of a server that does not know TLS; and what curl does.
_PLAIN_HTTP = re.compile(r"http://.*builder error|InvalidContentType|curlCode: 35,", re.DOTALL)


def file_system(url: str) -> tuple[Any, str]:
    """A file system of Arrow (`pyarrow.fs.FileSystem`), and the path on it that the URL names.

    Raises `Exception`: whatever the package behind it raises; see `plain_errors`.
    """
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem  # only for remote files

    scheme = _scheme_of(url)
    if scheme in ("gs", "gcs") and "retry_limit_seconds" not in url:  # otherwise it tries for a quarter of an hour
        url += f"{'&' if '?' in url else '?'}retry_limit_seconds={_RETRY_S}"
    if scheme in _ARROW:
        found: tuple[Any, str] = FileSystem.from_uri(as_asked(url))
        return found
    from fsspec.core import url_to_fs  # only for those that Arrow does not know

    system, path = url_to_fs(url)
    return PyFileSystem(FSSpecHandler(system)), path


def is_on_objects(url: str) -> bool:
    """Whether a file can be written there without a folder that is made first."""
    return _scheme_of(url) in _ARROW


@contextmanager
def plain_errors(
    url: str, shown: str, cannot: str = "cannot be read", kind: type[BicliqueError] = InputError
) -> Iterator[None]:
    """Turn every error into a sentence without secrets. Packages behind fsspec have exceptions of their own.

    Parameters
    ----------
    url : str
        As it was given, which may have secrets.
    shown : str
        What the sentence begins with, without secrets.
    cannot : str
        What cannot be done.
    kind : type
        Class of the error.
    """
    try:
        yield
    except BicliqueError:
        raise
    except ImportError as error:
        raise InputError(f"{shown} {cannot} without another package ({_reason(url, error)})") from None
    except Exception as error:
        if _PLAIN_HTTP.search(f"{error} {error.__cause__ or ''}") and _scheme_of(url) == "s3":
            option = f"{'&' if '?' in url else '?'}scheme=http"
            why = "the store seems to speak plain http, and https is asked of it"
            raise kind(f"{shown} {cannot} ({why}); if that is right, end the address with {option}") from None
        if silence := _SILENCE.search(str(error)):
            asked = f"no answer within {silence[1]} {silence[2]}s, however often it was asked"
            raise kind(f"{shown} {cannot} ({asked}); check the address and the connection, and try again") from None
        raise kind(
            f"{shown} {cannot} ({_reason(url, error)}); check the address, the connection and the credentials"
        ) from None


def _scheme_of(url: str) -> str:
    return url.partition(":")[0].lower()


def _reason(url: str, error: BaseException) -> str:
    """The first line of an exception without anything that is secret in the URL."""
    if isinstance(error, URLError) and isinstance(error.reason, BaseException):
        error = error.reason
    text = (str(error).splitlines() or [""])[0].partition("; Details:")[0].strip().rstrip(".")
    for secret in secrets_of(url):
        if secret in text:
            return type(error).__name__
    return text[:_SHOWN] or type(error).__name__
