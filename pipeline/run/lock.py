"""A lock in the folder of a run, so that only one driver at a time works on the run.

The lock is `flock` on ``run.lock``, which the operating system releases when the driver dies. The text in the file only
says which process holds the lock. A file without a lock on it is left from a dead process, and is taken over. Some file
systems do not pass locks between hosts. So a file whose text names another host is respected in any case, unless that
"host" is a container on the same kernel, with the same file system: the locks of both are in one table there.

A run in a bucket has the lock of its working folder, and one in the bucket (`pipeline.run.bucket_ledger`).
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bicliques.pipeline.process.cores import boot_id
from bicliques.pipeline.run.files import disk_errors
from bicliques.schemas.errors import InputError, ResourceError

logger = logging.getLogger(__name__)

#: Seconds for which a driver tries to get the lock. `holder` holds it for an instant, too, while it looks.
_PATIENCE_S = 0.2


@dataclass(frozen=True)
class Holder:
    """What a lock file says.

    Parameters
    ----------
    alive : bool
        Whether the lock is held. A process on another host is assumed to hold it, where that cannot be seen from here.
    words : str
        The process, its host, and since when it has held the lock.
    """

    alive: bool
    words: str


@contextmanager
def locked(lock_file: Path) -> Iterator[None]:
    """Hold the lock of the folder of a run.

    Raises `InputError` if another driver holds the lock; the error names its process and host. Also if the file is a
    link or not a regular file. Raises `ResourceError` if the file cannot be written.
    """
    with disk_errors(lock_file):
        descriptor = _acquire(lock_file)
    try:
        yield
    except BaseException:
        _release(descriptor, lock_file, logging.DEBUG)  # the exception already says what went wrong
        raise
    _release(descriptor, lock_file)


def holder(lock_file: Path) -> Holder | None:
    """The process that works on a run, or that died while it did. None if neither is there."""
    try:
        descriptor = open_lock(lock_file, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ResourceError(f"cannot read {lock_file} ({os.strerror(error.errno or 0)}); ask its owner") from error
    try:
        alive = not try_lock(descriptor, fcntl.LOCK_SH)
        said = _holder(descriptor)
        alive = alive or not _is_seen_here(said, descriptor)
    except OSError as error:
        raise ResourceError(f"cannot read {lock_file} ({os.strerror(error.errno or 0)}); ask its owner") from error
    finally:
        os.close(descriptor)
    if not alive and not said:
        return None  # a driver that is starting or ending leaves an empty file for an instant
    return Holder(alive, words_of(said))


def _acquire(lock_file: Path) -> int:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        descriptor = open_lock(lock_file, os.O_RDWR | os.O_CREAT)
        try:
            if not try_lock(descriptor, fcntl.LOCK_EX):
                if time.monotonic() >= deadline:
                    said = words_of(_holder(descriptor))
                    raise InputError(f"{lock_file.parent} is being worked on by {said}; wait for it, or stop it")
                time.sleep(0.02)
            elif is_current(descriptor, lock_file):
                _sign(descriptor, lock_file)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # another driver holds it, or has just removed the file: open it again


def try_lock(descriptor: int, kind: int) -> bool:
    """Whether a lock of this kind (``fcntl.LOCK_SH`` or ``LOCK_EX``) is held now. It does not wait for another one."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(descriptor: int, lock_file: Path) -> None:
    """Write into the file which process holds the lock. Refuse a lock that a driver on another host may hold."""
    said = _holder(descriptor)
    if not _is_seen_here(said, descriptor):
        raise InputError(
            f"{lock_file.parent} is locked by {words_of(said)}; if that process is dead, delete {lock_file} and try "
            "again"
        )
    since = datetime.now(UTC).isoformat(timespec="seconds")
    me = {"pid": os.getpid(), "host": socket.gethostname(), "since": since, "table": _table(descriptor)}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(me).encode(), 0)


def _is_seen_here(said: dict[str, str], descriptor: int) -> bool:
    """Whether `flock` on this file tells here if the process of the text is alive. It does if there is no text."""
    if not said or said.get("host") == socket.gethostname():
        return True
    return said.get("table") == _table(descriptor) != ""


def _table(descriptor: int) -> str:
    """Which table of locks the file is in: that of a kernel for one mounted file system. Empty if that is not known.

    The device counts, because some file systems are mounted by each container for itself. A number of a device
    is not used again while a process holds a lock there.
    """
    boot = boot_id()
    return f"{boot} {os.fstat(descriptor).st_dev}" if boot else ""


def open_lock(lock_file: Path, flags: int) -> int:
    """Open a regular file and nothing else. Through a link the text of the lock would get into another file."""
    try:
        descriptor = os.open(lock_file, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _odd(lock_file) from error
        raise
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:  # 0 links: its last holder is removing the file
        return descriptor
    os.close(descriptor)
    raise _odd(lock_file)


def _odd(lock_file: Path) -> InputError:
    return InputError(f"{lock_file} is a link or no file, and so no lock of a run; delete it")


def _release(descriptor: int, lock_file: Path, level: int = logging.WARNING) -> None:
    """Give the lock up. A file that cannot be removed is only logged, because the file alone locks nothing."""
    try:
        if is_current(descriptor, lock_file):
            lock_file.unlink(missing_ok=True)
    except OSError as error:
        logger.log(level, "%s cannot be removed (%s); it locks nothing any more", lock_file, error.strerror)
    finally:
        os.close(descriptor)


def is_current(descriptor: int, lock_file: Path) -> bool:
    """Whether the file that is open is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), lock_file.lstat())
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> dict[str, str]:
    try:
        said = json.loads(os.pread(descriptor, 4096, 0))
    except (RecursionError, ValueError):
        return {}  # the text is not written yet, or its process died while writing
    return said if isinstance(said, dict) else {}


def words_of(said: Mapping[str, object]) -> str:
    """What people are told of a driver."""
    if not said:
        return "another process"
    return f"process {said.get('pid')} on {said.get('host')} since {said.get('since')}"
