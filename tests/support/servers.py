"""Servers of this machine for what is read from others: files by HTTP, and a bucket that speaks as S3 does."""

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


@dataclass
class Server:
    """A server that runs, and what it was asked."""

    url: str
    files: dict[str, bytes]
    #: "user:password" that a request has to bring, "" for none.
    user: str = ""
    #: The query that a request has to bring, as a signature.
    query: str = ""
    #: Path -> the code that is answered.
    failing: dict[str, int] = field(default_factory=dict)
    #: Path -> where it leads to.
    moved: dict[str, str] = field(default_factory=dict)
    #: Bytes that are sent of every file, although all are promised.
    cut_at: int | None = None
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    #: Bytes of the body of every answer.
    sent: list[int] = field(default_factory=list)


class _Quiet(BaseHTTPRequestHandler):
    server: Any

    def log_message(self, *_: object) -> None:
        pass

    def answer(
        self, code: int, body: bytes = b"", headers: dict[str, str] | None = None, cut: int | None = None
    ) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.server.told.sent.append(self.wfile.write(body if cut is None else body[:cut]))


class _Files(_Quiet):
    def do_GET(self) -> None:
        told: Server = self.server.told
        parts = urlsplit(self.path)
        told.asked.append((self.path, dict(self.headers)))
        wanted = f"Basic {base64.b64encode(told.user.encode()).decode()}"
        if parts.path in told.moved:
            self.answer(302, headers={"Location": told.moved[parts.path]})
        elif (told.user and self.headers.get("Authorization") != wanted) or parts.query != told.query:
            self.answer(403)
        elif parts.path in told.failing:
            self.answer(told.failing[parts.path])
        elif (data := told.files.get(unquote(parts.path))) is None:
            self.answer(404)
        else:
            self.answer(200, data, cut=told.cut_at)


class _Bucket(_Quiet):
    """What Arrow asks of S3 to list and to read: HEAD, GET with a range, and ListObjectsV2."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        told: Server = self.server.told
        parts = urlsplit(self.path)
        told.asked.append((self.path, dict(self.headers)))
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        if bucket != "lake":
            self.answer(404)
        elif not key:
            self._list(parse_qs(parts.query, keep_blank_values=True))
        elif (data := told.files.get(key)) is None:
            self.answer(404)
        else:
            headers = {"Last-Modified": formatdate(usegmt=True), "ETag": '"1"', "Accept-Ranges": "bytes"}
            if span := self.headers.get("Range"):
                first, _, last = span.removeprefix("bytes=").partition("-")
                part = data[int(first) : int(last) + 1 if last else None]
                there = f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"
                self.answer(206, part, headers | {"Content-Range": there})
            elif self.command == "HEAD":
                self.answer(200, b"", headers | {"Content-Length": str(len(data))})
            else:
                self.answer(200, data, headers)

    def _list(self, query: dict[str, list[str]]) -> None:
        prefix, delimiter = (query.get(name, [""])[0] for name in ("prefix", "delimiter"))
        keys = sorted(key for key in self.server.told.files if key.startswith(prefix))
        direct = [key for key in keys if not delimiter or delimiter not in key[len(prefix) :]]
        folders = sorted(
            {prefix + key[len(prefix) :].partition(delimiter)[0] + "/" for key in keys if key not in direct}
        )
        items = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-11-23T00:00:00.000Z</LastModified>"
            f"<ETag>1</ETag><Size>{len(self.server.told.files[key])}</Size></Contents>"
            for key in direct
        )
        items += "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in folders)
        body = (
            f'<?xml version="1.0"?><ListBucketResult><Name>lake</Name><Prefix>{escape(prefix)}</Prefix>'
            f"<KeyCount>{len(direct) + len(folders)}</KeyCount><IsTruncated>false</IsTruncated>{items}"
            "</ListBucketResult>"
        )
        self.answer(200, body.encode(), {"Content-Type": "application/xml"})


@contextmanager
def _serving(handler: type[_Quiet], files: dict[str, bytes]) -> Iterator[Server]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        told = Server(f"http://127.0.0.1:{server.server_address[1]}", files)
        server.told = told  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield told
        finally:
            server.shutdown()
            thread.join()


def file_server(files: dict[str, bytes]) -> Any:
    """A context with a server of files, by their paths."""
    return _serving(_Files, files)


def bucket_server(files: dict[str, bytes]) -> Any:
    """A context with a server of the bucket ``lake``, by keys."""
    return _serving(_Bucket, files)
