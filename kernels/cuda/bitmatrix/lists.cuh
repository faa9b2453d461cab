// Compares lists of base vertices with the neighbours of root vertices. Large root vertices have bit rows; others are
// searched by bisection. Warp-level where nothing else is said.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

#ifndef HUB_AHEAD
#define HUB_AHEAD 4  // entries of a list that a lane loads before it compares them with a bit row
#endif

// Copy a list to `out`. Returns its length.
__device__ inline i32 write_list(const i32* list, i32 n, i32* out) {
    ROLLED for (i32 i = lane_id(); i < n; i += 32) out[i] = list[i];
    return n;
}

// Bit row of root vertex v, with the base vertices that it is adjacent to. NULL when it has none.
__device__ __forceinline__ const u32* bit_row(i32 v) {
    return params.hub_bits != 0 && v >= params.first_hub ? params.hub_bits + (v - params.first_hub) * params.hub_words : 0;
}

__device__ __forceinline__ bool has_bit(const u32* row, i32 u) { return (row[u >> 5] >> (u & 31)) & 1; }

// Whether root vertex v, without a bit row, is adjacent to base vertex u. Thread-level.
__device__ __noinline__ bool adjacent(i32 v, i32 u) {
    i64 at = params.root_indptr[v];
    i32 n = (i32)(params.root_indptr[v + 1] - at);
    i32 i = lower_bound(params.root_indices + at, n, u);
    return i < n && params.root_indices[at + i] == u;
}

// Whether root vertex v, whose bit row is `row`, is adjacent to base vertex u. Thread-level.
__device__ __forceinline__ bool is_neighbour(const u32* row, i32 v, i32 u) { return row != 0 ? has_bit(row, u) : adjacent(v, u); }

// Append the entries u of the lanes with `common` to `out`, in the order of lanes. Returns the new length.
__device__ __forceinline__ i32 keep(i32* out, i32 found, bool common, i32 u) {
    u32 all = warp_ballot(common);
    if (common) out[found + __popc(all & lanes_below())] = u;
    return found + __popc(all);
}

// Write the entries of a list that are adjacent to root vertex v to `out`, and return their number. `out` has room for
// n entries, and may be the list itself. Each lane loads AHEAD entries before it uses them, because loads are slow.
__device__ inline i32 intersect(const i32* base, i32 n, i32 v, i32* out) {
    const u32* row = bit_row(v);
    i32 found = 0;
    ROLLED for (i32 chunk = 0; row != 0 && chunk < n; chunk += 32 * AHEAD) {
        // A lane takes every 32nd entry of the chunk. The three passes stay apart, so that all loads of one pass are on
        // their way together.
        i32 u[AHEAD];
        u32 word[AHEAD];
#pragma unroll
        for (i32 k = 0; k < AHEAD; k++) {
            i32 i = chunk + 32 * k + lane_id();
            u[k] = i < n ? base[i] : NOBODY;
        }
#pragma unroll
        for (i32 k = 0; k < AHEAD; k++) word[k] = u[k] != NOBODY ? row[u[k] >> 5] : 0;
#pragma unroll
        for (i32 k = 0; k < AHEAD; k++) found = keep(out, found, (word[k] >> (u[k] & 31)) & 1, u[k]);
    }
    // `row` is the same in all lanes, so the warp takes one of the two loops as a whole. A lane behind the end has
    // NOBODY, and stays for the ballot in `keep`.
    ROLLED for (i32 chunk = 0; row == 0 && chunk < n; chunk += 32) {
        i32 i = chunk + lane_id();
        i32 u = i < n ? base[i] : NOBODY;
        found = keep(out, found, u != NOBODY && adjacent(v, u), u);
    }
    __syncwarp();
    return found;
}

// The base vertex of smallest degree among the first 32. Its neighbours include the closure of the list.
__device__ inline i32 rarest(const i32* base, i32 n) {
    // A lane takes an entry. Lanes behind the end repeat the first, which changes no minimum.
    i32 u = base[lane_id() < n ? lane_id() : 0];
    u32 degree = (u32)(params.base_indptr[u + 1] - params.base_indptr[u]);
    u32 least = __reduce_min_sync(ALL_LANES, degree);
    return from(u, __ffs(warp_ballot(degree == least)) - 1);
}

// Whether root vertex v may be adjacent to all of the list, by eight of its entries. Thread-level.
__device__ inline bool may_contain_all(i32 v, const i32* base, i32 n) {
    if (params.root_indptr[v + 1] - params.root_indptr[v] < n) return false;
    const u32* row = bit_row(v);
    i32 step = n >> 3;  // a hub has many more than eight
    ROLLED for (i32 i = 0; i < 8; i++) {
        i32 u = base[i * step];
        if (!is_neighbour(row, v, u)) return false;
    }
    return true;
}

// Whether root vertex v is adjacent to all of the list. Each lane loads HUB_AHEAD entries before it uses them.
__device__ inline bool contains_all(i32 v, const i32* base, i32 n) {
    const u32* row = bit_row(v);
    ROLLED for (i32 chunk = 0; row != 0 && chunk < n; chunk += 32 * HUB_AHEAD) {
        i32 u[HUB_AHEAD];
        u32 word[HUB_AHEAD];
#pragma unroll
        for (i32 k = 0; k < HUB_AHEAD; k++) {
            i32 i = chunk + 32 * k + lane_id();
            u[k] = base[i < n ? i : 0];  // lanes behind the end repeat the first, which changes nothing
        }
#pragma unroll
        for (i32 k = 0; k < HUB_AHEAD; k++) word[k] = row[u[k] >> 5];
        u32 has = 1;
#pragma unroll
        for (i32 k = 0; k < HUB_AHEAD; k++) has &= word[k] >> (u[k] & 31);
        if (warp_any((has & 1) == 0)) return false;  // at the first chunk in which one is missing
    }
    ROLLED for (i32 chunk = 0; row == 0 && chunk < n; chunk += 32) {
        i32 i = chunk + lane_id();
        if (warp_any(i < n && !adjacent(v, base[i]))) return false;
    }
    return true;
}

// Write the common neighbours of a path to `out`, which has `room` entries. Returns their number, or NOBODY when there
// may be more than that.
__device__ inline i32 write_common(const i32* path, i32 n_path, i32* out, i32 room) {
    i32 first = path[0];
    // Intersect the shortest list of neighbours with the others.
    ROLLED for (i32 i = 1; i < n_path; i++)
        if (params.root_indptr[path[i] + 1] - params.root_indptr[path[i]] < params.root_indptr[first + 1] - params.root_indptr[first])
            first = path[i];
    i32 n = (i32)(params.root_indptr[first + 1] - params.root_indptr[first]);
    if (n > room) return NOBODY;
    write_list(params.root_indices + params.root_indptr[first], n, out);
    __syncwarp();
    ROLLED for (i32 i = 0; i < n_path; i++) n = intersect(out, n, path[i], out);
    return n;
}
