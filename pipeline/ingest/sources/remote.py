"""Files that are not on this machine: lists them and opens them by their URLs.

Arrow reads ``s3://``, ``gs://`` and what else it knows, the standard library ``http://`` and ``https://``, and fsspec
everything else for which its package is installed. Each of them is imported where it is needed. No message has a
password, a key or a signature, nor the text of an exception that may have one.
"""

from __future__ import annotations

import base64
import glob
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from operator import itemgetter
from pathlib import PurePosixPath
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from pipeline.ingest.readers.files import is_hidden, refuse_logged_table, with_number
from pipeline.ingest.readers.partitions import chosen
from pipeline.ingest.sources.urls import secrets_of, without_secrets
from pipeline.run.version import __version__
from schemas.errors import InputError

__all__ = ["Listing", "RemoteFile", "copy", "listed"]

#: Schemes of Arrow's own file systems.
_ARROW = ("s3", "gs", "gcs", "abfs", "abfss")
#: Seconds without an answer after which a server counts as gone.
_PATIENCE_S = 60
#: Seconds for which one request to Google is repeated. A file that cannot be reached takes two of them.
_RETRY_S = 20
#: Bytes that are copied at a time, and characters that are shown of a reason.
_PIECE, _SHOWN = 1 << 20, 200

#: A stream as a context, and its number of bytes if that is known.
_Opened = tuple[AbstractContextManager[IO[bytes]], int | None]


@dataclass(frozen=True)
class RemoteFile:
    """A file that can be copied.

    Parameters
    ----------
    url : str
        The URL as it was given, which may have secrets.
    shown : str
        The URL of the file without secrets.
    name : str
        Its name below what was listed, with slashes.
    open : callable
    """

    url: str = field(repr=False)
    shown: str
    name: str
    open: Callable[[], _Opened]


@dataclass(frozen=True)
class Listing:
    """The files that a URL stands for.

    Parameters
    ----------
    title : str
        In words, without secrets.
    files : tuple of RemoteFile
    is_one : bool
        Whether the URL is that of a file.
    """

    title: str
    files: tuple[RemoteFile, ...]
    is_one: bool


def listed(url: str, where: Sequence[str] = ()) -> Listing:
    """The files of a URL: one, or all of a folder or of a pattern, as `pipeline.ingest.readers.files.find` has it.

    Raises
    ------
    InputError
        There are none, or they cannot be listed.
    """
    shown, scheme = without_secrets(url), url.partition(":")[0].lower()
    if scheme in ("http", "https"):
        name = PurePosixPath(unquote(urlsplit(url).path)).name
        found = Listing(shown, (RemoteFile(url, shown, name, lambda: _open_http(url)),), is_one=True)
    else:
        with _reading(url, shown):
            found = _listed(url, shown, *_file_system(url, scheme))
    if not where:
        return found
    title, fits = chosen(found.title, [file.shown.partition("://")[2] for file in found.files], where)
    return Listing(title, tuple(found.files[k] for k in fits), is_one=False)


def copy(file: RemoteFile, target: IO[bytes]) -> None:
    """Copy a file to the end of `target`.

    Raises
    ------
    InputError
        It cannot be read to its end.
    """
    n_read = 0
    with _reading(file.url, file.shown):
        opened, n_bytes = file.open()
    with opened as stream:
        while True:
            with _reading(file.url, file.shown):
                data = stream.read(_PIECE)
            if not data:
                break
            n_read += target.write(data)
    if n_bytes is not None and n_read != n_bytes:
        raise InputError(
            f"{file.shown} ended after {n_read:,} of {n_bytes:,} bytes; the connection was cut, so try again"
        )


@contextmanager
def _reading(url: str, shown: str) -> Iterator[None]:
    """Turn every error into a sentence without secrets. Packages behind fsspec have exceptions of their own."""
    try:
        yield
    except InputError:
        raise
    except HTTPError as error:
        remedy = "give credentials that may read it" if error.code in (401, 403) else "check the address"
        raise InputError(f"{shown} cannot be read (HTTP {error.code} {error.reason}); {remedy}") from None
    except ImportError as error:
        raise InputError(f"{shown} cannot be read without another package ({_reason(url, error)})") from None
    except Exception as error:
        raise InputError(
            f"{shown} cannot be read ({_reason(url, error)}); check the address, the connection and the credentials"
        ) from None


def _reason(url: str, error: BaseException) -> str:
    """The first line of an exception without anything that is secret in the URL."""
    if isinstance(error, URLError) and isinstance(error.reason, BaseException):
        error = error.reason
    text = (str(error).splitlines() or [""])[0].strip().rstrip(".")
    for secret in secrets_of(url):
        if secret in text:
            return type(error).__name__
    return text[:_SHOWN] or type(error).__name__


def _open_http(url: str) -> _Opened:
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    request = Request(
        urlunsplit((parts.scheme, host, parts.path or "/", parts.query, "")),
        headers={"User-Agent": f"bicliques/{__version__}"},
    )
    if at:  # not sent to another server that this one may lead to
        coded = base64.b64encode(unquote(user).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {coded}")
    response = urlopen(request, timeout=_PATIENCE_S)
    length = response.headers.get("Content-Length")
    return response, int(length) if length and length.isdecimal() else None


def _file_system(url: str, scheme: str) -> tuple[Any, str]:
    """A file system of Arrow, and the path on it."""
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem  # only for remote files

    if scheme in ("gs", "gcs") and "retry_limit_seconds" not in url:  # otherwise it tries for a quarter of an hour
        url += f"{'&' if '?' in url else '?'}retry_limit_seconds={_RETRY_S}"
    if scheme in _ARROW:
        found: tuple[Any, str] = FileSystem.from_uri(url)
        return found
    from fsspec.core import url_to_fs  # only for those that Arrow does not know

    system, path = url_to_fs(url)
    return PyFileSystem(FSSpecHandler(system)), path


def _listed(url: str, shown: str, system: Any, path: str) -> Listing:
    from pyarrow.fs import FileType

    info = system.get_file_info(path)
    if info.type == FileType.File:
        return Listing(shown, (_file_on(system, url, shown, info, PurePosixPath(path).name),), is_one=True)
    if info.type == FileType.NotFound and glob.has_magic(path):
        parts = PurePosixPath(path).parts
        fixed = next(k for k, part in enumerate(parts) if glob.has_magic(part))
        top, pattern = "/".join(parts[:fixed]).replace("//", "/"), parts[fixed:]
    elif info.type == FileType.NotFound:
        raise InputError(f"{shown} does not exist; check the address")
    else:
        top, pattern = path.rstrip("/"), ()
    files = []
    for each in _below(system, top):
        name = each.path[len(top) :].strip("/")
        folders = name.split("/")
        refuse_logged_table(shown, folders[:-1])
        fits = not pattern or any(_fits(folders[:k], pattern) for k in range(1, len(folders) + 1))
        if fits and (is_hidden("/".join(pattern)) or not is_hidden(name)):
            files.append((name, each))
    if not files:
        raise InputError(f"{shown} has no files to read (names that begin with _ or . do not count); name another")
    place = shown if not pattern else shown[: len(shown) - len("/".join(pattern))]
    found = tuple(
        _file_on(system, url, f"{place.rstrip('/')}/{name}", each, name)
        for name, each in sorted(files, key=itemgetter(0))
    )
    return Listing(with_number(shown, len(found)), found, is_one=False)


def _below(system: Any, top: str) -> Iterator[Any]:
    from pyarrow.fs import FileSelector, FileType

    for each in system.get_file_info(FileSelector(top, recursive=True)):
        if each.type == FileType.File:
            yield each


def _file_on(system: Any, url: str, shown: str, info: Any, name: str) -> RemoteFile:
    return RemoteFile(url, shown, name, lambda: (system.open_input_stream(info.path, compression=None), info.size))


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the names of a path fit those of a pattern, in which ``**`` stands for any folders."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(parts[k:], pattern[1:]) for k in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])
