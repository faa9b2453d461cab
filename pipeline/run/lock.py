"""One driver a run: a lock in the folder, held by the kernel for as long as the driver lives.

The lock is `flock` on ``run.lock``; the text in the file only says which process holds it. A dead process holds no
lock, so a stale file is simply taken over. Where the file system does not pass locks between hosts, the
text of a living run on another host is all there is, and it is respected.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pipeline.run.files import disk_errors
from schemas.errors import InputError, ResourceError

__all__ = ["Holder", "holder", "locked"]

logger = logging.getLogger(__name__)

#: A look at the lock (`holder`) holds it for an instant: so long does a driver try before it gives up, in seconds.
_PATIENCE_S = 0.2


@dataclass(frozen=True)
class Holder:
    """What a lock file says.

    Parameters
    ----------
    alive : bool
        Whether the lock is held; a process on another host is thought to hold it.
    words : str
        Which process, where, since when.
    """

    alive: bool
    words: str


@contextmanager
def locked(lock_file: Path) -> Iterator[None]:
    """Hold the lock of a run.

    Raises
    ------
    InputError
        If another driver holds it, naming its process and host; or if the file is a link or no file.
    ResourceError
        If the file cannot be written.
    """
    with disk_errors(lock_file):
        descriptor = _acquire(lock_file)
    try:
        yield
    except BaseException:
        _release(descriptor, lock_file, logging.DEBUG)  # what went wrong is said already
        raise
    _release(descriptor, lock_file)


def holder(lock_file: Path) -> Holder | None:
    """The process that works on a run, or did when it died; None when there is none and the last one ended by itself.

    Raises
    ------
    ResourceError
        If the file cannot be read.
    """
    try:
        descriptor = _open(lock_file, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ResourceError(f"cannot read {lock_file} ({os.strerror(error.errno or 0)}); ask its owner") from error
    try:
        alive = not _try(descriptor, fcntl.LOCK_SH)
        said = _holder(descriptor)
    except OSError as error:
        raise ResourceError(f"cannot read {lock_file} ({os.strerror(error.errno or 0)}); ask its owner") from error
    finally:
        os.close(descriptor)
    if not alive and not said:
        return None  # of a driver that is just starting, or ending
    return Holder(alive or said.get("host") != socket.gethostname(), _words(said))


def _acquire(lock_file: Path) -> int:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        descriptor = _open(lock_file, os.O_RDWR | os.O_CREAT)
        try:
            if not _try(descriptor, fcntl.LOCK_EX):
                if time.monotonic() >= deadline:
                    said = _words(_holder(descriptor))
                    raise InputError(f"{lock_file.parent} is being worked on by {said}; wait for it, or stop it")
                time.sleep(0.02)
            elif _is_current(descriptor, lock_file):
                _sign(descriptor, lock_file)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # of somebody else, or its last holder removed the file just now: take the new one


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(descriptor: int, lock_file: Path) -> None:
    """Write into the file which process holds the lock; refuse a lock that a driver on another host may hold."""
    said = _holder(descriptor)
    if said and said.get("host") != socket.gethostname():
        raise InputError(
            f"{lock_file.parent} is locked by {_words(said)}; if that process is dead, delete {lock_file} and try again"
        )
    me = {"pid": os.getpid(), "host": socket.gethostname(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(me).encode(), 0)


def _open(lock_file: Path, flags: int) -> int:
    """Open a regular file and nothing else: the text of a lock must not get into what a link leads to."""
    try:
        descriptor = os.open(lock_file, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _odd(lock_file) from error
        raise
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:  # 0: its last holder is removing it
        return descriptor
    os.close(descriptor)
    raise _odd(lock_file)


def _odd(lock_file: Path) -> InputError:
    return InputError(f"{lock_file} is a link or no file, and so no lock of a run; delete it")


def _release(descriptor: int, lock_file: Path, level: int = logging.WARNING) -> None:
    """Give the lock up. A file that cannot be removed is no error, which might hide another: it locks nothing."""
    try:
        if _is_current(descriptor, lock_file):
            lock_file.unlink(missing_ok=True)
    except OSError as error:
        logger.log(level, "%s cannot be removed (%s); it locks nothing any more", lock_file, error.strerror)
    finally:
        os.close(descriptor)


def _is_current(descriptor: int, lock_file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), lock_file.lstat())
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> dict[str, str]:
    try:
        said = json.loads(os.pread(descriptor, 4096, 0))
    except (RecursionError, ValueError):
        return {}  # not written yet, or by a process that died while writing
    return said if isinstance(said, dict) else {}


def _words(said: dict[str, str]) -> str:
    if not said:
        return "another process"
    return f"process {said.get('pid')} on {said.get('host')} since {said.get('since')}"
