// Opens a word problem, in the steps of wedges.cuh and rows.cuh. Warp-level.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/lattice.cuh"
#include "bitmatrix/rows.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/wedges.cuh"
#include "bitmatrix/worker.cuh"

// Results of open_problem
#define OPEN 0
#define DEAD 1          // L belongs to an earlier node
#define OVERSIZE 2      // more rows than ROW_CAP
#define LATTICE_OPEN 3  // few base vertices: the maps of lattice.cuh are made, and no rows are sorted

// Open the problem with base vertices s->base[0..n_bits). An OPEN problem may have no candidates.
__device__ inline i32 open_problem(Worker& w, i32 n_bits, const Kin& kin, Problem* problem) {
    problem->n_bits = n_bits;
    problem->n_rows = problem->n_cand = problem->n_words = 0;
    u64 full = low_bits(n_bits);
    Wedges flat = flatten(w, n_bits);
    i32 entered = (kin.bound == NOBODY ? kin.n_cand : 0) + kin.n_closure;
    if (entered + 64 > ROW_CAP) return OVERSIZE;
    // Use the hash table in shared memory if it stays at most three quarters full.
    bool shared = n_bits <= 32 && 4 * (flat.total + entered) <= 3 * SHARED_SLOTS;
    // A lattice has all rows in its maps. There, rows with one base vertex cost nothing.
    u64 covered = n_bits <= LATTICE ? 0 : covered_early(w, n_bits, kin), sifted = flat.total < LEAST_SIFTED ? 0 : covered;
    i32* known = &problem->n_known;
    i32 n_raw = shared ? walk<true>(w, n_bits, flat, entered, kin, 0, known) : walk<false>(w, n_bits, flat, entered, kin, sifted, known);
    if (n_raw < 0) return OVERSIZE;
    if (shared)
        lay_out<true>(w.s, n_raw);
    else
        lay_out<false>(w.s, n_raw);
    if (n_bits <= LATTICE && !params.limited) return map_raw_rows(w, n_raw, full, kin, problem) ? LATTICE_OPEN : DEAD;
    problem->all = true;
    problem->covered = covered;
    if (!sort_out(w, n_raw, full, kin, problem)) return DEAD;
    u64 joined = place_candidates(w, n_raw, full, kin, problem);
    if (problem->n_cand == 0) return OPEN;
    if (!place_excluded(w, n_raw, full, joined, kin, problem)) return OVERSIZE;
    if (problem->n_words > NARROW) place_columns(w, *problem);
    return OPEN;
}
