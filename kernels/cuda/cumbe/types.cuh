// cuMBE: types, options, and the parameter block that host and device share (kernels/cumbe/memory.py).
//
// Letters are those of the paper: L is the base side of a node, R its closure on the root side, P its candidates, and Q
// the root vertices that may not join it any more. All threads of a block call a function together, unless its comment
// says "Warp", "Thread" or "Leader". The leader is thread 0 of the block.
#pragma once
#include "common/types.cuh"

// Options, set by the launcher (kernels/cumbe/memory.py); with these defaults the file compiles alone.
#ifndef BLOCK
#define BLOCK 128  // threads; a multiple of 32
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 8  // blocks per multiprocessor that registers must allow
#endif
#ifndef POLL
#define POLL 8  // visits between two looks at the queue
#endif
#ifndef LANES
#define LANES 32  // lanes that share a vertex: 1, 2, 4, 8, 16 or 32
#endif
#ifndef REVERSE_SCAN
#define REVERSE_SCAN 1  // 0: noRS, intersect every vertex of P and Q with L'
#endif
#ifndef EARLY_STOP
#define EARLY_STOP 1  // 0: noES, count |N(v) & L| of every candidate to the end
#endif
#ifndef STEAL_LEVELS
#define STEAL_LEVELS 3  // k: subtrees down to this level may be stolen; 1: noWS, none are
#endif
#ifndef TIMED
#define TIMED 1  // measure the time of each phase
#endif
#ifndef SHARED_INTS
#define SHARED_INTS 2048  // ints of shared memory for the arrays of a subtree
#endif
#ifndef HOT_LEVELS
#define HOT_LEVELS 16  // level pointers kept in shared memory
#endif

#define N_WARPS (BLOCK / 32)
#define GROUPS (32 / LANES)  // vertices a warp works on at a time

// Positions are smaller than both. MARK is a bit that is set beside a position.
#define MARK (1 << 30)
#define NOWHERE (MARK - 1)

// Phases that time is spent in (CumbeQueue.ticks), with the names of the paper.
#define SELECTION 0
#define L_CONSTRUCTION 1
#define CHECKING 2
#define EXPANSION 3
#define FETCHING 4
#define STEALING 5
#define IDLING 6
#define N_PHASES 7

struct CumbeItem {  // a piece of work; lists lie in the pool
    i32 root;       // the whole first-level subtree of this rank; NOBODY: a node by its path
    i32 fresh;      // whether the node itself is to be emitted
    i64 path_at;
    i64 cand_at;    // the first n_todo candidates are to be explored
    i32 n_path;
    i32 n_cand;
    i32 n_todo;
    i32 unused;
};

// All blocks of a launch share this record. The host zeroes it.
struct CumbeQueue {
    u64 head;       // host items drawn
    u64 open;       // host items and published children not finished; the launch ends at zero. The host sets n_items.
    u64 pool;       // ints of the pool in use. The host sets the number that it uses itself.
    u64 left_over;  // entries of Params.left_over
    u64 values;     // ints of `values` in use
    u64 rows;       // entries of `records` in use
    i32 stop;       // deadline, full buffer, row limit
    i32 overflow;   // the launch is void if not 0. 1: left_over or the pool was too short; 2: the table of sizes
    i32 hungry;     // blocks without work
    i32 offered;    // children on all shelves
    i32 unused;
    i32 full;       // `values` or `records` was too short
    u64 count;      // bicliques emitted
    u64 fingerprint;
    u64 tests;      // nodes tested
    u64 published;  // children put on shelves
    u64 stolen;     // published children that another block took
    u64 rows_left;  // bicliques that the row limit still allows
    u64 longest;    // clock ticks of the longest-living block
    u64 ticks[N_PHASES];  // summed over blocks
};

// The children of a node that a block offers to all blocks. The candidates of child i are those before i.
struct Shelf {
    i32 n_base;
    i32 n_path;
    i32 n_rest;  // leading candidates that are no children
    i32 level;   // of the children
};

struct CumbeParams {
    const i64* root_indptr;
    const i32* root_indices;
    const i64* base_indptr;
    const i32* base_indices;
    const i32* root_weight;
    const i32* base_weight;
    const u64* root_hash;
    const u64* base_hash;
    const CumbeItem* items;
    i64 n_items;
    i32* pool;
    i64 n_pool;
    CumbeItem* left_over;
    i64 n_left_over;
    i32* values;
    i64 n_values;
    Record* records;
    i64 n_records;
    SizeSlot* sizes;  // NULL: sizes are not counted
    i64 n_sizes;      // a power of two
    CumbeQueue* queue;
    i32* arena;       // arena_ints per block
    i64 arena_ints;
    i64 most_base;     // most neighbours of a root
    i64 most_roots;    // most root vertices around a root
    i64 most_wedges;   // most edges around a root
    i64 table;        // slots of the hash table: a power of two, at least 2 most_roots
    Shelf* shelves;   // one per block
    i32* available;   // children left on each shelf
    i32* readers;     // blocks that read each shelf
    i64 plain;        // every maximal biclique counts, and only the count is wanted
    i64 prove;
    i64 list;
    i64 limited;      // whether there is a row limit
    i64 root_is_left;
    i64 min_base;
    i64 max_base;
    i64 min_root;
    i64 max_root;
    i64 deadline_ns;  // after the launch began; 0: none
};

// A node on the stack, by the lengths of its sets in the compact arrays.
struct Level {
    i32 n_base;     // L
    i32 n_cand;     // P
    i32 cand_end;   // candidates that were explored lie from n_cand to here, the last one first
    i32 n_excluded; // Q
    i32 n_closure;  // R
    i32 todo;       // candidates still to be explored here
    i32 least;      // smallest |N(v) & L| of a candidate, at the last selection
    i32 cursor;     // where the next selection begins
    i32 chosen;     // candidate being explored, or known to be the next
    i32 known;      // whether it is the next
    i64 root_members;  // sums over R
    u64 root_hash;
};

struct Span {
    i32 begin;
    i32 end;
};

// Positions of a root vertex in the compact arrays of P and Q.
struct Place {
    i32 cand;
    i32 excluded;
};
