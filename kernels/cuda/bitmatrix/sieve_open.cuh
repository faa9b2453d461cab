// Opens a sieve problem: from base vertices and candidates to the reduced frame 0. Warp-level.
//
// R1 costs one walk over wedges, those to the candidates. Most nodes are over then (R4), before anything is built.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/bound.cuh"
#include "bitmatrix/marks.cuh"
#include "bitmatrix/neighbours.cuh"
#include "bitmatrix/problem.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/sieve.cuh"
#include "bitmatrix/sieve_dense.cuh"
#include "bitmatrix/sieve_frames.cuh"
#include "bitmatrix/sieve_table.cuh"
#include "bitmatrix/sieve_types.cuh"
#include "bitmatrix/sieve_weigh.cuh"
#include "bitmatrix/sieve_word.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

#define PASSES 4               // of R2 over wedges. What is left then is the sieve's.
// Words of bit rows that are too many if fewer than one bit in 32 is set.
#define SPARSE_WORDS (SIEVE_WORDS < (1 << 16) ? SIEVE_WORDS / 4 : 1 << 15)

// Members of the path and of candidates that hold at least `least`. Those that hold the whole L are marked.
__device__ inline i32 members_inside(Scratch* s, const Opening& o, i32 least, bool marks) {
    i32 members = 0;
    ROLLED for (i32 r = lane_id(); r < o.n_roots; r += 32) {
        i32 slot = s->slot[r];
        if (!is_inside(s, slot) || count_of(s, o, slot) < least) continue;
        members += params.root_weight[root_of(s, o, slot)];
        if (marks) s->hi[slot] = CLOSED;
    }
    __syncwarp();
    return o.unseen + warp_sum(members);
}

// Whether some root that is inside and holds at least o.least stands for several. `alive_bits` get the bits of all of them,
// where every root has a slot.
__device__ inline bool mark_alive(Scratch* s, const Opening& o) {
    u32* alive = alive_bits();
    bool heavy = false;
    ROLLED for (i32 i = lane_id(); o.direct && i < (params.n_roots + 31) / 32; i += 32) alive[i] = 0;
    __syncwarp();
    ROLLED for (i32 r = lane_id(); r < o.n_roots; r += 32) {
        i32 slot = s->slot[r];
        if (!is_inside(s, slot) || count_of(s, o, slot) < o.least) continue;
        heavy |= params.root_weight[root_of(s, o, slot)] > 1;
        if (o.direct) atomicOr(&alive[slot >> 5], 1u << (slot & 31));
    }
    __syncwarp();
    return warp_any(heavy);
}

// Members of the candidates that are left around each lane's base vertex, which has this part.
__device__ inline i32 members_beside(Scratch* s, const Opening& o, const Part& part, bool heavy) {
    i32* members = (i32*)warp_shared().map[0];
    members[lane_id()] = o.unseen;
    __syncwarp();
    i32 before = sum_below(part.n), end = before + part.n, n = 0, at = 0;
    const u32* alive = alive_bits();
    each_entry(part, [&](i32 owner, i32 v) {
        bool counts;
        if (o.direct) {
            counts = v != NOBODY && (alive[v >> 5] >> (v & 31)) & 1;
        } else {
            i32 slot = v == NOBODY ? NOBODY : look_up(s, v, o.mask);
            counts = slot != NOBODY && is_inside(s, slot) && (i32)s->lo[slot] >= o.least;
        }
        if (heavy && counts) atomicAdd(&members[owner], params.root_weight[v]);
        // The entries [at, at + 32) have a bit each, and the owner of a part counts those in it.
        u32 hits = warp_ballot(counts);
        i32 lo = before - at, hi = end - at;
        if (lo < 32 && hi > 0) n += __popc(hits & (u32)low_bits(hi > 32 ? 32 : hi) & ~(u32)low_bits(lo < 0 ? 0 : lo));
        at += 32;
    });
    __syncwarp();
    return heavy ? members[lane_id()] : o.unseen + n;
}

// R2 over wedges, once for each base vertex. Those that stay are written to s->list. Returns the members that were
// dropped, or NOBODY when the list is too short.
__device__ inline i32 drop_listed(Worker& w, const Origin& origin, Opening* o, bool drops) {
    Scratch* s = w.s;
    i32 b = fewest_roots(w, o->size), kept = 0, dropped = 0;
    bool heavy = drops && mark_alive(s, *o);
    ROLLED for (i32 first = 0; first < o->n_base; first += 32) {
        if (kept + 32 > LIST_CAP) return NOBODY;
        i32 i = first + lane_id();
        i32 u = i < o->n_base ? o->base[i] : NOBODY;
        bool leaves = false;
        if (drops) {
            Part part = part_of(u, origin.begin, inner(origin));
            i32 members = members_beside(s, *o, part, heavy);
            leaves = u != NOBODY && members < b;
            i32 weight = leaves ? weight_of(u) : 0;
            if (!leaves) part.n = 0;
            if (warp_any(leaves)) {
                each_entry(part, [&](i32 owner, i32 v) {
                    i32 its = from(weight, owner);
                    i32 slot = v == NOBODY ? NOBODY : slot_of(s, *o, v);
                    if (slot != NOBODY) add_to(s, *o, slot, -its);
                });
                dropped += warp_sum(weight);
            }
            __syncwarp();
        }
        // The list may be the one that is read, but entries only move to the front.
        u32 stayers = warp_ballot(u != NOBODY && !leaves);
        if (u != NOBODY && !leaves) s->list[kept + __popc(stayers & lanes_below())] = u;
        kept += __popc(stayers);
    }
    __syncwarp();
    o->base = s->list;
    o->n_base = kept;
    return dropped;
}

// Reduce L by R1, R2 and R4, and write it to s->list. Returns OPEN, DEAD if the node leads nowhere, or OVERSIZE.
__device__ inline i32 reduce_opening(Worker& w, const Origin& origin, Opening* o) {
    o->closed = members_inside(w.s, *o, o->total, true);
    ROLLED for (i32 pass = 0; pass < PASSES; pass++) {
        i32 b = fewest_roots(w, o->size), members = members_inside(w.s, *o, o->least, false);
        ROLLED while (BOUNDED && fewest_base(w, members) > o->least) {
            o->least = fewest_base(w, members);
            members = members_inside(w.s, *o, o->least, false);
        }
        if (o->size < o->least || smaller(members, params.max_root) < b) return DEAD;
        bool drops = o->closed < b;
        if (!drops && o->base == w.s->list) break;
        i32 dropped = o->dense ? drop_words(w, o, drops) : drop_listed(w, origin, o, drops);
        if (dropped == NOBODY) return OVERSIZE;
        if (o->dense && dropped > 0) {
            clear_counters(w.s, *o);
            count_roots(w, *o, origin.begin, inner(origin));
        }
        o->size -= dropped;
        if (8ll * dropped < o->size) break;  // another pass would take longer than the sieve with the rest
    }
    return o->size < o->least ? DEAD : OPEN;
}

// Whether v is in the path. Thread-level.
__device__ inline bool is_in_path(const Origin& origin, i32 v) {
    ROLLED for (i32 i = 0; i < origin.n_path; i++)
        if (origin.path[i] == v) return true;
    return false;
}

// Write the closure of L to s->full (R5), and lay out the rows of the frame in order: excluded rows, then candidates,
// those that are explored here first. False when the node is dead (R6). *fresh changes if all bicliques below have a
// further candidate: the first of them says whether they belong to this piece (kernels/reference/engine.py, point 3).
__device__ inline bool sort_roots(Worker& w, const Origin& origin, Opening* opening, SieveFrame* f, i32* fresh) {
    Scratch* s = w.s;
    const Opening& o = *opening;
    i64 held = 0;
    Sieve& v = sieve_of(w);
    i32 a = o.least, members = 0, first = CLOSED, n_full = 0, n_excluded = 0, n = 0;
    bool dead = false;
    ROLLED for (i32 chunk = 0; chunk < o.n_roots; chunk += 32) {
        i32 r = chunk + lane_id();
        i32 slot = r < o.n_roots ? s->slot[r] : 0;
        i32 root = root_of(s, o, slot), count = r < o.n_roots ? count_of(s, o, slot) : 0, place = place_of(s, slot);
        bool closes = count == o.size && r < o.n_roots;
        dead |= closes && place < 0 && !(origin.cand == 0 && is_in_path(origin, root));
        u32 closers = warp_ballot(closes);
        if (closes) {
            s->full[n_full + __popc(closers & lanes_below())] = root;
            members += params.root_weight[root];
            if (place >= 0 && place < first) first = place;
            s->hi[slot] = (u32)OUTSIDE;  // it is no row
        }
        n_full += __popc(closers);
        bool excluded = !closes && place < 0 && count >= a;
        if (excluded) held += count;
        u32 excluders = warp_ballot(excluded);
        if (excluded) s->raw_row[n_excluded + __popc(excluders & lanes_below())] = slot;
        n_excluded += __popc(excluders);
    }
    if (warp_any(dead)) return false;
    first = (i32)__reduce_min_sync(ALL_LANES, (u32)first);
    i32 end = origin.end;
    if (o.size < o.total) {
        *fresh = first < end;
        if (*fresh) end = CLOSED;
    }
    __syncwarp();
    ROLLED for (i32 i = lane_id(); i < n_excluded; i += 32) {
        i32 slot = s->raw_row[i];
        s->hi[slot] = (u32)i;
        v.row[i] = root_of(s, o, slot);
        v.weight[i] = params.root_weight[v.row[i]];
    }
    i32 left = 0, n_explored = 0;
    ROLLED for (i32 chunk = 0; chunk < o.n_roots; chunk += 32) {
        i32 r = chunk + lane_id();
        i32 slot = r < o.n_roots ? s->slot[r] : 0;
        i32 count = r < o.n_roots ? count_of(s, o, slot) : 0, place = place_of(s, slot);
        bool stays = r < o.n_inside && place >= 0 && count >= a;
        u32 stayers = warp_ballot(stays);
        bool explored = stays && place < end;
        if (stays) {
            s->raw_mask[n + __popc(stayers & lanes_below())] = (u64)!explored << 62 | (u64)count << 31 | (u64)slot;
            left += params.root_weight[root_of(s, o, slot)];
            held += count;
        }
        n_explored += __popc(warp_ballot(explored));
        n += __popc(stayers);
    }
    sort_rows(s, n, o.size);
    ROLLED for (i32 i = lane_id(); i < n; i += 32) {
        i32 slot = s->raw_row[i], root = root_of(s, o, slot);
        s->hi[slot] = (u32)(n_excluded + i);
        v.row[n_excluded + i] = root;
        v.weight[n_excluded + i] = params.root_weight[root];
    }
    __syncwarp();
    opening->held = warp_sum(held);
    f->n_closed = n_full;
    f->size = o.size;
    f->members = warp_sum(members);
    f->left = warp_sum(left);
    f->list0 = f->base0 = f->at = 0;
    f->copy_at = NOBODY;
    f->next = n_excluded;
    f->end = n_excluded + n_explored;
    f->n_rows = n_excluded + n;
    f->n_base = o.n_base;
    f->words = (o.n_base + 63) >> 6;
    return true;
}

// Set the number of planes, and the places in `bits`. False when there is no room for the bit rows, or if they are long
// and have so few bits that to open each child from its wedges takes less.
__device__ inline bool has_room(Worker& w, const Opening& o, SieveFrame* f) {
    Sieve& v = sieve_of(w);
    u32 weights = 0;
    ROLLED for (i32 i = lane_id(); i < o.n_base; i += 32) weights |= (u32)weight_of(o.base[i]);
    i32 planes = 32 - __clz((i32)__reduce_or_sync(ALL_LANES, weights));
    if (lane_id() == 0) v.planes = planes;
    f->rows = planes * f->words;
    __syncwarp();
    i64 top = (i64)f->words * (planes + f->n_rows);
    f->top = (i32)top;
    if (top > SPARSE_WORDS && o.held < 2ll * f->words * f->n_rows) return false;
    return top <= (o.dense ? whole_at(o.planes) : SIEVE_WORDS);
}

// Write the bit rows of frame 0 and its L.
__device__ inline void write_bits(Worker& w, const Opening& o, const SieveFrame& f) {
    Scratch* s = w.s;
    Sieve& v = sieve_of(w);
    ROLLED for (i32 i = lane_id(); i < f.top; i += 32) v.bits[i] = 0;
    __syncwarp();
    i32 planes = v.planes;
    if (o.dense) write_packed(w, o, f);
    if (lane_id() == 0) v.planes = planes;
    __syncwarp();
    ROLLED for (i32 chunk = 0; chunk < o.n_base; chunk += 32) {
        i32 i = chunk + lane_id();
        i32 weight = i < o.n_base ? weight_of(o.base[i]) : 0;
        ROLLED for (i32 k = 0; k < v.planes; k++) {
            u32 half = warp_ballot((weight >> k) & 1);
            if (lane_id() == 0) ((u32*)(v.bits + k * f.words))[chunk >> 5] = half;
        }
    }
    if (!o.dense) each_neighbour(o.base, o.n_base, 0, EVERY, [&](i32 i, i32 root) {
        i32 slot = root == NOBODY ? NOBODY : slot_of(s, o, root);
        if (slot == NOBODY || !is_inside(s, slot)) return;
        u32* word = (u32*)(v.bits + f.rows + (i >> 6) * f.n_rows + place_of(s, slot));
        atomicOr(word + ((i >> 5) & 1), 1u << (i & 31));
    });
    __syncwarp();
}

// Pass the children of frame 0 on, because its bit rows have no room. Each is opened anew, and has less. They stay
// together in ranges, of which waiting warps take parts (run_split), because each child by itself would take its own copy
// of the candidates to the host. The slice is void if the pool is full.
__device__ __noinline__ void split(Worker& w, const SieveFrame& f) {
    Item item;
    if (!describe_sieve(w, f, 0, &item)) {
        if (lane_id() == 0) overflow();
        return;
    }
    item.kind = SPLIT;
    i32 n = item.end < 32 ? item.end : 32;
    i64 slot = reserve_given(n);
    if (slot == NOBODY)
        leave_over(item);
    else
        publish(slot, n, item);
}

// Explore frame 0, whose node was emitted. STOPPED: the rest is written down.
__device__ __noinline__ i32 search_frame(Worker& w, const SieveFrame& f) {
    if (!BOUNDED && f.members >= least_root() && f.words == 1) return search_word(w, f);
    if (lane_id() == 0) sieve_of(w).frame[0] = f;
    __syncwarp();
    i32 ended = search_sieve(w);
    w.hub_depth = NOBODY;
    return ended;
}

// Open the problem with these base vertices and explore it. STOPPED: the rest is written down. If *begun is false, not
// even the node itself was emitted; if *too_large is true, it needs more room. The caller writes it down then.
__device__ __noinline__ i32 explore(Worker& w, const i32* base, i32 n_base, const Origin& origin, i32 fresh, bool* begun, bool* too_large) {
    look_at_bound(w);
    Opening o;
    o.base = base;
    o.n_base = n_base;
    o.least = least_base();
    i32 total = 0;
    ROLLED for (i32 i = lane_id(); i < n_base; i += 32) total += weight_of(base[i]);
    o.total = o.size = warp_sum(total);
    if (o.size < o.least) return DONE;
    if (MARKED && !may_be_marked(base, n_base, origin.n_path > 0 ? lowest(origin.path, origin.n_path) : origin.begin)) return DONE;
    *too_large = !weigh_inside(w, origin, &o);
    if (*too_large) return DONE;
    i32 became = reduce_opening(w, origin, &o);
    *too_large = became == OVERSIZE;
    if (became != OPEN) return DONE;
    *too_large = !weigh_outside(w, origin, &o);
    if (*too_large) return DONE;
    SieveFrame f;
    if (!sort_roots(w, origin, &o, &f, &fresh)) return DONE;
    bool found = f.members >= fewest_roots(w, f.size);
    w.tests += 1;
    if (BOUNDED && f.members > params.max_root) return DONE;
    if (found && fresh && !emit_sieve(w, o.base, o.n_base, f)) {
        *begun = false;
        return STOPPED;
    }
    if (!has_children(w, f)) return DONE;
    if (!has_room(w, o, &f)) {
        split(w, f);
        return DONE;
    }
    write_bits(w, o, f);
    return search_frame(w, f);
}
