// Options and limits, and the records that host and device share, with the parameter block of a launch.
//
// L is the base side of a node, and R its closure on the root side. A hub is a node with more than BASE_CAP base
// vertices. Rows are root vertices restricted to the L of a problem. All device code is warp-level: 32 lanes work on
// one problem, every collective names all lanes, and nothing needs the block. "Leader" is lane 0.
#pragma once
#include "common/types.cuh"

// Guarded defaults, so that a kernel compiles alone; the launcher sets them (kernels/bitmatrix/memory.py).
#ifndef ROW_CAP
#define ROW_CAP 4096  // rows of a word problem; a power of two, at least 64
#endif
#ifndef LIST_CAP
#define LIST_CAP 32768  // base vertices on the stack of hubs
#endif
#ifndef BLOCK
#define BLOCK 128  // threads; any multiple of 32
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 4  // blocks per multiprocessor that registers must allow
#endif
#ifndef POLL
#define POLL 16  // visits between two looks at the queue; power of two
#endif
#define FULL_POLL (16 * POLL)  // visits between two looks at the clock
#ifndef GIVE_MIN
#define GIVE_MIN 256  // least work of a word problem that is given away: levels.cuh
#endif
#ifndef GIVE_SIEVE
#define GIVE_SIEVE (GIVE_MIN / 8)  // as GIVE_MIN: sieve_frames.cuh
#endif

#ifndef PLAIN
#define PLAIN 0  // 1: every maximal biclique counts, and only the count is wanted
#endif
#ifndef MEASURED
#define MEASURED (!PLAIN)  // false: every maximal biclique counts, and its size in members is not wanted
#endif
#ifndef SIEVING
#define SIEVING 0  // 1: with thresholds, which prune the search
#endif
#ifndef BOUNDED
#define BOUNDED 0  // 1: with a measure and a bound that it has to reach, which prune the search
#endif
#ifndef NEAR
#define NEAR 0  // 1: pairs may be missing, and behind the members of a biclique is how many
#endif
#ifndef MERGING
#define MERGING 0  // 1: twins inside nodes are merged: twins.cuh, children.cuh. SIEVING and MARKED are 0 then.
#endif
#ifndef MARKED
#define MARKED 0  // 1: only bicliques with a marked edge are wanted: marks.cuh. PLAIN is 0 then.
#endif
#ifndef SHARED_SLOTS
#define SHARED_SLOTS (SIEVING ? 512 : 1024)  // hash slots per warp in shared memory; a power of two, at least 128
#endif
#ifndef LEAST_SIFTED
#define LEAST_SIFTED 1024  // problems with fewer wedges have no filter in front of the hash table: wedges.cuh
#endif
#ifndef ROOTS_PER_WEDGE
#define ROOTS_PER_WEDGE 4  // nor have those of graphs with fewer roots per wedge, unless rows may have no room
#endif
#ifndef NARROW
#define NARROW 16  // problems with at most so many words per bit row are searched by rows, others by columns; 32 at most
#endif
#ifndef AHEAD
#define AHEAD 2  // wedges or rows that a lane loads before it works on them
#endif

#define WORD_CAP (ROW_CAP / 32)
#define HASH_CAP (2 * ROW_CAP)
#define BASE_CAP 64   // most base vertices of a word problem
#define N_BINS (2 * BASE_CAP)  // candidates by number of base vertices: rows.cuh
#define LATTICE 10    // nodes with at most so many base vertices are solved at once: lattice.cuh
#define HUB_DEPTH 32  // most hubs on the stack

// Item.kind says how an item describes its work
#define ROOT 0   // first-level subtree of `bound`, with at most BASE_CAP base vertices
#define HUB 1    // a hub: L, R, and candidates by range or list
#define PATH 2   // any node, by its path; it may turn out to be dead. With a range of ranks as candidates it is alive,
                 // and its whole closure is in the path
#define SPLIT 3  // children of a node of a sieve, whose bit rows have no room together: by the closure of the node, as a
                 // path, and its candidates. Each child is opened anew.

// How a warp's search ended
#define DONE 0
#define STOPPED 1

struct Item {
    i32 kind;
    i32 bound;       // ROOT, HUB by range: the root whose subtree this is; PATH with a copy: sieve_frames.cuh; else NOBODY
    i64 base_at;     // L (HUB) or path (PATH, SPLIT) in the pool; NOBODY: neighbours of `bound`
    i64 closure_at;  // in the pool: R (HUB below the first level), or a copy of the rows (PATH: level_copy.cuh)
    i64 cand_at;     // candidates in the pool; NOBODY: all ranks from `begin` on
    i32 n_base;
    i32 n_closure;
    i32 n_cand;
    i32 begin;       // children to explore: positions in the candidates, or ranks
    i32 end;
    i32 fresh;       // whether the node itself is to be emitted
};

struct LeafSlot {  // a slot of a hash table: leaves of a pivot tree of one kind
    u64 root;      // held roots << 32 | free roots; 0: free
    u64 base;      // the same of the base
    u64 count;
};

// All warps of a launch share this record. The host zeroes it. Fields that many warps poll have a cache line each.
struct Queue {
    u64 head;         // tickets drawn: ticket t takes item t
    u64 pad0[15];
    u64 tail;         // items given away so far, behind the n_items of the host
    u64 pad1[15];
    u64 open;         // items not finished; the launch ends at zero. The host sets it to n_items.
    u64 pad2[15];
    i32 stop;         // deadline, full buffer, or the host asked
    i32 overflow;     // not 0: the launch is void. 1: left_over, oversize or pool was too short; 2: the table of sizes
    u64 pad3[15];
    u64 pool;         // ints of the pool in use. The host sets the number that it uses itself.
    u64 left_over;    // items in `left_over`
    u64 oversize;     // items in `oversize`
    u64 values;       // ints of `values` in use
    u64 rows;         // entries of `records` in use
    u64 count;        // bicliques emitted
    u64 fingerprint;
    u64 busy;         // clock ticks inside items, all warps
    u64 longest;      // clock ticks of the longest-living warp
    u64 given;        // items given away
    u64 tests;        // nodes tested
    u64 rows_left;    // bicliques that the row limit still allows
    u64 bound;        // with a measure: what it has to be. The host sets it.
};

struct Params {
    const i64* root_indptr;
    const i32* root_indices;
    const i64* base_indptr;
    const i32* base_indices;
    const i32* root_weight;
    const i32* base_weight;
    const u64* root_hash;
    const u64* base_hash;
    const u32* hub_bits;  // bit rows of the ranks from first_hub on, hub_words each; NULL: none
    i64 first_hub;
    i64 hub_words;
    i64 n_roots;
    i64 n_base;
    const Item* items;
    i64 n_items;
    Item* given;          // items given away, behind those of the host
    i32* ready;           // one flag per entry of `given`
    i64 n_given;          // capacity
    i32* pool;
    i64 n_pool;
    i64 pool_limit;       // the launch stops when more is in use
    Item* left_over;
    i64 n_left_over;
    Item* oversize;
    i64 n_oversize;
    i32* values;
    i64 n_values;
    Record* records;
    i64 n_records;
    i64 record_chunk;     // entries of `records` that a warp takes at a time
    SizeSlot* sizes;      // NULL: sizes are not counted
    i64 n_sizes;          // a power of two
    Queue* queue;
    void* scratch;        // one Scratch per warp
    i64 n_warps;
    i64 prove;
    i64 list;
    i64 limited;          // whether there is a row limit
    i64 root_is_left;
    i64 min_base;
    i64 max_base;
    i64 min_root;
    i64 max_root;
    i64 deadline_ns;      // after the launch began; 0: none
    volatile i64* host_stop;  // host memory: the host sets it to stop the launch; may be NULL
    volatile i64* host_count; // host memory: the host reads the bicliques so far
    i64 measure;          // what the largest have most of: bound.cuh; 0: all bicliques are wanted
    u64* top;             // the largest measures that were emitted: bound.cuh
    i64 n_top;            // as many as are wanted; 0: bicliques that are emitted do not raise the bound
    i64 scratch_bytes;    // of a warp that searches for near-bicliques: near_types.cuh
    i64 near_pairs;       // how many pairs may be missing in all; -1: any number
    i64 near_root;        // in how many of them each root may be
    i64 near_base;
    const i64* marks_indptr;  // with marked edges: where those of each base vertex begin in `marks`
    const i32* marks;     // their root vertices, in ascending order
    i64 n_marked;         // only ranks below have a marked edge
    LeafSlot* leaves;     // of a count of p x q
    i64 n_leaves;         // a power of two
};
