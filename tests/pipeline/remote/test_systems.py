"""What Arrow says of a store becomes one sentence, with the seconds for which a server was silent."""

from __future__ import annotations

import pytest

from pipeline.remote.systems import plain_errors
from schemas.errors import ResourceError

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
