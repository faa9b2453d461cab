// The memory that one warp owns: its scratch memory, its counters, its chunks of the output.
#pragma once
#include "common/types.cuh"
#include "bitmatrix/types.cuh"

// The parameters of the launch. They are in constant memory, so that reading a field takes no register for an address.
__constant__ Params params;

struct HubFrame {  // a hub; its lists are in Scratch.list or in the pool, or are neighbours in the graph
    const i32* base;
    const i32* closure;
    const i32* cand;  // NULL: candidates are ranks
    u32* window;      // candidate_window.cuh; NULL: all ranks of the range are visited
    i32 n_base;
    i32 n_closure;
    i32 n_cand;
    i32 next;  // next candidate: a position or a rank
    i32 end;
    i32 bound;     // root of a range, else NOBODY
    i32 list_end;  // ints of Scratch.list in use up to here
    i32 window_begin;
};

// Sums over the vertices of a side, which emitting needs.
struct SideSums {
    i64 members;
    u64 hash;
};

struct Scratch {
    // word problem: rows in order, candidates first
    u64 mask[ROW_CAP];           // base vertices of each row
    i32 row[ROW_CAP];            // root vertex of each row
    // rows in the order in which they were met; in a lattice, rows that may join closures
    u64 raw_mask[ROW_CAP];
    i32 raw_row[ROW_CAP];
    u32 column[BASE_CAP * WORD_CAP];  // of a wide problem: the rows of each base vertex, as a bit row of n_words
    i32 full[ROW_CAP];           // the problem's closure
    i32 base[BASE_CAP];          // of a class of twins one of them
    // its depth-first stack: per level n_words words
    u32 cand[BASE_CAP * WORD_CAP];
    u32 closed[BASE_CAP * WORD_CAP];
    u32 excluded[WORD_CAP];      // of the child opened last
    u64 level_base[BASE_CAP];
    i32 level_end[BASE_CAP];     // candidates from here on belong to other warps
    // visited nodes that are not emitted yet: pending.cuh
    u64 pending_base[32];
    u32 pending_closed[32 * WORD_CAP];
    u32 pending_any[WORD_CAP];   // all of these together
    // opening: hash table of the root vertices that were met, each with its base vertices
    union {
        struct {
            i32 key[HASH_CAP];
            u32 lo[HASH_CAP];
        };
        SideSums bit[BASE_CAP];  // of an open problem: what each of its bits adds to the sums of a biclique
    };
    u32 hi[HASH_CAP];
    i32 slot[ROW_CAP];           // slots in the order in which they were taken
    i32 bin[N_BINS];             // candidates by size; of an open problem: where the members of each class end
    // hubs
    HubFrame frame[HUB_DEPTH];
    i32 list[LIST_CAP];
};

#ifdef SCRATCH_BYTES
static_assert(sizeof(Scratch) == SCRATCH_BYTES, "kernels/bitmatrix/memory.py has other fields");
#endif

// The bit rows of a level of a word problem: levels.cuh.
__device__ __forceinline__ u32* cand_of(Scratch* s, i32 depth, i32 n_words) { return s->cand + depth * n_words; }
__device__ __forceinline__ const u32* cand_of(const Scratch* s, i32 depth, i32 n_words) { return s->cand + depth * n_words; }
__device__ __forceinline__ u32* closed_of(Scratch* s, i32 depth, i32 n_words) { return s->closed + depth * n_words; }
__device__ __forceinline__ const u32* closed_of(const Scratch* s, i32 depth, i32 n_words) { return s->closed + depth * n_words; }

// Which rows of a word problem are candidates, and where its node is in the search tree.
struct Kin {
    i32 bound;           // candidates are the ranks above `bound`; NOBODY: they are listed
    i32 self;            // the child's own vertex, a member of its closure
    const i32* cand;     // listed candidates, in order
    i32 n_cand;
    i32 begin;           // children to explore (listed): [begin, end); earlier ones are excluded
    i32 end;
    const i32* closure;  // closure of the parent
    i32 n_closure;
    const i32* copy;     // a copy of the node's rows, whose candidates are the listed ones: level_copy.cuh; NULL: none
    i32 n_twins;         // with bits that are classes of twins: how many base vertices there are; otherwise 0. twins.cuh
    const i32* twins;    // these base vertices
    const i32* number;   // and the class of each
    u64 several;         // classes with more than one of them
};

// Shared memory of a warp.
struct WarpShared {
    Kin kin;         // of the problem that is opened, in one copy for all lanes
    SideSums full;   // sums over the problem's closure; not used where only the count is wanted
    u32 map[3][32];  // lattice.cuh
    union {
        struct {
            i32 key[SHARED_SLOTS];
            u32 lo[SHARED_SLOTS];
        };
        u32 words[2 * SHARED_SLOTS];  // sieve_table.cuh
    };
};

#ifdef EMULATED
static WarpShared all_shared[64];
__device__ __forceinline__ WarpShared& warp_shared() { return all_shared[(blockIdx.x * blockDim.x + threadIdx.x) >> 5]; }
#else
__shared__ WarpShared all_shared[BLOCK / 32];
__device__ __forceinline__ WarpShared& warp_shared() { return all_shared[threadIdx.x >> 5]; }
#endif

struct Worker {
    Scratch* s;
    u64 count;
    u64 found;                  // this lane's own part of the count, which adds to `count`
    u64 fingerprint;
    u64 tests;
    i64 value_at, value_end;    // this warp's chunk of Params.values
    i64 record_at, record_end;  // this warp's chunk of Params.records
    u64 deadline;               // globaltimer, ns; 0: none
    i32 tick;
    i32 n_pending;  // visited nodes that wait to be emitted
    i32 visits;     // children visited since the item was taken; a slice stops only after the first, to make progress
    i32 hub_depth;  // deepest frame in use, NOBODY: none
    i64 bound;      // with a measure: what it has to be, as far as this warp knows
};

// A word problem that is open: its values that fit into registers.
struct Problem {
    i32 n_bits;   // base vertices
    i32 n_rows;
    i32 n_cand;   // rows [0, n_cand) are candidates
    i32 n_words;  // words per bit row
    i32 n_full;   // root vertices in the closure
    i32 n_known;  // raw rows that were entered before the walk: see wedges.cuh
    i32 end;      // candidates from here on belong to other items
    bool all;     // of a lattice: whether all candidates are to be explored
    u64 covered;  // while it is opened: base vertices that an excluded row has
    u64 whole;    // the base vertices of its first level; these are all of its bits if its rows were found by a walk
    // where hubs are merged, and bicliques listed
    const i32* member;  // base vertices of class after class; Scratch.base: each bit is one base vertex
    // with thresholds only
    i32 least;    // fewest base vertices that a result can have
    bool unit;    // whether every base vertex stands for itself only
    // with marked edges only
    u64 marked;   // base vertices with one to the closure
    u64 live;     // and with one to a candidate, too
};
