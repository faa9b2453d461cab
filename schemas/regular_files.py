"""Opens files of which only the names are known. What stands there may be a pipe, a device or a socket.

Opening a pipe waits until somebody writes into it, and a device may never end. So a file is opened without waiting, and
is looked at before anything is read.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

#: The beginning of what `numpy.save` writes of an array of one dimension. NumPy's own reader takes much more.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)\{'descr': '(?P<kind>[^']+)', 'fortran_order': False, "
    rb"'shape': \((?P<n>\d{1,18}),\)",
    re.DOTALL,
)


def open_regular(path: Path) -> FileIO:
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


def map_array(path: Path, kind: np.dtype) -> np.ndarray:
    """The one-dimensional array in an ``.npy`` file, memory-mapped. So its header asks for no memory.

    Raises
    ------
    OSError
        As `open_regular`.
    ValueError
        If it is no such file, or shorter than its header says.
    """
    import numpy as np  # imported only here, because most commands read no array

    with open_regular(path) as file:
        header = _HEADER.match(file.read(1 << 12))
        if header is None or (header["kind"].decode() != kind.str and int(header["n"])):
            raise ValueError(f"{path} is no array of {kind}")
        start, n = 10 + int.from_bytes(header["length"], "little"), int(header["n"])
        if start + n * kind.itemsize > os.fstat(file.fileno()).st_size:
            raise ValueError(f"{path} is shorter than the {n} entries that it promises")
        return np.memmap(file, kind, "r", start, (n,))


def _odd(path: Path) -> OSError:
    return OSError(errno.EINVAL, "It is not a regular file", str(path))
