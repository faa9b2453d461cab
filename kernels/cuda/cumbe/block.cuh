// The data of a block in shared memory, and functions by which its threads work together.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "cumbe/types.cuh"

// The open subtree. Its vertices have numbers (ids) of their own. Root id 0 stands for every root vertex of the
// closure, and is in none of the sets.
struct Subgraph {
    i32* base;        // base vertex of a base id
    i32* base_at;     // lookup table: position of a base id in `bases`
    i32* bases;       // compact array of L
    Span* row;        // root ids around a base id, in row_ids
    i32* row_ids;
    i32* chosen;      // L' of the child at hand
    i32* base_movers;
    i32* vertex;      // rank of a root id; ~rank if it is not to be explored at the first level
    Place* place;     // lookup tables of P and Q
    i32* cands;       // compact array of P
    i32* excluded;    // compact array of Q
    i32* closure;     // compact array of R, as ranks
    i32* common;      // |N(v) & L'| of a root id while a child is scanned, else 0
    Span* column;     // base ids around a root id, in column_ids
    i32* column_ids;
    i32* touched;     // root ids with common > 0; later those that have to move
    i32* next;        // P' from the front, Q' from the back
    i32 n_base;
    i32 n_roots;      // root ids, 0 among them
    i32 n_excluded;   // entries of `excluded` in use, over all levels
    i32 has_rest;     // some candidates of the first level are not to be explored
    Span shared;      // free part of the block's shared memory
    i64 used;         // ints of the arena in use
};

// The counters of one visit. Two of them take turns, so that one can be cleared while the other is read.
struct Counters {
    u64 best;       // selection: |N(v) & L| and position of the best candidate
    u64 next_best;  // the same of P', with the id
    i32 n_chosen;
    i32 n_touched;
    i32 n_next;     // P'
    i32 n_back;     // Q'
    i32 n_joined;   // R' - R
    i32 dead;
    i32 n_movers[3];
    i32 n_holes[3];
    i64 small_members;  // of L', for the threshold
    i64 reach;          // members of P'
    i64 base_members;
    i64 root_members;
    u64 base_hash;
    u64 root_hash;
};

// The subtree to open.
struct Source {
    i32 kind;
    i32 root;         // candidates are the ranks above it; NOBODY: they are listed
    i32 self;         // STOLEN: the candidate that makes the child
    i32 victim;       // STOLEN: the block whose shelf it is from
    const i32* base;  // STOLEN: L of the parent
    const i32* path;
    const i32* cand;
    i32 n_base;
    i32 n_path;
    i32 n_cand;
    i32 n_todo;
    i32 fresh;
    i32 level;
};

#define NOTHING 0
#define WHOLE 1   // first-level subtree
#define LISTED 2  // a node by its path
#define STOLEN 3  // a child from a shelf

// The counters of opening a subtree.
struct Tally {
    i32 n_base;
    i32 n_wedges;
    i32 n_roots;
    i32 n_ids;
    i32 n_columns;
    i32 n_cand;
    i32 n_todo;
    i32 n_excluded;
    i32 n_closure;
    i32 dead;
    u64 shortest;
};

struct Shared {
    Subgraph graph;
    Level hot[HOT_LEVELS];
    Counters counters[2];
    Source source;
    Tally tally;
    u64 ticks[N_PHASES];
    i64 out_at;      // where the leader reserved room
    i32 verdict;
    i32 look;        // answer of the last look at the queue
    i32 victim;
    i32 filled[2];   // entries written to a list
    i64 space[SHARED_INTS / 2 + 1];  // at least one, because an empty array is an error
};

struct Block {
    const CumbeParams* p;
    CumbeQueue* q;
    Shared* s;
    i32* arena;
    Level* cold;  // levels from HOT_LEVELS on
    // only the leader uses the rest, except where a comment says otherwise
    u64 count, fingerprint, tests;
    i64 value_at, value_end, record_at, record_end;
    u64 deadline;
    i64 lap_began;
    u32 tick;     // visits; the same in every thread
    u32 turn;     // which counters; the same in every thread
    i32 visits;   // since the subtree was opened; the same in every thread
};

__device__ __forceinline__ bool is_leader() { return threadIdx.x == 0; }
__device__ __forceinline__ i32 warp_id() { return threadIdx.x >> 5; }
__device__ __forceinline__ i32 group_id() { return lane_id() / LANES; }
__device__ __forceinline__ i32 group_lane() { return lane_id() % LANES; }
__device__ __forceinline__ u32 group_mask() {
    return (LANES == 32 ? ALL_LANES : ((1u << (LANES & 31)) - 1u)) << (group_id() * LANES);
}

// Where the parts of a block's arena begin, in ints, as counted by kernels/cumbe/memory.py: the hash table,
// the lists of its shelf, bins to sort them, cold levels; the rest is for the arrays of a subtree.
__device__ __forceinline__ i64 even(i64 n) { return (n + 1) & ~1ll; }
__device__ __forceinline__ i64 shelf_base_at(const CumbeParams* p) { return 2 * p->table; }
__device__ __forceinline__ i64 shelf_cand_at(const CumbeParams* p) { return shelf_base_at(p) + even(p->most_base); }
__device__ __forceinline__ i64 shelf_path_at(const CumbeParams* p) { return shelf_cand_at(p) + even(p->most_roots); }
__device__ __forceinline__ i64 bins_at(const CumbeParams* p) { return shelf_path_at(p) + even(p->most_roots); }
__device__ __forceinline__ i64 levels_at(const CumbeParams* p) { return bins_at(p) + even(p->most_base + 2); }
__device__ __forceinline__ i64 ground_at(const CumbeParams* p) {
    return levels_at(p) + (p->most_base + 2) * (i64)(sizeof(Level) / sizeof(i32));
}

__device__ __forceinline__ Level* level_of(const Block& b, i32 depth) {
    return depth < HOT_LEVELS ? &b.s->hot[depth] : &b.cold[depth - HOT_LEVELS];
}

// The next free entries of a list, one for every lane with `mine`, by one atomic per warp. Warp.
__device__ __forceinline__ i32 claim(i32* counter, bool mine) {
    // Lane 0 draws for the whole warp, and the ballot gives each lane its place behind the lower lanes with `mine`.
    u32 all = warp_ballot(mine);
    i32 first = 0;
    if (lane_id() == 0 && all) first = atomicAdd(counter, __popc(all));
    return from(first, 0) + __popc(all & lanes_below());
}

// As `claim`, with `n` entries per lane. Warp.
__device__ __forceinline__ i32 claim_many(i32* counter, i32 n) {
    // Lane 31 draws, because it alone knows the sum over the warp without another collective.
    i32 before = sum_below(n), first = 0;
    if (lane_id() == 31) first = atomicAdd(counter, before + n);
    return from(first, 31) + before;
}

// Add a sum over the warp to a counter. Warp.
template <class T>
__device__ __forceinline__ void gather_sum(T* counter, T x) {
    x = warp_sum(x);
    if (lane_id() == 0 && x != 0) atomicAdd((u64*)counter, (u64)x);
}

// Charge the time since the last lap to a phase.
__device__ __forceinline__ void lap(Block& b, i32 phase) {
    if ((TIMED || phase >= FETCHING) && is_leader()) {
        i64 now = clock64();
        b.s->ticks[phase] += (u64)(now - b.lap_began);
        b.lap_began = now;
    }
}

// Read a value that other blocks change. Thread.
template <class T>
__device__ __forceinline__ T now(const T* x) {
    return *(const volatile T*)x;
}

__device__ inline void clear(Counters* c) {
    c->best = c->next_best = ~0ull;
    c->n_chosen = c->n_touched = c->n_next = c->n_back = c->n_joined = c->dead = 0;
    for (i32 i = 0; i < 3; i++) c->n_movers[i] = c->n_holes[i] = 0;
    c->small_members = c->reach = c->base_members = c->root_members = 0;
    c->base_hash = c->root_hash = 0;
}

// Whether root vertex v and base vertex u are adjacent, by a search of the shorter list. Thread.
__device__ inline bool are_adjacent(const CumbeParams* p, i32 v, i32 u) {
    i64 at = p->root_indptr[v], other_at = p->base_indptr[u];
    i32 n = (i32)(p->root_indptr[v + 1] - at), n_other = (i32)(p->base_indptr[u + 1] - other_at);
    const i32* list = n < n_other ? p->root_indices + at : p->base_indices + other_at;
    i32 length = n < n_other ? n : n_other, wanted = n < n_other ? u : v;
    i32 i = lower_bound(list, length, wanted);
    return i < length && list[i] == wanted;
}
