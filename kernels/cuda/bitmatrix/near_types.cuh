// What a warp owns in a search for near-bicliques: a stack of nodes whose vertices have bit rows in both directions.
//
// kernels/reference/near.py has the tree and its proof. Side 0 is the root side, and side 1 the base side. A *problem* has
// vertices of both sides. Its *inner* vertices are in S or were candidates when it was made. They have a bit, and all have
// a row with the bits of the other side. The rows of vertices that only exclude come behind those of inner ones. A node
// whose vertices have become few gets a problem of its own, so that its rows are short.
#pragma once
#include "common/types.cuh"
#include "bitmatrix/worker.cuh"

#define NEAR_DEPTH 128  // frames of a stack

// Sets of inner vertices that a node has, for both sides one behind the other
#define CHOSEN 0     // S
#define ADDABLE 1    // C: candidates
#define SATURATED 2  // of S, in a k-biplex: may miss no more
#define FREE 2       // in a k-defective biclique: S, and those of C that miss nothing of S; a few more while it is reduced
#define JOINED 3     // of C: miss nothing of S and C. Nobody needs them once they are in S.
#define NEAR_SETS 4

struct NearSide {
    i32 words;     // of a set of its inner vertices
    i32 all;       // how many rows
    i32 names;     // where its vertices are in `bits`
    i32 rows;      // word w of row r is bits[rows + w * all + r]
    i32 excluded;  // where the rows are listed that exclude something in the node
    i32 n_excluded;
};

struct NearFrame {
    NearSide side[2];
    i32 sets;     // set k of side 0 is bits[sets + k * (words of both sides)], and that of side 1 is behind it
    i32 total;    // missing pairs among S
    i32 branch;   // its children: row r of side 0, or ~r of side 1
    i32 next;     // those before it are explored, and exclude
    i32 end;      // those from here on belong to other items
    i32 top;      // words of `bits` in use up to here
    i32 copy_at;  // a copy of the frame in the pool, NOBODY: none
    i32 n_copy;
    i32 copied;   // the first child that the copy has
};

struct Near {  // the memory of a warp
    NearFrame* frame;
    i32* vertices;  // an entry per vertex of the graph, three times: see `marks_of`, `met_of` and `inner_of`
    u32* bits;      // problems, sets and lists, one behind the other
    i32 room;       // words of `bits`
};

__device__ inline Near near_of(i64 warp) {
    char* at = (char*)params.scratch + warp * params.scratch_bytes;
    i64 n_vertices = params.n_roots + params.n_base, heads = NEAR_DEPTH * (i64)sizeof(NearFrame);
    Near n;
    n.frame = (NearFrame*)at;
    n.vertices = (i32*)(at + heads);
    n.bits = (u32*)(n.vertices + 3 * n_vertices);
    n.room = (i32)((params.scratch_bytes - heads) / 4 - 3 * n_vertices);
    return n;
}

__device__ __forceinline__ i64 part_of_side(i32 which, i32 side) {
    return which * (params.n_roots + params.n_base) + (side ? params.n_roots : 0);
}

// What a vertex is while a problem is opened. All are 0 between two problems.
__device__ __forceinline__ u32* marks_of(const Near& n, i32 side) { return (u32*)n.vertices + part_of_side(0, side); }
// Vertices that were met around those of the problem.
__device__ __forceinline__ i32* met_of(const Near& n, i32 side) { return n.vertices + part_of_side(1, side); }
// Vertices of the problem, S first.
__device__ __forceinline__ i32* inner_of(const Near& n, i32 side) { return n.vertices + part_of_side(2, side); }

// Where a set of a side begins.
__device__ __forceinline__ i32 set_at(const NearFrame* f, i32 which, i32 side) {
    return f->sets + which * (f->side[0].words + f->side[1].words) + (side ? f->side[0].words : 0);
}

// Fewest members of a side.
__device__ __forceinline__ i32 least_of(i32 side) { return (i32)(side ? params.min_base : params.min_root); }

// How many more of the other side a vertex may miss, when so many pairs of S are missing.
__device__ __forceinline__ i32 slack_of(i32 side, i32 total) {
    if (params.near_pairs >= 0) return (i32)params.near_pairs - total;
    return (i32)(side ? params.near_base : params.near_root);
}
