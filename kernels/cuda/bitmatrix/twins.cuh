// Twins inside a hub: base vertices of a node that the same candidates have. A class of them is one bit of a word problem,
// so a hub becomes one where it has at most BASE_CAP classes and candidates. Warp-level.
//
// Why this is exact: kernels/reference/tree.py, R7. The base side of every node below is a union of classes. A candidate has
// all of a class or nothing of it, so one of the class, its representative, tells which rows the candidates have. An
// excluded row has a class only if it has all of it: problem.cuh takes the others out of the row. A class of a count is
// one vertex like any other. Fingerprints and sizes need its sums, which are in Scratch.bit, and rows its members, which are in
// Problem.member.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/wedges.cuh"
#include "bitmatrix/worker.cuh"

#ifndef LEAST_JOINED
#define LEAST_JOINED 4  // candidates that a base vertex of a hub has in the mean, if the hub is merged
#endif

// Whether hubs are merged. This is of use in a graph of few columns and many rows, most of whose roots are hubs. In others a
// hub may have thousands of excluded rows, and most of these have no bit row.
__device__ __forceinline__ bool has_few_columns() { return params.hub_bits != 0 && 2 * params.first_hub <= params.n_roots; }

// Which of the n candidates from `first` on have base vertex u: a bit for each. All lanes have the same candidates.
__device__ inline u64 candidates_of(const Kin& kin, i32 first, i32 n, i32 u) {
    u64 set = 0;
    ROLLED for (i32 i = 0; i < n; i += HUB_AHEAD) {
        u32 word[HUB_AHEAD];
#pragma unroll
        for (i32 k = 0; k < HUB_AHEAD; k++) {
            i32 at = first + (i + k < n ? i + k : n - 1);  // the last one may be read more than once
            const u32* row = bit_row(kin.bound != NOBODY ? at : kin.cand[at]);
            word[k] = row != 0 ? row[u >> 5] >> (u & 31) : 0;
        }
#pragma unroll
        for (i32 k = 0; k < HUB_AHEAD; k++)
            if (i + k < n) set |= (u64)(word[k] & 1) << (i + k);
    }
    // A candidate of a list may have no bit row.
    ROLLED for (i32 i = 0; kin.bound == NOBODY && i < n; i++) {
        i32 v = kin.cand[first + i];
        if (bit_row(v) == 0 && adjacent(v, u)) set |= 1ull << i;
    }
    return set;
}

// Merge the n base vertices of a node at `base`, behind which the stack of hubs is free. Its Kin is set. Writes a
// representative of each class to s->base, and behind the base vertices the number of the class of each. Returns how many
// classes there are, or 0 when they are no word problem.
__device__ __noinline__ i32 merge_twins(Worker& w, const i32* base, i32 n) {
    Scratch* s = w.s;
    Kin& kin = warp_shared().kin;
    bool ranked = kin.bound != NOBODY;
    i32 first = ranked ? kin.bound + 1 : kin.begin;
    i32 n_cand = (ranked ? (i32)params.n_roots : kin.n_cand) - first;
    i32 room = (params.list ? 3 : 2) * n;  // for the base vertices, their numbers, and the members of class after class
    if (!has_few_columns() || n_cand > 64 || base + room > s->list + LIST_CAP) return 0;
    i32* number = s->list + (base - s->list) + n;
    // Lane l has the candidates of classes l and l + 32.
    u64 own[2] = {0, 0}, several = 0;
    i32 found = 0;
    ROLLED for (i32 chunk = 0; chunk < n; chunk += 32) {
        i32 i = chunk + lane_id();
        i32 u = base[i < n ? i : 0];
        u64 set = candidates_of(kin, first, n_cand, u);
        // A hub with few candidates for each base vertex has little below it. The first ones tell.
        if (chunk == 0 && warp_sum(__popcll(set)) < 32 * LEAST_JOINED) return 0;
        // One class after the other, of those that this chunk has.
        ROLLED for (u32 rest = warp_ballot(i < n); rest;) {
            i32 lane = __ffs(rest) - 1;
            u64 its = from(set, lane);
            u32 low = warp_ballot(lane_id() < found && own[0] == its);
            u32 high = warp_ballot(lane_id() + 32 < found && own[1] == its);
            i32 k = low != 0 ? __ffs(low) - 1 : high != 0 ? __ffs(high) + 31 : found;
            u32 members = warp_ballot(i < n && set == its);
            if (k < found || (members & (members - 1)) != 0) several |= 1ull << k;
            if (k == found) {
                if (k == BASE_CAP) return 0;
                if (lane_id() == k) own[0] = its;
                if (lane_id() + 32 == k) own[1] = its;
                if (lane_id() == lane) s->base[k] = u;
                found += 1;
            }
            if ((members >> lane_id()) & 1) number[i] = k;
            rest &= ~members;
        }
    }
    __syncwarp();
    if (lane_id() == 0) {
        kin.n_twins = n;
        kin.twins = base;
        kin.number = number;
        kin.several = several;
    }
    __syncwarp();
    return found;
}

// Take the classes of which an excluded row has only a part out of it. Its raw row has those whose representatives it has.
__device__ __noinline__ void drop_parts(Worker& w, i32 n_raw, i32 n_known) {
    const Kin& kin = warp_shared().kin;
    i32 n_listed = kin.bound != NOBODY ? 0 : kin.n_cand, n = kin.n_twins;
    const i32 *twins = kin.twins, *number = kin.number;
    u64 several = kin.several;
    ROLLED for (i32 chunk = 0; chunk < n_raw; chunk += 32) {
        i32 r = chunk + lane_id();
        i32 v;
        u64 mask = raw_mask(w.s, r, n_raw, &v);
        // Candidates and the closure of the parent have all of a class, or nothing of it.
        bool candidate = kin.bound != NOBODY ? v > kin.bound : r >= kin.begin && r < n_listed;
        bool partly = !candidate && (r < n_listed || r >= n_known) && (mask & several) != 0;
        if (!partly) mask = 0;
        const u32* row = partly ? bit_row(v) : 0;
        // A lane has a row. All lanes look at the same base vertices, until no row has a class that may go.
        ROLLED for (i32 i = 0; i < n && warp_any((mask & several) != 0); i += 32) {
            i32 at = i + lane_id() < n ? i + lane_id() : n - 1;
            i32 u = twins[at], k = number[at];
            ROLLED for (i32 t = 0; t < 32; t += HUB_AHEAD) {
                u32 word[HUB_AHEAD];
#pragma unroll
                for (i32 j = 0; j < HUB_AHEAD; j++) {
                    i32 its = from(u, t + j);
                    word[j] = row != 0 ? row[its >> 5] >> (its & 31) : 1;
                }
#pragma unroll
                for (i32 j = 0; j < HUB_AHEAD; j++) mask &= ~((u64)(~word[j] & 1) << from(k, t + j));
            }
            bool searched = row == 0 && mask != 0;
            ROLLED for (i32 t = 0; warp_any(searched) && t < 32; t++) {
                i32 its = from(u, t), number_of_it = from(k, t);
                if (searched && ((mask >> number_of_it) & 1) && !adjacent(v, its)) mask &= ~(1ull << number_of_it);
            }
        }
        if (partly) w.s->raw_mask[r] = mask;
    }
    __syncwarp();
}

// Write the bits of a node's word problem to s->base: its n base vertices, or representatives of their classes. Its Kin is
// set. Returns how many there are, or 0 when the node is a hub.
__device__ __forceinline__ i32 find_bits(Worker& w, const i32* base, i32 n) {
    i32 n_bits = n <= BASE_CAP ? write_list(base, n, w.s->base) : MERGING ? merge_twins(w, base, n) : 0;
    __syncwarp();
    return n_bits;
}
