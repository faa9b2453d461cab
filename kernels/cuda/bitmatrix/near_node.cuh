// A node of a search for near-bicliques: what can be added, reductions, what excludes, and the children. Warp-level.
//
// A lane takes a vertex, and compares its row with the sets of the other side.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/bound.cuh"
#include "bitmatrix/near_types.cuh"
#include "bitmatrix/worker.cuh"

// What becomes of a node
#define ENDS 0      // nothing is found below it
#define BRANCHES 1  // it has children
#define LEAF 2      // it is a result

#define NO_PIVOT 0x7fffffff

struct Facing {  // one side of a node, and where the sets are that its rows are compared with
    i32 words, all, rows;
    i32 own;          // its S; each further set is `step` words behind
    i32 other, step;  // S of the other side
    i32 other_words;
};

struct Seen {  // what a vertex has of the other side
    i32 joined;  // of S and C
    i32 counted;  // of these, what counts in R1: in a k-defective biclique those that are FREE
    i32 missed;  // of S
    bool stopped;  // it is not joined to a member that may miss no more
};

struct Pivot {
    i32 fewest;  // children
    i32 at, side;
};

__device__ __forceinline__ Facing facing(const NearFrame* f, i32 side) {
    const NearSide& own = f->side[side];
    i32 step = f->side[0].words + f->side[1].words;
    return {own.words, own.all, own.rows, set_at(f, CHOSEN, side), set_at(f, CHOSEN, 1 - side), step, f->side[1 - side].words};
}

// Thread-level.
__device__ __forceinline__ Seen look(const Near& n, const Facing& v, i32 r) {
    Seen seen = {0, 0, 0, false};
    const u32* row = n.bits + v.rows + r;
    const u32* sets = n.bits + v.other;
    ROLLED for (i32 w = 0; w < v.other_words; w++, row += v.all, sets++) {
        u32 has = *row, chosen = sets[0], third = sets[FREE * v.step];
        seen.joined += __popc(has & (chosen | sets[ADDABLE * v.step]));
        seen.missed += __popc(chosen & ~has);
        seen.counted += __popc(has & third);
        seen.stopped |= (third & ~has) != 0;
    }
    if (params.near_pairs >= 0) {
        seen.stopped = false;
    } else {
        seen.counted = seen.joined;
    }
    return seen;
}

// How many of S a vertex misses.
__device__ inline i32 missed_by(const Near& n, const Facing& v, i32 r) {
    i32 missed = 0;
    ROLLED for (i32 w = lane_id(); w < v.other_words; w += 32) missed += __popc(n.bits[v.other + w] & ~n.bits[v.rows + w * v.all + r]);
    return warp_sum(missed);
}

// The most members of a side that a group has, of so many in S and C: those that are not FREE cost a missing pair each.
__device__ inline i32 most_of_side(const Near& n, const NearFrame* f, i32 side, i32 size) {
    if (params.near_pairs < 0) return size;
    i32 free = set_at(f, FREE, side), most = 0;
    ROLLED for (i32 w = lane_id(); w < f->side[side].words; w += 32) most += __popc(n.bits[free + w]);
    most = warp_sum(most) + slack_of(side, f->total);
    return most < size ? most : size;
}

// S and C of a side together.
__device__ inline i32 size_of_side(const Near& n, const NearFrame* f, i32 side) {
    i32 chosen = set_at(f, CHOSEN, side), addable = set_at(f, ADDABLE, side), size = 0;
    ROLLED for (i32 w = lane_id(); w < f->side[side].words; w += 32) size += __popc(n.bits[chosen + w] | n.bits[addable + w]);
    return warp_sum(size);
}

__device__ __forceinline__ void set_bit(u32* set, i32 i) {
    if (lane_id() == 0) set[i >> 5] |= 1u << (i & 31);
    __syncwarp();
}

// Make frame `d` the child of the frame before it with candidate `y` of a side. What can be added is not looked at yet.
__device__ inline void add_member(const Near& n, i32 d, i32 side, i32 y) {
    const NearFrame* parent = n.frame + d - 1;
    NearFrame* f = n.frame + d;
    i32 step = parent->side[0].words + parent->side[1].words, from_sets = parent->sets, to = parent->top;
    ROLLED for (i32 i = lane_id(); i < JOINED * step; i += 32) n.bits[to + i] = n.bits[from_sets + i];
    if (lane_id() == 0) {
        *f = *parent;
        f->sets = to;
        f->top = to + NEAR_SETS * step;
        f->copy_at = NOBODY;
    }
    __syncwarp();
    Facing v = facing(f, side);
    set_bit(n.bits + v.own, y);
    i32 missed = missed_by(n, v, y);
    if (lane_id() == 0) f->total += missed;
    if (params.near_pairs < 0) {
        if (missed == slack_of(side, 0)) set_bit(n.bits + v.own + SATURATED * step, y);
        Facing back = facing(f, 1 - side);
        ROLLED for (i32 w = 0; w < v.other_words && missed > 0; w++) {
            u32 rest = n.bits[v.other + w] & ~n.bits[v.rows + w * v.all + y];
            ROLLED for (; rest; rest &= rest - 1) {
                i32 u = 32 * w + __ffs(rest) - 1;
                if (missed_by(n, back, u) == slack_of(1 - side, 0)) set_bit(n.bits + v.other + SATURATED * step, u);
            }
        }
    } else {
        set_bit(n.bits + v.own + FREE * step, y);
        ROLLED for (i32 w = lane_id(); w < v.other_words; w += 32)
            n.bits[v.other + FREE * step + w] &= n.bits[v.other + w] | n.bits[v.rows + w * v.all + y];
    }
    __syncwarp();
}

// R1 and R2 on one side: drop candidates that cannot be added, or are joined to too few. Returns how many vertices S and C
// have left, or -1 if a member of S is joined to too few. `n_other` is how many the other side has. The pivot becomes the
// candidate of this side that misses nothing of S and has most of S and C. Those that have all of it are JOINED.
__device__ inline i32 reduce_side(const Near& n, const NearFrame* f, i32 side, i32 n_other, Pivot* pivot) {
    Facing v = facing(f, side);
    i32 slack = slack_of(side, f->total), need = least_of(1 - side) - slack, size = 0, fewest = NO_PIVOT, at = 0;
    bool defective = params.near_pairs >= 0, fails = false;
    ROLLED for (i32 w = 0; w < v.words; w++) {
        u32 chosen = n.bits[v.own + w], addable = n.bits[v.own + ADDABLE * v.step + w];
        bool member = (chosen >> lane_id()) & 1, candidate = (addable >> lane_id()) & 1;
        i32 r = 32 * w + lane_id();
        Seen seen = {0, 0, 0, false};
        if (member || candidate) seen = look(n, v, r);
        // What a member of S misses itself is among the total, but does not count against it.
        fails |= member && seen.counted + (defective ? seen.missed : 0) < need;
        bool stays = candidate && seen.counted >= need && seen.missed <= slack && !seen.stopped;
        bool has_all = stays && seen.missed == 0 && seen.joined == n_other;
        if (stays && seen.missed == 0 && !has_all && n_other - seen.joined < fewest) {
            fewest = n_other - seen.joined;
            at = r;
        }
        u32 stayers = warp_ballot(stays), joiners = warp_ballot(has_all), free = warp_ballot(stays && seen.missed == 0);
        size += __popc(chosen | stayers);
        if (lane_id() == 0) {
            n.bits[v.own + ADDABLE * v.step + w] = stayers;
            n.bits[v.own + JOINED * v.step + w] = joiners;
            if (defective) n.bits[v.own + FREE * v.step + w] = chosen | free;
        }
    }
    __syncwarp();
    if (warp_any(fails)) return -1;
    i32 least = (i32)__reduce_min_sync(ALL_LANES, (u32)fewest);
    *pivot = {least, from(at, __ffs(warp_ballot(fewest == least)) - 1), side};
    return size;
}

// Repeat R1 and R2 until nothing changes. False if the node ends. sizes[side]: how many vertices S and C have left.
__device__ inline bool reduce_node(const Near& n, const NearFrame* f, i32* n_roots, i32* n_base, Pivot* pivot) {
    i32 size0 = size_of_side(n, f, 0), size1 = size_of_side(n, f, 1), dirty = 3;
    if (size0 < least_of(0) || size1 < least_of(1)) return false;
    Pivot of_roots, of_base;
    ROLLED while (dirty) {
        i32 side = dirty & 1 ? 0 : 1;
        Pivot own;
        i32 left = reduce_side(n, f, side, side ? size0 : size1, &own);
        if (left < least_of(side)) return false;
        dirty &= ~(1 << side);
        if (left < (side ? size1 : size0)) dirty |= 2 >> side;
        if (side) {
            size1 = left;
            of_base = own;
        } else {
            size0 = left;
            of_roots = own;
        }
    }
    *n_roots = size0;
    *n_base = size1;
    *pivot = of_base.fewest < of_roots.fewest ? of_base : of_roots;
    if (pivot->fewest != NO_PIVOT) pivot->fewest += 1;  // it is a child itself
    return true;
}

// Keep those of n_listed vertices that can be added to S, behind the first `kept` rows in `to`. read(i) is a row of this
// side, or NOBODY. Returns how many there are, or -1 if one of them ends the node. It looks for a better pivot, too.
template <class Read>
__device__ inline i32 keep_excluded(const Near& n, const NearFrame* f, i32 side, i32 n_other, bool leaf, i32 n_listed, i32 to, i32 kept,
                                    Pivot* pivot, const Read& read) {
    Facing v = facing(f, side);
    i32 slack = slack_of(side, f->total), need = least_of(1 - side) - slack, fewest = NO_PIVOT, at = 0;
    ROLLED for (i32 chunk = 0; chunk < n_listed; chunk += 32) {
        i32 r = chunk + lane_id() < n_listed ? read(chunk + lane_id()) : NOBODY;
        Seen seen = {0, 0, 0, true};
        if (r != NOBODY) seen = look(n, v, r);
        bool stays = r != NOBODY && seen.missed <= slack && !seen.stopped;
        bool free = stays && seen.missed == 0;
        if (warp_any((stays && leaf) || (free && seen.joined == n_other))) return -1;
        stays &= seen.counted >= need;
        if (stays && free && n_other - seen.joined < fewest) {
            fewest = n_other - seen.joined;
            at = r;
        }
        // The list that is read is not the one that is written.
        u32 stayers = warp_ballot(stays);
        if (stays) n.bits[to + kept + __popc(stayers & lanes_below())] = (u32)r;
        kept += __popc(stayers);
    }
    i32 least = (i32)__reduce_min_sync(ALL_LANES, (u32)fewest);
    if (least < pivot->fewest) *pivot = {least, from(at, __ffs(warp_ballot(fewest == least)) - 1), side};
    __syncwarp();
    return kept;
}

// The measure of a group with so many members at most, of whose pairs so many are missing at least.
__device__ __forceinline__ i64 most_of(i64 n_base, i64 n_roots, i32 missing) {
    return ceiling_of(n_base, n_roots) - (params.measure == BY_EDGES ? missing : 0);
}

// Whether a group below a node may reach the bound, by what its vertices are joined to. A group with b members of one side
// has those of the other side that are joined to b of S and C, or miss what the rest is. In a k-biplex each may miss so many.
// In a k-defective biclique each of the rest costs a missing pair, and a member of S has paid for what it misses of S.
__device__ __noinline__ bool reaches_bound_near(const Near& n, const NearFrame* f, i32 n_roots, i32 n_base, i64 bound) {
    bool defective = params.near_pairs >= 0;
    i32* held = (i32*)n.bits + f->top;  // how many of a side hold 1, 2, ... of the other side
    ROLLED for (i32 side = 0; side < 2; side++) {
        Facing v = facing(f, side);
        i32 n_own = side ? n_base : n_roots, n_other = side ? n_roots : n_base, slack = slack_of(side, f->total), before = 0;
        ROLLED for (i32 i = lane_id(); i < n_other; i += 32) held[i] = 0;
        __syncwarp();
        ROLLED for (i32 w = 0; w < v.words; w++) {
            bool member = (n.bits[v.own + w] >> lane_id()) & 1, candidate = (n.bits[v.own + ADDABLE * v.step + w] >> lane_id()) & 1;
            if (!member && !candidate) continue;
            Seen seen = look(n, v, 32 * w + lane_id());
            i32 most = seen.joined + (!defective ? slack : member ? seen.missed : 0);
            if (most > 0) atomicAdd(&held[most < n_other ? most - 1 : n_other - 1], 1);
        }
        __syncwarp();
        bool reaches = false;
        ROLLED for (i32 chunk = n_other; chunk >= least_of(1 - side) && !reaches; chunk -= 32) {
            i32 b = chunk - lane_id(), own = b > 0 ? held[b - 1] : 0, holders = before + sum_below(own) + own;
            i32 a = holders + (defective ? slack : 0);
            if (a > n_own) a = n_own;
            bool large = b >= least_of(1 - side) && a >= least_of(side);
            reaches = warp_any(large && most_of(side ? a : b, side ? b : a, f->total) >= bound);
            before = from(holders, 31);
        }
        if (!reaches) return false;
        __syncwarp();
    }
    return true;
}

// Reduce frame `d`, and list what excludes: of what `source` lists, and of its first n_explored children. If its children
// are to be chosen, the pivot says which. No group below the bound is wanted.
__device__ __noinline__ i32 settle(const Near& n, i32 d, const NearFrame* source, i32 n_explored, bool chooses, i64 bound, Pivot* pivot) {
    NearFrame* f = n.frame + d;
    i32 n_roots, n_base, step = f->side[0].words + f->side[1].words;
    if (!reduce_node(n, f, &n_roots, &n_base, pivot)) return ENDS;
    i32 most_roots = most_of_side(n, f, 0, n_roots), most_base = most_of_side(n, f, 1, n_base);
    if (most_roots < least_of(0) || most_base < least_of(1)) return ENDS;
    if (params.measure != 0 && most_of(most_base, most_roots, f->total) < bound) return ENDS;
    if (params.measure != 0 && bound > 0 && !reaches_bound_near(n, f, most_roots, most_base, bound)) return ENDS;
    if (!chooses) *pivot = {NO_PIVOT, 0, 0};
    u32 left = 0;
    ROLLED for (i32 w = lane_id(); w < step; w += 32) {
        u32 joined = chooses ? n.bits[f->sets + JOINED * step + w] : 0;  // who is joined to all is in every group below
        n.bits[f->sets + w] |= joined;
        left |= n.bits[f->sets + ADDABLE * step + w] &= ~joined;
    }
    bool leaf = !warp_any(left != 0);
    __syncwarp();
    if (leaf && !chooses) return ENDS;
    i32 to = f->top;
    ROLLED for (i32 side = 0; side < 2; side++) {
        const u32* listed = n.bits + source->side[side].excluded;
        const u32* branch = n.bits + source->branch;
        i32 n_other = side ? n_roots : n_base;
        i32 kept = keep_excluded(n, f, side, n_other, leaf, source->side[side].n_excluded, to, 0, pivot, [&](i32 i) { return (i32)listed[i]; });
        if (kept >= 0)
            kept = keep_excluded(n, f, side, n_other, leaf, n_explored, to, kept, pivot, [&](i32 i) {
                i32 r = (i32)branch[i];
                return side ? (r < 0 ? ~r : NOBODY) : (r < 0 ? NOBODY : r);
            });
        if (kept < 0) return ENDS;
        if (lane_id() == 0) {
            f->side[side].excluded = to;
            f->side[side].n_excluded = kept;
        }
        to += kept;
    }
    if (lane_id() == 0) {
        f->branch = f->top = to;
        f->next = f->end = f->copied = 0;
        f->copy_at = NOBODY;
    }
    __syncwarp();
    return leaf ? LEAF : BRANCHES;
}

// List the vertices of n_words words as `entry(i)`, i being a bit. word(w) is one of them. Returns how many there are.
template <class Word, class Entry>
__device__ inline i32 list_bits(i32 n_words, u32* out, const Word& word, const Entry& entry) {
    i32 n = 0;
    ROLLED for (i32 w = 0; w < n_words; w++) {
        u32 bits = word(w);
        if ((bits >> lane_id()) & 1) out[n + __popc(bits & lanes_below())] = (u32)entry(32 * w + lane_id());
        n += __popc(bits);
    }
    __syncwarp();
    return n;
}

// List the children of frame `d` by its pivot: itself, if it is a candidate, and those it is not joined to.
__device__ inline void choose_children(const Near& n, i32 d, const Pivot& pivot) {
    NearFrame* f = n.frame + d;
    u32* out = n.bits + f->branch;
    i32 count = 0;
    if (pivot.fewest != NO_PIVOT) {
        i32 own = set_at(f, ADDABLE, pivot.side) + (pivot.at >> 5);
        if (pivot.at < 32 * f->side[pivot.side].words && (n.bits[own] >> (pivot.at & 31)) & 1) {
            if (lane_id() == 0) out[0] = (u32)(pivot.side ? ~pivot.at : pivot.at);
            count = 1;
        }
    }
    ROLLED for (i32 side = 0; side < 2; side++) {
        if (pivot.fewest != NO_PIVOT && side == pivot.side) continue;
        const u32* set = n.bits + set_at(f, ADDABLE, side);
        const u32* row = n.bits + f->side[1 - side].rows + pivot.at;
        i32 all = f->side[1 - side].all;
        count += list_bits(
            f->side[side].words, out + count, [&](i32 w) { return set[w] & ~(pivot.fewest == NO_PIVOT ? 0 : row[w * all]); },
            [&](i32 i) { return side ? ~i : i; });
    }
    if (lane_id() == 0) {
        f->end = count;
        f->top = f->branch + count;
    }
    __syncwarp();
}
