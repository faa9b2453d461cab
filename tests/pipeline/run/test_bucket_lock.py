"""The word of a driver in a store is renewed, whatever happens to one request, and odd words lock nothing."""

import json
import math
import socket
import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bicliques.pipeline.process.cores import process_table
from bicliques.pipeline.remote.objects import Objects, TakenError
from bicliques.pipeline.run import bucket_ledger
from bicliques.schemas.errors import InputError, ResourceError

ME = {"of": "me", "pid": 1, "host": "here", "until": 0.0}


class Store:
    """A store that does not answer the first requests."""

    shown = "s3://bucket/run"

    def __init__(self, silent: int, there: dict[str, Any]) -> None:
        self.silent, self.said = silent, json.dumps(there).encode()

    def _asked(self) -> None:
        self.silent -= 1
        if self.silent >= 0:
            raise ResourceError("the store does not answer; try again")

    def get(self, key: str) -> bytes:
        self._asked()
        return self.said

    def put(self, key: str, data: bytes) -> None:
        self._asked()
        self.said = data


class Ended(threading.Event):
    """An end that comes after some turns, without waiting."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self.turns = turns

    def wait(self, timeout: float | None = None) -> bool:
        self.turns -= 1
        return self.turns < 0


def renewed(store: Store, turns: int) -> dict[str, Any]:
    bucket_ledger._renew(cast(Objects, store), dict(ME), Ended(turns))
    return dict(json.loads(store.said))


def test_a_driver_goes_on_renewing_after_requests_that_failed() -> None:
    assert renewed(Store(2, ME), 2) == ME
    assert renewed(Store(2, ME), 3)["until"] > time.time()


def test_a_driver_does_not_write_over_the_word_of_another() -> None:
    other = ME | {"of": "another"}
    assert renewed(Store(0, other), 3) == other


def at(until: Any) -> bytes:
    return json.dumps(ME | {"until": until}).encode()


@pytest.mark.parametrize(
    "word",
    [
        *(at(until) for until in (1e300, math.inf, math.nan, 10**400, "9e99", [1], None, True, -1)),
        json.dumps(ME | {"until": int(time.time()) + 9, "host": "x" * 10**6}).encode(),
        *(b"[1]", b"5", b'"x"', b"null", b"", b"\xff\xfe", b"[" * 100_000, b'{"until": ' + b"9" * 10_000 + b"}"),
    ],
    ids=lambda word: f"{len(word)} bytes",
)
def test_a_word_that_no_driver_says_locks_nothing(word: bytes) -> None:
    said = bucket_ledger.said_of_driver(Said(word))  # type: ignore[arg-type]
    assert said is None or not bucket_ledger.is_at_work(said)
    with bucket_ledger.leased(there := Said(word)):  # type: ignore[arg-type]
        assert bucket_ledger.is_at_work(json.loads(there.data))


@pytest.mark.parametrize(
    "odd", [{"pid": [1]}, {"pid": 10**30}, {"pid": None}, {"host": 5}, {"of": {}}, {"since": [[]]}], ids=str
)
def test_a_word_with_odd_values_is_said_in_one_sentence(odd: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_ledger, "LEASE_S", 3600.0)  # this machine may be busy
    mine = {"host": socket.gethostname(), "table": process_table(), "until": time.time() + 3600}
    with pytest.raises(InputError, match=r"^s3://lake/night is being worked on by process .* again after [\w:+-]+$"):
        bucket_ledger.refuse_others(Said(json.dumps(ME | mine | odd).encode()))  # type: ignore[arg-type]


def test_a_minute_is_the_most_that_a_driver_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver whose clock was a year ahead has died. Clocks that differ by some seconds are believed."""
    monkeypatch.setattr(bucket_ledger, "time", SimpleNamespace(time=lambda: 1000.0))
    for ahead, is_believed in ((59, True), (70, True), (80, False), (366 * 86_400, False), (-1, False)):
        assert bucket_ledger.is_at_work(ME | {"until": 1000.0 + ahead}) == is_believed, ahead


class Said:
    """A store in which somebody has put a word."""

    shown = "s3://lake/night"

    def __init__(self, data: bytes) -> None:
        self.data: bytes = data

    def get(self, key: str) -> bytes:
        return self.data

    def put(self, key: str, data: bytes) -> None:
        self.data = data

    def put_new(self, key: str, data: bytes) -> None:
        raise TakenError

    def remove(self, key: str) -> None:
        self.data = b""
