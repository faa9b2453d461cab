// Sides of a word problem's nodes: a base side is a mask; a closure is a bit row, and the problem's own closure.
// Warp-level.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/marks.cuh"
#include "bitmatrix/output.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Number of members that the base vertices of a mask stand for.
__device__ inline i64 members_of_base(const Worker& w, u64 base) {
    i64 n = 0;
    ROLLED for (i32 b = lane_id(); b < BASE_CAP; b += 32)
        if ((base >> b) & 1) n += params.base_weight[w.s->base[b]];
    return warp_sum(n);
}

// Number of members that the root vertices of a bit row stand for.
__device__ inline i64 row_members(const Worker& w, const Problem& problem, const u32* bits) {
    i64 n = 0;
    ROLLED for (i32 word = lane_id(); word < problem.n_words; word += 32)
        ROLLED for (u32 rest = bits[word]; rest; rest &= rest - 1)
            n += params.root_weight[w.s->row[word * 32 + __ffs(rest) - 1]];
    return warp_sum(n);
}

// Number of rows in a bit row.
__device__ inline i32 count_rows(const u32* bits, i32 n_words) {
    i32 n = 0;
    ROLLED for (i32 word = lane_id(); word < n_words; word += 32) n += __popc(bits[word]);
    return warp_sum(n);
}

// Write the root vertices of a bit row to `out`. Returns their number.
__device__ inline i32 write_rows(const Worker& w, const Problem& problem, const u32* bits, i32* out) {
    i32 n = 0;
    ROLLED for (i32 first = 0; first < problem.n_words; first += 32) {
        u32 own = first + lane_id() < problem.n_words ? bits[first + lane_id()] : 0;
        ROLLED for (u32 holders = warp_ballot(own != 0); holders; holders &= holders - 1) {
            i32 holder = __ffs(holders) - 1;
            u32 word = from(own, holder);  // each lane takes a row, so that all load at the same time
            if ((word >> lane_id()) & 1) out[n + __popc(word & lanes_below())] = w.s->row[(first + holder) * 32 + lane_id()];
            n += __popc(word);
        }
    }
    return n;
}

// Keep the sums over a new problem's closure. Every biclique below it adds them to its own.
__device__ inline void sum_closure(const Worker& w, const Problem& problem) {
    SideSums sums = sums_of(params.root_weight, params.root_hash, w.s->full, problem.n_full);
    if (lane_id() == 0) warp_shared().full = sums;
    __syncwarp();
}

#ifndef LARGE_CLASS
#define LARGE_CLASS 8  // base vertices of a class that lanes write together
#endif

// What a bit of a mask adds to the sums of a biclique.
__device__ __forceinline__ SideSums sums_of_bit(const Scratch* s, i32 b) {
    if (MERGING) return s->bit[b];
    return {MEASURED ? params.base_weight[s->base[b]] : 0, params.base_hash[s->base[b]]};
}

// Whether members of classes are to be written.
__device__ __forceinline__ bool has_classes(const Scratch* s, const Problem& problem) {
    return MERGING && !PLAIN && problem.member != s->base;
}

// Where the members of class b begin in Problem.member.
__device__ __forceinline__ i32 first_of_class(const Scratch* s, i32 b) { return b == 0 ? 0 : s->bin[b - 1]; }

// How many base vertices the bits of a mask stand for, if they are to be written. Thread-level.
__device__ inline i32 length_of(const Scratch* s, const Problem& problem, u64 base) {
    if (!has_classes(s, problem)) return __popcll(base);
    i32 n = 0;
    ROLLED for (; base; base &= base - 1) {
        i32 b = __ffsll((i64)base) - 1;
        n += first_of_class(s, b + 1) - first_of_class(s, b);
    }
    return n;
}

// Write the base vertices of the bits of a mask, which all lanes share, to the `out` of each lane with `own`. Returns the new
// `out`.
__device__ inline i32* write_members(const Scratch* s, const Problem& problem, u64 base, bool own, i32* out) {
    bool classes = has_classes(s, problem);
    ROLLED for (; base; base &= base - 1) {
        i32 b = __ffsll((i64)base) - 1, first = classes ? first_of_class(s, b) : b;
        i32 n = classes ? first_of_class(s, b + 1) - first : 1;
        // Lanes write a large class together, for one lane after the other. Of a small one each writes its own copy.
        ROLLED for (i32 i = 0; n < LARGE_CLASS && i < n; i++)
            if (own) out[i] = problem.member[first + i];
        ROLLED for (u32 rest = n < LARGE_CLASS ? 0 : warp_ballot(own); rest; rest &= rest - 1)
            write_list(problem.member + first, n, (i32*)from((i64)out, __ffs(rest) - 1));
        if (own) out += n;
    }
    return out;
}

// Sums over the first n bits.
__device__ inline SideSums sums_of_bits(const Worker& w, i32 n) {
    SideSums sums = {0, 0};
    ROLLED for (i32 b = lane_id(); b < n; b += 32) {
        SideSums bit = sums_of_bit(w.s, b);
        sums.members += bit.members;
        sums.hash += bit.hash;
    }
    return {MEASURED ? warp_sum(sums.members) : 0, warp_sum(sums.hash)};
}

// Emit a node by its lists, with the sums over them. False when it could not be emitted.
__device__ inline bool emit(Worker& w, const i32* base, i32 n_base, const i32* closure, i32 n_closure, SideSums sums, SideSums root) {
    if (MARKED && !has_marked_edge(base, n_base, closure, n_closure)) return true;
    i32 admitted = admit(w, n_base, n_closure, sums, root);
    if (admitted <= 0) return admitted == 0;
    i32* out = params.values + w.value_at;
    write_list(closure, n_closure, out + write_list(base, n_base, out));
    written(w, n_base, n_closure);
    return true;
}
