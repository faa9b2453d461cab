// Where only bicliques with a marked edge are wanted: which nodes lead to one, and which bicliques have one.
//
// A node is over when none of its base vertices has a marked edge to a vertex of its problem that is in the closure or a
// candidate. This test takes one AND. It is not exact below the first node of a problem, so what is found is tested, too.
// A child that is over excludes nothing that is wanted, because it contains no base side with such a vertex.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/worker.cuh"

// Whether base vertex u has a marked edge to a root vertex of this rank or a later one. Thread-level.
__device__ __forceinline__ bool has_mark_from(i32 u, i32 first) {
    i64 end = params.marks_indptr[u + 1];
    return end > params.marks_indptr[u] && params.marks[end - 1] >= first;
}

// Whether the edge between base vertex u and root vertex v is marked. Thread-level.
__device__ inline bool is_marked(i32 u, i32 v) {
    i64 at = params.marks_indptr[u];
    i32 n = (i32)(params.marks_indptr[u + 1] - at), i = lower_bound(params.marks + at, n, v);
    return i < n && params.marks[at + i] == v;
}

// The lowest rank of a list. No biclique below a node has a lower one than the closure of the node.
__device__ inline i32 lowest(const i32* list, i32 n) {
    u32 least = ~0u;
    ROLLED for (i32 i = lane_id(); i < n; i += 32) least = (u32)list[i] < least ? (u32)list[i] : least;
    return n == 0 ? 0 : (i32)__reduce_min_sync(ALL_LANES, least);
}

// Whether a list of base vertices has one with a marked edge to a rank from `first` on.
__device__ inline bool may_be_marked(const i32* base, i32 n, i32 first) {
    ROLLED for (i32 chunk = 0; chunk < n; chunk += 32)
        if (warp_any(chunk + lane_id() < n && has_mark_from(base[chunk + lane_id()], first))) return true;
    return false;
}

// Whether a biclique has a marked edge.
__device__ inline bool has_marked_edge(const i32* base, i32 n_base, const i32* closure, i32 n_closure) {
    bool found = false;
    ROLLED for (i32 i = lane_id(); i < n_base; i += 32)
        ROLLED for (i64 e = params.marks_indptr[base[i]]; e < params.marks_indptr[base[i] + 1]; e++)
            ROLLED for (i32 k = 0; k < n_closure; k++) found |= closure[k] == params.marks[e];
    return warp_any(found);
}

// The base vertices, among those of a mask, that have a marked edge to v. Thread-level.
__device__ inline u64 marked_bits(const Scratch* s, u64 base, i32 v) {
    u64 bits = 0;
    if (v >= params.n_marked) return 0;
    ROLLED for (; base; base &= base - 1)
        if (is_marked(s->base[__ffsll((i64)base) - 1], v)) bits |= base & (~base + 1);
    return bits;
}

// Note which base vertices of an open problem have a marked edge to its closure, and which to its n candidates.
__device__ inline void note_marks(const Worker& w, Problem* problem, const i32* candidates, i32 n) {
    u64 closed = 0, below = 0;
    ROLLED for (i32 i = lane_id(); i < problem->n_full; i += 32) closed |= marked_bits(w.s, problem->whole, w.s->full[i]);
    ROLLED for (i32 i = lane_id(); i < n; i += 32) below |= marked_bits(w.s, problem->whole, candidates[i]);
    problem->marked = reduce_or(closed);
    problem->live = problem->marked | reduce_or(below);
}

// Those of the base vertices of `base` that are in `some`, as a set: bit t is the t-th of them. Thread-level.
__device__ __forceinline__ u32 set_of_bits(u64 base, u64 some) {
    u32 set = 0;
    ROLLED for (i32 t = 0; base; base &= base - 1, t++)
        if (some & base & (~base + 1)) set |= 1u << t;
    return set;
}
