"""Seals machine code that is kept in a file, because code that is cut or changed ends the process that calls it.

The seal is the last line of the file. It follows from the code and from the name of the file. So the code of another
function is refused, too. GPUs load code with its seal, which stands behind the end of a cubin, and is a comment in PTX.
"""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path

from bicliques.schemas.regular_files import read_regular


def sealed(name: str, code: bytes) -> bytes:
    """What a file of this name holds."""
    return code + b"\n//" + hashlib.sha256(name.encode() + b"\n" + code).hexdigest().encode()


def unsealed(path: Path) -> bytes | None:
    """The code in a file. None if something else is there than `sealed` gave, as a pipe, or a link in a circle.

    Raises `OSError` if there is nothing, or a folder, or if it cannot be read.
    """
    try:
        kept = read_regular(path)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ELOOP):
            return None
        raise
    code = kept[:-_SEAL]
    return code if kept == sealed(path.name, code) else None


#: Bytes of a seal.
_SEAL = len(sealed("", b""))
