"""Says in a store which driver works on a run, for a minute at a time. So drivers do not get in each other's way.

That two drivers never both count does not depend on it, nor on clocks: see `pipeline.run.bucket_ledger`.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from bicliques.pipeline.process.cores import process_table
from bicliques.pipeline.remote.objects import Objects, TakenError
from bicliques.pipeline.run.names import LOCK_FILE
from bicliques.schemas.errors import BicliqueError, IncompleteError, InputError
from bicliques.schemas.records import parsed

logger = logging.getLogger(__name__)

#: Seconds for which a driver is respected that is not heard of, and seconds between two words of it.
LEASE_S, _RENEW_S = 60.0, 15.0
#: Seconds by which the clock of a driver may be ahead of that of this machine.
_CLOCKS_S = 15.0
#: Bytes of the word of a driver. Nobody reads more of one aloud.
_LONGEST = 4096
#: What this process has put and holds. Others that it has put are left of a store that did not remove them.
_held: set[str] = set()


def said_of_driver(store: Objects) -> dict[str, Any] | None:
    """What the driver of a run has said last: its ``pid``, ``host``, ``table``, ``since``, ``until``, ``of``. None if
    nothing.

    Raises
    ------
    ResourceError
        If the store does not answer.
    """
    data = store.get(LOCK_FILE)
    if data is None:
        return None
    try:
        said = parsed(data[:_LONGEST])
        return said | {"until": float(said["until"])}
    except (IncompleteError, KeyError, OverflowError, TypeError, ValueError):
        return None


@contextmanager
def leased(store: Objects) -> Iterator[None]:
    """Be the driver of a run during the block. The caller holds the lock of the working folder.

    Raises
    ------
    InputError
        If another driver is at work, as far as its last word says.
    ResourceError
        If the store does not take the object.
    """
    me: dict[str, Any] = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "table": process_table(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "of": uuid.uuid4().hex,
    }
    there = said_of_driver(store)
    _refuse(store, there)
    try:
        if there is None:
            store.put_new(LOCK_FILE, _text(me))
        else:
            store.put(LOCK_FILE, _text(me))
    except TakenError:
        _refuse(store, said_of_driver(store))
        store.put(LOCK_FILE, _text(me))  # what is there says nothing
    _held.add(me["of"])
    ended = threading.Event()
    renewing = threading.Thread(target=_renew, args=(store, me, ended), name="lease", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        _held.discard(me["of"])
        ended.set()
        renewing.join()
        with suppress(BicliqueError):  # it is over in a minute anyway
            if (said_of_driver(store) or {}).get("of") == me["of"]:
                store.remove(LOCK_FILE)


def refuse_others(store: Objects) -> None:
    """Refuse to begin while another driver may be at work.

    Raises
    ------
    InputError
        The error names its process and host.
    ResourceError
        If the store does not answer.
    """
    _refuse(store, said_of_driver(store))


def _refuse(store: Objects, said: dict[str, Any] | None) -> None:
    """Raise an error if the driver that said this may be alive."""
    if said is None or not is_at_work(said):
        return
    until = datetime.fromtimestamp(said["until"], UTC).isoformat(timespec="seconds")
    raise InputError(
        f"{store.shown} is being worked on by process {said.get('pid')} on {said.get('host')} since "
        f"{said.get('since')}; wait for it, or stop it; if it is dead, try again after {until}"
    )


def is_at_work(said: dict[str, Any]) -> bool:
    """Whether the driver that said this may be alive: not after a minute of silence, nor if this machine says no.

    Nor if it asks for more than a minute, as a driver does whose clock is wrong.
    """
    return 0 < said["until"] - time.time() <= LEASE_S + _CLOCKS_S and not _is_dead_here(said)


def _is_dead_here(said: dict[str, Any]) -> bool:
    if said.get("host") != socket.gethostname() or said.get("table") != process_table():
        return False  # a container with the host name of its machine has other numbers of processes
    if said.get("pid") == os.getpid():
        return said.get("of") not in _held
    try:
        os.kill(int(said["pid"]), 0)
    except ProcessLookupError:
        return True
    except (KeyError, OSError, OverflowError, TypeError, ValueError):
        return False
    return False


def _text(me: dict[str, Any]) -> bytes:
    return json.dumps(me | {"until": time.time() + LEASE_S}).encode()


def _renew(store: Objects, me: dict[str, Any], ended: threading.Event) -> None:
    while not ended.wait(_RENEW_S):
        try:
            said = said_of_driver(store)
            if said is not None and said.get("of") != me["of"]:
                logger.warning("another driver works on %s, and this one will be refused", store.shown)
                return
            store.put(LOCK_FILE, _text(me))
        except BicliqueError as error:
            logger.warning("%s", error)
