// Emits the base sides that a lattice found. A lane takes a set, computes its sums, and writes its members. A set has
// one bit per base vertex of its node, at most LATTICE. Warp-level.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/emit.cuh"
#include "bitmatrix/levels.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/marks.cuh"
#include "bitmatrix/output.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// A lane's values while the sets of a node are emitted: those of base vertex `lane` of the node, and of raw row `lane`.
// Other lanes get them by shuffles.
struct AtHand {
    u64 bits;  // of the problem, which are one base vertex of the node
    i32 base, base_weight;
    i32 length;  // of the base vertices that `base` stands for
    i32 row, row_weight;
    u64 base_hash, row_hash;
    u32 row_set;
    u32 marked, row_marked;  // base vertices with a marked edge to the closure of the problem, and to the row
};

// A lane's set.
struct OneSet {
    // Bit t is the t-th base vertex of the node. The number is also the set's place in the map. 0: the lane has no
    // set.
    u32 set;
    u32 rows;  // which of the first 32 raw rows contain it
    OneBiclique is;
};

// Load the values of a node with k base vertices, or classes of them (`bits`, of lane after lane), and n raw rows.
__device__ inline AtHand at_hand(const Worker& w, const Problem& problem, u64 base, i32 k, u64 bits, i32 n) {
    AtHand mine = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    bool joined = MERGING && k < __popcll(base);
    i32 bit = 0;
    if (MARKED) mine.marked = set_of_bits(base, problem.marked);
    u64 whole = base;
    // These loads are done once per node. Without them every lane would load the same values again for each of its
    // sets.
    ROLLED for (i32 t = 0; !joined && t < k; t++, base &= base - 1)
        // All lanes strip one bit per round, and lane t stops at the t-th. k is at most LATTICE, so there is a lane
        // for each.
        if (t == lane_id()) bit = __ffsll((i64)base) - 1;
    if (lane_id() < k) {
        mine.base = w.s->base[bit];
        if (MERGING) mine.bits = joined ? bits : 1ull << bit;
        if (MERGING) mine.length = length_of(w.s, problem, mine.bits);
        SideSums sums = {0, 0};
        if (!joined) sums = sums_of_bit(w.s, bit);
        ROLLED for (u64 rest = joined ? bits : 0; rest; rest &= rest - 1) {
            SideSums its = sums_of_bit(w.s, __ffsll((i64)rest) - 1);
            sums.members += its.members;
            sums.hash += its.hash;
        }
        mine.base_weight = (i32)sums.members;
        mine.base_hash = sums.hash;
    }
    // Raw rows from 32 on have no lane, and are read from the scratch memory.
    if (lane_id() < n) {
        mine.row = w.s->raw_row[lane_id()];
        if (MEASURED) mine.row_weight = params.root_weight[mine.row];
        mine.row_hash = params.root_hash[mine.row];
        mine.row_set = (u32)w.s->raw_mask[lane_id()];
        if (MARKED) mine.row_marked = set_of_bits(whole, marked_bits(w.s, whole, mine.row));
    }
    return mine;
}

// The set with number `rank` among all sets found. `below` is the number of sets in the words of the lanes before. Two
// bisections find the lane that has the set, and the bit in its word.
__device__ inline u32 set_of_rank(u32 found, i32 below, i32 rank) {
    // Each lane looks for a rank of its own, and asks another lane than its neighbours do. A lane whose rank is behind
    // the last set searches, too, because a shuffle needs all lanes; the caller drops what it finds.
    i32 holder = 0, bit = 0;
    ROLLED for (i32 step = 16; step; step >>= 1)
        // Invariant: below[holder] <= rank. At the end the holder is the last such lane, so lanes without sets are
        // passed.
        if (from(below, holder + step) <= rank) holder += step;
    u32 word = from(found, holder);
    // The set is bit number n of the holder's set bits. Invariant: it is among the lowest 2 * step bits of `word`.
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

// Sums over those of the base vertices that are in this lane's set, and over those of the n raw rows that contain it.
__device__ inline OneSet sum_up(const Worker& w, const Problem& problem, u64 base, i32 k, u32 set, i32 n, const AtHand& mine) {
    u32 marked = mine.marked;
    // The sums over the problem's closure are the start, because it is part of every closure below.
    OneSet one = {set, 0, {set != 0, MERGING ? 0 : __popc(set), problem.n_full, {0, 0}, warp_shared().full}};
    // The loops run over vertices, not over members, so all lanes ask the same lane in each round. The shuffles stand
    // before the tests of the lane's own set, because these differ from lane to lane. What a lane without a set sums
    // up is not used.
    ROLLED for (i32 t = 0; t < k; t++) {
        i32 weight = MEASURED ? from(mine.base_weight, t) : 0, length = MERGING ? from(mine.length, t) : 0;
        u64 hash = from(mine.base_hash, t);
        if ((set >> t) & 1) {
            one.is.n_base += length;
            one.is.base.members += weight;
            one.is.base.hash += hash;
        }
    }
    ROLLED for (i32 r = 0; r < n; r++) {
        // r is the same in all lanes. Far rows are one load of the same address for all of them.
        bool near = r < 32;
        i32 v = near ? 0 : w.s->raw_row[r];
        u32 row_set = near ? from(mine.row_set, r & 31) : (u32)w.s->raw_mask[r];
        i32 weight = !MEASURED ? 0 : near ? from(mine.row_weight, r & 31) : params.root_weight[v];
        u64 hash = near ? from(mine.row_hash, r & 31) : params.root_hash[v];
        u32 its = !MARKED ? 0 : near ? from(mine.row_marked, r & 31) : set_of_bits(base, marked_bits(w.s, base, v));
        if ((row_set & set) != set) continue;
        marked |= its;
        one.is.root.members += weight;
        one.is.root.hash += hash;
        one.is.n_root += 1;
        // The answer is kept, so that write_sets need not compare the sets again.
        if (near) one.rows |= 1u << r;
    }
    if (MARKED) one.is.there = (marked & set) != 0;
    return one;
}

// Write the sets: each lane with `own` writes its biclique to its `out`.
__device__ inline void write_sets(
    const Scratch* s, const Problem& problem, const OneSet& one, i32 k, i32 n, const AtHand& mine, bool own, i32* out) {
    // Lengths of bicliques differ from lane to lane, so each lane moves its own `out`. All lanes stay in the loops for
    // the shuffles, also those that write nothing in this round of emit_batch.
    ROLLED for (i32 t = 0; t < k; t++) {
        bool has = own && (one.set >> t) & 1;
        if (MERGING) out = write_members(s, problem, from(mine.bits, t), has, out);
        i32 u = MERGING ? 0 : from(mine.base, t);
        if (!MERGING && has) *out++ = u;
    }
    ROLLED for (i32 i = 0; i < problem.n_full; i++)
        if (own) *out++ = s->full[i];
    ROLLED for (i32 r = 0; r < n; r++) {
        i32 v = r < 32 ? from(mine.row, r & 31) : s->raw_row[r];
        bool member = r < 32 ? (one.rows >> r) & 1 : ((u32)s->raw_mask[r] & one.set) == one.set;
        if (own && member) *out++ = v;
    }
}

// Write a set that could not be emitted down. Those of the n raw rows that contain it are in its closure.
__device__ inline void leave_set(const Worker& w, const Problem& problem, u32 set, i32 n) {
    auto contains = [&](i32 r) { return r < n && ((u32)w.s->raw_mask[r] & set) == set; };
    i32 closed = 0;
    ROLLED for (i32 r = lane_id(); r < n; r += 32) closed += contains(r);
    leave_node(w, problem, warp_sum(closed), [&](i32* out) {
        i32 found = 0;
        ROLLED for (i32 chunk = 0; chunk < n; chunk += 32) {
            bool own = contains(chunk + lane_id());
            found = keep(out, found, own, own ? w.s->raw_row[chunk + lane_id()] : 0);
        }
    });
}

// Emit the sets of a map below the node `base`, which has k base vertices, or classes of them (`bits`, of lane after lane). The
// first n raw rows are those that may be in closures. False when the
// output is full; the other sets are written down then.
__device__ __noinline__ bool emit_sets(Worker& w, const Problem& problem, u64 base, i32 k, u64 bits, u32 found, i32 n) {
    // Lane l holds the sets from 32 l on, and some lanes hold many while others hold none. So the sets are numbered
    // through, and each lane takes every 32nd, whoever holds it. `total` is the same in all lanes.
    i32 own = __popc(found), below = sum_below(own), total = warp_sum(own);
    bool room = true;
    if (total == 0) return room;  // two of five nodes have no sets, and need no loads
    AtHand mine = at_hand(w, problem, base, k, bits, n);
    ROLLED for (i32 chunk = 0; chunk < total; chunk += 32) {
        i32 rank = chunk + lane_id();
        u32 set = set_of_rank(found, below, rank);
        if (rank >= total) set = 0;
        // If the output was already full, all sets of this chunk are stuck.
        u32 stuck = warp_ballot(set != 0);
        if (room) {
            OneSet one = sum_up(w, problem, base, k, set, n, mine);
            stuck = emit_batch(w, one.is, [&](bool own, i32* out) { write_sets(w.s, problem, one, k, n, mine, own, out); });
        }
        // To write a node down takes all lanes, so they do it for one stuck lane after the other.
        ROLLED for (u32 rest = stuck; rest; rest &= rest - 1) leave_set(w, problem, from(set, __ffs(rest) - 1), n);
        room = room && stuck == 0;
    }
    return room;
}
