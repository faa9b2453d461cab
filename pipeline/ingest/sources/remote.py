"""Files that are not on this machine: lists them and opens them by their URLs.

The standard library reads ``http://`` and ``https://``, and `pipeline.remote.urls` opens everything else. No message
has a password, a key or a signature, nor the text of an exception that may have one.
"""

from __future__ import annotations

import base64
import glob
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from operator import itemgetter
from pathlib import PurePosixPath
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from bicliques.pipeline import __version__
from bicliques.pipeline.ingest.readers.files import chosen, is_hidden, refuse_part, refuse_run, with_number
from bicliques.pipeline.remote.urls import file_system, plain_errors, without_secrets
from bicliques.schemas.errors import InputError

#: Seconds without an answer after which a server counts as gone.
_PATIENCE_S = 60
#: Bytes that are copied at a time.
_PIECE = 1 << 20

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
    is_one : bool
        Whether the URL is that of a file.
    """

    title: str
    files: tuple[RemoteFile, ...]
    is_one: bool


def listed(url: str, where: Sequence[str] = ()) -> Listing:
    """The files of a URL: one, or all of a folder or of a pattern, as `pipeline.ingest.readers.files.find` has it.

    Raises `InputError`: there are none, or they cannot be listed.
    """
    shown, scheme = without_secrets(url), url.partition(":")[0].lower()
    if scheme in ("http", "https"):
        name = PurePosixPath(unquote(urlsplit(url).path)).name
        found = Listing(shown, (RemoteFile(url, shown, name, lambda: _open_http(url)),), is_one=True)
    else:
        with _reading(url, shown):
            found = _listed(url, shown, *file_system(url))
    if not where:
        return found
    title, fits = chosen(found.title, [file.shown.partition("://")[2] for file in found.files], where)
    return Listing(title, tuple(found.files[k] for k in fits), is_one=False)


def copy(file: RemoteFile, target: IO[bytes]) -> None:
    """Copy a file to the end of `target`."""
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
    """Turn every error into a sentence without secrets."""
    with plain_errors(url, shown):
        try:
            yield
        except HTTPError as error:
            remedy = "give credentials that may read it" if error.code in (401, 403) else "check the address"
            if error.code == 429 or error.code >= 500:
                remedy = "its server cannot answer now, so try again"
            reason = str(error.reason).partition("\n")[0]  # of many redirections it is three lines
            raise InputError(f"{shown} cannot be read (HTTP {error.code} {reason}); {remedy}") from None


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
    names = defaultdict[str, set[str]](set)
    for each in _below(system, top):
        name = each.path[len(top) :].strip("/")
        folders = name.split("/")
        refuse_part(shown, folders)
        for k, one in enumerate(folders if not pattern else ()):
            names["/".join(folders[:k])].add(one)
        fits = not pattern or any(_fits(folders[:k], pattern) for k in range(1, len(folders) + 1))
        if fits and (is_hidden("/".join(pattern)) or not is_hidden(name)):
            files.append((name, each))
    for folder, own in names.items():
        if not is_hidden(folder):
            refuse_run(f"{shown}/{folder}" if folder else shown, own)
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
