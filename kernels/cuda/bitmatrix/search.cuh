// Search of a word problem. Warp-level; a lane holds the words lane, lane + 32, ... of a bit row.
//
// A node is (L as a mask, remaining candidates, closure). The visit of candidate j computes L' = L & mask[j]. The rows
// that contain L' are the closure of the child. The rows that share only some base vertices with L' touch it. The
// child is canonical iff every row of its closure is in the node's closure, is j, or is a remaining candidate.
// A level of the stack is two bit rows, so a step down copies no lists.
// A child with few base vertices is not searched but solved at once: lattice.cuh.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/children.cuh"
#include "bitmatrix/frames.cuh"
#include "bitmatrix/lattice.cuh"
#include "bitmatrix/levels.cuh"
#include "bitmatrix/pending.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/sieve_frames.cuh"
#include "bitmatrix/emit.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Whether the node at `depth` or one below it can have min_root members on the root side. The bound is the sum of its
// closure and of all its candidates.
__device__ inline bool is_promising(const Worker& w, const Problem& problem, i32 depth) {
    if (!MEASURED || SIEVING || params.min_root <= 1) return true;  // a sieve has made sure of it
    i64 closure = warp_shared().full.members + row_members(w, problem, closed_of(w.s, depth, problem.n_words));
    return closure + row_members(w, problem, cand_of(w.s, depth, problem.n_words)) >= params.min_root;
}

// Whether a base side has min_base members.
__device__ __forceinline__ bool is_long_enough(const Worker& w, const Problem& problem, u64 base) {
    return (SIEVING && problem.unit ? __popcll(base) : members_of_base(w, base)) >= params.min_base;
}

// When warps wait, give away children of hubs above this problem, or of its sieve. Returns whether there were any.
__device__ __forceinline__ bool give_above(Worker& w, i32 wanted) {
    return SIEVING ? give_sieve(w, w.hub_depth, wanted) : give_children(w, w.hub_depth, wanted);
}

// Enter the rows that overlap the child opened last into the maps, as map_rows does.
__device__ __forceinline__ i32 map_level(Worker& w, const Problem& problem, i32 depth, u64 base) {
    return problem.n_words <= NARROW  ? map_rows(w, problem, depth, base)
           : __popcll(base) <= 5 ? map_columns<5>(w, problem, depth, base)
                                 : map_columns<LATTICE>(w, problem, depth, base);
}

// Explore the levels of an open problem. STOPPED: the rest of them has been written down.
//
// All lanes run this loop together. So depth, j, base and every condition have the same value in all lanes. They come
// from a ballot, from a shuffle, or from scratch memory that one lane wrote before a __syncwarp. If lanes saw different
// values of a condition, some of them would miss the next collective, which would then never end.
__device__ inline i32 search_levels(Worker& w, const Problem& problem) {
    Scratch* s = w.s;
    i32 n_words = problem.n_words;
    i32 depth = 0;
    ROLLED while (depth >= 0) {
        bool stopped = false;
        // Every POLL visits this warp looks whether the launch ends and whether other warps wait for work. The queue is
        // memory that all warps share, so a look is slow. The clock is slower, and is read every FULL_POLL visits.
        if ((++w.tick & (POLL - 1)) == 0) {
            i32 wanted;
            bool ends = is_ending(&wanted) || ((w.tick & (FULL_POLL - 1)) == 0 && is_late(w));
            stopped = w.visits > 0 && ends;  // at least one visit per item, because a slice must make progress
            // Children of hubs above this problem are given away first, because most of this warp's work is below them.
            if (!stopped && wanted > 0 && !give_above(w, wanted)) give_some(w, problem, depth, wanted);
        }
        // Pending nodes are emitted by one lane each, so 32 must be emitted before the next one is added.
        if (!PLAIN && w.n_pending == 32 && !emit_pending(w, problem)) stopped = true;
        if (stopped) {
            leave_levels(w, problem, depth);
            return STOPPED;
        }
        // j stops being a candidate here. Later children of this level are dead if j contains them, because they were
        // found below j.
        i32 j = next_candidate(cand_of(s, depth, n_words), n_words, s->level_end[depth]);
        if (j == NOBODY) {  // the level is done; the level above still has its rows
            depth -= 1;
            continue;
        }
        w.tests += 1;
        w.visits += 1;
        u64 base = s->level_base[depth] & s->mask[j];
        if (MARKED && (base & problem.live) == 0) continue;
        if ((MEASURED || SIEVING) && params.min_base > 1 && !is_long_enough(w, problem, base)) continue;
        bool more = false;
        // All lanes together test the child, and write its closure and candidates to the next level of the stack.
        if (!open_child(s, problem, depth, j, base, &more)) continue;
        if (PLAIN)
            w.count += 1;  // every lane counts the same nodes, and only the leader's number is used
        else
            add_pending(w, problem, base, closed_of(s, depth + 1, n_words));
        if (!more || !is_promising(w, problem, depth + 1)) continue;
        // A lattice finds everything below the child at once. With a row limit it could find more than may be emitted.
        i32 k = params.limited ? LATTICE + 1 : __popcll(base);
        u64 bits = 0;
        if (MERGING && k > LATTICE && !params.limited) k = join_bits(s, problem, depth + 1, base, &bits);
        if (k <= LATTICE) {
            bool joined = MERGING && k < __popcll(base);
            i32 n_raw = joined ? map_classes(w, problem, depth + 1, k, bits) : map_level(w, problem, depth + 1, base);
            if (solve_lattice(w, problem, base, k, bits, n_raw)) continue;
            // The output is full. solve_lattice has written down the sets that were not emitted, and the open levels
            // are written down here.
            leave_levels(w, problem, depth);
            return STOPPED;
        }
        depth += 1;  // open_child has already written the candidates and the closure of this level
        if (lane_id() == 0) {
            s->level_base[depth] = base;
            s->level_end[depth] = problem.n_cand;  // all children of the new level belong to this warp
        }
        __syncwarp();  // the other lanes read the new level in the next round
    }
    return DONE;
}

// Make level 0 of an open problem.
__device__ inline void open_level(Worker& w, const Problem& problem) {
    Scratch* s = w.s;
    // The first n_cand rows are candidates. Its closure is in s->full, so no row is in the bit row `closed`.
    ROLLED for (i32 word = lane_id(); word < problem.n_words; word += 32) {
        i32 n = problem.n_cand - word * 32;
        cand_of(s, 0, problem.n_words)[word] = n >= 32 ? ~0u : n <= 0 ? 0u : (1u << n) - 1u;
        closed_of(s, 0, problem.n_words)[word] = 0;
    }
    if (lane_id() == 0) {
        s->level_base[0] = problem.whole;
        s->level_end[0] = problem.end;
    }
    __syncwarp();
}

// Explore an open problem. STOPPED: the rest has been written down.
__device__ inline i32 search(Worker& w, const Problem& problem) {
    open_level(w, problem);
    i32 ended = search_levels(w, problem);
    // Pending nodes were visited already, so they are not in the levels that were written down. They are emitted in any
    // case.
    return PLAIN || emit_pending(w, problem) ? ended : STOPPED;
}
