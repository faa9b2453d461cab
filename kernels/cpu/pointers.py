"""Makes the tuples of `kernels.cpu.workspace` from the addresses of their fields, inside compiled code."""

from __future__ import annotations

from bicliques.kernels.cpu.memory import records_of, tuple_at
from bicliques.kernels.cpu.near_workspace import NEAR_FRAME, NEAR_STATE, Near
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

graph_at, pieces_at, output_at = tuple_at(Graph), tuple_at(Pieces), tuple_at(Output, OUTPUT_STATE)
word_at, hub_at, sieve_at = tuple_at(Word, WORD_STATE), tuple_at(Hub, HUB_STATE), tuple_at(Sieve, SIEVE_STATE)
near_at = tuple_at(Near, NEAR_STATE)

#: ``word_frame(word.frame, i)`` is frame `i`; its fields can be read and assigned.
word_frame, hub_frame, sieve_frame = records_of(WORD_FRAME), records_of(HUB_FRAME), records_of(SIEVE_FRAME)
near_frame = records_of(NEAR_FRAME)
