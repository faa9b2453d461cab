"""One driver a run: a lock in the folder, held by the kernel for as long as the driver lives.

The lock is `flock` on ``run.lock``; the text in the file only says who holds it. A dead process holds no
lock, so a stale file is simply taken over. Where the file system does not pass locks between hosts, the
text of a living run on another host is all there is, and it is respected.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pipeline.files import disk_errors
from schemas.errors import InputError, ResourceError

__all__ = ["Holder", "holder", "locked"]

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
        If another driver holds it, naming its process and host.
    ResourceError
        If the file cannot be written.
    """
    with disk_errors(lock_file):
        descriptor = _acquire(lock_file)
    try:
        yield
    finally:
        lock_file.unlink(missing_ok=True)
        os.close(descriptor)


def holder(lock_file: Path) -> Holder | None:
    """Who works on a run, or did when the process died; None when nobody does and the last one ended by itself.

    Raises
    ------
    ResourceError
        If the file cannot be read.
    """
    try:
        descriptor = os.open(lock_file, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ResourceError(f"cannot read {lock_file} ({os.strerror(error.errno or 0)}); ask its owner") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        alive = False
    except BlockingIOError:
        alive = True
    finally:
        said = _holder(descriptor)
        os.close(descriptor)
    if not alive and not said:
        return None  # of a driver that is just starting, or ending
    return Holder(alive or said.get("host") != socket.gethostname(), _words(said))


def _acquire(lock_file: Path) -> int:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                os.close(descriptor)
                time.sleep(0.02)
                continue
            said = _holder(descriptor)
            os.close(descriptor)
            raise InputError(
                f"{lock_file.parent} is being worked on by {_words(said)}; wait for it, or stop it"
            ) from None
        if _is_current(descriptor, lock_file):
            break
        os.close(descriptor)  # its last holder removed the file just now; take the new one
    said = _holder(descriptor)
    if said and said.get("host") != socket.gethostname():
        os.close(descriptor)
        raise InputError(
            f"{lock_file.parent} is locked by {_words(said)}; if that process is dead, delete {lock_file} and try again"
        )
    me = {"pid": os.getpid(), "host": socket.gethostname(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(me).encode(), 0)
    return descriptor


def _is_current(descriptor: int, lock_file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), lock_file.stat())
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> dict[str, str]:
    try:
        return dict(json.loads(os.pread(descriptor, 4096, 0)))
    except ValueError:
        return {}  # not written yet, or by a process that died while writing


def _words(said: dict[str, str]) -> str:
    if not said:
        return "another process"
    return f"process {said.get('pid')} on {said.get('host')} since {said.get('since')}"
