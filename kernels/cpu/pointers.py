"""Makes the tuples of `kernels.cpu.workspace` from addresses, inside compiled code, in the order of their fields."""

from __future__ import annotations

from bicliques.kernels.compiled.making import inlined
from bicliques.kernels.cpu.memory import int32s, int64s, record_type, records_of, uint64s
from bicliques.kernels.cpu.workspace import (
    HUB_FRAME,
    HUB_STATE,
    OUTPUT_STATE,
    SIEVE_FRAME,
    SIEVE_STATE,
    WORD_FRAME,
    WORD_STATE,
    Graph,
    Hub,
    Output,
    Pieces,
    Sieve,
    Word,
)

_word_state, _hub_state, _sieve_state = record_type(WORD_STATE), record_type(HUB_STATE), record_type(SIEVE_STATE)
_output_state = record_type(OUTPUT_STATE)

#: ``word_frame(word.frame, i)`` is frame `i`; its fields can be read and assigned.
word_frame, hub_frame, sieve_frame = records_of(WORD_FRAME), records_of(HUB_FRAME), records_of(SIEVE_FRAME)


@inlined
def graph_at(a):
    """`Graph` from the addresses of its fields."""
    return Graph(
        int64s(a[0]),
        int32s(a[1]),
        int64s(a[2]),
        int32s(a[3]),
        int64s(a[4]),
        int32s(a[5]),
        int64s(a[6]),
        int32s(a[7]),
        uint64s(a[8]),
        uint64s(a[9]),
        int64s(a[10]),
        int32s(a[11]),
    )


@inlined
def pieces_at(a):
    """`Pieces` from the addresses of its fields."""
    return Pieces(int64s(a[0]), int32s(a[1]), int64s(a[2]), int32s(a[3]), int32s(a[4]), int32s(a[5]))


@inlined
def word_at(a):
    """`Word` from the addresses of its fields; `frame` stays an address."""
    return Word(
        _word_state(a[0]),
        int32s(a[1]),
        int32s(a[2]),
        int32s(a[3]),
        uint64s(a[4]),
        uint64s(a[5]),
        int32s(a[6]),
        uint64s(a[7]),
        a[8],
        uint64s(a[9]),
        uint64s(a[10]),
        int32s(a[11]),
        uint64s(a[12]),
        int32s(a[13]),
        uint64s(a[14]),
        int32s(a[15]),
        uint64s(a[16]),
        int64s(a[17]),
        uint64s(a[18]),
    )


@inlined
def hub_at(a):
    """`Hub` from the addresses of its fields; `frame` stays an address."""
    return Hub(
        _hub_state(a[0]),
        int32s(a[1]),
        int32s(a[2]),
        int32s(a[3]),
        int32s(a[4]),
        int32s(a[5]),
        int32s(a[6]),
        int32s(a[7]),
        int64s(a[8]),
        uint64s(a[9]),
        int32s(a[10]),
        a[11],
        uint64s(a[12]),
        int32s(a[13]),
        int32s(a[14]),
    )


@inlined
def sieve_at(a):
    """`Sieve` from the addresses of its fields; `frame` stays an address."""
    return Sieve(
        _sieve_state(a[0]),
        a[1],
        uint64s(a[2]),
        int32s(a[3]),
        int32s(a[4]),
        int32s(a[5]),
        int32s(a[6]),
        int64s(a[7]),
        uint64s(a[8]),
        int32s(a[9]),
        int32s(a[10]),
        uint64s(a[11]),
        int32s(a[12]),
        uint64s(a[13]),
    )


@inlined
def output_at(a):
    """`Output` from the addresses of its fields."""
    return Output(
        _output_state(a[0]),
        int64s(a[1]),
        int32s(a[2]),
        int64s(a[3]),
        int32s(a[4]),
        int32s(a[5]),
        uint64s(a[6]),
        int32s(a[7]),
        int32s(a[8]),
        int64s(a[9]),
        int32s(a[10]),
        int32s(a[11]),
        int64s(a[12]),
        uint64s(a[13]),
        int64s(a[14]),
        int32s(a[15]),
    )
