// Visited nodes of a word problem wait until there are 32. Then they are emitted together, by one lane each.
// Warp-level.
//
// When all lanes emitted one node after the other, a proven count took twice as long as a plain count
// (cp4im_heart_cleveland).
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/emit.cuh"
#include "bitmatrix/levels.cuh"
#include "bitmatrix/marks.cuh"
#include "bitmatrix/output.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Add a node, by its base side and its closure bits. All lanes copy words of the closure.
__device__ inline void add_pending(Worker& w, const Problem& problem, u64 base, const u32* closed) {
    Scratch* s = w.s;
    // Slot l is emitted by lane l. `pending_any` is the union of all slots, so that each_row can skip empty words.
    i32 n_words = problem.n_words, slot = w.n_pending;
    if (lane_id() == 0) s->pending_base[slot] = base;
    ROLLED for (i32 word = lane_id(); word < n_words; word += 32) {
        u32 bits = closed[word];
        s->pending_closed[slot * n_words + word] = bits;
        s->pending_any[word] = slot == 0 ? bits : s->pending_any[word] | bits;
    }
    w.n_pending = slot + 1;
}

// Call see(v) for the rows in the closure of this lane's pending node, if it has one. Warp-level: words that are zero
// in all pending nodes are skipped by all lanes together.
template <class See>
__device__ __forceinline__ void each_row(const Scratch* s, const Problem& problem, bool own, const See& see) {
    ROLLED for (i32 first = 0; first < problem.n_words; first += 32) {
        // A lane looks at one word of the union. Behind the ballot all lanes visit the same word, each in its own slot.
        u32 any = first + lane_id() < problem.n_words ? s->pending_any[first + lane_id()] : 0;
        ROLLED for (u32 holders = warp_ballot(any != 0); holders; holders &= holders - 1) {
            i32 word = first + __ffs(holders) - 1;
            ROLLED for (u32 rest = own ? s->pending_closed[lane_id() * problem.n_words + word] : 0; rest; rest &= rest - 1)
                see(s->row[word * 32 + __ffs(rest) - 1]);
        }
    }
}

// Sums over this lane's node, whose base side is `base`. A lane without a node has base 0.
__device__ inline OneBiclique sum_pending(const Worker& w, const Problem& problem, u64 base) {
    OneBiclique one = {base != 0, length_of(w.s, problem, base), problem.n_full, {0, 0}, warp_shared().full};
    u64 marked = problem.marked;
    ROLLED for (u64 rest = base; rest; rest &= rest - 1) {
        SideSums bit = sums_of_bit(w.s, __ffsll((i64)rest) - 1);
        one.base.members += bit.members;
        one.base.hash += bit.hash;
    }
    each_row(w.s, problem, one.there, [&](i32 v) {
        if (MEASURED) one.root.members += params.root_weight[v];
        one.root.hash += params.root_hash[v];
        one.n_root += 1;
        if (MARKED) marked |= marked_bits(w.s, base, v);
    });
    if (MARKED) one.there = (marked & base) != 0;
    return one;
}

// Write the pending nodes: each lane with `own` writes its node to its `out`.
__device__ inline void write_pending(const Worker& w, const Problem& problem, u64 base, bool own, i32* out) {
    // All lanes look at the same class at a time.
    bool classes = has_classes(w.s, problem);
    ROLLED for (u64 rest = classes ? reduce_or(own ? base : 0) : 0; rest; rest &= rest - 1) {
        u64 bit = rest & (~rest + 1);
        out = write_members(w.s, problem, bit, own && (base & bit) != 0, out);
    }
    ROLLED for (u64 rest = !classes && own ? base : 0; rest; rest &= rest - 1) *out++ = w.s->base[__ffsll((i64)rest) - 1];
    ROLLED for (i32 i = 0; own && i < problem.n_full; i++) *out++ = w.s->full[i];
    each_row(w.s, problem, own, [&](i32 v) { *out++ = v; });
}

// Emit all pending nodes. False when the output is full; nodes that could not be emitted are written down then.
__device__ __noinline__ bool emit_pending(Worker& w, const Problem& problem) {
    if (w.n_pending == 0) return true;
    __syncwarp();  // other lanes wrote the words that a lane reads now
    u64 base = lane_id() < w.n_pending ? w.s->pending_base[lane_id()] : 0;
    u32 stuck = emit_batch(w, sum_pending(w, problem, base), [&](bool own, i32* out) {
        write_pending(w, problem, base, own, out);
    });
    w.n_pending = 0;
    // `stuck` is the same in all lanes. The warp writes these nodes down one by one.
    ROLLED for (u32 rest = stuck; rest; rest &= rest - 1) {
        const u32* closed = w.s->pending_closed + (__ffs(rest) - 1) * problem.n_words;
        leave_node(w, problem, count_rows(closed, problem.n_words), [&](i32* out) { write_rows(w, problem, closed, out); });
    }
    __syncwarp();
    return stuck == 0;
}
