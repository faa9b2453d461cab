"""Requests that tests make by the thousand, answered from what moto keeps: its own way there takes far longer."""

import re
import threading
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs
from xml.etree import ElementTree
from xml.sax.saxutils import escape

#: Headers and queries that change nothing in what is answered. With any other one, moto is asked.
_PLAIN_HEADERS = {
    "HTTP_ACCEPT",
    "HTTP_AMZ_SDK_INVOCATION_ID",
    "HTTP_AMZ_SDK_REQUEST",
    "HTTP_AUTHORIZATION",
    "HTTP_CONTENT_ENCODING",
    "HTTP_EXPECT",
    "HTTP_HOST",
    "HTTP_TRANSFER_ENCODING",
    "HTTP_USER_AGENT",
    "HTTP_X_AMZ_API_VERSION",
    "HTTP_X_AMZ_CHECKSUM_MODE",
    "HTTP_X_AMZ_CONTENT_SHA256",
    "HTTP_X_AMZ_DATE",
    "HTTP_X_AMZ_DECODED_CONTENT_LENGTH",
    "HTTP_X_AMZ_TRAILER",
}
_ALSO = {"get": {"HTTP_RANGE"}, "put": {"HTTP_IF_NONE_MATCH"}}
_QUERIES = {
    "begin": [{"uploads"}],
    "part": [{"partNumber", "uploadId"}],
    "complete": [{"uploadId"}],
    "list": [
        {"list-type", "prefix"} | more for more in (set(), {"delimiter"}, {"max-keys"}, {"delimiter", "max-keys"})
    ],
}
#: As many as one answer of a listing has.
_MOST_LISTED = 1000
_MISSING = b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>"
_THERE = b"<?xml version='1.0'?><Error><Code>PreconditionFailed</Code><Message>it is there</Message></Error>"
_DONE = "<?xml version='1.0'?><CompleteMultipartUploadResult><ETag>{}</ETag></CompleteMultipartUploadResult>"
_BEGUN = "<?xml version='1.0'?><InitiateMultipartUploadResult><UploadId>{}</UploadId></InitiateMultipartUploadResult>"

Answer = tuple[HTTPStatus, dict[str, str], bytes]


class ShortCuts:
    """An application that answers reading, writing and removing one object, and asks moto's for everything else.

    Parameters
    ----------
    app : WSGI application
        That of moto.
    name : str
        The bucket.
    held : object
        What moto keeps of all buckets.
    """

    def __init__(self, app: Any, name: str, held: Any):
        self._app, self._name, self._held = app, name, held
        self._changing = threading.Lock()

    def answer(self, what: str, key: str, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request that `what` describes in a word, as `tests.support.bucket.Asked` does."""
        found = self._found(what, key, environ)
        if found is None:
            answer: Iterable[bytes] = self._app(environ, start_response)
            return answer
        status, headers, body = found
        if what != "head":
            headers["Content-Length"] = str(len(body))
        start_response(f"{status.value} {status.phrase}", list(headers.items()))
        return [] if what == "head" else [body]

    def _found(self, what: str, key: str, environ: dict[str, Any]) -> Answer | None:
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        more = {name for name in environ if name.startswith("HTTP_")} - _PLAIN_HEADERS
        is_folder = environ.get("CONTENT_TYPE") == "application/x-directory"
        of_bucket = environ["PATH_INFO"].lstrip("/").partition("/")[0] == self._name
        if (
            not of_bucket
            or query.keys() not in _QUERIES.get(what, [set()])
            or not more <= _ALSO.get(what, set())
            or is_folder
        ):
            return None
        if what in ("get", "head"):
            return self._read(key, environ.get("HTTP_RANGE"))
        if what == "put":
            return self._put(key, environ)
        if what == "delete":
            self._held.delete_object(self._name, key)
            return HTTPStatus.NO_CONTENT, {}, b""
        if what == "list":
            return self._listed(query["prefix"][0], query.get("delimiter", [""])[0])
        if what == "complete":
            return self._complete(key, query["uploadId"][0], environ)
        if what == "begin":
            kind = {"content-type": environ.get("CONTENT_TYPE", "")}
            begun = self._held.create_multipart_upload(self._name, key, kind, "STANDARD", {}, None, None, None)
            return HTTPStatus.OK, {"Content-Type": "application/xml"}, _BEGUN.format(begun.id).encode()
        if what == "part" and query["uploadId"][0] in self._held.list_multipart_uploads(self._name):
            number = int(query["partNumber"][0])
            part = self._held.upload_part(self._name, query["uploadId"][0], number, _body(environ))
            return HTTPStatus.OK, {"ETag": part.etag}, b""
        return None

    def _read(self, key: str, wanted: str | None) -> Answer | None:
        there = self._held.get_object(self._name, key)
        if there is None:
            return HTTPStatus.NOT_FOUND, {"Content-Type": "application/xml"}, _MISSING
        data = there.value
        headers = {**there.metadata, **there.response_dict, "Accept-Ranges": "bytes", "content-length": str(len(data))}
        if wanted is None:
            headers["Content-Length"] = headers.pop("content-length")
            return HTTPStatus.OK, headers, data
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted)
        if found is None or int(found[1]) >= len(data):
            return None
        first, last = int(found[1]), min(int(found[2] or len(data)), len(data) - 1)
        del headers["content-length"]
        headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        return HTTPStatus.PARTIAL_CONTENT, headers, data[first : last + 1]

    def _listed(self, prefix: str, mark: str) -> Answer | None:
        held = {name: self._held.get_object(self._name, name) for name in list(self._held.get_bucket(self._name).keys)}
        found = {name: (there.last_modified_ISO8601, there.size) for name, there in held.items() if there is not None}
        if len(found) > _MOST_LISTED:
            return None
        return HTTPStatus.OK, {"Content-Type": "application/xml"}, listing(self._name, prefix, mark, found)

    def _complete(self, key: str, upload: str, environ: dict[str, Any]) -> Answer | None:
        if upload not in self._held.list_multipart_uploads(self._name):
            return None
        parts = [
            (int(part.findtext("{*}PartNumber", "")), part.findtext("{*}ETag", ""))
            for part in ElementTree.fromstring(_body(environ)).iterfind("{*}Part")
        ]
        done = self._held.complete_multipart_upload(self._name, upload, iter(parts))
        return HTTPStatus.OK, {"Content-Type": "application/xml"}, _DONE.format(escape(done.etag)).encode()

    def _put(self, key: str, environ: dict[str, Any]) -> Answer | None:
        if environ.get("HTTP_IF_NONE_MATCH", "*") != "*":
            return None
        data = _body(environ)
        with self._changing:  # of two that ask for a key that is not there yet, one gets it
            if "HTTP_IF_NONE_MATCH" in environ and self._held.get_object(self._name, key) is not None:
                return HTTPStatus.PRECONDITION_FAILED, {"Content-Type": "application/xml"}, _THERE
            put = self._held.put_object(self._name, key, data)
        return HTTPStatus.OK, {"ETag": put.etag}, b""


def listing(bucket: str, prefix: str, mark: str, objects: dict[str, tuple[str, int]]) -> bytes:
    """What ListObjectsV2 answers if these objects are there, each with its time and bytes."""
    told = dict[str, str]()
    for key in sorted(key for key in objects if key.startswith(prefix)):
        first, is_below, _ = key.removeprefix(prefix).partition(mark) if mark else (key, "", "")
        if is_below:
            folder = f"{prefix}{first}{mark}"
            told[folder] = f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            continue
        time, size = objects[key]
        rest = f"<LastModified>{time}</LastModified><ETag>&quot;0&quot;</ETag><Size>{size}</Size>"
        told[key] = f"<Contents><Key>{escape(key)}</Key>{rest}</Contents>"
    head = f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(told)}</KeyCount>"
    text = f"<?xml version='1.0'?><ListBucketResult>{head}<IsTruncated>false</IsTruncated>{''.join(told.values())}"
    return f"{text}</ListBucketResult>".encode()


def _body(environ: dict[str, Any]) -> bytes:
    """The body of a request. Arrow's client sends it in chunks, each after its length, with a checksum after all."""
    stream, length = environ["wsgi.input"], environ.get("CONTENT_LENGTH")
    sent: bytes = stream.read(int(length)) if length else stream.read() if environ.get("wsgi.input_terminated") else b""
    if environ.get("HTTP_CONTENT_ENCODING") != "aws-chunked":
        return sent
    pieces, at = [], 0
    while True:
        end = sent.index(b"\r\n", at)
        size = int(sent[at:end].partition(b";")[0], 16)
        if size == 0:
            return b"".join(pieces)
        pieces.append(sent[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
