// From a sieve to a word problem: a node whose root side is large enough, and that has at most 64 base vertices.
// Warp-level.
//
// All that thresholds can do below such a node is R1 and R3. The rows come from the sieve, and no wedge is walked.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/bound.cuh"
#include "bitmatrix/emit.cuh"
#include "bitmatrix/lattice.cuh"
#include "bitmatrix/levels.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/rows.cuh"
#include "bitmatrix/search.cuh"
#include "bitmatrix/sieve_rows.cuh"
#include "bitmatrix/sieve_types.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Explore the node `f`, which is no frame of the stack. Its rows have one word. The node itself was emitted. STOPPED:
// the rest of it is written down.
__device__ __noinline__ i32 search_word(Worker& w, const SieveFrame& f) {
    Scratch* s = w.s;
    Sieve& v = sieve_of(w);
    Problem problem;
    problem.n_bits = f.n_base;
    problem.n_cand = f.n_rows - f.next;
    problem.n_full = f.n_closed;
    problem.end = f.end - f.next;
    problem.all = true;  // of a node that is solved as a lattice, all candidates are explored here
    problem.whole = word_of(v, f.at, 1, 0);
    problem.unit = v.planes == 1 && least_base() > 1;
    i32 a = least_base();
    i64 most = (1ll << v.planes) - 1;  // no vertex weighs more than all planes together
    problem.least = (i32)((a + most - 1) / most);
    write_list(s->list + f.base0, f.n_base, s->base);
    u64 joined = 0;
    ROLLED for (i32 i = f.next + lane_id(); i < f.n_rows; i += 32) {
        u64 mask = v.bits[f.rows + i];
        s->mask[i - f.next] = mask;
        s->row[i - f.next] = v.row[f.list0 + i];
        joined |= mask;
    }
    joined = reduce_or(joined);
    // Excluded rows, without base vertices that no candidate has. Only those stay that can contain a node below.
    i32 n = problem.n_cand;
    ROLLED for (i32 chunk = 0; chunk < f.next; chunk += 32) {
        u64 mask = chunk + lane_id() < f.next ? v.bits[f.rows + chunk + lane_id()] & joined : 0;
        bool kept = mask != 0 && __popcll(mask) >= problem.least;
        u32 keepers = warp_ballot(kept);
        if (kept) s->mask[n + __popc(keepers & lanes_below())] = mask;
        n += __popc(keepers);
    }
    __syncwarp();
    problem.n_rows = n;
    problem.n_words = (n + 31) / 32;
    if (problem.n_words > NARROW) place_columns(w, problem);
    if (!PLAIN) sum_closure(w, problem);
    if (__popcll(problem.whole) > LATTICE || params.limited || problem.end < problem.n_cand) return search(w, problem);
    open_level(w, problem);
    ROLLED for (i32 word = lane_id(); word < problem.n_words; word += 32) s->excluded[word] = ~cand_of(s, 0, problem.n_words)[word];
    __syncwarp();
    n = map_level(w, problem, 0, problem.whole);
    return solve_lattice(w, problem, problem.whole, n) ? DONE : STOPPED;
}
