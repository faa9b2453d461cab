// The first part of opening a word problem: from at most 64 base vertices to raw rows. Warp-level.
//
// The wedges of the base vertices are one flat range, and each lane takes one wedge at a time. A hash table gives every
// root vertex that is met a slot, in which the base vertex sets its bit. Small tables are in shared memory. Where there are
// many wedges, a filter is in front of the table.
//
// A base vertex is *covered* if an excluded row has it. A node with this base vertex alone is dead then. So a row that has
// no other base vertex of L tells nothing: as a candidate it leads to that dead node, and as an excluded row it only covers.
// In sparse graphs nine of ten rows are such rows.
#pragma once
#include "common/hash.cuh"
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Set the Kin of the problem that is opened next. The first __syncwarp waits for lanes that still read the last one.
__device__ __forceinline__ void set_kin(const Kin& kin) {
    __syncwarp();
    if (lane_id() == 0) warp_shared().kin = kin;
    __syncwarp();
}

// Where the hash table is. It is a template parameter, because the compiler uses other instructions for shared memory.
struct Table {
    u32 mask;   // slots - 1
    bool wide;  // whether there are more than 32 base vertices
};
template <bool SHARED>
__device__ __forceinline__ i32* keys(Scratch* s) {
    return SHARED ? warp_shared().key : s->key;
}
template <bool SHARED>
__device__ __forceinline__ u32* low_sets(Scratch* s, Table table) {
    return SHARED ? warp_shared().words + table.mask + 1 : s->lo;
}
template <bool SHARED>
__device__ __forceinline__ u32* high_sets(Scratch* s, Table table) {
    return SHARED ? warp_shared().words + 2 * (table.mask + 1) : s->hi;
}

// Slots of the largest table in shared memory. Half of the memory has a filter, if there is one.
__device__ __forceinline__ i32 shared_slots(bool sifted, bool wide) { return SHARED_SLOTS >> (sifted + wide); }

// Whether so many rows leave a quarter of the largest table in shared memory free.
__device__ __forceinline__ bool fits_shared(i32 rows, bool sifted, bool wide) {
    return shared_slots(sifted, wide) >= 64 && 4 * rows <= 3 * shared_slots(sifted, wide);
}

// A table for so many rows, of which it is at most three quarters full if it does not reach its largest size. It is small
// where rows are few, because all of its slots are cleared.
__device__ __forceinline__ Table table_for(i32 rows, u32 largest, bool wide) {
    u32 slots = 64;
    ROLLED while (slots < largest && 3 * slots < 4u * (u32)rows) slots *= 2;
    return {slots - 1, wide};
}

// Slot of root vertex v. It is taken if v has none yet (*fresh). `found` is the key that the caller's atomicCAS met in
// `slot`, the first one to try. Lanes may try the same slot at the same time, and none waits.
template <bool SHARED>
__device__ __forceinline__ u32 find_slot(Scratch* s, i32 v, u32 slot, i32 found, u32 table_mask, bool* fresh) {
    // A key is written once and stays, so one compare-and-swap per slot is enough. Of lanes with the same v, exactly
    // one meets UNUSED and takes the slot; the others meet v there. The table always has a free slot, so the probing
    // ends.
    ROLLED while (found != UNUSED && found != v) {
        slot = (slot + 1) & table_mask;
        found = atomicCAS(&keys<SHARED>(s)[slot], UNUSED, v);
    }
    *fresh = found == UNUSED;
    return slot;
}

// Append the slots that lanes have just taken. Returns the new number of raw rows.
__device__ __forceinline__ i32 note_fresh(Scratch* s, i32 n_raw, bool fresh, u32 slot) {
    // The ballot gives each taker its place without an atomic: behind the takers in lower lanes. n_raw stays the same
    // in all lanes.
    u32 takers = warp_ballot(fresh);
    if (fresh) s->slot[n_raw + __popc(takers & lanes_below())] = (i32)slot;
    return n_raw + __popc(takers);
}

// Enter a list of root vertices before the walk, so that raw rows are in its order. Returns the number of raw rows.
template <bool SHARED>
__device__ inline i32 enter(Scratch* s, const i32* list, i32 n, u32 table_mask, i32 n_raw) {
    ROLLED for (i32 chunk = 0; chunk < n; chunk += 32) {
        i32 i = chunk + lane_id();
        // All lanes come here in every round, also those behind the end of the list, because note_fresh is a
        // collective. The order of lanes is the order of the list, so raw row i is list[i] if all entries were new.
        bool fresh = false;
        u32 slot = 0;
        // The sets stay empty here. A listed root vertex that no wedge meets ends as a raw row without base vertices.
        if (i < n) {
            i32 v = list[i];
            slot = first_slot(v, table_mask);
            slot = find_slot<SHARED>(s, v, slot, atomicCAS(&keys<SHARED>(s)[slot], UNUSED, v), table_mask, &fresh);
        }
        n_raw = note_fresh(s, n_raw, fresh, slot);
    }
    return n_raw;
}

// The wedges of the base vertices as one range. Each lane knows where the neighbours of two base vertices begin in it.
struct Wedges {
    i32 start[2];   // of base vertices lane and lane + 32; INT_MAX: none
    i64 offset[2];  // index of a neighbour minus its place in the range
    i32 total;
};

// Put the wedges of all base vertices into one range, by prefix sums of their degrees.
__device__ inline Wedges flatten(const Worker& w, i32 n_bits) {
    Wedges flat;
    flat.total = 0;
    ROLLED for (i32 half = 0; half < 2; half++) {
        i32 b = lane_id() + 32 * half;
        flat.start[half] = 0x7fffffff;
        flat.offset[half] = 0;
        // n_bits is the same in all lanes, so all of them skip the second half together.
        if (32 * half >= n_bits) continue;
        i64 at = 0;
        i32 degree = 0;
        if (b < n_bits) {
            i32 u = w.s->base[b];
            at = params.base_indptr[u];
            degree = (i32)(params.base_indptr[u + 1] - at);
        }
        // Lanes without a base vertex have degree 0 here, and take part, because the prefix sum needs all 32.
        i32 before = flat.total + sum_below(degree);
        if (b < n_bits) {
            flat.start[half] = before;
            flat.offset[half] = at - before;
        }
        // Lane 31 is the last of the prefix sum, so it alone knows the total of this half.
        flat.total = from(before + degree, 31);
    }
    return flat;
}

// Root vertex of wedge `chunk + lane` (NOBODY behind the last), and its base vertex *b. *before is the number of base
// vertices whose neighbours begin before `chunk`, and is moved on by 32 wedges. Each lane marks where its own base
// vertices begin in the chunk; the marks up to a lane tell it the base vertex of its wedge.
__device__ __forceinline__ i32 wedge(const Wedges& flat, i32 chunk, bool wide, i32* before, i32* b) {
    // A base vertex of a node has a neighbour: a member of the closure. So no two begin at the same place, and each
    // has a mark of its own. As unsigned numbers, starts before the chunk are large, too, so one comparison is enough.
    u32 marks = 0;
    u32 first = (u32)(flat.start[0] - chunk);
    if (first < 32u) marks = 1u << first;
    u32 second = (u32)(flat.start[1] - chunk);
    if (wide && second < 32u) marks |= 1u << second;
    marks = __reduce_or_sync(ALL_LANES, marks);
    // The marks of lanes up to and including this one; the first bit of `marks` belongs to the first wedge of the
    // chunk.
    *b = *before + __popc(marks & (lanes_below() << 1 | 1u)) - 1;
    *before += __popc(marks);
    // Lane l holds the offsets of base vertices l and l + 32. The shuffles ask that lane. `wide` is the same in all
    // lanes, so either all of them take part in the second shuffle, or none.
    i64 offset = from(flat.offset[0], *b & 31);
    if (wide) {
        i64 other = from(flat.offset[1], *b & 31);
        if (*b >= 32) offset = other;
    }
    i32 at = chunk + lane_id();
    return at < flat.total ? params.base_indices[offset + at] : NOBODY;
}

// Base vertices that are surely covered, found without a walk. Others may be, too.
__device__ __noinline__ u64 covered_early(const Worker& w, i32 n_bits) {
    const Kin kin = warp_shared().kin;
    bool ranked = kin.bound != NOBODY;
    // Neighbours of any base vertex that may be no excluded rows: with ranks below the bound, the members of the
    // parent's closure, which contain L. With listed candidates these, and the closure of L, which is part of the
    // neighbours of every base vertex.
    i32 others = ranked ? 0 : kin.n_cand;
    ROLLED for (i32 chunk = 0; ranked && chunk < kin.n_closure; chunk += 32) {
        i32 i = chunk + lane_id();
        others += __popc(warp_ballot(i < kin.n_closure && kin.closure[i] < kin.bound));
    }
    i64 at[2];
    i32 degree[2];
    u32 least = ~0u;
    ROLLED for (i32 half = 0; half < 2; half++) {
        i32 b = lane_id() + 32 * half;
        i32 u = w.s->base[b < n_bits ? b : 0];  // lanes behind the end repeat the first, which changes no minimum
        at[half] = params.base_indptr[u];
        degree[half] = (i32)(params.base_indptr[u + 1] - at[half]);
        if ((u32)degree[half] < least) least = (u32)degree[half];
    }
    if (!ranked) others += (i32)__reduce_min_sync(ALL_LANES, least);
    u64 covered = 0;
    ROLLED for (i32 half = 0; half < 2; half++) {
        // Neighbours ascend. So more than `others` are below the bound if the one behind so many is.
        bool more = lane_id() + 32 * half < n_bits && degree[half] > others;
        if (more && ranked) more = params.base_indices[at[half] + others] < kin.bound;
        covered |= (u64)warp_ballot(more) << (32 * half);
    }
    return covered;
}

// The filter has two bits for a root vertex, which others may share: met at least once, and at least twice. The first is
// needed for the first walk only. Then the table takes its place.
#define FILTER_BITS (32 * SHARED_SLOTS)
__device__ __forceinline__ u32* once() { return warp_shared().words; }
__device__ __forceinline__ u32* twice() { return warp_shared().words + SHARED_SLOTS; }

// Walk the wedges through the filter. Returns at most how many of them lead to rows that tell something.
__device__ inline i32 sift(i32 n_bits, const Wedges& flat, u64 covered) {
    ROLLED for (i32 i = lane_id(); i < 2 * SHARED_SLOTS; i += 32) warp_shared().words[i] = 0;
    __syncwarp();
    i32 before = 0, most = 0;
    ROLLED for (i32 chunk = 0; chunk < flat.total; chunk += 32 * AHEAD) {
        i32 v[AHEAD], b[AHEAD];
#pragma unroll
        for (i32 k = 0; k < AHEAD; k++) v[k] = wedge(flat, chunk + 32 * k, n_bits > 32, &before, &b[k]);
#pragma unroll
        for (i32 k = 0; k < AHEAD; k++) {
            if (v[k] == NOBODY) continue;
            u32 bit = first_slot(v[k], FILTER_BITS - 1), flag = 1u << (bit & 31);
            // Whoever meets a set bit stands for itself and for the one that has set it.
            if (atomicOr(&once()[bit >> 5], flag) & flag) {
                atomicOr(&twice()[bit >> 5], flag);
                most += 2;
            }
            most += !((covered >> b[k]) & 1);
        }
    }
    most = warp_sum(most);
    __syncwarp();  // lanes read bits that other lanes have set, and the table takes the place of `once`
    return most < flat.total ? most : flat.total;
}

// Whether a wedge of root vertex v and base vertex b leads to a row that may tell something.
__device__ __forceinline__ bool passes(i32 v, i32 b, u64 covered) {
    u32 bit = first_slot(v, FILTER_BITS - 1);
    return !((covered >> b) & 1) || ((twice()[bit >> 5] >> (bit & 31)) & 1);
}

// Walk the wedges: every root vertex that is met gets a slot with its base vertices. Returns the number of raw rows, or
// -1 when there are too many. The first *n_known raw rows are the listed candidates, then the members of the parent's
// closure that are no candidates. Rows that have nothing but one base vertex of `sifted` may be left out.
template <bool SHARED>
__device__ inline i32 walk(const Worker& w, i32 n_bits, const Wedges& flat, Table table, const Kin& kin, u64 sifted, i32* n_known) {
    Scratch* s = w.s;
    ROLLED for (u32 i = lane_id(); i <= table.mask; i += 32) {
        keys<SHARED>(s)[i] = UNUSED;
        low_sets<SHARED>(s, table)[i] = 0;
        if (table.wide) high_sets<SHARED>(s, table)[i] = 0;
    }
    // A lane may take a slot that another lane has cleared, so all must be clear first.
    __syncwarp();
    i32 n_raw = kin.bound == NOBODY ? enter<SHARED>(s, kin.cand, kin.n_cand, table.mask, 0) : 0;
    n_raw = enter<SHARED>(s, kin.closure, kin.n_closure, table.mask, n_raw);
    *n_known = n_raw;
    // The walk itself needs no barrier: lanes meet only in atomics on keys and sets.
    i32 before = 0;
    ROLLED for (i32 chunk = 0; chunk < flat.total; chunk += 32 * AHEAD) {
        i32 v[AHEAD], b[AHEAD], found[AHEAD];  // several at a time, because each waits for memory
#pragma unroll
        for (i32 k = 0; k < AHEAD; k++) {
            v[k] = wedge(flat, chunk + 32 * k, n_bits > 32, &before, &b[k]);
            if (sifted != 0 && v[k] != NOBODY && !passes(v[k], b[k], sifted)) v[k] = NOBODY;
        }
#pragma unroll
        for (i32 k = 0; k < AHEAD; k++)
            if (v[k] != NOBODY) found[k] = atomicCAS(&keys<SHARED>(s)[first_slot(v[k], table.mask)], UNUSED, v[k]);
#pragma unroll
        for (i32 k = 0; k < AHEAD; k++) {
            // Both conditions are the same in all lanes, so no lane misses the ballot in note_fresh.
            if (chunk + 32 * k >= flat.total) break;
            if (n_raw + 32 > ROW_CAP) return -1;
            bool fresh = false;
            u32 slot = 0;
            if (v[k] != NOBODY) {
                slot = find_slot<SHARED>(s, v[k], first_slot(v[k], table.mask), found[k], table.mask, &fresh);
                // Lanes with different base vertices may meet the same root vertex in this round. Each sets its own
                // bit, and the order of ORs does not matter.
                if (b[k] < 32)
                    atomicOr(&low_sets<SHARED>(s, table)[slot], 1u << b[k]);
                else
                    atomicOr(&high_sets<SHARED>(s, table)[slot], 1u << (b[k] - 32));
            }
            n_raw = note_fresh(s, n_raw, fresh, slot);
        }
    }
    __syncwarp();
    // The barrier makes slots and sets visible to lay_out, which gives them to other lanes.
    return n_raw;
}

// Raw row r from the table: its root vertex *v and its base vertices. Thread-level.
template <bool SHARED>
__device__ __forceinline__ u64 from_table(Scratch* s, Table table, i32 r, i32* v) {
    i32 slot = s->slot[r];
    *v = keys<SHARED>(s)[slot];
    u64 mask = low_sets<SHARED>(s, table)[slot];
    return table.wide ? mask | (u64)high_sets<SHARED>(s, table)[slot] << 32 : mask;
}

// Copy the raw rows from the table to raw_mask and raw_row, one behind the other.
template <bool SHARED>
__device__ inline void lay_out(Scratch* s, Table table, i32 n_raw) {
    // Later passes read the raw rows several times. Then neighbouring lanes read neighbouring entries, not slots that
    // lie anywhere in the table. The table in shared memory is free for other uses after this copy.
    ROLLED for (i32 chunk = 0; chunk < n_raw; chunk += 32 * AHEAD) {
        i32 v[AHEAD];
        u64 mask[AHEAD];
#pragma unroll
        for (i32 k = 0; k < AHEAD; k++) {
            i32 r = chunk + 32 * k + lane_id();
            if (r < n_raw) mask[k] = from_table<SHARED>(s, table, r, &v[k]);
        }
#pragma unroll
        for (i32 k = 0; k < AHEAD; k++) {
            i32 r = chunk + 32 * k + lane_id();
            if (r >= n_raw) break;
            s->raw_mask[r] = mask[k];
            s->raw_row[r] = v[k];
        }
    }
    __syncwarp();
}

// Raw row r after `lay_out`: its root vertex *v and its base vertices. From n on, NOBODY and none. Thread-level.
__device__ __forceinline__ u64 raw_mask(const Scratch* s, i32 r, i32 n, i32* v) {
    *v = NOBODY;
    if (r >= n) return 0;
    *v = s->raw_row[r];
    return s->raw_mask[r];
}
