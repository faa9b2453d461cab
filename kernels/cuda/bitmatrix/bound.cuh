// How large a biclique is by the measure of the job, and what a bound demands of a node (kernels/reference/engine.py). The
// measures are those of schemas/search.py, for the base side and the root side. Thread-level where nothing else is
// said.
//
// Without a bound nothing is demanded beyond the thresholds.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Values of Params.measure: the product, the sum, the smaller, or one of the sides
#define BY_EDGES 1
#define BY_VERTICES 2
#define BY_BALANCE 3
#define BY_BASE 4
#define BY_ROOTS 5

#define TOO_MANY 0x7fffffff  // members; more than any side has

__device__ __forceinline__ i32 clamped(i64 n) { return n < 1 ? 1 : n > TOO_MANY ? TOO_MANY : (i32)n; }

// The thresholds of the search, as numbers of members.
__device__ __forceinline__ i32 least_base() { return clamped(params.min_base); }
__device__ __forceinline__ i32 least_root() { return clamped(params.min_root); }

// Members of a base vertex. Without a measure, more than are wanted count as those wanted.
__device__ __forceinline__ i32 weight_of(i32 u) {
    i32 weight = params.base_weight[u], a = least_base();
    return BOUNDED || weight < a ? weight : a;
}

__device__ __forceinline__ i64 smaller(i64 x, i64 y) { return x < y ? x : y; }

// The measure of a biclique with so many members.
__device__ __forceinline__ i64 measured(i64 base, i64 roots) {
    if (params.measure == BY_EDGES) return base * roots;
    if (params.measure == BY_VERTICES) return base + roots;
    if (params.measure == BY_BALANCE) return smaller(base, roots);
    return params.measure == BY_BASE ? base : roots;
}

// The largest measure of a result that has at most so many members, and no more than the filters allow.
__device__ __forceinline__ i64 ceiling_of(i64 base, i64 roots) {
    return measured(smaller(base, params.max_base), smaller(roots, params.max_root));
}

// The fewest members of one side whose measure beside `other` is the bound. `alone` is the measure of the other side
// alone.
__device__ __forceinline__ i32 fewest(i64 bound, i64 other, i32 alone) {
    if (bound <= 0) return 1;
    if (params.measure == BY_EDGES) return other > 0 ? clamped((bound + other - 1) / other) : TOO_MANY;
    if (params.measure == BY_VERTICES) return clamped(bound - other);
    if (params.measure == BY_BALANCE) return other >= bound ? clamped(bound) : TOO_MANY;
    if (params.measure == alone) return other >= bound ? 1 : TOO_MANY;
    return clamped(bound);
}

// The fewest base members of a result that has at most `roots` root members.
__device__ __forceinline__ i32 fewest_base(const Worker& w, i64 roots) {
    i32 a = least_base();
    if (!BOUNDED) return a;
    i32 needed = fewest(w.bound, smaller(roots, params.max_root), BY_ROOTS);
    return needed > a ? needed : a;
}

// The fewest root members of a result that has at most `base` base members.
__device__ __forceinline__ i32 fewest_roots(const Worker& w, i64 base) {
    i32 b = least_root();
    if (!BOUNDED) return b;
    i32 needed = fewest(w.bound, smaller(base, params.max_base), BY_BASE);
    return needed > b ? needed : b;
}

// Take over the bound of the launch, which other warps may have raised. Warp-level.
__device__ __forceinline__ void look_at_bound(Worker& w) {
    if (!BOUNDED) return;
    i64 now = 0;
    if (lane_id() == 0) now = *(const volatile i64*)&params.queue->bound;
    now = from(now, 0);
    if (now > w.bound) w.bound = now;
}

// A place of params.top with the least measure, and that measure, in every lane. Other warps may have put a larger one
// there since. Warp-level.
__device__ inline u64 least_of_top(i32* place) {
    u64 least = ~0ull;
    i32 at = 0;
    for (i32 k = lane_id(); k < params.n_top; k += 32) {
        u64 now = ((const volatile u64*)params.top)[k];
        if (now < least) {
            least = now;
            at = k;
        }
    }
    ROLLED for (i32 step = 16; step > 0; step >>= 1) {
        u64 other = __shfl_xor_sync(ALL_LANES, least, step);
        i32 other_at = __shfl_xor_sync(ALL_LANES, at, step);
        if (other < least || (other == least && other_at < at)) {
            least = other;
            at = other_at;
        }
    }
    *place = at;
    return least;
}

// Raise the bound of the launch, because a biclique was emitted, of which so many pairs are missing. params.top has the measures of the largest that were
// emitted, as many as are wanted, and 0 where there is none yet. A measure there is only ever replaced by a larger one.
// So the least that a warp reads may be too small, but never too large. Warp-level.
__device__ inline void raise_bound(Worker& w, i64 base, i64 roots, i64 missing = 0) {
    if (params.n_top == 0 || base > params.max_base || roots > params.max_root) return;
    u64 value = measured(base, roots) - (params.measure == BY_EDGES ? missing : 0), least;
    if ((i64)value <= w.bound) return;
    for (bool is_there = false;;) {
        i32 place;
        least = least_of_top(&place);
        if (is_there || value <= least) break;
        u64 found = 0;
        if (lane_id() == 0) found = atomicCAS(&params.top[place], least, value);
        is_there = from(found, 0) == least;
    }
    if ((i64)least <= w.bound) return;
    w.bound = least;
    if (lane_id() == 0) atomicMax(&params.queue->bound, least);
    __syncwarp();
}
