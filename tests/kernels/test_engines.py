"""The CPU engine does what every engine has to do."""

from __future__ import annotations

from kernels.cpu.engine import CpuEngine
from kernels.cpu.workspace import Sizes
from tests.kernels.suite import EngineSuite, Subject

#: Workspaces in which everything that can overflow does: bit rows, frames, stacks, output buffers.
TIGHT = (
    Sizes(hub_bits=0, hub_list=0, hub_frame_bits=0, word_stack=0, rows=2, members=4),
    Sizes(hub_bits=64, hub_list=0, hub_frame_bits=0, word_stack=64, rows=3, members=10),
)


class TestCpuEngine(EngineSuite):
    subject = Subject(CpuEngine, (lambda: CpuEngine(TIGHT[0]), lambda: CpuEngine(TIGHT[1])))
