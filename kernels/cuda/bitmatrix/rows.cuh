// The second part of opening a word problem: from raw rows to sorted rows, and to columns for wide problems.
// Warp-level.
//
// - Raw rows that contain L become the closure.
// - Candidates come first, by ascending number of base vertices. Of listed candidates, those that are to be explored
//   come before the others. A candidate with a single base vertex that is covered (wedges.cuh) is left out.
// - Excluded rows come behind them. A row that overlaps no candidate is left out, because it cannot contain a node
//   below.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/wedges.cuh"
#include "bitmatrix/worker.cuh"

// Bin of a candidate at raw row r with these base vertices. It has fewer than BASE_CAP, because with all it would be in
// the closure.
__device__ __forceinline__ i32 bin_of(const Kin& kin, u64 mask, i32 r) {
    return __popcll(mask) + (kin.bound == NOBODY && r >= kin.end ? BASE_CAP : 0);
}

// Whether candidates with this mask tell nothing. Thread-level.
__device__ __forceinline__ bool is_idle(u64 mask, u64 covered) { return (mask & (mask - 1)) == 0 && (mask & covered) != 0; }

// Write the closure to s->full, add to problem->covered, and count the candidates per bin in s->bin. False when the node
// is dead.
__device__ inline bool sort_out(Worker& w, i32 n_raw, u64 full, const Kin& kin, Problem* problem) {
    Scratch* s = w.s;
    bool ranked = kin.bound != NOBODY;
    i32 n_listed = ranked ? 0 : kin.n_cand;
    // Candidates with a single base vertex are counted by it, because only at the end it is known which are covered. The
    // hash table is not needed any more, so this takes its place.
    i32* single = warp_shared().key;
    ROLLED for (i32 i = lane_id(); i < N_BINS; i += 32) s->bin[i] = single[i] = 0;
    __syncwarp();
    i32 n_full = 0;
    bool dead = false;
    u64 covered = 0;
    ROLLED for (i32 chunk = 0; chunk < n_raw; chunk += 32) {
        i32 r = chunk + lane_id();
        i32 v;
        u64 mask = raw_mask(s, r, n_raw, &v);
        bool candidate = ranked ? v > kin.bound : r >= kin.begin && r < n_listed;
        bool is_full = mask == full;
        bool kept = candidate || v == kin.self || (r >= n_listed && r < problem->n_known);
        dead |= is_full && !kept;
        u32 closers = warp_ballot(is_full);
        if (is_full) s->full[n_full + __popc(closers & lanes_below())] = v;
        n_full += __popc(closers);
        if (is_full || mask == 0) continue;
        i32 bin = bin_of(kin, mask, r);
        if (!candidate) covered |= mask;
        else if (mask & (mask - 1)) atomicAdd(&s->bin[bin], 1);
        else atomicAdd(&single[__ffsll((i64)mask) - 1 + bin - 1], 1);
    }
    problem->n_full = n_full;
    problem->covered |= reduce_or(covered);
    __syncwarp();
    ROLLED for (i32 later = 0; later < N_BINS; later += BASE_CAP) {
        i32 n = 0;
        ROLLED for (i32 b = lane_id(); b < BASE_CAP; b += 32) n += (problem->covered >> b) & 1 ? 0 : single[later + b];
        n = warp_sum(n);
        if (lane_id() == 0) s->bin[later + 1] = n;
    }
    __syncwarp();
    return !warp_any(dead);
}

// Turn the counts of s->bin into first positions. Returns the sum of the counts, and in *n_explored that of the first
// half.
__device__ inline i32 place_bins(Scratch* s, i32* n_explored) {
    i32 total = 0;
    ROLLED for (i32 chunk = 0; chunk < N_BINS; chunk += 32) {
        if (chunk == BASE_CAP) *n_explored = total;
        i32 n = s->bin[chunk + lane_id()];
        i32 before = sum_below(n);
        s->bin[chunk + lane_id()] = total + before;
        total += from(before + n, 31);
    }
    __syncwarp();
    return total;
}

// Write the candidate rows to s->mask and s->row. Returns the union of their base vertices.
__device__ inline u64 place_candidates(Worker& w, i32 n_raw, u64 full, const Kin& kin, Problem* problem) {
    Scratch* s = w.s;
    bool ranked = kin.bound != NOBODY;
    i32 limit = ranked ? n_raw : kin.n_cand;
    problem->n_cand = place_bins(s, &problem->end);
    u64 joined = 0;
    ROLLED for (i32 chunk = 0; chunk < limit; chunk += 32) {
        i32 r = chunk + lane_id();
        i32 v;
        u64 mask = raw_mask(s, r, limit, &v);
        bool candidate = mask != 0 && mask != full && (ranked ? v > kin.bound : r >= kin.begin);
        if (!candidate || is_idle(mask, problem->covered)) continue;
        i32 at = atomicAdd(&s->bin[bin_of(kin, mask, r)], 1);
        s->mask[at] = mask;
        s->row[at] = v;
        joined |= mask;
    }
    return reduce_or(joined);
}

// The base vertices of raw row r that are in `joined`, if it is an excluded row, and none otherwise. Thread-level.
__device__ __forceinline__ u64 excluded_mask(const Scratch* s, i32 r, i32 n_raw, u64 full, u64 joined, const Kin& kin) {
    i32 v;
    u64 mask = raw_mask(s, r, n_raw, &v);
    bool candidate = kin.bound != NOBODY ? v > kin.bound : r >= kin.begin && r < kin.n_cand;
    return mask == full || candidate ? 0 : mask & joined;
}

// Drop rows of [from_row, n) that are pairs of base vertices and lie within a larger row or are repeats. Returns the
// new n.
__device__ inline i32 drop_pairs(Scratch* s, i32 from_row, i32 n) {
    // By base vertex: the others that are in a row with it. The hash table is not needed any more, so this takes its
    // place.
    u32* beside = (u32*)warp_shared().key;
    ROLLED for (i32 i = lane_id(); i < 2 * BASE_CAP; i += 32) beside[i] = 0;
    __syncwarp();
    ROLLED for (i32 r = from_row + lane_id(); r < n; r += 32) {
        u64 mask = s->mask[r];
        if (__popcll(mask) < 3) continue;
        ROLLED for (u64 rest = mask; rest; rest &= rest - 1) {
            i32 b = __ffsll((i64)rest) - 1;
            atomicOr(&beside[2 * b], (u32)mask);
            atomicOr(&beside[2 * b + 1], (u32)(mask >> 32));
        }
    }
    __syncwarp();
    i32 kept_rows = from_row;
    ROLLED for (i32 chunk = from_row; chunk < n; chunk += 32) {
        i32 r = chunk + lane_id();
        u64 mask = r < n ? s->mask[r] : 0;
        bool kept = mask != 0;
        if (__popcll(mask) == 2) {
            i32 a = __ffsll((i64)mask) - 1, b = 63 - __clzll((i64)mask);
            u32 old = atomicOr(&beside[2 * a + (b >> 5)], 1u << (b & 31));
            kept = !((old >> (b & 31)) & 1);
        }
        u32 keepers = warp_ballot(kept);
        if (kept) s->mask[kept_rows + __popc(keepers & lanes_below())] = mask;
        kept_rows += __popc(keepers);
    }
    return kept_rows;
}

// Write the excluded rows behind the candidates, without base vertices that no candidate has. A row within another row
// excludes nothing more. So pairs that lie within a larger row are left out. Rows with one base vertex need not be among
// the raw rows: each covered base vertex that is in no larger row gets one. False when there are more rows than ROW_CAP.
__device__ inline bool place_excluded(Worker& w, i32 n_raw, u64 full, u64 joined, const Kin& kin, Problem* problem) {
    Scratch* s = w.s;
    u64 alone = 0;
    i32 n = problem->n_cand;
    ROLLED for (i32 chunk = 0; chunk < n_raw; chunk += 32) {
        u64 mask = excluded_mask(s, chunk + lane_id(), n_raw, full, joined, kin);
        bool kept = (mask & (mask - 1)) != 0;
        if (kept) alone |= mask;
        u32 keepers = warp_ballot(kept);
        if (kept) s->mask[n + __popc(keepers & lanes_below())] = mask;
        n += __popc(keepers);
    }
    alone = problem->covered & joined & ~reduce_or(alone);
    if (n + __popcll(alone) > ROW_CAP) return false;
    ROLLED for (i32 b = lane_id(); b < BASE_CAP; b += 32)
        if ((alone >> b) & 1) s->mask[n + __popcll(alone & low_bits(b))] = 1ull << b;
    n += __popcll(alone);
    __syncwarp();
    problem->n_rows = drop_pairs(s, problem->n_cand, n);
    problem->n_words = (problem->n_rows + 31) / 32;
    __syncwarp();
    return true;
}

// Make the bit columns of a wide problem from the masks. For each base vertex, a ballot over 32 rows is one word of its
// column, and the lane with the number of the base vertex keeps it.
__device__ inline void place_columns(Worker& w, const Problem& problem) {
    Scratch* s = w.s;
    ROLLED for (i32 c = 0; c < problem.n_words; c++) {
        i32 r = c * 32 + lane_id();
        u64 mask = r < problem.n_rows ? s->mask[r] : 0;
        u32 low = 0, high = 0;
        ROLLED for (i32 b = 0; b < problem.n_bits; b++) {
            u32 word = warp_ballot((mask >> b) & 1);
            if (lane_id() == (b & 31)) {
                if (b < 32)
                    low = word;
                else
                    high = word;
            }
        }
        if (lane_id() < problem.n_bits) s->column[lane_id() * problem.n_words + c] = low;
        if (lane_id() + 32 < problem.n_bits) s->column[(lane_id() + 32) * problem.n_words + c] = high;
    }
    __syncwarp();
}
