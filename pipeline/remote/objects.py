"""The objects below a URL of a store: each is put whole or not at all, and put anew only where no other one is.

obstore asks the store. It is imported where it is needed, because most commands use no store. It takes keys from
variables alone, so those of a profile of AWS are read here. Arrow reads the same files by itself.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote, unquote

from bicliques.pipeline.remote.urls import as_asked, file_system, place_of, plain_errors, secrets_of
from bicliques.schemas.errors import BicliqueError, InputError, ResourceError
from bicliques.schemas.regular_files import regular

#: Requests that are made at a time. A store takes 10 to 50 ms for each, and many at once.
AT_A_TIME = 16
#: Bytes of a piece. A larger file goes in several. S3 takes no smaller pieces, and not more than 10,000.
PIECE_BYTES = 5 << 20
#: How often a request is repeated by obstore, with pauses that grow to 15 s.
RETRIES = 8
#: How long a request may take, and how long a store may be silent in it. Otherwise obstore would end each request after
#: 30 s, also one for a large file.
_PATIENCE = {"timeout": timedelta(days=1), "read_timeout": timedelta(seconds=60)}
#: How often an object is put that may not be there yet. obstore does not repeat that, because it cannot know whether
#: the object that is there is its own.
_TRIES = 4
#: Options in the query of a URL, as Arrow has them.
_OPTIONS = ("endpoint_override", "scheme", "region")

Item = TypeVar("Item")
Result = TypeVar("Result")


class TakenError(BicliqueError):
    """There is another object where a new one was to be put."""


def objects_at(url: str) -> Objects:
    """The objects of a run at a URL. The same object for the same URL, because it keeps connections."""
    found = opened_at(url, as_asked(url))
    if not found.is_folder:
        raise InputError(f"{found.shown} names no folder of a bucket; write it as in s3://lake/night")
    return found


@lru_cache(maxsize=8)
def opened_at(url: str, asked: str) -> Objects:
    """`Objects` at a URL, as long as the environment makes the same of it."""
    return Objects(url)


def beside(url: str, key: str) -> dict[str, bytes]:
    """The object that has this key in each of the folders beside the one at a URL, by the URLs of the folders.

    The folders are listed, and a listing that lags leaves out what is new. Folders without the object are left out.
    Raises `InputError` as `Objects`, and `ResourceError` if the store does not answer.
    """
    place, mark, query = url.partition("?")
    above, _, own = place.rstrip("/").rpartition("/")
    store = Objects(f"{above}{mark}{query}")
    names = [name for name in store.folders() if name != unquote(own)]
    found = zip(names, each(lambda name: store.get(f"{name}/{key}"), names), strict=True)
    return {f"{above}/{quote(name)}{mark}{query}": data for name, data in found if data is not None}


class Objects:
    """What is below a URL of a store. Keys are relative to it, with slashes. Threads may share it.

    Raises `InputError` if the URL names no bucket, or has a password or a key, or obstore is not installed. Raises
    `ResourceError`: by each method, if the store does not answer, or does not do it.

    Parameters
    ----------
    url : str
        As ``s3://bucket/folder``; options of Arrow may follow a ``?``.
    """

    def __init__(self, url: str):
        self.url = url
        self.shown = place_of(url)
        if secrets_of(url):
            raise InputError(
                f"{self.shown} is written with a secret, and the address of a run is recorded; give it in the "
                "environment, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        place, _, query = as_asked(url).partition("://")[2].partition("?")
        bucket, _, folder = unquote(place).strip("/").partition("/")
        if not bucket:
            raise InputError(f"{self.shown} names no bucket; write it as in s3://lake/night")
        self.is_folder = folder != ""
        self._path = f"{bucket}/{folder}"
        with self._errors("cannot be opened", InputError):
            self._store = _opened(bucket, folder, {name: value[-1] for name, value in parse_qs(query).items()})

    @contextmanager
    def _errors(self, cannot: str, kind: type[BicliqueError] = ResourceError, key: str = "") -> Iterator[None]:
        shown = f"{self.shown}/{key}".rstrip("/")
        with plain_errors(self.url, shown, cannot, kind), _short():
            yield

    def _if_there(self, cannot: str, key: str, ask: Callable[[], Result]) -> Result | None:
        """The answer to a request about an object. None if it is not there."""
        with self._errors(cannot, key=key):
            try:
                return ask()
            except FileNotFoundError:
                return None

    def put(self, key: str, content: bytes | Path) -> None:
        """Put some bytes, or those of a file, in the place of an object that may be there. Many go in pieces.

        If that fails, the pieces are given up. Those of a process that was killed stay in the store, where nobody can
        read them, until a lifecycle rule removes them.
        """
        import obstore

        with self._errors("cannot be written", key=key):
            try:
                whole = regular(content) if isinstance(content, Path) else content
                obstore.put(self._store, key, whole, chunk_size=PIECE_BYTES)
            except FileNotFoundError as error:
                if isinstance(content, Path) and not content.exists():
                    raise
                raise OSError("no answer") from error  # to the end of an upload, which is not there any more

    def put_new(self, key: str, data: bytes) -> None:
        """Put an object where none is. The same content may be there, from a request whose answer was lost."""
        for left in reversed(range(_TRIES)):
            try:
                if self._create(key, data):
                    return
                there = self.get(key)
            except ResourceError:
                if not left:
                    raise
                continue  # if the first request arrived, the next one finds its object
            if there == data:
                return
            if there is not None:
                break
        raise TakenError(f"{self.shown}/{key} is there already")

    def _create(self, key: str, data: bytes) -> bool:
        import obstore

        with self._errors("cannot be written", key=key):
            try:
                obstore.put(self._store, key, data, mode="create")
            except obstore.exceptions.AlreadyExistsError:
                return False
        return True

    def get(self, key: str) -> bytes | None:
        """The content of an object. None if it is not there."""
        import obstore

        return self._if_there("cannot be read", key, lambda: bytes(obstore.get(self._store, key).bytes()))

    def pieces(self, key: str) -> Iterator[bytes]:
        """The content of an object, piece by piece. Nothing if it is not there."""
        import obstore

        with self._errors("cannot be read", key=key):
            try:
                found = obstore.get(self._store, key)
            except FileNotFoundError:
                return
            for piece in found.stream():
                yield bytes(piece)

    def size(self, key: str) -> int | None:
        """Bytes of an object. None if it is not there."""
        import obstore

        return self._if_there("cannot be read", key, lambda: int(obstore.head(self._store, key)["size"]))

    def listed(self, folder: str) -> list[str]:
        """The names in a folder. A store may leave out what is new, and name what is gone."""
        import obstore

        with self._errors("cannot be listed", key=folder):
            found = [entry["path"] for page in obstore.list(self._store, folder) for entry in page]
        return [path.removeprefix(f"{folder}/") for path in found]

    def folders(self) -> list[str]:
        """The names of what has objects below it. A store may leave out what is new, and name what is gone."""
        import obstore

        with self._errors("cannot be listed"):
            found = obstore.list_with_delimiter(self._store)["common_prefixes"]
        return [name.rstrip("/") for name in found]

    def remove(self, key: str) -> None:
        """Remove an object, if it is there."""
        import obstore

        self._if_there("cannot be removed", key, lambda: obstore.delete(self._store, key))

    def for_arrow(self, key: str) -> tuple[str, Any]:
        """The path of an object and its file system, as Arrow reads them."""
        return f"{self._path}/{key}", _arrow(as_asked(self.url))


def each(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """`work` of each item, `AT_A_TIME` at a time, in the order of the items."""
    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="store") as threads:
        return list(threads.map(work, items))


def _opened(bucket: str, folder: str, options: dict[str, str]) -> Any:
    """A store of obstore. It has the credentials of the environment, of a profile, or of the machine."""
    try:
        from obstore.store import S3Store
    except ModuleNotFoundError as error:
        raise InputError(
            f"a run is kept in a store with {error.name}, which is not installed (pip install 'bicliques[store]')"
        ) from error
    unknown = options.keys() - set(_OPTIONS)
    if unknown:
        raise InputError(f"{min(unknown)} is no option of the address of a run; it takes {', '.join(_OPTIONS)}")
    told: dict[str, Any] = keys_of_profile()
    if (endpoint := options.get("endpoint_override")) is not None:
        if re.fullmatch(r"(?!https?:/)[\w.:/%~\[\]-]+", endpoint, re.ASCII) is None:
            write = "write it as in endpoint_override=minio:9000&scheme=http"
            raise InputError(f"endpoint_override {endpoint!r:.80} is no host and port; {write}")
        told["endpoint"] = f"{options.get('scheme', 'https')}://{endpoint}"
    if "region" in options:
        told["region"] = options["region"]
    client: Any = {"allow_http": options.get("scheme") == "http", **_PATIENCE}
    return S3Store(bucket, prefix=folder, client_options=client, retry_config={"max_retries": RETRIES}, **told)


@lru_cache(maxsize=8)
def _arrow(url: str) -> Any:
    return file_system(url)[0]


@contextmanager
def _short() -> Iterator[None]:
    """Shorten what obstore says of an error: the request and the answer of the server follow the reason."""
    try:
        yield
    except BicliqueError:
        raise
    except (ImportError, FileNotFoundError):
        raise
    except Exception as error:
        text = str(error).partition("\n")[0]
        said = re.search(r"status code: (\d+ [A-Za-z ]+?)(:|$)", text)
        if said is not None:
            text = f"the store answers {said[1]}"
        elif "sending request" in text:
            text = "no answer"
        raise OSError(text) from error


#: Variables that give credentials without a profile, or say that none are needed.
_GIVEN = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
)
_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


def keys_of_profile() -> dict[str, str]:
    """The keys of the profile that ``AWS_PROFILE`` names, or of ``default``. Empty if the environment has others."""
    if any(map(os.environ.get, _GIVEN)):
        return {}
    named = os.environ.get("AWS_PROFILE")
    name = named or "default"
    config = Path(os.environ.get("AWS_CONFIG_FILE") or _home("config"))
    credentials = Path(os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or _home("credentials"))
    found = _section(credentials, name) or _section(config, name if name == "default" else f"profile {name}")
    if named and not found:
        raise InputError(
            f"AWS_PROFILE is {named!r}, a profile without aws_access_key_id in {credentials}; write the keys there, or "
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    return found


def _home(name: str) -> str:
    return os.path.expanduser(f"~/.aws/{name}")  # noqa: PTH111 - no home is no error


def _section(file: Path, name: str) -> dict[str, str]:
    """The keys in one section of a file. Empty if it has none."""
    parser = configparser.RawConfigParser()
    try:
        parser.read(file)
    except (configparser.Error, OSError, UnicodeDecodeError):
        raise InputError(f"{file} cannot be read as a file of profiles; mend it") from None  # its lines have secrets
    return {key: parser[name][key] for key in _KEYS if name in parser and key in parser[name]}
