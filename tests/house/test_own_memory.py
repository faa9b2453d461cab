"""The measure of peak memory that tests use: short peaks count, and files that were mapped before do not."""

import sys

import pytest

from tests.support.children import in_child

MB = 1 << 20
PROGRAM = """
import mmap
from tests.support.own_memory import OwnMemory
file = open("mapped", "rb")
mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
memory = OwnMemory()
begun = memory.peak()
mapped[:: mmap.PAGESIZE]
print(memory.peak() - begun)
bytearray(b"x") * (64 << 20)
print(memory.peak() - begun)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_was_freed_counts_and_what_was_mapped_does_not(tmp_path):
    (tmp_path / "mapped").write_bytes(b"x" * (64 * MB))
    read, allocated = map(int, in_child(PROGRAM, tmp_path).split())
    assert read < 2 * MB
    assert 63 * MB < allocated < 66 * MB
