"""Places in the cache of this machine for runs that are kept in a store. Each process has its own, and old ones go.

    $XDG_CACHE_HOME/bicliques/stores/HASH/driver-1/       a process that mines the run at a URL
                                          reader-1/       a process that reads it
                                          worker-ID/      all workers of the run with this identity, which map its graph
                                              in-use      locked by each process that has the place, until it ends
                                              run/        the working folder (`pipeline.run.bucket`)

A process takes the first place of its kind that nobody has, with what was left in it. So nobody changes what another
process works on, or waits for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
import stat
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Literal

from bicliques.pipeline.remote.urls import as_asked
from bicliques.pipeline.run.files import disk_errors
from bicliques.pipeline.run.lock import is_current, open_lock, try_lock
from bicliques.pipeline.run.store import places_here
from bicliques.schemas.errors import ResourceError

logger = logging.getLogger(__name__)

Kind = Literal["driver", "reader"]

#: Name of the working folder in a place, of the file that is locked, and of a stamp.
RUN, _IN_USE, _LOOKED = "run", "in-use", "looked-at"
#: Places that nobody has go after so many seconds, and the oldest ones if all together have more bytes.
_KEEP_S, _MOST_BYTES = 30 * 86400.0, 20 << 30
#: Seconds between two looks for such places, because a look reads the names of all files.
_PAUSE_S = 3600.0
#: How often a place is taken anew that somebody removes meanwhile.
_TRIES = 100

_taking = threading.Lock()
#: What this process has: place and open lock, by process (a fork has none), folder of the URL, and kind.
_held: dict[tuple[int, Path, str], tuple[Path, int]] = {}


def own_place(url: str, kind: Kind) -> Path:
    """The place of this process for the run at a URL. No other process has it until this one ends.

    Raises `ResourceError` if nothing can be written there.
    """
    with _taking:
        top = _top(url)
        place = _still_held(top, kind) or next(
            filter(None, (_hold(top, kind, f"{kind}-{n}", fcntl.LOCK_EX) for n in count(1)))
        )
    return place


def shared_place(url: str, identity: str) -> Path:
    """The place of all workers of this machine for the run with this identity."""
    name = f"worker-{_digest(identity)}"
    with _taking:
        top = _top(url)
        place = _still_held(top, name)
        for _ in range(_TRIES):
            place = place or _hold(top, name, name, fcntl.LOCK_SH)
            if place is not None:
                return place
            time.sleep(0.1)  # somebody looks whether it can go
    raise ResourceError(f"{top / name} is locked by another process; see which one, and stop it")


def others(place: Path, kind: Kind | None = None) -> Iterator[Path]:
    """The working folders of other places of the same URL that are there, whoever has them."""
    for other in sorted(place.parent.glob("*-*" if kind is None else f"{kind}-*")):
        if other != place and not other.name.startswith("."):
            yield other / RUN


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _top(url: str) -> Path:
    return _closed(places_here()) / _digest(as_asked(url))  # another endpoint is another store


def _closed(folder: Path) -> Path:
    """A folder of this user, made if it is not there, into which nobody else can put anything from now on."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if {folder.lstat().st_uid, folder.stat().st_uid} != {os.geteuid()}:
            raise ResourceError(
                f"{folder} belongs to another user, who could change what is kept there of a run; name a folder of "
                "your own in XDG_CACHE_HOME"
            )
        if stat.S_IMODE(folder.stat().st_mode) & 0o077:
            folder.chmod(0o700)
    return folder


def _still_held(top: Path, name: str) -> Path | None:
    """The place that this process has under a name, unless somebody has removed it."""
    there = _held.get((os.getpid(), top, name))
    if there is None:
        return None
    place, descriptor = there
    if is_current(descriptor, place / _IN_USE):
        return place
    del _held[os.getpid(), top, name]
    os.close(descriptor)
    return None


def _hold(top: Path, key: str, name: str, lock: int) -> Path | None:
    """Take a place, and make it if it is not there. None if another process has it."""
    place = top / name
    descriptor = _locked(place, lock)
    if descriptor is None:
        return None
    _held[os.getpid(), top, key] = place, descriptor
    _tidy(top.parent)
    return place


def _locked(place: Path, lock: int) -> int | None:
    with disk_errors(place):
        for _ in range(_TRIES):
            place.mkdir(parents=True, exist_ok=True)
            try:
                descriptor = open_lock(place / _IN_USE, os.O_RDWR | os.O_CREAT)
            except FileNotFoundError:
                continue  # it was removed just now
            try:
                if not try_lock(descriptor, lock):
                    os.close(descriptor)
                    return None
                if is_current(descriptor, place / _IN_USE):
                    os.utime(descriptor)  # says when it was used last
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
    return None


def _tidy(stores: Path) -> None:
    """Remove the places that nobody has and that are old, or more than there is room for. No error ends a command."""
    with suppress(OSError):
        stamp = stores / _LOOKED
        if stamp.exists() and time.time() - stamp.stat().st_mtime < _PAUSE_S:
            return
        stamp.touch()
        for left in stores.glob("*/.*.gone"):
            shutil.rmtree(left, ignore_errors=True)
        found = sorted(((file.stat().st_mtime, file.parent) for file in stores.glob(f"*/*/{_IN_USE}")), reverse=True)
        total = 0
        for used, place in found:
            total += sum(path.lstat().st_size // path.lstat().st_nlink for path in place.rglob("*"))
            if total > _MOST_BYTES or time.time() - used > _KEEP_S:
                _remove(place)


def _remove(place: Path) -> None:
    """Remove a place unless a process has it."""
    descriptor = open_lock(place / _IN_USE, os.O_RDWR)
    try:
        if not try_lock(descriptor, fcntl.LOCK_EX) or not is_current(descriptor, place / _IN_USE):
            return
        away = place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}.gone")
        place.rename(away)
        shutil.rmtree(away, ignore_errors=True)
        logger.info("%s was not used for long, or there was no room for it, and is removed", place)
        with suppress(OSError):
            place.parent.rmdir()  # if it was the last one
    finally:
        os.close(descriptor)
