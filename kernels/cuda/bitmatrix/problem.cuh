// Opens a word problem, in the steps of wedges.cuh and rows.cuh. Warp-level.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/lattice.cuh"
#include "bitmatrix/rows.cuh"
#include "bitmatrix/twins.cuh"
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
    u64 full = problem->whole = low_bits(n_bits);
    Wedges flat = flatten(w, n_bits);
    i32 entered = (kin.bound == NOBODY ? kin.n_cand : 0) + kin.n_closure;
    if (entered + 64 > ROW_CAP) return OVERSIZE;
    // Where there are many wedges, most of them may lead to rows that tell nothing. If there are few roots, many of them
    // share more than one base vertex with L, and a filter helps little, but that more problems have room.
    bool wide = n_bits > 32, sparse = flat.total >= LEAST_SIFTED && ROOTS_PER_WEDGE * (i64)flat.total <= params.n_roots;
    bool crowded = entered + 64 + (flat.total < params.n_roots ? flat.total : params.n_roots) > ROW_CAP;
    // What covers a part of a class does not cover the class.
    bool merged = MERGING && kin.n_twins != 0;
    bool sifting = n_bits > 1 && !merged && (sparse || crowded);
    u64 sifted = sifting ? covered_early(w, n_bits) : 0;
    i32 most = (sifted != 0 ? sift(n_bits, flat, sifted) : flat.total) + entered;
    bool shared = fits_shared(most, sifted != 0, wide);
    Table table = table_for(most, shared ? SHARED_SLOTS : HASH_CAP, wide);
    i32* known = &problem->n_known;
    i32 n_raw = shared ? walk<true>(w, n_bits, flat, table, kin, sifted, known) : walk<false>(w, n_bits, flat, table, kin, sifted, known);
    if (n_raw < 0) return OVERSIZE;
    if (shared)
        lay_out<true>(w.s, table, n_raw);
    else
        lay_out<false>(w.s, table, n_raw);
    if (merged) drop_parts(w, n_raw, *known);
    problem->covered = sifted;
    if (n_bits <= LATTICE && !params.limited) return map_raw_rows(w, n_raw, full, kin, problem) ? LATTICE_OPEN : DEAD;
    problem->all = true;
    if (!sort_out(w, n_raw, full, kin, problem)) return DEAD;
    u64 joined = place_candidates(w, n_raw, full, kin, problem);
    if (problem->n_cand == 0) return OPEN;
    if (!place_excluded(w, n_raw, full, joined, kin, problem)) return OVERSIZE;
    if (problem->n_words > NARROW) place_columns(w, *problem);
    return OPEN;
}

// Note what each bit of a new problem adds to the sums of a biclique, and the members of classes where they are listed.
__device__ inline void note_bits(const Worker& w, const Kin& kin, Problem* problem) {
    Scratch* s = w.s;
    i32 n = kin.n_twins;
    problem->member = s->base;
    ROLLED for (i32 b = lane_id(); b < problem->n_bits; b += 32) {
        i32 u = s->base[b];
        s->bit[b] = {0, 0};
        if (n == 0) s->bit[b] = {MEASURED ? params.base_weight[u] : 0, params.base_hash[u]};
    }
    if (n != 0 && params.list) {
        ROLLED for (i32 b = lane_id(); b < N_BINS; b += 32) s->bin[b] = 0;
    }
    __syncwarp();
    ROLLED for (i32 i = lane_id(); i < n; i += 32) {
        i32 u = kin.twins[i], k = kin.number[i];
        if (MEASURED) atomicAdd((u64*)&s->bit[k].members, (u64)params.base_weight[u]);
        atomicAdd(&s->bit[k].hash, params.base_hash[u]);
        if (params.list) atomicAdd(&s->bin[k], 1);
    }
    __syncwarp();
    if (n == 0 || !params.list) return;
    i32* member = s->list + (kin.number - s->list) + n;
    i32 ignored;
    place_bins(s, &ignored);
    ROLLED for (i32 i = lane_id(); i < n; i += 32) member[atomicAdd(&s->bin[kin.number[i]], 1)] = kin.twins[i];
    __syncwarp();
    problem->member = member;
}
