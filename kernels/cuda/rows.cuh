// Opening a word problem: from at most 64 base vertices to ordered rows and bit columns. Warp-level.
//
// The wedges of the left vertices are walked as one flat range, a lane each. A hash table gives every root
// vertex met a slot, in which the left vertex sets its bit. Then slots become closure (they contain L),
// candidates (first, by ascending number of left vertices, or in the order given), and excluded rows
// (behind them; those that overlap no candidate can never contain a node below and are left out).
#pragma once
#include "output.cuh"

#define UNUSED (-1)

// What open_problem says.
#define OPEN 0
#define DEAD 1      // L belongs to an earlier node
#define OVERSIZE 2  // more rows than ROW_CAP

// Which rows are candidates, and how the node hangs in the tree.
struct Kin {
    i32 bound;           // candidates are the ranks above it; NOBODY: they are listed
    i32 self;            // the child's own vertex, a member of its closure
    const i32* cand;     // listed candidates, in order
    i32 n_cand;
    i32 begin;           // children to explore (listed): [begin, end); earlier ones are excluded
    i32 end;
    const i32* closure;  // closure of the parent
    i32 n_closure;
    bool alive;          // known not to be dead
};

// Slot of root vertex v, taken if need be (*fresh). Lanes may race for one slot, and none waits.
__device__ inline u32 find_slot(Scratch* s, i32 v, u32 table_mask, bool* fresh) {
    u32 slot = ((u32)v * 2654435769u >> 9) & table_mask;
    while (true) {
        i32 found = atomicCAS(&s->key[slot], UNUSED, v);
        *fresh = found == UNUSED;
        if (found == UNUSED || found == v) return slot;
        slot = (slot + 1) & table_mask;
    }
}

// Note the slots that lanes have just taken; the new number of raw rows.
__device__ __forceinline__ i32 note_fresh(Scratch* s, i32 n_raw, bool fresh, u32 slot) {
    u32 takers = warp_ballot(fresh);
    if (fresh) s->slot[n_raw + __popc(takers & lanes_below())] = (i32)slot;
    return n_raw + __popc(takers);
}

// Degrees of the left vertices as offsets in s->start; returns their sum.
__device__ inline i32 flatten(const Worker& w, i32 n_bits) {
    Scratch* s = w.s;
    i32 total = 0;
    for (i32 base = 0; base < n_bits; base += 32) {
        i32 b = base + lane_id();
        i32 degree = 0;
        if (b < n_bits) degree = (i32)(w.p->base_indptr[s->left[b] + 1] - w.p->base_indptr[s->left[b]]);
        i32 before = sum_below(degree);
        if (b < n_bits) s->start[b] = total + before;
        total += from(before + degree, 31);
    }
    if (lane_id() == 0) s->start[n_bits] = total;
    __syncwarp();
    return total;
}

// Enter a list of root vertices before the walk, so that raw row = position. Returns the number of raw rows.
__device__ inline i32 enter(Scratch* s, const i32* list, i32 n, u32 table_mask, i32 n_raw) {
    for (i32 base = 0; base < n; base += 32) {
        i32 i = base + lane_id();
        bool fresh = false;
        u32 slot = 0;
        if (i < n) slot = find_slot(s, list[i], table_mask, &fresh);
        n_raw = note_fresh(s, n_raw, fresh, slot);
    }
    return n_raw;
}

// Walk the wedges: a slot with left vertices for every root vertex met. Number of raw rows, or -1: too many.
__device__ inline i32 walk(const Worker& w, i32 n_bits, const Kin& kin) {
    Scratch* s = w.s;
    i32 total = flatten(w, n_bits);
    i32 entered = (kin.bound == NOBODY ? kin.n_cand : 0) + kin.n_closure;
    if (entered + 64 > ROW_CAP) return -1;
    u32 table = 64;
    while (table < HASH_CAP && table < 2u * (u32)(total + entered)) table *= 2;
    for (u32 i = lane_id(); i < table; i += 32) {
        s->key[i] = UNUSED;
        s->lo[i] = 0;
        s->hi[i] = 0;
    }
    __syncwarp();
    i32 n_raw = kin.bound == NOBODY ? enter(s, kin.cand, kin.n_cand, table - 1, 0) : 0;
    n_raw = enter(s, kin.closure, kin.n_closure, table - 1, n_raw);
    for (i32 base = 0; base < total; base += 32) {
        if (n_raw + 32 > ROW_CAP) return -1;
        i32 f = base + lane_id();
        bool fresh = false;
        u32 slot = 0;
        if (f < total) {
            i32 b = lower_bound(s->start, n_bits + 1, f + 1) - 1;
            i32 v = w.p->base_indices[w.p->base_indptr[s->left[b]] + (f - s->start[b])];
            slot = find_slot(s, v, table - 1, &fresh);
            if (b < 32)
                atomicOr(&s->lo[slot], 1u << b);
            else
                atomicOr(&s->hi[slot], 1u << (b - 32));
        }
        n_raw = note_fresh(s, n_raw, fresh, slot);
    }
    __syncwarp();
    return n_raw;
}

// Raw row r: its root vertex and left vertices. Thread-level.
__device__ __forceinline__ u64 raw_mask(const Scratch* s, i32 r, i32* v) {
    i32 slot = s->slot[r];
    *v = s->key[slot];
    return (u64)s->lo[slot] | (u64)s->hi[slot] << 32;
}

// Closure to s->full, candidates counted by size to s->bin; false when the node is dead.
__device__ inline bool sort_out(Worker& w, i32 n_raw, u64 full, const Kin& kin, Problem* problem) {
    Scratch* s = w.s;
    bool ranked = kin.bound != NOBODY;
    i32 n_listed = ranked ? 0 : kin.n_cand;
    for (i32 i = lane_id(); i < LEFT_CAP + 2; i += 32) s->bin[i] = 0;
    __syncwarp();
    i32 n_full = 0;
    bool dead = false;
    for (i32 base = 0; base < n_raw; base += 32) {
        i32 r = base + lane_id();
        i32 v = NOBODY;
        u64 mask = r < n_raw ? raw_mask(s, r, &v) : 0;
        bool candidate = ranked ? v > kin.bound : r >= kin.begin && r < n_listed;
        bool is_full = mask == full;
        bool kept = candidate || v == kin.self || (r >= n_listed && r < n_listed + kin.n_closure);
        dead |= is_full && !kept && !kin.alive;
        u32 closers = warp_ballot(is_full);
        if (is_full) s->full[n_full + __popc(closers & lanes_below())] = v;
        n_full += __popc(closers);
        if (ranked && candidate && !is_full && mask != 0) atomicAdd(&s->bin[__popcll(mask)], 1);
    }
    problem->n_full = n_full;
    __syncwarp();
    return !warp_any(dead);
}

// Turn the counts of s->bin into first positions; their sum.
__device__ inline i32 place_bins(Scratch* s, i32 n_bits) {
    i32 total = 0;
    for (i32 base = 0; base < n_bits; base += 32) {
        i32 b = base + lane_id();
        i32 n = b < n_bits ? s->bin[b] : 0;
        i32 before = sum_below(n);
        if (b < n_bits) s->bin[b] = total + before;
        total += from(before + n, 31);
    }
    __syncwarp();
    return total;
}

// Candidate rows to s->mask and s->row; returns the union of their left vertices.
__device__ inline u64 place_candidates(Worker& w, i32 n_raw, u64 full, const Kin& kin, Problem* problem) {
    Scratch* s = w.s;
    bool ranked = kin.bound != NOBODY;
    i32 limit = ranked ? n_raw : kin.n_cand;
    i32 placed = ranked ? place_bins(s, problem->n_bits) : 0;
    i32 n_explored = 0;
    u64 joined = 0;
    for (i32 base = 0; base < limit; base += 32) {
        i32 r = base + lane_id();
        i32 v = NOBODY;
        u64 mask = r < limit ? raw_mask(s, r, &v) : 0;
        bool candidate = mask != 0 && mask != full && (ranked ? v > kin.bound : r >= kin.begin);
        i32 at = 0;
        if (ranked) {
            if (candidate) at = atomicAdd(&s->bin[__popcll(mask)], 1);
        } else {
            u32 keepers = warp_ballot(candidate);
            at = placed + __popc(keepers & lanes_below());
            placed += __popc(keepers);
            n_explored += __popc(warp_ballot(candidate && r < kin.end));
        }
        if (candidate) {
            s->mask[at] = mask;
            s->row[at] = v;
            joined |= mask;
        }
    }
    problem->n_cand = placed;
    problem->begin = 0;
    problem->end = ranked ? placed : n_explored;
    u32 lo = __reduce_or_sync(ALL_LANES, (u32)joined);
    u32 hi = __reduce_or_sync(ALL_LANES, (u32)(joined >> 32));
    return (u64)lo | (u64)hi << 32;
}

// Excluded rows that overlap `joined`, behind the candidates.
__device__ inline void place_excluded(Worker& w, i32 n_raw, u64 full, u64 joined, const Kin& kin, Problem* problem) {
    Scratch* s = w.s;
    bool ranked = kin.bound != NOBODY;
    i32 n = problem->n_cand;
    for (i32 base = 0; base < n_raw; base += 32) {
        i32 r = base + lane_id();
        i32 v = NOBODY;
        u64 mask = r < n_raw ? raw_mask(s, r, &v) : 0;
        bool candidate = ranked ? v > kin.bound : r >= kin.begin && r < kin.n_cand;
        bool excluded = (mask & joined) != 0 && mask != full && !candidate;
        u32 keepers = warp_ballot(excluded);
        if (excluded) s->mask[n + __popc(keepers & lanes_below())] = mask;
        n += __popc(keepers);
    }
    problem->n_rows = n;
    problem->n_words = (n + 31) / 32;
    __syncwarp();
}

// Bit columns from the masks: ballots transpose 32 rows at a time.
__device__ inline void place_columns(Worker& w, const Problem& problem) {
    Scratch* s = w.s;
    for (i32 c = 0; c < problem.n_words; c++) {
        i32 r = c * 32 + lane_id();
        u64 mask = r < problem.n_rows ? s->mask[r] : 0;
        u32 low = 0, high = 0;
        for (i32 b = 0; b < problem.n_bits; b++) {
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

// Open the problem with left vertices s->left[0..n_bits). On OPEN it may still have no candidates.
__device__ inline i32 open_problem(Worker& w, i32 n_bits, const Kin& kin, Problem* problem) {
    problem->n_bits = n_bits;
    problem->n_rows = problem->n_cand = problem->n_words = 0;
    u64 full = low_bits(n_bits);
    i32 n_raw = walk(w, n_bits, kin);
    if (n_raw < 0) return OVERSIZE;
    if (!sort_out(w, n_raw, full, kin, problem)) return DEAD;
    u64 joined = place_candidates(w, n_raw, full, kin, problem);
    if (problem->n_cand == 0) return OPEN;
    place_excluded(w, n_raw, full, joined, kin, problem);
    place_columns(w, *problem);
    return OPEN;
}
