// Nodes with at most LATTICE left vertices, solved at once: all subsets of L side by side, a bit each. Warp-level.
//
// Bit (32 * lane + b) of a map speaks of the set of left vertices with that binary representation. From the map
// of the sets that candidates have, and the map of those that excluded rows have, the left sides of all
// bicliques below the node follow without a search: a set is one iff it is an intersection of candidate sets
// and no excluded row contains it. It is such an intersection iff for every left vertex u outside of it there
// is a candidate that contains it but not u. "Is contained in some set of the map" is a downward closure, one
// step a left vertex; the closures in all directions but one are shared in halves, k log k steps in all.
#pragma once
#include "levels.cuh"

// Maps in shared memory
#define CANDIDATES 0
#define EARLY 1     // candidates whose children are to be explored
#define EXCLUDED 2

// Bits of a word whose position has bit T clear.
template <i32 T>
__device__ __forceinline__ u32 without() {
    return T == 0 ? 0x55555555u : T == 1 ? 0x33333333u : T == 2 ? 0x0f0f0f0fu : T == 3 ? 0x00ff00ffu : 0x0000ffffu;
}

// Sets that contain left vertex T.
template <i32 T>
__device__ __forceinline__ u32 having() {
    if constexpr (T < 5) return ~without<T>();
    else return (lane_id() >> (T - 5)) & 1 ? ~0u : 0u;
}

// Downward closure of a map in directions LO to HI - 1: a set is in it when one with more of these is.
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

__device__ __forceinline__ void clear_maps() {
    for (i32 i = 0; i < 3; i++) warp_shared().map[i][lane_id()] = 0;
    __syncwarp();
}

__device__ __forceinline__ void enter_set(i32 map, u32 set) {
    atomicOr(&warp_shared().map[map][set >> 5], 1u << (set & 31));
}

// This lane's word of the left sides below a node with k left vertices, by its maps.
template <i32 K>
__device__ __forceinline__ u32 solve_maps(i32 k, bool all) {
    __syncwarp();
    const WarpShared& own = warp_shared();
    u32 found = intersections<0, K>(own.map[CANDIDATES][lane_id()]) & ~down<0, K>(own.map[EXCLUDED][lane_id()]);
    if (!all) found &= down<0, K>(own.map[EARLY][lane_id()]);
    i32 whole = (1 << k) - 1;  // the node itself; what lies behind it is no set of its left vertices
    i32 bits = whole - 32 * lane_id();
    found &= bits >= 32 ? ~0u : bits <= 0 ? 0u : (1u << bits) - 1u;
    if (lane_id() == 0) found &= ~1u;  // no left vertex
    __syncwarp();
    return found;
}

// Raw rows to maps, closure to s->full; false when the node is dead. For reports, raw rows are thinned out to candidates.
__device__ inline bool map_raw_rows(Worker& w, i32 n_raw, u64 full, const Kin& kin, Problem* problem) {
    Scratch* s = w.s;
    clear_maps();
    bool ranked = kin.bound != NOBODY, dead = false;
    i32 n_listed = ranked ? 0 : kin.n_cand, n_full = 0, n_cand = 0;
    for (i32 base = 0; base < n_raw; base += 32) {
        i32 r = base + lane_id();
        i32 v;
        u64 mask = raw_mask(s, r, n_raw, &v);
        bool candidate = ranked ? v > kin.bound : r >= kin.begin && r < n_listed;
        bool is_full = mask == full;
        dead |= is_full && !kin.alive && !candidate && v != kin.self && (r < n_listed || r >= problem->n_known);
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

// What a lane keeps at hand while the sets of a node are reported: left vertex `lane` of the node, raw row `lane`.
struct AtHand {
    i32 left_weight, row_weight;
    u64 left_hash, row_hash;
    u32 row_set;  // 0: there is no such row
};

__device__ inline AtHand at_hand(const Worker& w, u64 left, i32 n) {
    AtHand mine = {0, 0, 0, 0, 0};
    for (i32 t = 0; t < lane_id(); t++) left &= left - 1;
    if (left != 0) {
        i32 u = w.s->left[__ffsll((i64)left) - 1];
        mine.left_weight = w.p->base_weight[u];
        mine.left_hash = w.p->base_hash[u];
    }
    if (lane_id() < n) {
        i32 v = w.s->raw_row[lane_id()];
        mine.row_weight = w.p->root_weight[v];
        mine.row_hash = w.p->root_hash[v];
        mine.row_set = (u32)w.s->raw_mask[lane_id()];
    }
    return mine;
}

// Report the left side `set` (in the problem's bits: `mask`) with the first n raw rows that contain it.
__device__ inline bool report_set(
    Worker& w, const Problem& problem, u64 mask, u32 set, i32 n, SideSums closure, const AtHand& mine) {
    Scratch* s = w.s;
    bool in_row = (mine.row_set & set) == set, in_left = (set >> lane_id()) & 1;
    i32 members = in_row ? mine.row_weight : 0, found = in_row;
    u64 hash = in_row ? mine.row_hash : 0;
    for (i32 r = 32 + lane_id(); r < n; r += 32) {
        if (((u32)s->raw_mask[r] & set) != set) continue;
        members += w.p->root_weight[s->raw_row[r]];
        hash += w.p->root_hash[s->raw_row[r]];
        found += 1;
    }
    SideSums root = {closure.members + warp_sum(members), closure.hash + warp_sum(hash)};
    SideSums base = {warp_sum(in_left ? mine.left_weight : 0), warp_sum(in_left ? mine.left_hash : 0)};
    i32 n_base = __popcll(mask), n_root = problem.n_full + warp_sum(found);
    i32 admitted = admit(w, n_base, n_root, base, root);
    if (admitted <= 0) return admitted == 0;
    i32* out = w.p->values + w.value_at;
    out += write_left(w, mask, out);
    out += write_list(s->full, problem.n_full, out);
    for (i32 base_row = 0; base_row < n; base_row += 32) {
        i32 r = base_row + lane_id();
        bool member = r < n && ((u32)s->raw_mask[r] & set) == set;
        u32 all = warp_ballot(member);
        if (member) out[__popc(all & lanes_below())] = s->raw_row[r];
        out += __popc(all);
    }
    written(w, n_base, n_root);
    return true;
}

// The left vertices of the problem that a set of the node's left vertices stands for.
__device__ __forceinline__ u64 spread(u64 left, u32 set) {
    u64 mask = 0;
    for (; left; left &= left - 1, set >>= 1)
        if (set & 1) mask |= left & (~left + 1);
    return mask;
}

// Put a left side down that could not be reported: an item without candidates.
__device__ inline void leave_set(Worker& w, u64 mask) {
    i64 at = reserve_pool(w, __popcll(mask));
    if (at == NOBODY) {
        if (lane_id() == 0) atomicExch(&w.q->overflow, 1);
        return;
    }
    write_left(w, mask, w.p->pool + at);
    Item item = {WORD, NOBODY, at, NOBODY, at, __popcll(mask), 0, 0, 0, 0, 1};
    leave_over(w, item);
}

// Report the left sides of a map below the node `left`. False when the output is full: the rest is put down.
__device__ __noinline__ bool report_sets(Worker& w, const Problem& problem, u64 left, u32 found, i32 n) {
    SideSums closure = sums_of(w.p->root_weight, w.p->root_hash, w.s->full, problem.n_full);
    AtHand mine = at_hand(w, left, n);
    bool room = true;
    while (true) {
        u32 holders = warp_ballot(found != 0);
        if (holders == 0) return room;
        i32 holder = __ffs(holders) - 1;
        u32 set = 32 * holder + __ffs(from(found, holder)) - 1;
        u64 mask = spread(left, set);
        room = room && report_set(w, problem, mask, set, n, closure, mine);
        if (!room) leave_set(w, mask);
        if (lane_id() == holder) found &= found - 1;
    }
}

// Everything below a node with k left vertices, whose maps are made. False when the output is full.
__device__ inline bool solve_lattice(Worker& w, const Problem& problem, u64 left, i32 n) {
    i32 k = __popcll(left);
    u32 found = k <= 5 ? solve_maps<5>(k, problem.all) : solve_maps<LATTICE>(k, problem.all);
    if (PLAIN) {
        w.found += __popc(found);
        return true;
    }
    return report_sets(w, problem, left, found, n);
}
