// The roots around the base vertices of a sieve problem, each with the members that it has of L. Warp-level.
//
// Where more roots are met than a table holds, a filter goes before it: counters without keys, which several roots may
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
    u32 mask;     // slots of the table, minus one
    i32 n_roots;   // roots in the table, in the order of s->slot
    i32 n_inside;  // of these, once `weigh_outside` was called: candidates and the path, which come first
};

__device__ __forceinline__ i32 place_of(const Scratch* s, i32 slot) { return (i32)s->hi[slot]; }
__device__ __forceinline__ bool is_inside(const Scratch* s, i32 slot) { return place_of(s, slot) >= 0; }

// Slot of root v, or NOBODY. Thread-level.
__device__ __forceinline__ i32 look_up(const Scratch* s, i32 v, u32 mask) {
    ROLLED for (u32 slot = first_slot(v, mask);; slot = (slot + 1) & mask) {
        i32 key = s->key[slot];
        if (key == v) return (i32)slot;
        if (key == UNUSED) return NOBODY;
    }
}

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

// Weigh the candidates and the path. False when the table is too small.
__device__ inline bool weigh_inside(Worker& w, const Origin& origin, Opening* o) {
    Scratch* s = w.s;
    o->unseen = 0;
    if (origin.cand == 0) {
        i64 wedges = count_neighbours(o->base, o->n_base, origin.begin, LATER);
        clear_table(s, most_roots(wedges, origin.begin, LATER), o);
        ROLLED for (i32 i = lane_id(); i < origin.n_path; i += 32)
            if (origin.path[i] < origin.begin) o->unseen += params.root_weight[origin.path[i]];
        o->unseen = warp_sum(o->unseen);
        return weigh(w, o, origin.begin, LATER, wedges, true);
    }
    i32 n = origin.n_path + origin.n_cand - origin.begin;
    if (n > TABLE_ROOM) return false;
    clear_table(s, n, o);
    enter_places(s, origin.path, 0, origin.n_path, true, o);
    enter_places(s, origin.cand, origin.begin, origin.n_cand, false, o);
    const i32* base = o->base;
    u32 mask = o->mask;
    each_neighbour(base, o->n_base, 0, EVERY, [&](i32 i, i32 v) {
        i32 slot = v == NOBODY ? NOBODY : look_up(s, v, mask);
        if (slot != NOBODY) atomicAdd(&s->lo[slot], (u32)weight_of(base[i]));
    });
    __syncwarp();
    return true;
}

// Weigh the excluded roots, in a table that has the candidates that are left. False when it is too small.
__device__ inline bool weigh_outside(Worker& w, const Origin& origin, Opening* o) {
    Scratch* s = w.s;
    i32 n = 0;
    ROLLED for (i32 chunk = 0; chunk < o->n_roots; chunk += 32) {
        i32 r = chunk + lane_id();
        i32 slot = r < o->n_roots ? s->slot[r] : 0;
        bool stays = r < o->n_roots && is_inside(s, slot) && (i32)s->lo[slot] >= o->least;
        u32 stayers = warp_ballot(stays);
        if (stays) {
            i32 at = n + __popc(stayers & lanes_below());
            s->raw_row[at] = s->key[slot];
            s->raw_mask[at] = (u64)s->hi[slot] << 32 | s->lo[slot];
        }
        n += __popc(stayers);
    }
    i32 which = origin.cand == 0 ? EARLIER : EVERY;
    i64 wedges = count_neighbours(o->base, o->n_base, origin.begin, which);
    clear_table(s, n + most_roots(wedges, origin.begin, which), o);
    o->n_inside = n;
    ROLLED for (i32 chunk = 0; chunk < n; chunk += 32) {
        i32 r = chunk + lane_id();
        bool fresh;
        i32 slot = take_slot(s, r < n ? s->raw_row[r] : NOBODY, o, &fresh);
        if (fresh) {
            s->lo[slot] = (u32)s->raw_mask[r];
            s->hi[slot] = (u32)(s->raw_mask[r] >> 32);
        }
    }
    __syncwarp();
    return weigh(w, o, origin.begin, which, wedges, false);
}
