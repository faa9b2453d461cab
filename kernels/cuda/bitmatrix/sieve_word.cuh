// From a sieve to a word problem: a node whose root side is large enough, and that has at most 64 base vertices.
// Warp-level.
//
// All that thresholds can do below such a node is R1 and R3. The rows come from the sieve, and no wedge is walked.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/bound.cuh"
#include "bitmatrix/children.cuh"
#include "bitmatrix/emit.cuh"
#include "bitmatrix/lattice.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/marks.cuh"
#include "bitmatrix/rows.cuh"
#include "bitmatrix/search.cuh"
#include "bitmatrix/sieve_rows.cuh"
#include "bitmatrix/sieve_types.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Enter the rows of the node `f`, whose base vertices are the few of `whole`, into the maps (lattice.cuh). If sets will be
// emitted, candidates also go to the raw rows. Returns the number of these.
__device__ inline i32 map_frame(Worker& w, const SieveFrame& f, u64 whole) {
    Scratch* s = w.s;
    const Sieve& v = sieve_of(w);
    i32 n = 0, place[LATTICE];
    const i32* found = find_places(whole);
#pragma unroll
    for (i32 t = 0; t < LATTICE; t++) place[t] = found[t];
    clear_maps();
    ROLLED for (i32 chunk = 0; chunk < f.n_rows; chunk += 32) {
        i32 i = chunk + lane_id();
        u64 mask = i < f.n_rows ? v.bits[f.rows + i] & whole : 0;
        u32 set = 0;
#pragma unroll
        for (i32 t = 0; t < LATTICE; t++) set |= (u32)((mask >> place[t]) & 1) << t;
        bool candidate = set != 0 && i >= f.next;
        if (set != 0) enter_set(candidate ? CANDIDATES : EXCLUDED, set);
        if (PLAIN) continue;
        u32 kept = warp_ballot(candidate);
        if (candidate) {
            s->raw_row[n + __popc(kept & lanes_below())] = v.row[f.list0 + i];
            s->raw_mask[n + __popc(kept & lanes_below())] = set;
        }
        n += __popc(kept);
    }
    return n;
}

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
    if (MARKED) {
        __syncwarp();
        note_marks(w, &problem, v.row + f.list0 + f.next, problem.n_cand);
        if (problem.live == 0) return DONE;
    }
    if (__popcll(problem.whole) <= LATTICE && !params.limited && problem.end == problem.n_cand) {
        __syncwarp();
        if (!PLAIN) sum_closure(w, problem);
        return solve_lattice(w, problem, problem.whole, __popcll(problem.whole), 0, map_frame(w, f, problem.whole)) ? DONE : STOPPED;
    }
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
    return search(w, problem);
}
