"""Makes `kernels.cpu.near_workspace.Near` from addresses, inside compiled code."""

from __future__ import annotations

from bicliques.kernels.compiled.making import inlined
from bicliques.kernels.cpu.memory import int32s, record_type, records_of, uint64s
from bicliques.kernels.cpu.near_workspace import NEAR_FRAME, NEAR_STATE, Near

_state = record_type(NEAR_STATE)
#: ``near_frame(near.frame, i)`` is frame `i`; its fields can be read and assigned.
near_frame = records_of(NEAR_FRAME)


@inlined
def near_at(a):
    """`Near` from the addresses of its fields; `frame` stays an address."""
    return Near(
        _state(a[0]),
        a[1],
        uint64s(a[2]),
        int32s(a[3]),
        int32s(a[4]),
        int32s(a[5]),
        int32s(a[6]),
        int32s(a[7]),
        int32s(a[8]),
        int32s(a[9]),
        int32s(a[10]),
        int32s(a[11]),
        int32s(a[12]),
        int32s(a[13]),
        int32s(a[14]),
        int32s(a[15]),
        int32s(a[16]),
        int32s(a[17]),
        int32s(a[18]),
    )
