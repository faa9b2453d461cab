"""Numbers that the compiled search shares with its caller, which must not import a compiler for them."""

from __future__ import annotations

#: Results of a search function: nothing is left here; the output is full; the steps are used up, or the buffer for
#: pieces that are put aside may become too short.
EMPTY, FULL, PAUSED = 0, 1, 2
#: Result of `kernels.cpu.explore.explore`: every piece is done. Its other results are those above.
FINISHED = 3
#: The search for near-bicliques has too little memory to go on.
GROW = 4

#: Most candidates whose intersections are listed. They have at most 2**MAX_ROWS - 1.
MAX_ROWS = 6
#: Entries that functions on eight lanes read or write at once (`kernels.cpu.simd`). Arrays that they use are longer
#: than their content by this number.
PADDING = 8
#: Words of scratch that rows need behind them, besides one per row.
COUNTERS = 66
#: Up to this many values are sorted by their ranks. There are no branches, so none is predicted wrong.
RANKED = 48
