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
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pipeline.files import disk_errors
from schemas.errors import InputError

__all__ = ["locked"]


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


def _acquire(lock_file: Path) -> int:
    while True:
        descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise InputError(
                f"{lock_file.parent} is being worked on by {_words(holder)}; wait for it, or stop it"
            ) from None
        if _is_current(descriptor, lock_file):
            break
        os.close(descriptor)  # its last holder removed the file just now; take the new one
    holder = _holder(descriptor)
    if holder and holder.get("host") != socket.gethostname():
        os.close(descriptor)
        raise InputError(
            f"{lock_file.parent} is locked by {_words(holder)}; if that process is dead, delete {lock_file} "
            "and try again"
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


def _words(holder: dict[str, str]) -> str:
    if not holder:
        return "another process"
    return f"process {holder.get('pid')} on {holder.get('host')} since {holder.get('since')}"
