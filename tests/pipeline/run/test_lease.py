"""The word of a driver in a store is renewed, whatever happens to one request."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, cast

from pipeline.remote.objects import Objects
from pipeline.run import lease
from schemas.errors import ResourceError

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
    lease._renew(cast(Objects, store), dict(ME), Ended(turns))
    return dict(json.loads(store.said))


def test_a_driver_goes_on_renewing_after_requests_that_failed() -> None:
    assert renewed(Store(2, ME), 2) == ME
    assert renewed(Store(2, ME), 3)["until"] > time.time()


def test_a_driver_does_not_write_over_the_word_of_another() -> None:
    other = ME | {"of": "another"}
    assert renewed(Store(0, other), 3) == other
