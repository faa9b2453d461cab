"""The ledger and the lock of a run that is kept in a store. Entries have keys that are known without any listing.

A *session* is one driver at work. It begins when the driver puts ``sessions/K.json`` where nothing is, for the first K
that is free. So of two drivers only one begins session K. The object names the entries of earlier sessions that count.
An entry of session K is ``ledger/K/N.json``, and is put once. It counts from then on, unless session K + 1 has begun
without it. So a driver that was believed dead can add nothing to what another driver goes on with. A run that replaces
another one goes on with its numbers, for the same reason. Sessions of a run that was there before are only counted.

Numbers of slices ascend from the first one of a session, with gaps. A session announces how far they may go by
``ledger/K/block-B.json`` before it puts an entry there, and each announcement doubles their number. So a reader asks
for all numbers that are announced, and for few that are not there.

The lock says which driver works on a run, for a minute at a time. So drivers do not get in each other's way. That two
drivers never both count depends neither on it nor on clocks.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Annotated, Any, TypedDict

from bicliques.pipeline.process.cores import process_table
from bicliques.pipeline.remote.objects import Objects, TakenError, each
from bicliques.pipeline.run.names import LOCK_FILE
from bicliques.schemas.errors import BicliqueError, IncompleteError, InputError, ResourceError, as_option
from bicliques.schemas.records import check_facts, checked, parsed, with_checksum

#: Numbers of a session that need no announcement.
FIRST = 16
#: Slices that a run may have. A hundred per second for a day are as many, and there is a request for each.
_MOST = 1 << 23
#: Seconds after which a driver looks whether another one has taken its run over.
_LOOK_S = 30.0
#: An object that every driver tries to put anew, to see that the store refuses it.
_PROBE = "sessions/probe"


@dataclass(frozen=True)
class _Session:
    """What its object says: the run, the first number of its slices, and the session of each entry that counts."""

    number: int
    run: str
    first: int
    counts: dict[int, int]


class _Said(TypedDict):
    """What is checked in the object of a session. By sessions, `counts` has ranges of numbers, start and stop."""

    run: str
    first: Annotated[int, 1 << 62]
    counts: dict[str, list[tuple[Annotated[int, 1 << 62], Annotated[int, 1 << 62]]]]


def _refuse_many(slices: int) -> None:
    """Refuse so many slices before there is a number in memory for each."""
    if slices > _MOST:
        raise IncompleteError(f"it has numbers for {slices:,} slices, and a run has {_MOST:,} at most")


class Journal:
    """The entries of a run in its store, as they were when the journal was read, and those that were put since.

    Raises `InputError` if the store holds what is left of another run, and `IncompleteError` if the object of a session
    is damaged, and `ResourceError` if the store does not answer.

    Parameters
    ----------
    run : str
        Identity of the run.
    save : callable or None
        Called with the number and the content of each entry that is there, from several threads.
    replaces : bool
        Whether the run may follow another one there. Nothing of the other one counts once a session has begun.

    Attributes
    ----------
    counts : dict of int to int
        The session of each entry, by the number of its slice.
    is_new : bool
        Whether no session of the run has begun.
    is_first : bool
        Whether no session of any run has.
    """

    def __init__(
        self,
        store: Objects,
        run: str,
        save: Callable[[int, bytes], object] | None = None,
        replaces: bool = False,
    ):
        self._store, self._run = store, run
        self._announcing = threading.Lock()
        self._announced = 0
        self._session = self._last()
        self.is_new, self.is_first = self._session.run != run, self._session.number == 0
        if self.is_new and not replaces and not self.is_first:
            raise InputError(
                f"{store.shown}/{_session_key(self._session.number)} is of another run; empty {store.shown}, name "
                f"another place, or begin anew there with {as_option('overwrite', True)}"
            )
        self.counts = {} if self.is_new else dict(self._session.counts)
        if not self.is_new:
            self._read(save)
        self._looked = time.monotonic()

    def _last(self) -> _Session:
        last = _Session(0, "", 0, {})
        for number in count(1):
            data = self._store.get(_session_key(number))
            if data is None:
                return last
            last = self._parsed(number, data)
        raise AssertionError

    def _parsed(self, number: int, data: bytes) -> _Session:
        shown = f"{self._store.shown}/{_session_key(number)}"
        try:
            said = checked(parsed(data))
            check_facts(_Said, said, "it")
            ranges = [(int(of), range(a, b)) for of, each in said["counts"].items() for a, b in each]
            _refuse_many(sum(len(own) for _, own in ranges))
            return _Session(number, said["run"], said["first"], {k: of for of, own in ranges for k in own})
        except (IncompleteError, ValueError) as error:
            raise IncompleteError(f"{shown} is damaged ({error}); start the run again in another place") from error

    def _read(self, save: Callable[[int, bytes], object] | None) -> None:
        session = self._session
        if session.number:
            block = 0
            while self._store.size(_block_key(session.number, block + 1)) is not None:
                block += 1
                _refuse_many(FIRST << block)
            self.counts |= dict.fromkeys(range(session.first, session.first + (FIRST << block)), session.number)

        def is_there(number: int) -> bool:
            key = _entry_key(self.counts[number], number)
            if save is None:
                return self._store.size(key) is not None
            data = self._store.get(key)
            if data is not None:
                save(number, data)
            return data is not None

        wanted = sorted(self.counts)
        there = each(is_there, wanted)
        self.counts = {number: self.counts[number] for number, known in zip(wanted, there, strict=True) if known}

    def begin(self, counting: Iterable[int]) -> None:
        """Begin the next session. Entries that are not among `counting` count no more.

        Raises `ResourceError` if the store does not take it.

        Parameters
        ----------
        counting : iterable of int
            Numbers of slices whose entries are there.
        """
        self._probe()
        self.counts = {number: self.counts[number] for number in counting}
        number, first = self._session.number + 1, max(self.counts, default=-1) + 1
        said = {
            "run": self._run,
            "first": first,
            "counts": _as_ranges(self.counts),
            "by": f"process {os.getpid()} on {socket.gethostname()}",
            "of": uuid.uuid4().hex,  # or another driver's object could have the same content
        }
        try:
            self._store.put_new(_session_key(number), json.dumps(with_checksum(said)).encode())
        except TakenError:
            raise InputError(
                f"another driver has gone on with {self._store.shown} since this one looked at it; wait for it, or "
                "stop it"
            ) from None
        self._session, self._announced = _Session(number, self._run, first, dict(self.counts)), 0

    def _probe(self) -> None:
        try:
            for _ in range(2):
                self._store.put_new(_PROBE, uuid.uuid4().hex.encode())
        except TakenError:
            return
        raise InputError(
            f"{self._store.shown} is in a store that replaces an object where a new one was to be put (it does not "
            "know If-None-Match); keep the run in another store, or in a folder"
        )

    def commit(self, number: int, entry: bytes) -> None:
        """Put the entry of a slice. From then on it counts."""
        session = self._session
        with self._announcing:
            self._look()
            while session.first + (FIRST << self._announced) <= number:
                self._store.put(_block_key(session.number, self._announced + 1), b"{}")
                self._announced += 1
        try:
            self._store.put_new(_entry_key(session.number, number), entry)
        except TakenError as error:
            raise ResourceError(f"{error}, with another content; see who else writes there") from None
        self.counts[number] = session.number

    def _look(self) -> None:
        if time.monotonic() - self._looked < _LOOK_S:
            return
        self._looked = time.monotonic()
        if self._store.size(_session_key(self._session.number + 1)) is not None:
            raise ResourceError(f"another driver has taken {self._store.shown} over; look at it with bicliques status")


def _session_key(number: int) -> str:
    return f"sessions/{number}.json"


def _entry_key(session: int, number: int) -> str:
    return f"ledger/{session}/{number}.json"


def _block_key(session: int, block: int) -> str:
    return f"ledger/{session}/block-{block}.json"


def _as_ranges(counts: Mapping[int, int]) -> dict[str, list[list[int]]]:
    """Sessions with ranges of numbers, start and stop."""
    found: dict[str, list[list[int]]] = {}
    for number in sorted(counts):
        ranges = found.setdefault(str(counts[number]), [])
        if ranges and ranges[-1][1] == number:
            ranges[-1][1] += 1
        else:
            ranges.append([number, number + 1])
    return found


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

    Raises `ResourceError` if the store does not answer.
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

    Raises `InputError` if another driver is at work, as far as its last word says, and `ResourceError` if the store
    does not take the object.
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

    Raises `InputError`: the error names its process and host. Raises `ResourceError` if the store does not answer.
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
