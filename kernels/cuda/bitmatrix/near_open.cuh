// Opens an item of a search for near-bicliques as frame 0. Only this reads the edges. Warp-level.
//
// The candidates of a root are the later roots that share enough neighbours with it, and the base vertices that are joined to
// enough of these; what excludes are earlier roots, and the other base vertices. R1 is made on lists until nothing changes,
// before there are bit rows. Each vertex has a mark: a count, and what it is.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/near_frames.cuh"
#include "bitmatrix/near_node.cuh"
#include "bitmatrix/near_types.cuh"
#include "bitmatrix/neighbours.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// What a vertex is
#define IS_INNER (1u << 31)   // in S or C
#define IS_AROUND (1u << 30)  // a root that shares enough with the first one
#define IS_OUTER (1u << 29)   // a base vertex with a row that only excludes
#define MARK_COUNT (IS_OUTER - 1)

struct NearOpening {
    i32 first;           // the first root of S
    i32 n_met0, n_met1;  // roots around it, and base vertices that have a neighbour among the inner roots
    i32 n0, n1;          // inner vertices, S first
    i32 s0, s1;          // how many of them are in S
    i32 taken0, taken1;  // as many as there were
};

// The neighbours of a vertex. NOBODY has none. Thread-level.
__device__ __forceinline__ Part neighbours_of(i32 side, i32 v) {
    const i64* indptr = side ? params.base_indptr : params.root_indptr;
    if (v == NOBODY) return {0, 0};
    return {indptr[v], (i32)(indptr[v + 1] - indptr[v])};
}

__device__ __forceinline__ const i32* indices_of(i32 side) { return side ? params.base_indices : params.root_indices; }

// An entry of a list, one per lane, or NOBODY behind its end.
__device__ __forceinline__ i32 entry_of(const i32* list, i32 chunk, i32 n) {
    return chunk + lane_id() < n ? list[chunk + lane_id()] : NOBODY;
}

// Append v of the lanes with `there` to a list of n. Returns its new length.
__device__ __forceinline__ i32 append(i32* list, i32 n, bool there, i32 v) {
    u32 all = warp_ballot(there);
    if (there) list[n + __popc(all & lanes_below())] = v;
    return n + __popc(all);
}

// How many entries of this lane's part count(v) says true of.
template <class Count>
__device__ inline i32 count_entries(const i32* indices, const Part& part, const Count& count) {
    i32 before = sum_below(part.n), end = before + part.n, n = 0, at = 0;
    each_entry_of(indices, part, [&](i32 owner, i32 v) {
        // The entries [at, at + 32) have a bit each, and the owner of a part counts those in it.
        u32 hits = warp_ballot(v != NOBODY && count(v));
        i32 lo = before - at, hi = end - at;
        if (lo < 32 && hi > 0) n += __popc(hits & (u32)low_bits(hi > 32 ? 32 : hi) & ~(u32)low_bits(lo < 0 ? 0 : lo));
        at += 32;
    });
    return n;
}

// Count what earlier or later roots share with the first one.
__device__ inline void meet_roots(const Near& n, NearOpening* o, i32 which) {
    u32* marks = marks_of(n, 0);
    i64 at = params.root_indptr[o->first];
    i32 degree = (i32)(params.root_indptr[o->first + 1] - at), met = o->n_met0;
    each_neighbour(params.root_indices + at, degree, which == LATER ? o->first + 1 : o->first, which, [&](i32 i, i32 v) {
        bool is_new = v != NOBODY && atomicAdd(&marks[v], 1u) == 0;
        met = append(met_of(n, 0), met, is_new, v);
    });
    __syncwarp();
    o->n_met0 = met;
}

// Fewest neighbours that two roots of a result have in common.
__device__ __forceinline__ i32 least_shared() {
    i64 share = params.min_base - (params.near_pairs >= 0 ? params.near_pairs : 2 * params.near_root);
    return share < 1 ? 1 : (i32)share;
}

// How many of the roots that were met share enough.
__device__ inline i32 count_sharing(const Near& n, const NearOpening& o) {
    i32 total = 0;
    ROLLED for (i32 chunk = 0; chunk < o.n_met0; chunk += 32) {
        i32 v = entry_of(met_of(n, 0), chunk, o.n_met0);
        total += __popc(warp_ballot(v != NOBODY && (i32)marks_of(n, 0)[v] >= least_shared()));
    }
    return total;
}

// Keep the roots that share enough.
__device__ inline void keep_around(const Near& n, NearOpening* o) {
    i32 kept = 0;
    ROLLED for (i32 chunk = 0; chunk < o->n_met0; chunk += 32) {
        i32 v = entry_of(met_of(n, 0), chunk, o->n_met0);
        bool stays = v != NOBODY && (i32)marks_of(n, 0)[v] >= least_shared();
        if (v != NOBODY) marks_of(n, 0)[v] = stays ? IS_AROUND : 0;
        kept = append(met_of(n, 0), kept, stays, v);
    }
    o->n_met0 = kept;
    __syncwarp();
}

// Take a root, and the later ones around it as candidates.
__device__ inline void take_root(const Near& n, NearOpening* o) {
    if (lane_id() == 0) {
        inner_of(n, 0)[0] = o->first;
        marks_of(n, 0)[o->first] = IS_INNER;
    }
    o->n0 = o->s0 = 1;
    ROLLED for (i32 chunk = 0; chunk < o->n_met0; chunk += 32) {
        i32 v = entry_of(met_of(n, 0), chunk, o->n_met0);
        bool later = v > o->first;
        if (later) marks_of(n, 0)[v] = IS_INNER;
        o->n0 = append(inner_of(n, 0), o->n0, later, v);
    }
    __syncwarp();
}

// Take vertices of a list of both sides into the problem. Returns whether all roots of it are around the first one.
__device__ inline bool take_vertices(const Near& n, NearOpening* o, const i32* list, i32 count, bool chosen) {
    bool outside = false;
    ROLLED for (i32 chunk = 0; chunk < count; chunk += 32) {
        i32 x = entry_of(list, chunk, count), v = x < params.n_roots ? x : x - (i32)params.n_roots;
        bool root = x != NOBODY && x < params.n_roots, base = x != NOBODY && !root;
        bool takes = root && (chosen || marks_of(n, 0)[v] == IS_AROUND);
        outside |= root && v != o->first && marks_of(n, 0)[v] != IS_AROUND;
        __syncwarp();
        if (takes || base) marks_of(n, base)[v] = IS_INNER;
        o->n0 = append(inner_of(n, 0), o->n0, takes, v);
        o->n1 = append(inner_of(n, 1), o->n1, base, v);
    }
    __syncwarp();
    return !warp_any(outside);
}

// Count, for each base vertex, its neighbours among the inner roots, and for each inner root those among the inner base
// vertices. Of a root every base vertex is a candidate that has enough.
__device__ inline void count_inner(const Near& n, NearOpening* o, bool whole) {
    u32* marks0 = marks_of(n, 0);
    u32* marks1 = marks_of(n, 1);
    i32 met = 0;
    ROLLED for (i32 chunk = 0; chunk < o->n0; chunk += 32) {
        each_entry_of(params.root_indices, neighbours_of(0, entry_of(inner_of(n, 0), chunk, o->n0)), [&](i32 owner, i32 u) {
            bool is_new = u != NOBODY && (atomicAdd(&marks1[u], 1u) & MARK_COUNT) == 0;
            met = append(met_of(n, 1), met, is_new, u);
        });
    }
    o->n_met1 = met;
    __syncwarp();
    ROLLED for (i32 chunk = 0; whole && chunk < met; chunk += 32) {
        i32 u = entry_of(met_of(n, 1), chunk, met);
        bool takes = u != NOBODY && (i32)marks1[u] >= least_of(0) - slack_of(1, 0);
        if (takes) marks1[u] |= IS_INNER;
        o->n1 = append(inner_of(n, 1), o->n1, takes, u);
    }
    __syncwarp();
    ROLLED for (i32 chunk = 0; chunk < o->n0; chunk += 32) {
        i32 v = entry_of(inner_of(n, 0), chunk, o->n0);
        i32 joined = count_entries(params.root_indices, neighbours_of(0, v), [&](i32 u) { return (marks1[u] & IS_INNER) != 0; });
        if (v != NOBODY) marks0[v] = IS_INNER | (u32)joined;
    }
    __syncwarp();
}

// R1 on the list of one side. Returns how many of it stay, or -1 if a member of S is joined to too few.
__device__ inline i32 peel_side(const Near& n, i32 side, i32 count, i32 n_chosen) {
    u32* own = marks_of(n, side);
    u32* other = marks_of(n, 1 - side);
    i32* list = inner_of(n, side);
    i32 need = least_of(1 - side) - slack_of(side, 0), kept = 0;
    ROLLED for (i32 chunk = 0; chunk < count; chunk += 32) {
        i32 v = entry_of(list, chunk, count);
        bool leaves = v != NOBODY && (i32)(own[v] & MARK_COUNT) < need;
        if (warp_any(leaves && chunk + lane_id() < n_chosen)) return -1;
        if (warp_any(leaves)) {
            if (leaves) own[v] = side ? own[v] & ~IS_INNER : IS_AROUND;
            each_entry_of(indices_of(side), neighbours_of(side, leaves ? v : NOBODY), [&](i32 owner, i32 u) {
                if (u != NOBODY && (side == 0 || (other[u] & IS_INNER))) atomicSub(&other[u], 1u);
            });
        }
        __syncwarp();
        kept = append(list, kept, v != NOBODY && !leaves, v);
    }
    __syncwarp();
    return kept;
}

// R1 on both lists until nothing changes. False if nothing is found below.
__device__ inline bool peel(const Near& n, NearOpening* o) {
    ROLLED for (bool changes = true; changes;) {
        i32 n1 = peel_side(n, 1, o->n1, o->s1);
        if (n1 < least_of(1)) return false;
        i32 n0 = peel_side(n, 0, o->n0, o->s0);
        if (n0 < least_of(0)) return false;
        changes = n0 < o->n0;
        o->n0 = n0;
        o->n1 = n1;
    }
    return true;
}

// List what excludes behind the inner vertices of both sides: *all0 and *all1 are the lengths of the lists then.
__device__ inline void list_outer(const Near& n, const NearOpening& o, i32* all0, i32* all1) {
    u32* marks1 = marks_of(n, 1);
    i32 need0 = least_of(1) - slack_of(0, 0), need1 = least_of(0) - slack_of(1, 0);
    *all0 = o.n0;
    *all1 = o.n1;
    ROLLED for (i32 chunk = 0; chunk < o.n_met0; chunk += 32) {
        i32 v = entry_of(met_of(n, 0), chunk, o.n_met0);
        if (v != NOBODY && (marks_of(n, 0)[v] & IS_INNER)) v = NOBODY;
        i32 joined = count_entries(params.root_indices, neighbours_of(0, v), [&](i32 u) { return (marks1[u] & IS_INNER) != 0; });
        *all0 = append(inner_of(n, 0), *all0, v != NOBODY && joined >= need0, v);
    }
    ROLLED for (i32 chunk = 0; chunk < o.n_met1; chunk += 32) {
        i32 u = entry_of(met_of(n, 1), chunk, o.n_met1);
        bool takes = u != NOBODY && !(marks1[u] & IS_INNER) && (i32)(marks1[u] & MARK_COUNT) >= need1;
        *all1 = append(inner_of(n, 1), *all1, takes, u);
    }
    __syncwarp();
}

// Write the block of the problem to the front of `bits`. The marks of its vertices become the numbers of their rows.
__device__ inline void fill_block(const Near& n, const NearOpening& o, const NearBlock& b) {
    i32 words0 = words_for(b.inner0), words1 = words_for(b.inner1), n_words = (i32)block_words(b);
    i32 rows0 = b.all0 + b.all1, rows1 = rows0 + b.all0 * words1, sets = rows1 + b.all1 * words0;
    ROLLED for (i32 i = lane_id(); i < n_words; i += 32) n.bits[i] = 0;
    __syncwarp();
    ROLLED for (i32 i = lane_id(); i < b.all0; i += 32) {
        n.bits[i] = (u32)inner_of(n, 0)[i];
        if (i < b.inner0) marks_of(n, 0)[n.bits[i]] = IS_INNER | (u32)i;
    }
    ROLLED for (i32 i = lane_id(); i < b.all1; i += 32) {
        n.bits[b.all0 + i] = (u32)inner_of(n, 1)[i];
        marks_of(n, 1)[n.bits[b.all0 + i]] = (i < b.inner1 ? IS_INNER : IS_OUTER) | (u32)i;
    }
    __syncwarp();
    ROLLED for (i32 chunk = 0; chunk < b.all0; chunk += 32) {
        each_entry_of(params.root_indices, neighbours_of(0, entry_of(inner_of(n, 0), chunk, b.all0)), [&](i32 owner, i32 u) {
            u32 mark = u == NOBODY ? 0 : marks_of(n, 1)[u];
            i32 r = chunk + owner, at = (i32)(mark & MARK_COUNT);
            if (mark & IS_INNER) atomicOr(&n.bits[rows0 + (at >> 5) * b.all0 + r], 1u << (at & 31));
            if ((mark & (IS_INNER | IS_OUTER)) && r < b.inner0) atomicOr(&n.bits[rows1 + (r >> 5) * b.all1 + at], 1u << (r & 31));
        });
    }
    ROLLED for (i32 i = lane_id(); i < 32 * (words0 + words1); i += 32) {
        bool base = i >= 32 * words0;
        i32 r = base ? i - 32 * words0 : i, chosen = base ? o.s1 : o.s0, inner = base ? b.inner1 : b.inner0;
        u32 members = warp_ballot(r < chosen), candidates = warp_ballot(r >= chosen && r < inner);
        if (lane_id() == 0) {
            n.bits[sets + CHOSEN * (words0 + words1) + (i >> 5)] = members;
            n.bits[sets + ADDABLE * (words0 + words1) + (i >> 5)] = candidates;
        }
    }
    __syncwarp();
}

// Count the missing pairs of S in frame 0, and see who may miss no more, or who is FREE. False if S is not allowed.
__device__ inline bool count_missing(const Near& n) {
    NearFrame* f = n.frame;
    i32 total = 0;
    bool fails = false, defective = params.near_pairs >= 0;
    ROLLED for (i32 side = 0; side < 2; side++) {
        Facing v = facing(f, side);
        i32 most = slack_of(side, 0);
        ROLLED for (i32 w = 0; w < v.words; w++) {
            i32 missed = 0;
            bool member = (n.bits[v.own + w] >> lane_id()) & 1, candidate = (n.bits[v.own + ADDABLE * v.step + w] >> lane_id()) & 1;
            if (member || (candidate && defective)) missed = look(n, v, 32 * w + lane_id()).missed;
            if (side == 0 && member) total += missed;
            fails |= member && missed > most;
            u32 third = warp_ballot(defective ? member || (candidate && missed == 0) : member && missed == most);
            if (lane_id() == 0) n.bits[v.own + FREE * v.step + w] = third;
        }
    }
    total = warp_sum(total);
    if (lane_id() == 0) f->total = total;
    __syncwarp();
    return !warp_any(fails) && (params.near_pairs < 0 || total <= params.near_pairs);
}

// List the children of an item whose node was opened before: those of its candidates that are still some.
__device__ inline void children_as_before(const Near& n, const Item& item) {
    NearFrame* f = n.frame;
    i32 count = 0;
    ROLLED for (i32 chunk = item.begin; chunk < item.end; chunk += 32) {
        i32 x = entry_of(params.pool + item.cand_at, chunk, item.end);
        bool base = x >= params.n_roots;
        u32 mark = x == NOBODY ? 0 : marks_of(n, base)[base ? x - params.n_roots : x];
        i32 r = (i32)(mark & MARK_COUNT);
        bool there = (mark & IS_INNER) && (n.bits[set_at(f, ADDABLE, base) + (r >> 5)] >> (r & 31)) & 1;
        count = append((i32*)n.bits + f->branch, count, there, base ? ~r : r);
    }
    if (lane_id() == 0) {
        f->end = count;
        f->top = f->branch + count;
    }
    __syncwarp();
}

// Make all marks 0 again.
__device__ inline void forget(const Near& n, const NearOpening& o) {
    ROLLED for (i32 side = 0; side < 2; side++) {
        u32* marks = marks_of(n, side);
        i32 n_met = side ? o.n_met1 : o.n_met0, taken = side ? o.taken1 : o.taken0;
        ROLLED for (i32 i = lane_id(); i < n_met; i += 32) marks[met_of(n, side)[i]] = 0;
        ROLLED for (i32 i = lane_id(); i < taken; i += 32) marks[inner_of(n, side)[i]] = 0;
    }
    __syncwarp();
}

// Take the vertices of an item, and make R1 on their lists. False if nothing is found below.
__device__ inline bool take_item(const Near& n, const Item& item, NearOpening* o) {
    bool whole = item.kind == ROOT;
    meet_roots(n, o, LATER);
    if (whole && count_sharing(n, *o) + 1 < least_of(0)) return false;
    meet_roots(n, o, EARLIER);
    keep_around(n, o);
    bool alive = true;
    if (whole) {
        take_root(n, o);
    } else {
        alive = take_vertices(n, o, params.pool + item.base_at, item.n_base, true);
        o->s0 = o->n0;
        o->s1 = o->n1;
        take_vertices(n, o, params.pool + item.cand_at + item.begin, item.n_cand - item.begin, false);
    }
    o->taken0 = o->n0;
    if (alive) count_inner(n, o, whole);
    o->taken1 = o->n1;
    return alive && peel(n, o);
}

// Open an item as frame 0, with its children. Returns what became of it. If *too_large is true, it needs more room.
__device__ __noinline__ i32 open_near(Worker& w, const Near& n, const Item& item, bool* too_large) {
    NearOpening o = {item.bound, 0, 0, 0, 0, 0, 0, 0, 0};
    if (item.kind != ROOT) {
        i32 first = 0x7fffffff;
        ROLLED for (i32 i = lane_id(); i < item.n_base; i += 32) {
            i32 x = params.pool[item.base_at + i];
            first = x < first ? x : first;
        }
        o.first = (i32)__reduce_min_sync(ALL_LANES, (u32)first);
    }
    i32 became = ENDS;
    Pivot pivot = {NO_PIVOT, 0, 0};
    if (take_item(n, item, &o)) {
        NearBlock b = {o.n0, 0, o.n1, 0, 0, 0};
        list_outer(n, o, &b.all0, &b.all1);
        i64 words = block_words(b), lists = 3ll * (b.all0 + b.all1);
        *too_large = words + lists > n.room;
        if (!*too_large) {
            fill_block(n, o, b);
            stand_on(n, 0, b, 0);
            if (lane_id() == 0) {
                n.frame[1] = n.frame[0];  // what excludes is listed twice: here, and where it is kept
                n.frame[1].branch = 0;
            }
            __syncwarp();
            if (count_missing(n)) became = settle(n, 0, n.frame + 1, 0, item.fresh != 0, w.bound, &pivot);
        }
        if (became == BRANCHES && !item.fresh) children_as_before(n, item);
    }
    forget(n, o);
    if (became == BRANCHES && item.fresh) {
        shrink_node(n, 0, &pivot);
        choose_children(n, 0, pivot);
    }
    return became;
}
