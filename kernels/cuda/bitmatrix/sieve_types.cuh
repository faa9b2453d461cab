// What a warp owns besides its scratch memory where thresholds are wanted: the sieve, the upper part of the search.
//
// In the sieve the root side of a node is too small as yet, or its base side is too long for a word problem. The
// reductions R1 to R6 (kernels/reference/engine.py) are made at every child. `a` and `b` are the fewest members wanted on
// the base side and on the root side.
#pragma once
#include "common/types.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

#ifndef SIEVE_WORDS
#define SIEVE_WORDS (16 * ROW_CAP)   // 64-bit words of the bit rows of a stack
#endif
#define SIEVE_ROWS (SIEVE_WORDS / 4)  // rows of a stack, all frames together
#define SIEVE_DEPTH 64                // frames of a stack

struct SieveFrame {  // a node; its rows are those of its parent that can matter, restricted to its L
    i32 at;       // L in `bits`: `planes` vectors of `words` words, bit k of the weights of its base vertices each
    i32 rows;     // word w of row r is bits[rows + w * n_rows + r]
    i32 words;
    i32 list0;    // where its rows begin in `row` and `weight`
    i32 n_rows;   // excluded rows, then candidates in order
    i32 next;     // the next candidate; rows before it are excluded
    i32 end;      // candidates from here on belong to other items
    i32 top;      // words of `bits` in use up to here
    i32 base0;    // where the base vertices of the bits are in Scratch.list
    i32 n_base;   // number of bits
    i32 n_closed; // the closure is the first part of Scratch.full
    i32 members;  // members of the closure
    i32 left;     // members of the candidates from `next` on
    i32 size;     // members of its L
    i32 copy_at;  // a copy of the frame in the pool, NOBODY: none
    i32 n_copy;
};

struct Sieve {
    u64 bits[SIEVE_WORDS];    // while a problem is opened, counters of a filter: sieve_open.cuh
    i32 row[SIEVE_ROWS];
    i32 weight[SIEVE_ROWS];
    i32 count[ROW_CAP];       // what rows of the top frame have of the child
    SieveFrame frame[SIEVE_DEPTH];
    i32 planes;               // of the open problem: bits of the largest weight of a base vertex
};

struct SieveScratch {
    Scratch scratch;
    Sieve sieve;
};

#ifdef SIEVE_BYTES
static_assert(sizeof(SieveScratch) == SIEVE_BYTES, "kernels/bitmatrix/memory.py has other fields");
#endif

__device__ __forceinline__ Sieve& sieve_of(const Worker& w) { return ((SieveScratch*)w.s)->sieve; }
