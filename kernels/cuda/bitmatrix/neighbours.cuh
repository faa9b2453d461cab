// Walks over the neighbours of many base vertices, or of many roots. Warp-level.
//
// The lists of 32 vertices are one range at a time, and each lane takes one entry of it. So short lists keep all
// lanes busy, as long ones do.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/worker.cuh"

// Which neighbours are walked: those with ranks below a bound, those from it on, or all.
#define EARLIER 0
#define LATER 1
#define EVERY 2

#ifndef WALK_AHEAD
#define WALK_AHEAD 4  // entries that a lane loads before it works on them
#endif

struct Part {  // a part of the neighbours of a base vertex
    i64 at;
    i32 n;
};

// The neighbours of a base vertex that are walked. NOBODY has none. Thread-level.
__device__ __forceinline__ Part part_of(i32 u, i32 bound, i32 which) {
    if (u == NOBODY) return {0, 0};
    i64 at = params.base_indptr[u];
    i32 n = (i32)(params.base_indptr[u + 1] - at);
    if (which == EVERY) return {at, n};
    i32 earlier = lower_bound(params.base_indices + at, n, bound);
    if (which == EARLIER) return {at, earlier};
    return {at + earlier, n - earlier};
}

// The neighbours of a base vertex with ranks from `first` to `last` - 1. NOBODY has none. Thread-level.
__device__ __forceinline__ Part part_between(i32 u, i32 first, i32 last) {
    if (u == NOBODY) return {0, 0};
    i64 at = params.base_indptr[u];
    i32 n = (i32)(params.base_indptr[u + 1] - at);
    i32 begin = lower_bound(params.base_indices + at, n, first);
    return {at + begin, lower_bound(params.base_indices + at, n, last) - begin};
}

// Call see(owner, v) for every entry v of the parts of all lanes, in `indices`; `owner` is the lane with the part. All lanes
// call it together, with v = NOBODY where a lane has no entry.
template <class See>
__device__ inline void each_entry_of(const i32* indices, const Part& part, const See& see) {
    i32 before = sum_below(part.n), total = from(before + part.n, 31);
    i64 offset = part.at - before;
    ROLLED for (i32 chunk = 0; chunk < total; chunk += 32 * WALK_AHEAD) {
        i32 owner[WALK_AHEAD], v[WALK_AHEAD];  // several at a time, because each waits for memory
#pragma unroll
        for (i32 k = 0; k < WALK_AHEAD; k++) {
            // The last lane whose part begins at or before an entry has it. Empty parts begin where the next one does.
            i32 at = chunk + 32 * k + lane_id();
            owner[k] = 0;
#pragma unroll
            for (i32 step = 16; step; step >>= 1)
                if (from(before, owner[k] + step) <= at) owner[k] += step;
            i64 where = from(offset, owner[k]) + at;
            v[k] = at < total ? indices[where] : NOBODY;
        }
#pragma unroll
        for (i32 k = 0; k < WALK_AHEAD; k++)
            if (chunk + 32 * k < total) see(owner[k], v[k]);
    }
}

// The same where the parts are of base vertices.
template <class See>
__device__ inline void each_entry(const Part& part, const See& see) { each_entry_of(params.base_indices, part, see); }

// Call see(i, v) for every neighbour v of every base[i]; see is called by all lanes together, v may be NOBODY.
template <class See>
__device__ inline void each_neighbour(const i32* base, i32 n, i32 bound, i32 which, const See& see) {
    ROLLED for (i32 first = 0; first < n; first += 32) {
        i32 i = first + lane_id();
        Part part = part_of(i < n ? base[i] : NOBODY, bound, which);
        each_entry(part, [&](i32 owner, i32 v) { see(first + owner, v); });
    }
}

// How many neighbours that would be.
__device__ inline i64 count_neighbours(const i32* base, i32 n, i32 bound, i32 which) {
    i64 total = 0;
    ROLLED for (i32 i = lane_id(); i < n; i += 32) total += part_of(base[i], bound, which).n;
    return warp_sum(total);
}
