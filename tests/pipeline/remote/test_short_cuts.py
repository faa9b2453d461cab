"""The bucket of the tests answers by its short cuts as moto's own server does."""

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.test import Client, TestResponse

from tests.support.bucket import NAME, Bucket, asked_of, bucket_of_moto
from tests.support.short_cuts import ShortCuts

SAME = ("ETag", "Content-Length", "Content-Range", "Last-Modified", "Accept-Ranges")
OBJECTS = {"a/b": b"0123456789", "a/c/d": b"deep", "a/c/e": b"", "f": b"top"}

#: Moto answers nobody whom it does not know, and looks at no signature.
SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, SignedHeaders=host"}


class Signing(Client):
    """A client that signs its requests."""

    def open(self, *given: Any, headers: dict[str, str] | None = None, **how: Any) -> TestResponse:
        return super().open(*given, headers=SIGNED | (headers or {}), **how)


class LeftToMotoError(Exception):
    """A request had no short cut."""


def left_to_moto(environ: Any, start_response: Any) -> Any:
    raise LeftToMotoError


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with bucket_of_moto(monkeypatch) as there:
        for key, data in OBJECTS.items():
            there.put(key, data)
        yield there


@pytest.fixture
def moto() -> Client:
    return Signing(create_backend_app("s3"))


@pytest.fixture
def cuts(bucket: Bucket) -> Client:
    cuts = ShortCuts(left_to_moto, NAME, bucket.held)

    def app(environ: Any, start_response: Any) -> Any:
        asked = asked_of(environ)
        return cuts.answer(asked.what, asked.key, environ, start_response)

    return Signing(app)


def said(answer: TestResponse) -> dict[str, str]:
    """The headers that clients look at."""
    return {name: answer.headers[name] for name in SAME if name in answer.headers}


@pytest.mark.parametrize("wanted", [None, "bytes=0-2", "bytes=1-", "bytes=2-100"])
@pytest.mark.parametrize("key", ["a/b", "a/c/d", "f"])
def test_reading_an_object(moto: Client, cuts: Client, key: str, wanted: str | None) -> None:
    headers = {} if wanted is None else {"Range": wanted}
    theirs, ours = (client.get(f"/{NAME}/{key}", headers=headers) for client in (moto, cuts))
    assert (ours.status_code, ours.data) == (theirs.status_code, theirs.data)
    assert said(ours) == said(theirs)


@pytest.mark.parametrize("key", ["a/b", "a/c/e"])
def test_asking_for_an_object(moto: Client, cuts: Client, key: str) -> None:
    theirs, ours = (client.head(f"/{NAME}/{key}") for client in (moto, cuts))
    assert (ours.status_code, ours.data, said(ours)) == (theirs.status_code, theirs.data, said(theirs))


def test_what_is_not_there(moto: Client, cuts: Client) -> None:
    assert [client.head(f"/{NAME}/no").status_code for client in (moto, cuts)] == [404, 404]
    answers = [client.get(f"/{NAME}/no") for client in (moto, cuts)]
    assert [(answer.status_code, b"<Code>NoSuchKey</Code>" in answer.data) for answer in answers] == [(404, True)] * 2


@pytest.mark.parametrize("prefix", ["", "a/", "a/c/", "no/"])
@pytest.mark.parametrize("mark", ["", "/"])
def test_listings(moto: Client, cuts: Client, prefix: str, mark: str) -> None:
    query = {"list-type": "2", "prefix": prefix} | ({"delimiter": mark} if mark else {})
    found = []
    for client in (moto, cuts):
        top = ElementTree.fromstring(re.sub(rb' xmlns="[^"]+"', b"", client.get(f"/{NAME}", query_string=query).data))
        entries = [[each.findtext(name) for name in ("Key", "LastModified", "Size")] for each in top.iter("Contents")]
        folders = [each.findtext("Prefix") for each in top.iter("CommonPrefixes")]
        found.append((entries, folders, top.findtext("IsTruncated")))
    assert found[0] == found[1]


def test_writing_and_removing(bucket: Bucket, moto: Client, cuts: Client) -> None:
    for client in (moto, cuts):
        bucket.delete("new")
        assert client.put(f"/{NAME}/new", data=b"one").status_code == 200
        assert bucket.get("new") == b"one"
        only_new = {"If-None-Match": "*"}
        assert client.put(f"/{NAME}/new", data=b"two", headers=only_new).status_code == 412
        assert client.put(f"/{NAME}/newer", data=b"two", headers=only_new).status_code == 200
        assert bucket.get("newer") == b"two"
        assert [client.delete(f"/{NAME}/{key}").status_code for key in ("newer", "no")] == [204, 204]
        assert "newer" not in bucket.objects()


@pytest.mark.parametrize("chunked", [False, True])
def test_a_file_in_parts(bucket: Bucket, moto: Client, cuts: Client, chunked: bool) -> None:
    data, sent, headers = b"x" * 300, b"x" * 300, {}
    if chunked:
        sent = b"100\r\n" + data[:256] + b"\r\n2c\r\n" + data[256:] + b"\r\n0\r\nx-amz-checksum-crc64nvme:AAAA=\r\n\r\n"
        headers = {"Content-Encoding": "aws-chunked", "X-Amz-Decoded-Content-Length": "300"}
        headers["X-Amz-Content-Sha256"] = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    tags = []
    for client in (moto, cuts):
        begun = client.post(f"/{NAME}/whole?uploads").data
        upload = re.search(rb"<UploadId>(.+)</UploadId>", begun)
        assert upload is not None
        place = f"/{NAME}/whole?uploadId={upload[1].decode()}"
        part = client.put(f"{place}&partNumber=1", data=sent, headers=headers)
        assert "whole" not in bucket.objects()
        body = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{part.headers['ETag']}</ETag></Part>"
        done = client.post(place, data=f"{body}</CompleteMultipartUpload>")
        tags.append((part.headers["ETag"], re.findall(rb"<ETag>(.+)</ETag>", done.data)))
        assert bucket.get("whole") == data
        assert bucket.uploads() == 0
        bucket.delete("whole")
    assert tags[0] == tags[1]


@pytest.mark.parametrize("query", ["versionId=null", "uploadId=no&partNumber=1", "acl"])
def test_what_is_seldom_asked_is_left_to_moto(cuts: Client, query: str) -> None:
    with pytest.raises(LeftToMotoError):
        cuts.put(f"/{NAME}/a/b?{query}", data=b"x")


def test_another_bucket_is_left_to_moto(cuts: Client) -> None:
    with pytest.raises(LeftToMotoError):
        cuts.get("/other/a/b")
