// Solves nodes with at most LATTICE base vertices at once, with one bit for each subset of L. Warp-level: each lane has
// 32 of the 1024 subsets.
//
// Bit (32 * lane + b) of a map stands for the set of base vertices with that binary representation. One map has the
// sets of the candidates, another those of the excluded rows. The base sides of all bicliques below the node follow
// from these without a search: a set is one iff it is an intersection of candidate sets, and no excluded row contains
// it. It is such an intersection iff for every base vertex u outside of it there is a candidate that contains it but
// not u.
//
// "Some set of the map contains it" is a downward closure, which takes one step per base vertex. For each u a closure
// in all directions but u is needed. These are computed in halves that share steps, k log k steps in all.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/bound.cuh"
#include "bitmatrix/emit_lattice.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/wedges.cuh"
#include "bitmatrix/worker.cuh"

// The maps in shared memory
#define CANDIDATES 0
#define EARLY 1     // candidates whose children are to be explored
#define EXCLUDED 2

// Bits of a word whose position has bit T clear.
template <i32 T>
__device__ __forceinline__ u32 without() {
    return T == 0 ? 0x55555555u : T == 1 ? 0x33333333u : T == 2 ? 0x0f0f0f0fu : T == 3 ? 0x00ff00ffu : 0x0000ffffu;
}

// Sets that contain base vertex T.
template <i32 T>
__device__ __forceinline__ u32 having() {
    if constexpr (T < 5) return ~without<T>();
    else return (lane_id() >> (T - 5)) & 1 ? ~0u : 0u;
}

// Downward closure of a map in directions LO to HI - 1. A set is in it if the map has the set with some of these base
// vertices added. Directions below 5 are inside a lane's word; the others are shuffles between lanes.
template <i32 LO, i32 HI>
__device__ __forceinline__ u32 down(u32 map) {
    if constexpr (LO == HI) {
        return map;
    } else if constexpr (LO < 5) {
        return down<LO + 1, HI>(map | ((map >> (1 << LO)) & without<LO>()));
    } else {
        u32 above = __shfl_xor_sync(ALL_LANES, map, 1 << (LO - 5));
        return down<LO + 1, HI>((lane_id() >> (LO - 5)) & 1 ? map : map | above);
    }
}

// Intersections of sets of the map, which is closed downward in all directions but LO to HI - 1.
template <i32 LO, i32 HI>
__device__ __forceinline__ u32 intersections(u32 map) {
    if constexpr (HI - LO == 1) {
        return map | having<LO>();
    } else {
        constexpr i32 MID = (LO + HI) / 2;
        return intersections<LO, MID>(down<MID, HI>(map)) & intersections<MID, HI>(down<LO, MID>(map));
    }
}

// Empty all maps.
__device__ __forceinline__ void clear_maps() {
    ROLLED for (i32 i = 0; i < 3; i++) warp_shared().map[i][lane_id()] = 0;
    __syncwarp();
}

// Add a set to a map. Thread-level.
__device__ __forceinline__ void enter_set(i32 map, u32 set) {
    atomicOr(&warp_shared().map[map][set >> 5], 1u << (set & 31));
}

// This lane's word of the map of all base sides below a node with k base vertices.
template <i32 K>
__device__ __forceinline__ u32 solve_maps(i32 k, bool all) {
    __syncwarp();
    const WarpShared& own = warp_shared();
    u32 found = intersections<0, K>(own.map[CANDIDATES][lane_id()]) & ~down<0, K>(own.map[EXCLUDED][lane_id()]);
    if (!all) found &= down<0, K>(own.map[EARLY][lane_id()]);
    i32 whole = (1 << k) - 1;  // larger numbers name base vertices that the node lacks; the node itself is done
    i32 bits = whole - 32 * lane_id();
    found &= bits >= 32 ? ~0u : bits <= 0 ? 0u : (1u << bits) - 1u;
    if (lane_id() == 0) found &= ~1u;  // the empty set
    __syncwarp();
    return found;
}

// Enter the raw rows into the maps, and write the closure to s->full. False when the node is dead. If sets will be
// emitted, only the candidates stay among the raw rows.
__device__ inline bool map_raw_rows(Worker& w, i32 n_raw, u64 full, const Kin& kin, Problem* problem) {
    Scratch* s = w.s;
    clear_maps();
    // Rows that only cover a base vertex may not be among the raw rows.
    if ((problem->covered >> lane_id()) & 1) enter_set(EXCLUDED, 1u << lane_id());
    bool ranked = kin.bound != NOBODY, dead = false;
    i32 n_listed = ranked ? 0 : kin.n_cand, n_full = 0, n_cand = 0;
    ROLLED for (i32 chunk = 0; chunk < n_raw; chunk += 32) {
        i32 r = chunk + lane_id();
        i32 v;
        u64 mask = raw_mask(s, r, n_raw, &v);
        bool candidate = ranked ? v > kin.bound : r >= kin.begin && r < n_listed;
        bool is_full = mask == full;
        dead |= is_full && !candidate && v != kin.self && (r < n_listed || r >= problem->n_known);
        u32 closers = warp_ballot(is_full);
        if (is_full) s->full[n_full + __popc(closers & lanes_below())] = v;
        n_full += __popc(closers);
        bool inside = mask != 0 && !is_full;
        if (inside) enter_set(candidate ? CANDIDATES : EXCLUDED, (u32)mask);
        if (inside && candidate && r < kin.end && !ranked) enter_set(EARLY, (u32)mask);
        u32 keepers = warp_ballot(inside && candidate);
        if (!PLAIN && inside && candidate) {
            i32 at = n_cand + __popc(keepers & lanes_below());
            s->raw_row[at] = v;
            s->raw_mask[at] = mask;
        }
        n_cand += __popc(keepers);
    }
    problem->n_full = n_full;
    problem->n_cand = n_cand;
    problem->all = ranked || kin.end >= kin.n_cand;
    return !warp_any(dead);
}

// Bits of a word whose position, as a set of five, has at least n members. Thread-level.
__device__ __forceinline__ u32 at_least(i32 n) {
    return n <= 0   ? ~0u
           : n == 1 ? 0xfffffffeu
           : n == 2 ? 0xfffefee8u
           : n == 3 ? 0xfee8e880u
           : n == 4 ? 0xe8808000u
           : n == 5 ? 0x80000000u
                    : 0u;
}

// How many of this lane's sets have min_base members.
__device__ inline i32 count_large(const Worker& w, u64 base, u32 found, bool unit) {
    if (unit) return __popc(found & at_least(least_base() - __popc(lane_id())));
    i32* weight = warp_shared().key;  // of the t-th base vertex
    ROLLED for (i32 b = lane_id(); b < BASE_CAP; b += 32)
        if ((base >> b) & 1) weight[__popcll(base & low_bits(b))] = params.base_weight[w.s->base[b]];
    __syncwarp();
    i32 n = 0;
    ROLLED for (; found; found &= found - 1) {
        i64 members = 0;
        ROLLED for (u32 set = 32 * lane_id() + __ffs(found) - 1; set; set &= set - 1) members += weight[__ffs(set) - 1];
        n += members >= params.min_base;
    }
    __syncwarp();
    return n;
}

// Find and emit everything below a node whose maps are made. It has k base vertices, or classes of them (`bits`, of lane
// after lane). n is the number of its raw rows. False when the output is full; sets that could not be emitted are written
// down then.
__device__ inline bool solve_lattice(Worker& w, const Problem& problem, u64 base, i32 k, u64 bits, i32 n) {
    u32 found = k <= 5 ? solve_maps<5>(k, problem.all) : solve_maps<LATTICE>(k, problem.all);
    if (PLAIN) {
        w.found += SIEVING ? count_large(w, base, found, problem.unit) : __popc(found);
        return true;
    }
    return emit_sets(w, problem, base, k, bits, found, n);
}
