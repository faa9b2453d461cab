"""A publication that is cut off, anywhere and in the middle of a body: the same command finishes it."""

import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.schemas.errors import BicliqueError, ResourceError
from tests.support.bucket import CREDENTIALS, Asked, Bucket, Killer
from tests.support.forks import Sweeper, sweeping
from tests.support.published import check_complete, check_honest, contents

PREFIX = "night"
#: Requests that change what a reader sees. Those that begin a file and send its pieces change nothing that is seen.
SEEN = ("put", "complete", "delete")
#: More than the two machines at the ends of a connection take before anybody reads it.
LARGE = 24 << 20


def publish(run: Path, bucket: Bucket, prefix: str = PREFIX) -> bq.Published:
    return bq.publish(run, bucket.url(prefix), overwrite=True, progress=False)


def cut_off(run: Path, bucket: Bucket, at: int, prefix: str = PREFIX) -> bool:
    """Publish, but for the n-th change that is seen and all requests after it. Whether there were so many.

    That is what a bucket gets from a process that was killed: whatever this one does afterwards is refused.
    """
    changes = 0

    def ended(asked: Asked) -> str | None:
        nonlocal changes
        changes += asked.what in SEEN
        return "refuse" if changes >= at else None

    bucket.fault = ended
    with suppress(BicliqueError):
        publish(run, bucket, prefix)
    bucket.well()
    return changes >= at


@pytest.mark.parametrize("begin", [1, *(pytest.param(begin, marks=pytest.mark.exhaustive) for begin in (2, 3))])
def test_before_every_third_change_of_an_empty_place(run: Path, bucket: Bucket, begin: int) -> None:
    for at in count(begin, 3):
        prefix = f"{PREFIX}-{at}"
        was_cut_off = cut_off(run, bucket, at, prefix)
        check_honest(bucket.below(prefix), run)
        assert ("_SUCCESS" in bucket.below(prefix)) != was_cut_off, "the mark is the last change"
        publish(run, bucket, prefix)
        check_complete(bucket.below(prefix), run)
        if not was_cut_off:
            break
    assert at > len(contents(run))


@pytest.mark.parametrize("step", [9, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_before_changes_from_one_run_to_another(run: Path, other: Path, bucket: Bucket, step: int) -> None:
    """Some changes of one direction, and others of the other: first each, then some of many alike.

    The changes at the end are those of an empty place, of which none is left out.
    """
    publish(other, bucket)
    was_cut_off, at = True, 0
    new, old = run, other
    while was_cut_off:
        at += 1 if at < 4 else step
        was_cut_off = cut_off(new, bucket, at)
        check_honest(bucket.below(PREFIX), new, old)
        is_marked = at == 1 or not was_cut_off
        assert ("_SUCCESS" in bucket.below(PREFIX)) == is_marked, "the mark is the first change and the last one"
        publish(new, bucket)
        check_complete(bucket.below(PREFIX), new)
        new, old = old, new
    assert at > len(contents(run)) + len(contents(other)) // 2


@pytest.mark.parametrize(("at", "before"), [(2, False), pytest.param(30, True, marks=pytest.mark.exhaustive)])
def test_a_process_that_is_killed(sweeper, run, other, bucket, tmp_path, at, before):
    publish(other, bucket)
    bucket.fault = Killer(tmp_path / "pid", at, before)
    check_killed(sweeper, run, other, bucket, tmp_path)


@pytest.fixture(scope="module")
def sweeper() -> Iterator[Sweeper]:
    with sweeping(CREDENTIALS) as process:
        yield process


def check_killed(sweeper: Sweeper, run: Path, other: Path, bucket: Bucket, place: Path) -> None:
    words = ["publish", str(run), bucket.url(PREFIX), "--quiet", "--overwrite"]
    assert sweeper.run(place, words) == -signal.SIGKILL, (place / "err").read_text()
    bucket.well()
    check_honest(bucket.below(PREFIX), run, other)
    assert "_SUCCESS" not in bucket.below(PREFIX)
    assert sweeper.run(place, words) == 0, (place / "err").read_text()
    check_complete(bucket.below(PREFIX), run)


@pytest.fixture
def large(run: Path, tmp_path: Path) -> Path:
    """A run with a page that is sent in several bodies of 10 MB."""
    copy = shutil.copytree(run, tmp_path / "large")
    (copy / "report.html").write_bytes(bytes(range(256)) * (LARGE // 256))
    return copy


def of_page(asked: Asked, what: str) -> bool:
    return asked.what == what and asked.key.endswith("report.html")


def test_a_process_that_is_killed_in_the_middle_of_a_body(sweeper, large, other, bucket, tmp_path):
    publish(other, bucket)
    bucket.fault = lambda asked: "half" if of_page(asked, "part") else None
    bucket.at_half = Killer(tmp_path / "pid", 0, before=True).kill
    check_killed(sweeper, large, other, bucket, tmp_path)


@pytest.mark.parametrize("what", ["part", "get"])
@pytest.mark.first(1)
def test_a_body_that_is_cut_in_half_once_is_sent_again(large: Path, bucket: Bucket, what: str) -> None:
    halved = bucket.halved
    bucket.fault = lambda asked: "half" if of_page(asked, what) and not halved else None
    publish(large, bucket)
    assert max(halved) > LARGE // 4
    check_complete(bucket.below(PREFIX), large)


@pytest.mark.parametrize("what", ["part", "get"])
@pytest.mark.usefixtures("impatient")
@pytest.mark.first(1)
def test_a_connection_that_always_ends_in_the_middle(large: Path, other: Path, bucket: Bucket, what: str) -> None:
    publish(other, bucket)
    bucket.fault = lambda asked: "half" if of_page(asked, what) else None
    says = r"^s3://lake/night/report\.html cannot be (written|read back) \(.+\); check the address, the connection and "
    with pytest.raises(ResourceError, match=says):
        publish(large, bucket)
    assert len(bucket.halved) >= 2
    bucket.well()
    check_honest(bucket.below(PREFIX), large, other)
    assert not {"_SUCCESS", "manifest.json"} & bucket.below(PREFIX).keys()
    publish(large, bucket)
    check_complete(bucket.below(PREFIX), large)


@pytest.mark.parametrize(
    "what", ["list", *(pytest.param(each, marks=pytest.mark.exhaustive) for each in ("part", "get"))]
)
@pytest.mark.usefixtures("hasty")
def test_a_store_that_says_nothing(run: Path, other: Path, bucket: Bucket, what: str) -> None:
    """The connection stays, and no answer comes."""
    publish(other, bucket)
    bucket.fault = lambda asked: "silence" if asked.what == what else None
    with pytest.raises(BicliqueError) as caught:
        publish(run, bucket)
    bucket.well()
    says = (
        r"s3://lake/night[\w/.]* cannot be (read|read back|written|removed) \(no answer within 1 s, however often it "
        r"was asked\); check the address and the connection, and try again"
    )
    assert re.fullmatch(says, str(caught.value)), str(caught.value)
    check_honest(bucket.below(PREFIX), run, other)
    publish(run, bucket)
    check_complete(bucket.below(PREFIX), run)
