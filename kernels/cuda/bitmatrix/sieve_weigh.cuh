// Weighs the candidates and the excluded roots of a sieve problem: what they have of L. Warp-level.
//
// Where a graph has few roots, all of them are counted, in shared memory if their counters have room there.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/bound.cuh"
#include "bitmatrix/neighbours.cuh"
#include "bitmatrix/sieve_dense.cuh"
#include "bitmatrix/sieve_table.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Most roots of a graph with a slot for each. For fewer wedges than a quarter of them, a hash table takes less.
#define DIRECT_CAP (HASH_CAP < 32 * SHARED_SLOTS ? HASH_CAP : 32 * SHARED_SLOTS)

// Places of the roots that are inside, where every root has a slot.
__device__ inline void set_places(Scratch* s, const Origin& origin) {
    i32 n = (i32)params.n_roots;
    ROLLED for (i32 r = lane_id(); r < n; r += 32) s->hi[r] = origin.cand == 0 && r >= origin.begin ? (u32)r : (u32)OUTSIDE;
    __syncwarp();
    i32 listed = origin.cand == 0 ? 0 : origin.n_cand;
    ROLLED for (i32 i = origin.begin + lane_id(); i < listed; i += 32) s->hi[origin.cand[i]] = (u32)i;
    __syncwarp();
    ROLLED for (i32 i = lane_id(); i < origin.n_path; i += 32) s->hi[origin.path[i]] = CLOSED;
    __syncwarp();
}

// Append the roots that are inside, or outside, and have enough of L to s->slot. Then those inside that have too little
// are outside as well, because they are no rows. False when there are too many.
__device__ inline bool list_slots(Scratch* s, Opening* o, bool inside) {
    i32 n_all = (i32)params.n_roots, n = o->n_roots;
    ROLLED for (i32 chunk = 0; chunk < n_all; chunk += 32) {
        i32 r = chunk + lane_id();
        bool enough = r < n_all && count_of(s, *o, r) >= o->least, within = r < n_all && is_inside(s, r);
        bool listed = enough && within == inside;
        if (within && !enough) s->hi[r] = (u32)OUTSIDE;
        u32 all = warp_ballot(listed);
        if (n + __popc(all) > TABLE_ROOM) return false;
        if (listed) s->slot[n + __popc(all & lanes_below())] = r;
        n += __popc(all);
    }
    o->n_roots = n;
    __syncwarp();
    return true;
}

// The neighbours whose counts tell what candidates have: of a range of ranks, the later ones.
__device__ __forceinline__ i32 inner(const Origin& origin) { return origin.cand == 0 ? LATER : EVERY; }

// Add what the roots that neighbours.cuh calls `which` have of L, where every root has a slot.
__device__ inline void count_wedges(Scratch* s, const Opening& o, i32 bound, i32 which) {
    ROLLED for (i32 first = 0; first < o.n_base; first += 32) {
        i32 u = first + lane_id() < o.n_base ? o.base[first + lane_id()] : NOBODY;
        i32 weight = u == NOBODY ? 0 : weight_of(u);
        each_entry(part_of(u, bound, which), [&](i32 owner, i32 v) {
            i32 its = from(weight, owner);
            if (v != NOBODY) add_to(s, o, v, its);
        });
    }
    __syncwarp();
}

// The same by whichever is faster.
__device__ inline void count_roots(const Worker& w, const Opening& o, i32 bound, i32 which) {
    if (!o.dense)
        count_wedges(w.s, o, bound, which);
    else
        weigh_rows(w, o, which == LATER ? bound : 0, which == EARLIER ? bound : (i32)params.n_roots);
}

__device__ inline void clear_counters(Scratch* s, const Opening& o) {
    __syncwarp();
    ROLLED for (i32 i = lane_id(); o.packed == NOBODY && i < params.n_roots; i += 32) s->lo[i] = 0;
    u32* words = warp_shared().words;
    ROLLED for (i32 i = lane_id(); o.packed != NOBODY && words + i < alive_bits(); i += 32) words[i] = 0;
    __syncwarp();
}

// Make a slot for every root, and weigh candidates. False when too many of them matter.
__device__ inline bool weigh_directly(Worker& w, const Origin& origin, Opening* o) {
    Scratch* s = w.s;
    i32 n = (i32)params.n_roots, room = 2 * SHARED_SLOTS - (n + 31) / 32;
    o->direct = true;
    o->n_roots = 0;
    o->dense = is_dense(count_neighbours(o->base, o->n_base, 0, EVERY));
    if (o->dense) write_whole(w, o);
    // A counter has 32, 16 or 8 bits, and no root has more than the whole L.
    o->packed = 0;
    ROLLED while (o->packed != NOBODY && (n + (1 << o->packed) - 1) >> o->packed > room)
        o->packed = o->packed < 2 && (u64)o->total >> (32 >> (o->packed + 1)) == 0 ? o->packed + 1 : NOBODY;
    clear_counters(s, *o);
    set_places(s, origin);
    count_roots(w, *o, origin.begin, inner(origin));
    return list_slots(s, o, true);
}

// Weigh the candidates and the path. False when the table is too small.
__device__ inline bool weigh_inside(Worker& w, const Origin& origin, Opening* o) {
    Scratch* s = w.s;
    i32 unseen = 0;
    ROLLED for (i32 i = lane_id(); origin.cand == 0 && i < origin.n_path; i += 32)
        if (origin.path[i] < origin.begin) unseen += params.root_weight[origin.path[i]];
    o->unseen = warp_sum(unseen);
    i64 wedges = params.n_roots > DIRECT_CAP ? 0 : count_neighbours(o->base, o->n_base, origin.begin, inner(origin));
    o->direct = o->dense = false;
    if (params.n_roots <= DIRECT_CAP && params.n_roots <= 4 * wedges) return weigh_directly(w, origin, o);
    if (origin.cand == 0) {
        wedges = count_neighbours(o->base, o->n_base, origin.begin, LATER);
        clear_table(s, most_roots(wedges, origin.begin, LATER), o);
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

// As weigh_outside, where every root has a slot. Candidates that are left stay in s->slot, and excluded roots follow.
__device__ inline bool weigh_others(Worker& w, const Origin& origin, Opening* o) {
    Scratch* s = w.s;
    i32 n = 0;
    ROLLED for (i32 chunk = 0; chunk < o->n_roots; chunk += 32) {
        i32 r = chunk + lane_id();
        i32 slot = r < o->n_roots ? s->slot[r] : NOBODY;
        bool stays = slot != NOBODY && count_of(s, *o, slot) >= o->least;
        u32 stayers = warp_ballot(stays);
        if (stays) s->slot[n + __popc(stayers & lanes_below())] = slot;
        n += __popc(stayers);
    }
    o->n_roots = o->n_inside = n;
    if (origin.cand == 0) count_roots(w, *o, origin.begin, EARLIER);
    __syncwarp();
    return list_slots(s, o, false);
}

// Weigh the excluded roots, in a table that has the candidates that are left. False when it is too small.
__device__ inline bool weigh_outside(Worker& w, const Origin& origin, Opening* o) {
    Scratch* s = w.s;
    if (o->direct) return weigh_others(w, origin, o);
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
