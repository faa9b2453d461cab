"""A store that fails: the place does not say that it is complete, and the same command finishes it."""

from pathlib import Path

import pytest

import bicliques as bq
from bicliques.schemas.errors import BicliqueError, ResourceError
from tests.support.bucket import Asked, Bucket
from tests.support.published import check_complete, check_honest

PREFIX = "night"


def publish(run: Path, bucket: Bucket) -> None:
    bq.publish(run, bucket.url(PREFIX), overwrite=True, progress=False)


#: What requests do: look, make a file in three steps or in one, read it back, and remove it.
WHATS = ("list", "head", "begin", "part", "complete", "put", "get", "delete")


@pytest.mark.values
@pytest.mark.parametrize(
    ("what", "fault"),
    [
        (what, fault)
        for i, what in enumerate(WHATS)
        for j, fault in enumerate(("cut before", "cut after", "refuse", "error"))
        if (i + j) % 4 < 2
    ],
)
@pytest.mark.usefixtures("impatient")
def test_a_store_that_stays_broken(run: Path, other: Path, bucket: Bucket, what: str, fault: str) -> None:
    """From the n-th request of a kind on, every request of this kind fails."""
    publish(run, bucket)
    asked = 0
    first = {"list": 2, "head": 4, "get": 4, "delete": 3}.get(what, 6)

    def broken(each: Asked) -> str | None:
        nonlocal asked
        asked += each.what == what
        return fault if each.what == what and asked >= first else None

    bucket.fault = broken
    said = ""
    try:
        publish(other, bucket)
    except BicliqueError as error:
        said = str(error)
    noticed = asked >= first
    bucket.well()
    assert bool(said) == noticed
    assert "\n" not in said
    assert said == "" or f"/{PREFIX}" in said
    check_honest(bucket.below(PREFIX), run, other)
    publish(other, bucket)
    check_complete(bucket.below(PREFIX), other)


@pytest.mark.parametrize("fault", ["cut before", "cut after", "error"])
def test_a_fault_that_passes_is_tried_again(run: Path, bucket: Bucket, fault: str) -> None:
    seen: set[str] = set()

    def once(asked: Asked) -> str | None:
        if asked.what in seen or asked.what == "complete":
            return None
        seen.add(asked.what)
        return fault

    bucket.fault = once
    publish(run, bucket)
    assert len(seen) >= 4
    bucket.well()
    check_complete(bucket.below(PREFIX), run)


def test_a_file_that_is_read_back_otherwise_is_not_taken(run: Path, bucket: Bucket) -> None:
    bucket.fault = lambda asked: "damage" if asked.what == "get" and "/labels/" in asked.key else None
    with pytest.raises(ResourceError, match=r"labels/\w+\.parquet (is read back with another content|cannot be read)"):
        publish(run, bucket)
    assert not {"_SUCCESS", "manifest.json"} & bucket.below(PREFIX).keys()
    bucket.well()
    publish(run, bucket)
    check_complete(bucket.below(PREFIX), run)


def test_a_file_that_is_stored_otherwise_is_not_taken(run: Path, bucket: Bucket) -> None:
    """The store says that all is well, and has lost a byte."""
    spoilt: list[str] = []

    def spoil(asked: Asked) -> None:
        if asked.what == "head" and "/bicliques/" in asked.key and asked.key not in spoilt:
            spoilt.append(asked.key)
            data = bucket.get(asked.key)
            bucket.put(asked.key, data[:-1] + bytes([data[-1] ^ 1]))

    bucket.fault = spoil
    with pytest.raises(ResourceError, match="is read back with another content than was written"):
        publish(run, bucket)
    bucket.well()
    publish(run, bucket)
    check_complete(bucket.below(PREFIX), run)
