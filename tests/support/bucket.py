"""A bucket on an S3-compatible server of this machine (moto). It notes what it is asked, and fails where told to."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPMessage
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote

import pytest
from pyarrow.fs import AwsDefaultS3RetryStrategy, S3FileSystem
from werkzeug.serving import WSGIRequestHandler

from bicliques.pipeline.remote.urls import file_system
from tests.support.short_cuts import ShortCuts, listing

NAME = "lake"
#: Seconds after which a test that went wrong goes on.
_LONGEST_S = 300
ACCESS_KEY, SECRET_KEY = "someuser", "geheim/word/c0ffee4711"
#: The environment of a process that asks the store.
CREDENTIALS = {
    "AWS_EC2_METADATA_DISABLED": "true",
    **dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), "/dev/null"),
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
}
#: What a store does with a request: nothing and then it is gone; all but the answer; an error in the place of it; an
#: answer with another byte; it is gone when half of the body has come, or half of the answer went; nothing until the
#: test is over with it, while the connection stays.
FAULTS = ("cut before", "cut after", "refuse", "error", "damage", "half", "silence")
#: Bytes that the server's machine takes of a body before the server reads them; Linux doubles it. Otherwise that would
#: be megabytes, and nothing would be on the wire any more when the connection ends.
_TAKEN_BEFORE = 64 << 10


@dataclass(frozen=True)
class Asked:
    """A request: what it does, in one word, and to which key."""

    what: str
    key: str

    @property
    def changes(self) -> bool:
        return self.what not in ("get", "head", "list")


Fault = str | Callable[[], object]


class Gone:
    """A process that is killed, as its store sees it: from its n-th change on nothing of it arrives any more.

    Without `before` the n-th change is carried out, and the process never hears of it.
    """

    def __init__(self, at: int, before: bool):
        self._at, self._before = at, before
        self.changes = 0

    def __call__(self, asked: Asked) -> Fault | None:
        if self.changes >= self._at:
            return "refuse"
        self.changes += asked.changes
        if not asked.changes or self.changes < self._at:
            return None
        return "refuse" if self._before else "cut after"


class Killer:
    """Kills a process just before its n-th change of the bucket, or just after it."""

    def __init__(self, pid_file: Path, at: int, before: bool):
        self._pid_file, self._at, self._before = pid_file, at, before
        self.changes = 0

    def __call__(self, asked: Asked) -> Fault | None:
        self.changes += asked.changes
        if not asked.changes or self.changes != self._at:
            return None
        if not self._before:
            return self.kill
        self.kill()
        return "cut before"

    def kill(self) -> None:
        os.kill(int(self._pid_file.read_text()), signal.SIGKILL)


@dataclass
class Bucket:
    """A bucket that is there, and what was asked of it."""

    address: str
    asked: list[Asked] = field(default_factory=list)
    #: Bytes of the bodies of requests that came whole, and of the answers to them.
    received: int = 0
    sent: int = 0
    #: What to do with a request: one of `FAULTS`, or something to do when it is carried out and not answered yet. None
    #: answers it.
    fault: Callable[[Asked], Fault | None] = lambda asked: None
    #: What listings say, whatever is there: the keys of some moment, with their sizes. None: what is there.
    listed: dict[str, int] | None = None
    #: Bytes of the bodies of which half had come when the connection ended.
    halved: list[int] = field(default_factory=list)
    #: What to do when half of a body has come, before the connection ends.
    at_half: Callable[[], object] = lambda: None
    _is_well: threading.Event = field(default_factory=threading.Event)

    def url(self, key: str = "") -> str:
        """The address of a key for Arrow, without credentials."""
        return f"s3://{NAME}/{quote(key)}?endpoint_override={self.address}&scheme=http&region=us-east-1"

    def well(self) -> None:
        """From now on nothing fails, and nothing was asked yet."""
        self.fault, self.at_half, self.listed = (lambda asked: None), (lambda: None), None
        self.asked.clear()
        self.received = self.sent = 0
        self.halved.clear()
        self._is_well.set()
        self._is_well = threading.Event()

    def say_nothing(self) -> None:
        """Wait until all is well again."""
        self._is_well.wait(_LONGEST_S)

    def whats(self, *whats: str) -> list[str]:
        """The keys of these requests, in their order."""
        return [asked.key for asked in self.asked if asked.what in whats]

    def completed(self) -> list[str]:
        """The keys that got a content, in the order in which they got it."""
        return self.whats("put", "complete")

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """The content of every key below a prefix, taken from the server's memory and not asked for.

        A request of a process that was killed may still remove one meanwhile.
        """
        found = {key: self.held.get_object(NAME, key) for key in sorted(self._keys) if key.startswith(prefix)}
        return {key: there.value for key, there in found.items() if there is not None}

    def below(self, prefix: str) -> dict[str, bytes]:
        """The files below a prefix, by their keys there. A key that ends in a slash is no file."""
        found = self.objects(f"{prefix}/")
        return {key.removeprefix(f"{prefix}/"): data for key, data in found.items() if not key.endswith("/")}

    def stop_listing(self) -> None:
        """From now on listings have what is there now, and nothing that comes or goes later."""
        self.listed = {key: len(data) for key, data in self.objects().items()}

    def get(self, key: str) -> bytes:
        there = self.held.get_object(NAME, key)
        if there is None:
            raise FileNotFoundError(key)
        data: bytes = there.value
        return data

    def put(self, key: str, data: bytes) -> None:
        self.held.put_object(NAME, key, data)

    def delete(self, key: str) -> None:
        self.held.delete_object(NAME, key)

    def uploads(self) -> int:
        """Uploads in several parts that were begun and neither completed nor given up."""
        return len(self.held.list_multipart_uploads(NAME))

    @property
    def held(self) -> Any:
        """What the server keeps, which is in this process."""
        from moto.core import DEFAULT_ACCOUNT_ID
        from moto.s3.models import s3_backends

        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]

    @property
    def _keys(self) -> list[str]:
        """A copy, because requests may change what is there meanwhile."""
        return list(self.held.get_bucket(NAME).keys)


def asked_of(environ: dict[str, Any]) -> Asked:
    """What a request asks for."""
    method, query = environ["REQUEST_METHOD"], parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    _, _, key = unquote(environ.get("RAW_URI", environ["PATH_INFO"]).partition("?")[0]).lstrip("/").partition("/")
    words = {
        "GET": "get" if key else "list",
        "HEAD": "head",
        "DELETE": "abort" if "uploadId" in query else "delete",
        "PUT": "part" if "uploadId" in query else "put",
        "POST": "begin" if "uploads" in query else "delete" if "delete" in query else "complete",
    }
    return Asked(words[method], key)


class _Faulty:
    """Moto's application, with faults before it."""

    def __init__(self, app: Any, bucket: Bucket):
        self._bucket, self._cuts = bucket, ShortCuts(app, NAME, bucket.held)
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        asked = asked_of(environ)
        with self._lock:  # a fault counts requests
            self._bucket.asked.append(asked)
            fault = self._bucket.fault(asked)
        if fault is None and asked.what == "list" and self._bucket.listed is not None:
            return _old_listing(self._bucket.listed, environ, start_response)
        if fault is None:
            return self._answered(asked, environ, start_response)
        if fault in ("refuse", "error"):
            return _refusal(fault, environ, start_response)
        if fault == "damage":
            return [_damaged(b"".join(self._app(asked, environ, start_response)))]
        if fault == "half" and asked.what == "get":
            return self._half_of_the_answer(asked, environ, start_response)
        if fault == "half":
            self._bucket.halved.append(_half_of_the_body(environ))
            self._bucket.at_half()
        if fault == "silence":
            self._bucket.say_nothing()
        if fault == "cut after" or callable(fault):
            b"".join(self._app(asked, environ, lambda *_: None))
        if callable(fault):
            fault()
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        raise ConnectionAbortedError

    def _app(self, asked: Asked, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        return self._cuts.answer(asked.what, asked.key, environ, start_response)

    def _answered(self, asked: Asked, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        answer = list(self._app(asked, environ, start_response))
        with self._lock:
            self._bucket.received += _size_of_body(environ)
            self._bucket.sent += sum(map(len, answer))
        return answer

    def _half_of_the_answer(self, asked: Asked, environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        data = b"".join(self._app(asked, environ, start_response))
        yield data[: len(data) // 2]
        self._bucket.halved.append(len(data))
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        raise ConnectionAbortedError


class _Handler(WSGIRequestHandler):
    """Reads headers without the grammar of mail, and keeps no log: these take half of the time of a request."""

    protocol_version = "HTTP/1.1"

    def parse_request(self) -> bool:
        self.requestline = self.raw_requestline.decode("latin-1").rstrip("\r\n")
        self.command, self.path, self.request_version = self.requestline.split()
        self.headers = HTTPMessage()
        while (line := self.rfile.readline().decode("latin-1").rstrip("\r\n")) != "":
            name, _, value = line.partition(":")
            self.headers.set_raw(name, value.strip())
        return True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


def _size_of_body(environ: dict[str, Any]) -> int:
    """Arrow's client sends it in chunks."""
    return int(environ.get("HTTP_X_AMZ_DECODED_CONTENT_LENGTH") or environ.get("CONTENT_LENGTH") or 0)


def _half_of_the_body(environ: dict[str, Any]) -> int:
    """Read so much of a body, and tell how large it is."""
    size = _size_of_body(environ)
    left = size // 2
    while left and (piece := environ["wsgi.input"].read(left)):
        left -= len(piece)
    return size


def _old_listing(listed: dict[str, int], environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """What a listing has where nothing but these objects is known."""
    query = {name: values[0] for name, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
    objects = {key: ("2026-01-01T00:00:00.000Z", size) for key, size in listed.items()}
    start_response("200 OK", [("Content-Type", "application/xml")])
    return [listing(NAME, query.get("prefix", ""), query.get("delimiter", ""), objects)]


def _refusal(fault: str, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    status, code = ("403 Forbidden", "AccessDenied") if fault == "refuse" else ("500 Internal", "InternalError")
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start_response(status, [("Content-Type", "application/xml"), ("Connection", "close")])
    return [f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode()]


def _damaged(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :] if data else data


def impatient_file_system(url: str, **more: Any) -> tuple[S3FileSystem, str]:
    """As `pipeline.remote.urls.file_system`, but what fails is asked for a second time, at once, and not a third.

    Arrow's own client tries for six seconds, so a store that stays broken takes that long.
    """
    system, path = file_system(url)
    _, (how,) = system.__reduce__()
    return S3FileSystem(**how | {"retry_strategy": AwsDefaultS3RetryStrategy(max_attempts=1)} | more), path


@contextmanager
def bucket_of_moto(patch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A new bucket, and an environment with credentials for it."""
    from moto.moto_server.werkzeug_app import create_backend_app
    from moto.s3.models import s3_backends
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    patch.delenv("AWS_PROFILE", raising=False)  # moto itself fails with one that is not there
    for name, value in CREDENTIALS.items():
        patch.setenv(name, value)
    bucket = Bucket("")
    app = _Faulty(create_backend_app("s3"), bucket)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Handler)
    server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _TAKEN_BEFORE)
    bucket.address = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        bucket.held.create_bucket(NAME, "us-east-1")
        yield bucket
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        s3_backends.reset()
