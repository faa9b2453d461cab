// Reporting the left sides that a lattice found: a lane a set for sums and places, then all lanes for the members of
// one set after the other. A set has a bit for each left vertex of its node, LATTICE at most. Warp-level.
#pragma once
#include "levels.cuh"

// What a lane keeps at hand while the sets of a node are reported: left vertex `lane` of the node, raw row `lane`.
struct AtHand {
    i32 left, left_weight;
    i32 row, row_weight;
    u64 left_hash, row_hash;
    u32 row_set;
};

// What a lane knows of its set.
struct OneSet {
    u32 set;   // 0: it has none
    u32 rows;  // which of the first 32 raw rows contain it
    i32 n_root;
    SideSums base, root;
};

__device__ inline AtHand at_hand(const Worker& w, u64 left, i32 n) {
    AtHand mine = {0, 0, 0, 0, 0, 0, 0};
    i32 k = __popcll(left);
    ROLLED for (i32 t = 0; t < k; t++, left &= left - 1)
        if (t == lane_id()) mine.left = w.s->left[__ffsll((i64)left) - 1];
    if (lane_id() < k) {
        if (MEASURED) mine.left_weight = params.base_weight[mine.left];
        mine.left_hash = params.base_hash[mine.left];
    }
    if (lane_id() < n) {
        mine.row = w.s->raw_row[lane_id()];
        if (MEASURED) mine.row_weight = params.root_weight[mine.row];
        mine.row_hash = params.root_hash[mine.row];
        mine.row_set = (u32)w.s->raw_mask[lane_id()];
    }
    return mine;
}

// The set that comes after `rank` others; `below`: how many those of the lanes before are.
__device__ inline u32 set_of_rank(u32 found, i32 below, i32 rank) {
    i32 holder = 0, bit = 0;
    ROLLED for (i32 step = 16; step; step >>= 1)
        if (from(below, holder + step) <= rank) holder += step;
    u32 word = from(found, holder);
    i32 n = rank - from(below, holder);
    ROLLED for (i32 step = 16; step; step >>= 1) {
        i32 before = __popc(word & ((1u << step) - 1u));
        if (before > n) continue;
        n -= before;
        word >>= step;
        bit += step;
    }
    return 32 * holder + bit;
}

// Sums over the k left vertices and the first n raw rows: those in this lane's set, those that contain it.
__device__ inline OneSet sum_up(const Worker& w, const Problem& problem, u32 set, i32 k, i32 n, const AtHand& mine) {
    OneSet one = {set, 0, problem.n_full, {0, 0}, warp_shared().full};
    ROLLED for (i32 t = 0; t < k; t++) {
        i32 weight = MEASURED ? from(mine.left_weight, t) : 0;
        u64 hash = from(mine.left_hash, t);
        if ((set >> t) & 1) {
            one.base.members += weight;
            one.base.hash += hash;
        }
    }
    ROLLED for (i32 r = 0; r < n; r++) {
        bool near = r < 32;
        i32 v = near ? 0 : w.s->raw_row[r];
        u32 row_set = near ? from(mine.row_set, r & 31) : (u32)w.s->raw_mask[r];
        i32 weight = !MEASURED ? 0 : near ? from(mine.row_weight, r & 31) : params.root_weight[v];
        u64 hash = near ? from(mine.row_hash, r & 31) : params.root_hash[v];
        if ((row_set & set) != set) continue;
        one.root.members += weight;
        one.root.hash += hash;
        one.n_root += 1;
        if (near) one.rows |= 1u << r;
    }
    return one;
}

// Write the sets of some lanes, each `before` ints and `rank` records after the first.
__device__ inline void write_sets(
    Worker& w, const Problem& problem, const OneSet& one, i32 n, const AtHand& mine, u32 lanes, i32 before, i32 rank) {
    const Scratch* s = w.s;
    if ((lanes >> lane_id()) & 1) {
        Record record = {w.value_at + before, __popc(one.set), one.n_root};
        params.records[w.record_at + rank] = record;
    }
    ROLLED for (u32 rest = lanes; rest; rest &= rest - 1) {
        i32 lane = __ffs(rest) - 1;
        u32 set = from(one.set, lane), rows = from(one.rows, lane);
        i32* out = params.values + w.value_at + from(before, lane);
        if ((set >> lane_id()) & 1) out[__popc(set & lanes_below())] = mine.left;
        out += __popc(set);
        out += write_list(s->full, problem.n_full, out);
        if ((rows >> lane_id()) & 1) out[__popc(rows & lanes_below())] = mine.row;
        out += __popc(rows);
        ROLLED for (i32 base = 32; base < n; base += 32) {
            i32 r = base + lane_id();
            bool member = r < n && ((u32)s->raw_mask[r] & set) == set;
            u32 all = warp_ballot(member);
            if (member) out[__popc(all & lanes_below())] = s->raw_row[r];
            out += __popc(all);
        }
    }
    w.record_at += __popc(lanes);
    w.value_at += from(before + __popc(one.set) + one.n_root, 31 - __clz(lanes));
    __syncwarp();
}

// Report the sets of all lanes; the lanes whose sets have to be put down, because the output is full. With a limit
// of rows there are no lattices, so it is not looked at.
__device__ inline u32 report_batch(Worker& w, const Problem& problem, const OneSet& one, i32 n, const AtHand& mine) {
    u32 wanted = warp_ballot(one.set != 0 && (!MEASURED || is_wanted(&params, one.base.members, one.root.members)));
    u64 share = params.prove ? fingerprint_of(&params, one.base.hash, one.root.hash) : 0;
    ROLLED while (wanted) {
        bool own = (wanted >> lane_id()) & 1;
        i32 length = own ? __popc(one.set) + one.n_root : 0, before = sum_below(length);
        i32 rank = __popc(wanted & lanes_below());
        u32 lanes = wanted;
        if (params.list) {
            bool fits = w.value_at + before + length <= w.value_end && w.record_at + rank < w.record_end;
            lanes = warp_ballot(own && fits);
            if (lanes == 0) {
                if (!make_room(w, from(length, __ffs(wanted) - 1))) return wanted;
                continue;
            }
        }
        own = (lanes >> lane_id()) & 1;
        w.count += __popc(lanes);
        if (MEASURED && params.sizes != 0 && own) count_size(one.base.members, one.root.members);
        w.fingerprint += warp_sum(own ? share : 0ull);
        if (params.list) write_sets(w, problem, one, n, mine, lanes, before, rank);
        wanted &= ~lanes;
    }
    return 0;
}

// The left vertices of the problem that a set of the node's left vertices stands for.
__device__ __forceinline__ u64 spread(u64 left, u32 set) {
    u64 mask = 0;
    ROLLED for (; left; left &= left - 1, set >>= 1)
        if (set & 1) mask |= left & (~left + 1);
    return mask;
}

// Put a left side down that could not be reported: an item without candidates.
__device__ inline void leave_set(Worker& w, u64 mask) {
    i64 at = reserve_pool(__popcll(mask));
    if (at == NOBODY) {
        if (lane_id() == 0) overflow();
        return;
    }
    write_left(w, mask, params.pool + at);
    Item item = {WORD, NOBODY, at, NOBODY, at, __popcll(mask), 0, 0, 0, 0, 1};
    leave_over(item);
}

// Report the sets of a map below the node `left`, whose first n raw rows are the candidates. False when the output
// is full: the rest is put down.
__device__ __noinline__ bool report_sets(Worker& w, const Problem& problem, u64 left, u32 found, i32 n) {
    i32 own = __popc(found), below = sum_below(own), total = warp_sum(own);
    bool room = true;
    if (total == 0) return room;  // as two nodes of five
    AtHand mine = at_hand(w, left, n);
    ROLLED for (i32 base = 0; base < total; base += 32) {
        i32 rank = base + lane_id();
        u32 set = set_of_rank(found, below, rank);
        if (rank >= total) set = 0;
        u32 stuck = warp_ballot(set != 0);
        if (room) stuck = report_batch(w, problem, sum_up(w, problem, set, __popcll(left), n, mine), n, mine);
        ROLLED for (u32 rest = stuck; rest; rest &= rest - 1) leave_set(w, spread(left, from(set, __ffs(rest) - 1)));
        room = room && stuck == 0;
    }
    return room;
}
