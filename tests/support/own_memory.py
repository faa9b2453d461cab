"""The most memory that a process takes for itself, for tests that measure it in a process of its own."""

import ctypes
import re
from pathlib import Path

#: Bytes of `pipeline.estimate.memory.PROCESS_BYTES` that are mapped files. What is measured here is without them.
PROCESS_FILES = 150 << 20

_POPULATE_READ = 22  # MADV_POPULATE_READ, since Linux 5.14


class OwnMemory:
    """The peak of resident memory without pages of files that were mapped at the beginning, such as libraries.

    Linux keeps the peak of all pages together. How many pages of a library are among them depends on how it was
    written, and on what else reads it: an access maps the whole block of the file that is in memory. So all pages of
    all mapped files are mapped first. No more can follow, and the peak less their number is what the process takes
    besides. A thread that samples would miss short peaks, and `getrusage` would start from the peak of the parent.

    Files that are mapped later count, and so do all where Linux is older than 5.14. Import what the work needs, or do a
    little of it, before.
    """

    def __init__(self) -> None:
        madvise = ctypes.CDLL(None).madvise
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, _, _, _, inode = line.split()[:5]
            if inode != "0":
                start, stop = (int(each, 16) for each in span.split("-"))
                # gaps that may not be read stay as they are
                madvise(ctypes.c_void_p(start), ctypes.c_size_t(stop - start), _POPULATE_READ)
        self.files = _bytes("RssFile")

    def peak(self) -> int:
        """The peak so far, in bytes."""
        return _bytes("VmHWM") - self.files


def _bytes(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found, f"/proc/self/status has no {name}"
    return int(found[1]) << 10
