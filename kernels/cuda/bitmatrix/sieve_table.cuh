// The roots around the base vertices of a sieve problem, each with the members that it has of L. Warp-level.
//
// A graph with few roots has a slot for each. In other graphs a hash table has the roots that were met. Where more roots are met than a table holds, a filter goes before it: counters without keys, which several roots may
// share. A root whose counter is too small holds too little of L.
#pragma once
#include "common/hash.cuh"
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/bound.cuh"
#include "bitmatrix/neighbours.cuh"
#include "bitmatrix/sieve_types.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/wedges.cuh"
#include "bitmatrix/worker.cuh"

// Places of roots in the table
#define CLOSED 0x7fffffff         // it contains the whole L, and is in the path or a candidate
#define OUTSIDE ((i32)0x80000000)  // neither a candidate nor in the path. Of candidates, the place is position or rank.

#define TABLE_ROOM (ROW_CAP - 64)    // roots that a table may have
#define FILTER_CAP (2 * SIEVE_WORDS)  // counters of a filter at a time
#define FILTER_MOST (1 << 23)         // counters of a filter in all parts: the range of `first_slot`

struct Origin {  // where a problem comes from
    const i32* path;  // its roots contain the whole L
    const i32* cand;  // candidates, of which those before `begin` are excluded; NULL: all ranks from `begin` on
    i32 n_path;
    i32 n_cand;
    i32 begin, end;   // candidates from `end` on are not explored here
};

struct Opening {  // a problem while it is opened
    const i32* base;  // L
    i32 n_base;
    i32 total;    // members of the whole L
    i32 size;     // members of the reduced L
    i32 least;    // threshold of R1 and R3
    i32 closed;   // members of the closure of the whole L
    i32 unseen;   // of these, members of the path that the walks over candidates do not meet
    bool direct;  // every root of the graph has a slot, its rank
    bool dense;   // direct: roots are counted by their bit rows, and L is a bit row, too
    i32 planes;   // dense: of L
    i32 packed;   // direct: counters are in shared memory, 1 << packed in a word; NOBODY: they are in `lo`
    u32 mask;     // slots of the table, minus one
    i32 n_roots;   // roots in the table, or those that matter, in the order of s->slot
    i64 held;      // sum of what rows of the frame have of L
    i32 n_inside;  // of these, once `weigh_outside` was called: candidates and the path, which come first
};

__device__ __forceinline__ i32 place_of(const Scratch* s, i32 slot) { return (i32)s->hi[slot]; }
__device__ __forceinline__ bool is_inside(const Scratch* s, i32 slot) { return place_of(s, slot) >= 0; }

// The root of a slot, and what it has of L. Thread-level.
__device__ __forceinline__ i32 root_of(const Scratch* s, const Opening& o, i32 slot) { return o.direct ? slot : s->key[slot]; }
__device__ __forceinline__ i32 count_of(const Scratch* s, const Opening& o, i32 slot) {
    if (!o.direct || o.packed == NOBODY) return (i32)s->lo[slot];
    i32 bits = 32 >> o.packed, at = (slot & ((1 << o.packed) - 1)) * bits;
    return (i32)(warp_shared().words[slot >> o.packed] >> at & (u32)low_bits(bits));
}

// Add to what the root of a slot has of L, or take away from it. Thread-level.
__device__ __forceinline__ void add_to(Scratch* s, const Opening& o, i32 slot, i32 members) {
    if (!o.direct || o.packed == NOBODY) {
        atomicAdd(&s->lo[slot], (u32)members);
        return;
    }
    i32 at = (slot & ((1 << o.packed) - 1)) * (32 >> o.packed);
    atomicAdd(&warp_shared().words[slot >> o.packed], (u32)members << at);
}

// Slot of root v, or NOBODY. Thread-level.
__device__ __forceinline__ i32 look_up(const Scratch* s, i32 v, u32 mask) {
    ROLLED for (u32 slot = first_slot(v, mask);; slot = (slot + 1) & mask) {
        i32 key = s->key[slot];
        if (key == v) return (i32)slot;
        if (key == UNUSED) return NOBODY;
    }
}

__device__ __forceinline__ i32 slot_of(const Scratch* s, const Opening& o, i32 v) { return o.direct ? v : look_up(s, v, o.mask); }

// Where the roots of a graph have their slots, these bits in shared memory are behind their counters.
__device__ __forceinline__ u32* alive_bits() { return warp_shared().words + 2 * SHARED_SLOTS - (params.n_roots + 31) / 32; }

// Make an empty table for so many roots.
__device__ inline void clear_table(Scratch* s, i64 n, Opening* o) {
    u32 table = 64;
    ROLLED while (table < HASH_CAP && 2 * n > table) table *= 2;
    __syncwarp();
    ROLLED for (u32 i = lane_id(); i < table; i += 32) {
        s->key[i] = UNUSED;
        s->lo[i] = 0;
        s->hi[i] = (u32)OUTSIDE;
    }
    o->mask = table - 1;
    o->n_roots = 0;
    __syncwarp();
}

// Take a slot for root v, if the lane has one. Every lane calls it; returns the slot.
__device__ inline i32 take_slot(Scratch* s, i32 v, Opening* o, bool* fresh) {
    u32 slot = first_slot(v, o->mask);
    *fresh = false;
    if (v != NOBODY) slot = find_slot<false>(s, v, slot, atomicCAS(&s->key[slot], UNUSED, v), o->mask, fresh);
    o->n_roots = note_fresh(s, o->n_roots, *fresh, slot);
    return (i32)slot;
}

// Enter list[begin..n). The place of an entry is its position, or CLOSED.
__device__ inline void enter_places(Scratch* s, const i32* list, i32 begin, i32 n, bool closed, Opening* o) {
    ROLLED for (i32 chunk = begin; chunk < n; chunk += 32) {
        i32 i = chunk + lane_id();
        bool fresh;
        i32 slot = take_slot(s, i < n ? list[i] : NOBODY, o, &fresh);
        if (fresh) s->hi[slot] = closed ? CLOSED : i;
    }
    __syncwarp();
}

// Most roots that so many wedges to `which` neighbours can lead to.
__device__ __forceinline__ i64 most_roots(i64 wedges, i32 bound, i32 which) {
    return smaller(wedges, which == EARLIER ? bound : which == LATER ? params.n_roots - bound : params.n_roots);
}

// As weigh, for the ranks from `first` to `last` - 1, where each has a counter of its own, as many ranks at a time as
// there are counters. So each wedge is walked once, and only roots that hold `a` get a slot.
__device__ inline bool weigh_ranks(Worker& w, Opening* o, i32 first, i32 last, bool later) {
    Scratch* s = w.s;
    u32* counts = (u32*)sieve_of(w).bits;
    u32 a = (u32)least_base();
    ROLLED for (; first < last; first += FILTER_CAP) {
        i32 n = last - first < FILTER_CAP ? last - first : FILTER_CAP;
        ROLLED for (i32 i = lane_id(); i < n; i += 32) counts[i] = 0;
        __syncwarp();
        ROLLED for (i32 chunk = 0; chunk < o->n_base; chunk += 32) {
            i32 u = chunk + lane_id() < o->n_base ? o->base[chunk + lane_id()] : NOBODY;
            i32 weight = u == NOBODY ? 0 : weight_of(u);
            each_entry(part_between(u, first, first + n), [&](i32 owner, i32 v) {
                i32 its = from(weight, owner);
                if (v != NOBODY) atomicAdd(&counts[v - first], (u32)its);
            });
        }
        __syncwarp();
        ROLLED for (i32 chunk = 0; chunk < n; chunk += 32) {
            i32 i = chunk + lane_id();
            u32 count = i < n ? counts[i] : 0;
            if (!warp_any(count >= a)) continue;
            if (o->n_roots + 32 > ROW_CAP) return false;
            bool fresh;
            i32 slot = take_slot(s, count >= a ? first + i : NOBODY, o, &fresh);
            if (fresh && later) s->hi[slot] = (u32)(first + i);
            if (count >= a && (later || !is_inside(s, slot))) s->lo[slot] += count;
        }
        __syncwarp();
    }
    return true;
}

// Weigh what the roots that neighbours.cuh calls `which` have of L, and enter those that may hold `a`. The roots are
// `later` ones, whose place is their rank, or they stay OUTSIDE; roots that are inside keep what they have. False when
// the table is full.
__device__ inline bool weigh(Worker& w, Opening* o, i32 bound, i32 which, i64 wedges, bool later) {
    Scratch* s = w.s;
    u32* filter = (u32*)sieve_of(w).bits;
    const i32* base = o->base;
    i32 a = least_base();
    // The counters of a large filter come in parts, one after the other.
    u32 counters = 0;
    if (o->n_roots + most_roots(wedges, bound, which) > TABLE_ROOM) {
        i32 first = which == LATER ? bound : 0, last = which == EARLIER ? bound : (i32)params.n_roots;
        if (last - first <= 2 * wedges) return weigh_ranks(w, o, first, last, later);
        counters = 1024;
        ROLLED while (counters < FILTER_MOST && counters < 2 * wedges) counters *= 2;
    }
    u32 part = counters < FILTER_CAP ? counters : FILTER_CAP;
    bool room = true;
    u32 first = 0;
    do {
        if (counters) {
            ROLLED for (u32 i = lane_id(); i < part; i += 32) filter[i] = 0;
            __syncwarp();
            each_neighbour(base, o->n_base, bound, which, [&](i32 i, i32 v) {
                if (v == NOBODY) return;
                u32 at = first_slot(v, counters - 1) - first;
                if (at < part) atomicAdd(&filter[at], (u32)weight_of(base[i]));
            });
            __syncwarp();
        }
        each_neighbour(base, o->n_base, bound, which, [&](i32 i, i32 v) {
            if (counters && v != NOBODY) {
                u32 at = first_slot(v, counters - 1) - first;
                if (at >= part || filter[at] < (u32)a) v = NOBODY;
            }
            if (o->n_roots + 32 > ROW_CAP) room = false;  // the same in all lanes
            if (!room) return;
            bool fresh;
            i32 slot = take_slot(s, v, o, &fresh);
            if (fresh && later) s->hi[slot] = (u32)v;
            if (v != NOBODY && (later || !is_inside(s, slot))) atomicAdd(&s->lo[slot], (u32)weight_of(base[i]));
        });
        __syncwarp();
        first += part;
    } while (first < counters && room);
    return room;
}
