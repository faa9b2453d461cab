// The depth-first stack of a word problem, with two bit rows per level, and ways to hand over levels that this warp
// does not finish. Warp-level; a lane holds the words lane, lane + 32, ... of a bit row.
//
// Bit r of a bit row stands for row r of the problem. `cand` has the candidates that remain, `closed` the rows that
// joined the closure below the problem's root node. Candidates before level_end belong to this warp. Those from
// level_end on are children of other warps, but they may still join a closure here.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/bound.cuh"
#include "bitmatrix/level_copy.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/emit.cuh"
#include "bitmatrix/sieve_frames.cuh"
#include "bitmatrix/sieve_types.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Take the next candidate before `end` out of the level, or return NOBODY. All lanes return the same candidate: a
// ballot finds the first lane whose word is not zero, and a shuffle tells its word to all lanes.
__device__ __forceinline__ i32 next_candidate(u32* cand, i32 n_words, i32 end) {
    ROLLED for (i32 chunk = 0; chunk < n_words; chunk += 32) {
        i32 word = chunk + lane_id();
        u32 bits = word < n_words ? cand[word] : 0;
        u32 holders = warp_ballot(bits != 0);
        if (holders == 0) continue;
        i32 holder = __ffs(holders) - 1;
        i32 j = (chunk + holder) * 32 + __ffs(from(bits, holder)) - 1;
        if (j >= end) return NOBODY;
        if (lane_id() == holder) cand[word] = bits & (bits - 1);  // clear the lowest bit, which is j's
        __syncwarp();
        return j;
    }
    return NOBODY;
}

// Put candidate j back into the level.
__device__ __forceinline__ void put_back(u32* cand, i32 j) {
    if (lane_id() == 0) cand[j >> 5] |= 1u << (j & 31);
    __syncwarp();
}

// Number of candidates of a level that are before `end`. Each lane counts the bits of its words.
__device__ __noinline__ i32 remaining(Scratch* s, i32 depth, i32 n_words, i32 end) {
    i32 n = 0;
    ROLLED for (i32 word = lane_id(); word < n_words; word += 32) {
        i32 first = word * 32;
        u32 bits = cand_of(s, depth, n_words)[word];
        if (end < first + 32) bits &= end <= first ? 0u : (1u << (end - first)) - 1u;  // drop bits from `end` on
        n += __popc(bits);
    }
    return warp_sum(n);
}

// Describe the level as an item, with its lists in the pool: the path to it, then all its candidates. The first n_explored
// candidates are the children of the item. The others can only join closures. False when the pool is full.
__device__ __noinline__ bool describe(Worker& w, const Problem& problem, i32 depth, i32 n_explored, Item* item) {
    Scratch* s = w.s;
    const u32* cand = cand_of(s, depth, problem.n_words);
    const u32* closed = closed_of(s, depth, problem.n_words);
    // A path is the whole closure: that of the problem, and the rows that joined it since. L may be classes of twins.
    i32 n_cand = count_rows(cand, problem.n_words);
    i32 n_path = problem.n_full + count_rows(closed, problem.n_words);
    i64 at = reserve_pool((i64)n_path + n_cand);
    if (at == NOBODY) return false;
    i32* out = params.pool + at;
    write_rows(w, problem, closed, out + write_list(s->full, problem.n_full, out));
    write_rows(w, problem, cand, out + n_path);  // ascending, so children of this warp come first
    item->kind = PATH;
    item->bound = NOBODY;
    item->base_at = at;
    item->n_base = n_path;
    item->cand_at = at + n_path;
    item->n_cand = n_cand;
    item->closure_at = NOBODY;
    item->n_closure = 0;
    item->begin = 0;
    item->end = n_explored;
    item->fresh = 0;  // the node itself was visited already
    __syncwarp();     // all lanes have written their part of the lists
    return true;
}

// Attach a copy of a level to an item of it, as a frame of a sieve. Rows of the closure are left out, and excluded rows
// that have too little of L.
__device__ __noinline__ void attach_as_frame(const Worker& w, const Problem& problem, i32 depth, Item* item) {
    Scratch* s = w.s;
    const u32* cand = cand_of(s, depth, problem.n_words);
    u64 base = s->level_base[depth];
    auto excluded = [&](i32 c) {
        u64 mask = excluded_part(s, problem, depth, c);
        return __popcll(mask) >= problem.least ? mask : 0;
    };
    i32 n_excluded = 0;
    ROLLED for (i32 c = 0; c < problem.n_words; c++) n_excluded += __popc(warp_ballot(excluded(c) != 0));
    i32 planes = sieve_of(w).planes, n_rows = n_excluded + item->n_cand;
    FrameCopy head = {1, planes, problem.n_bits, n_rows, least_root(), 0};
    item->bound = n_excluded;
    i32* out = begin_copy(head, item);
    if (out == 0) return;
    out += write_list(s->base, problem.n_bits, out);
    u32* bits = (u32*)(out + 2 * n_rows);
    ROLLED for (i32 half = 0; half < 2; half++) {
        bool there = (base >> (32 * half + lane_id())) & 1;
        i32 weight = there ? weight_of(s->base[32 * half + lane_id()]) : 0;
        ROLLED for (i32 k = 0; k < planes; k++) {
            u32 word = warp_ballot((weight >> k) & 1);
            if (lane_id() == 0) bits[2 * k + half] = word;
        }
    }
    bits += 2 * planes;
    i32 n = 0;
    auto put = [&](bool there, i32 row, u64 mask) {
        u32 all = warp_ballot(there);
        i32 at = n + __popc(all & lanes_below());
        n += __popc(all);
        if (!there) return;
        out[at] = row;
        out[n_rows + at] = row == NOBODY ? 0 : params.root_weight[row];
        bits[2 * at] = (u32)mask;
        bits[2 * at + 1] = (u32)(mask >> 32);
    };
    ROLLED for (i32 c = 0; c < problem.n_words; c++) {
        u64 mask = excluded(c);
        put(mask != 0, NOBODY, mask);
    }
    ROLLED for (i32 c = 0; c < problem.n_words; c++) {
        bool there = (cand[c] >> lane_id()) & 1;
        put(there, there ? s->row[32 * c + lane_id()] : NOBODY, there ? s->mask[32 * c + lane_id()] & base : 0);
    }
    __syncwarp();
}

// Hand the next n children of a level to n_items waiting warps. False when there is no room.
__device__ inline bool give_level(Worker& w, const Problem& problem, i32 level, i32 n, i32 n_items) {
    Item item;
    if (!describe(w, problem, level, n, &item)) return false;
    if (SIEVING)
        attach_as_frame(w, problem, level, &item);
    else
        attach_level(w, problem, level, &item);
    i64 slot = reserve_given(n_items);
    if (slot == NOBODY) return false;
    publish(slot, n_items, item);
    return true;
}

// Estimate of the work below children of a node. It grows with the candidates that a child may still have, and with the
// base vertices beyond those that a lattice solves at once.
__device__ __forceinline__ i64 worth_of(u64 base, i32 children, i32 candidates) {
    i32 more = __popcll(base) - LATTICE;
    return (i64)children * candidates * (more < 1 ? 1 : more);
}

// When warps wait, give away the children of the shallowest level with enough work. Of the deepest level this warp
// keeps the next child.
__device__ __noinline__ void give_some(Worker& w, const Problem& problem, i32 depth, i32 wanted) {
    Scratch* s = w.s;
    ROLLED for (i32 level = 0; level <= depth; level++) {
        i32 n = remaining(s, level, problem.n_words, s->level_end[level]);
        i32 spare = level == depth ? n - 1 : n;  // otherwise this warp would wait for work itself
        if (spare <= 0) continue;
        i32 candidates = remaining(s, level, problem.n_words, problem.n_cand);
        if (worth_of(s->level_base[level], spare, candidates) < GIVE_MIN) continue;
        i32 n_items = spare < wanted ? spare : wanted;
        if (n_items > 32) n_items = 32;  // one per lane, which is what reserve_given keeps in reserve
        u32* cand = cand_of(s, level, problem.n_words);
        i32 kept = level == depth ? next_candidate(cand, problem.n_words, s->level_end[level]) : NOBODY;
        // The kept candidate is taken out while the level is described. Then it comes back, and is the only candidate
        // of the level that this warp explores.
        bool given = give_level(w, problem, level, spare, n_items);
        if (kept != NOBODY) put_back(cand, kept);
        if (given && lane_id() == 0) s->level_end[level] = kept + 1;  // NOBODY + 1 is 0: no child is left here
        __syncwarp();
        return;
    }
}

// Write every open level down for the host, by its path. The slice is void if the pool is full.
__device__ __noinline__ void leave_levels(Worker& w, const Problem& problem, i32 depth) {
    ROLLED for (i32 level = 0; level <= depth; level++) {
        i32 n = remaining(w.s, level, problem.n_words, w.s->level_end[level]);
        if (n == 0) continue;
        Item item;
        if (describe(w, problem, level, n, &item))
            leave_over(item);
        else if (lane_id() == 0)
            overflow();
    }
    __syncwarp();
}

// Write down a node that could not be emitted, by its path and without candidates. The n rows of its closure that are not in
// that of the problem are written by write(out). The slice is void if the pool is full.
template <class Write>
__device__ inline void leave_node(const Worker& w, const Problem& problem, i32 n, const Write& write) {
    i64 at = reserve_pool(problem.n_full + n);
    if (at == NOBODY) {
        if (lane_id() == 0) overflow();
        return;
    }
    i32* out = params.pool + at;
    write(out + write_list(w.s->full, problem.n_full, out));
    leave_over(path_item(at, problem.n_full + n, at, 0, 0, 0, 1));
}
