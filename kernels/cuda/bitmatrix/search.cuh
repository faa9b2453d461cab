// Search of a word problem. Warp-level; a lane holds the words lane, lane + 32, ... of a bit row.
//
// A node is (L as a mask, remaining candidates, closure). Visiting candidate j: L' = L & mask[j]; the rows that contain
// L' are its closure, those that share some of it touch it. The child is canonical iff its closure lies in the
// node's closure, j, and the candidates that remain. Nothing is copied: a level of the stack is two bit rows.
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
#include "bitmatrix/emit.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Whether the child's subtree can reach the root side asked for.
__device__ inline bool is_promising(const Worker& w, const Problem& problem, i32 depth) {
    if (!MEASURED || params.min_root <= 1) return true;
    i64 closure = warp_shared().full.members + row_members(w, problem, closed_of(w.s, depth, problem.n_words));
    return closure + row_members(w, problem, cand_of(w.s, depth, problem.n_words)) >= params.min_root;
}

// Explore the levels of an open problem. STOPPED: what is left of them has been written down.
//
// All lanes go through this loop together: depth, j, base and every condition are the same in all of them, because they
// come from a ballot, from a shuffle, or from scratch memory that one lane wrote before a __syncwarp. A condition that
// lanes see differently would leave some of them out of the next collective, which then never ends.
__device__ inline i32 search_levels(Worker& w, const Problem& problem) {
    Scratch* s = w.s;
    i32 n_words = problem.n_words;
    i32 depth = 0;
    ROLLED while (depth >= 0) {
        bool stopped = false;
        // seldom: what waiting warps want lies in memory that all warps share, and the clock is dearer still
        if ((++w.tick & (POLL - 1)) == 0) {
            i32 wanted;
            bool ends = is_ending(&wanted) || ((w.tick & (FULL_POLL - 1)) == 0 && is_late(w));
            stopped = w.visits > 0 && ends;
            // hubs above this problem first: what lies below one of their children is most of what this warp has
            if (!stopped && wanted > 0 && !give_children(w, w.hub_depth, wanted)) give_some(w, problem, depth, wanted);
        }
        // a lane emits one node, so the 33rd has to wait for the first 32
        if (!PLAIN && w.n_pending == 32 && !emit_pending(w, problem)) stopped = true;
        if (stopped) {
            leave_levels(w, problem, depth);
            return STOPPED;
        }
        // j leaves the level's candidates here: the child is dead if a row contains it that is no candidate any more
        i32 j = next_candidate(cand_of(s, depth, n_words), n_words, s->level_end[depth]);
        if (j == NOBODY) {
            depth -= 1;
            continue;
        }
        w.tests += 1;
        w.visits += 1;
        u64 base = s->level_base[depth] & s->mask[j];
        if (MEASURED && params.min_base > 1 && members_of_base(w, base) < params.min_base) continue;
        bool more = false;
        if (!open_child(s, problem, depth, j, base, &more)) continue;
        if (PLAIN)
            w.count += 1;  // each lane counts the same nodes, and the leader's number is used
        else
            add_pending(w, problem, base, closed_of(s, depth + 1, n_words));
        if (!more || !is_promising(w, problem, depth + 1)) continue;
        if (__popcll(base) <= LATTICE && !params.limited) {
            i32 n = n_words <= NARROW         ? map_rows(w, problem, depth + 1, base)
                    : __popcll(base) <= 5 ? map_columns<5>(w, problem, depth + 1, base)
                                          : map_columns<LATTICE>(w, problem, depth + 1, base);
            if (solve_lattice(w, problem, base, n)) continue;
            // the output is full: sets that were not emitted are put down by themselves, the levels above them here
            leave_levels(w, problem, depth);
            return STOPPED;
        }
        depth += 1;  // its candidates and its closure are there already: open_child has written them
        if (lane_id() == 0) {
            s->level_base[depth] = base;
            s->level_end[depth] = problem.n_cand;
        }
        __syncwarp();
    }
    return DONE;
}

// Explore an open problem. STOPPED: what is left has been written down.
__device__ inline i32 search(Worker& w, const Problem& problem) {
    Scratch* s = w.s;
    ROLLED for (i32 word = lane_id(); word < problem.n_words; word += 32) {
        i32 n = problem.n_cand - word * 32;
        cand_of(s, 0, problem.n_words)[word] = n >= 32 ? ~0u : n <= 0 ? 0u : (1u << n) - 1u;
        closed_of(s, 0, problem.n_words)[word] = 0;
    }
    if (lane_id() == 0) {
        s->level_base[0] = low_bits(problem.n_bits);
        s->level_end[0] = problem.end;
    }
    __syncwarp();
    i32 ended = search_levels(w, problem);
    // nodes that wait were visited, so the levels that were written down do not have them any more
    return PLAIN || emit_pending(w, problem) ? ended : STOPPED;
}
