"""Opens files of which only the names are known. What stands there may be a pipe, a device or a socket.

Opening a pipe waits until somebody writes into it, and a device may never end. So a file is opened without waiting, and
is looked at before anything is read.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

__all__ = ["open_regular", "read_regular", "regular"]


def open_regular(path: Path) -> IO[bytes]:
    """A regular file, opened to be read without a buffer. A link to one is followed.

    Raises
    ------
    OSError
        If there is none, it may not be read, or something else stands there.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise _odd(path) from error
        raise
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind == stat.S_IFREG:
        return os.fdopen(descriptor, "rb", buffering=0)
    os.close(descriptor)
    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path)) if kind == stat.S_IFDIR else _odd(path)


def regular(path: Path) -> Path:
    """The same path, for a library that opens it by its name.

    Raises
    ------
    OSError
        As `open_regular`.
    """
    open_regular(path).close()
    return path


def read_regular(path: Path) -> bytes:
    """All bytes of a regular file.

    Raises
    ------
    OSError
        As `open_regular`, or if the disk fails.
    """
    with open_regular(path) as file:
        return file.read()


def _odd(path: Path) -> OSError:
    return OSError(errno.EINVAL, "It is not a regular file", str(path))
