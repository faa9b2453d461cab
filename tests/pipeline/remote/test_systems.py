"""What Arrow says of a store becomes one sentence, with the seconds for which a server was silent."""

from urllib.parse import quote

import pytest

from bicliques.pipeline.remote import objects
from bicliques.pipeline.remote.urls import plain_errors
from bicliques.schemas.errors import InputError, ResourceError
from tests.support.bucket import impatient_file_system
from tests.support.servers import bucket_server

DURING = "When listing objects under key 'night/' in bucket 'lake': AWS Error NETWORK_CONNECTION during ListObjectsV2"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Operation too slow. Less than 1 bytes/sec transferred the last 3 seconds", "3 s"),
        ("Operation timed out after 3001 milliseconds with 0 bytes received", "3001 ms"),
        ("Connection timed out after 1000 ms", "1000 ms"),
    ],
)
def test_a_server_that_is_silent(text: str, reason: str) -> None:
    said = f"{DURING} operation: curlCode: 28, Timeout was reached; Details: {text}"
    with pytest.raises(ResourceError) as caught, plain_errors("s3://lake/night", "s3://lake/night", kind=ResourceError):
        raise OSError(said)
    assert str(caught.value) == (
        f"s3://lake/night cannot be read (no answer within {reason}, however often it was asked); check the address "
        "and the connection, and try again"
    )


def test_another_error_is_told_without_its_details() -> None:
    reason = f"{DURING} operation: curlCode: 52, Server returned nothing (no headers, no data)"
    with pytest.raises(ResourceError) as caught, plain_errors("s3://lake/night", "s3://lake/night", kind=ResourceError):
        raise OSError(f"{reason}; Details: Empty reply from server")
    assert str(caught.value) == (
        f"s3://lake/night cannot be read ({reason}); check the address, the connection and the credentials"
    )


def refused(kind: str, url: str, patch: pytest.MonkeyPatch) -> str:
    """What is said where a store is asked for an object by one of the two clients."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.setenv(name, "test")
    patch.setattr(objects, "RETRIES", 0)

    def ask() -> None:
        if kind == "run":
            objects.Objects(url).get("options.json")
            return
        with plain_errors(url, url.partition("?")[0], kind=ResourceError):
            system, path = impatient_file_system(url)
            system.open_input_file(path)

    with pytest.raises(ResourceError) as caught:
        ask()
    return str(caught.value)


@pytest.mark.parametrize("kind", ["run", "file"])
def test_a_store_that_speaks_plain_http_is_said_with_what_allows_it(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    with bucket_server({}) as server:
        address = server.url.partition("://")[2].partition("/")[0]
        told = refused(kind, f"s3://lake/night?endpoint_override={address}&region=here", monkeypatch)
        assert server.asked == []
    assert told.endswith("and https is asked of it); if that is right, end the address with &scheme=http")


@pytest.mark.parametrize("endpoint", ["http://minio:9000", "https:/minio:9000", "a b", "x'y", "[::1]:9\n"])
def test_an_endpoint_that_is_no_host_is_refused_with_how_to_write_it(endpoint: str) -> None:
    with pytest.raises(
        InputError, match=r"is no host and port; write it as in endpoint_override=minio:9000&scheme=http$"
    ):
        objects.Objects(f"s3://lake/night?endpoint_override={quote(endpoint)}&region=here")
