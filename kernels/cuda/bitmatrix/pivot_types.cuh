// What a warp owns in a count of p x q: a stack of nodes of a pivot tree, and the table of all leaves.
//
// kernels/reference/pivot.py has the tree and its proof. Side 0 is the root side, and side 1 the base side. Vertices of both
// sides have one numbering: base vertex u is n_roots + u. A *problem* has a row of bits for each of its vertices, over those of
// the other side. A node has candidates, as sets of vertices of its problem, and held and free vertices, as lists.
//
// What is left of a node, whatever was explored below it, is a node again: its held vertices, with its free vertices and the
// candidates that are left as candidates. So an item is a path and candidates, and nothing else. A free vertex among the
// candidates becomes free again at once, because it is joined to all others.
//
// ONE_SIDE: cliques of a graph of one kind of vertices are counted (kernels/reference/cliques.py). Roots and base vertices are
// the same then, and have the same neighbours. A problem has side 0 alone, which is its own other side, and a row has the bit of
// its own vertex.
#pragma once
#include "common/biclique.cuh"
#include "common/hash.cuh"
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/near_types.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Values of PivotFrame.pivot, beside the row of the pivot
#define NEW (-1)   // none was chosen yet
#define GONE (-2)  // what is left belongs to another item

#ifndef ONE_SIDE
#define ONE_SIDE 0
#endif
#define SIDES (2 - ONE_SIDE)
// The side that is joined to a side.
#define FACING(side) (ONE_SIDE ? 0 : 1 - (side))

struct PivotSide {
    i32 n;      // vertices of the problem
    i32 names;  // where they are in `bits`
    i32 rows;   // word w of row r is bits[rows + w * n + r]
    i32 held;   // how many
    i32 free;
};

struct PivotFrame {  // on the stack of near_types.cuh
    PivotSide side[2];
    i32 sets;        // candidates of side 0, then of side 1, then `others`: see `others_at`
    i32 top;         // words of `bits` in use up to here. There is always room for the sets of one child.
    i32 pivot;
    i32 pivot_side;
};
static_assert(sizeof(PivotFrame) <= sizeof(NearFrame), "a stack of near_types.cuh has no room for such frames");

__device__ __forceinline__ PivotFrame* pivot_frame(const Near& n, i32 depth) { return (PivotFrame*)(n.frame + depth); }

__device__ __forceinline__ i32 words_of(i32 n_bits) { return (n_bits + 31) >> 5; }

// Where the candidates of a side are in `bits`.
__device__ __forceinline__ i32 candidates_at(const PivotFrame* f, i32 side) {
    return f->sets + (side ? words_of(f->side[0].n) : 0);
}

// Where those are that the pivot is not joined to. They become held one after the other.
__device__ __forceinline__ i32 others_at(const PivotFrame* f) {
    return f->sets + words_of(f->side[0].n) + words_of(f->side[1].n);
}

// Words of the three sets of a node.
__device__ __forceinline__ i32 words_of_sets(i32 n0, i32 n1) {
    i32 words0 = words_of(n0), words1 = words_of(n1);
    return words0 + words1 + (words0 > words1 ? words0 : words1);
}

// The held vertices of a node are first, in the order in which they became held. The free ones are from the end on, downwards.
// A node has those of its parent, so frames share them.
__device__ __forceinline__ i32* held_list(const Near& n) { return n.vertices + (params.n_roots + params.n_base); }
__device__ __forceinline__ i32* free_list_end(const Near& n) { return n.vertices + 2 * (params.n_roots + params.n_base); }

// The most held vertices of a side.
__device__ __forceinline__ i64 most_held(i32 side) { return side ? params.max_base : params.max_root; }

// Count a leaf. A slot gets both parts of its key by compare-and-swap. If another leaf gets the second part of a slot, this one
// goes on to the next slot. So no slot has parts of two leaves. No part is 0, because all hold a root, and the second part has 1
// added to it.
__device__ __noinline__ void add_leaf(Worker& w, i32 held0, i32 free0, i32 held1, i32 free1) {
    w.visits += 1;
    if (!ONE_SIDE && held1 + free1 == 0) return;
    u64 root = (u64)held0 << 32 | (u64)free0, base = (u64)held1 << 32 | (u64)free1;
    u64 mixed = mix64(mix64(root) + mix64(base)), mask = (u64)params.n_leaves - 1;
    w.count += 1;
    w.fingerprint += mixed;
    if (lane_id() != 0) return;
    for (u64 tried = 0; tried <= mask; tried++) {
        LeafSlot* slot = params.leaves + ((mixed + tried) & mask);
        u64 found = *(volatile u64*)&slot->root;
        if (found == 0) found = atomicCAS(&slot->root, 0ull, root);
        if (found != 0 && found != root) continue;
        found = *(volatile u64*)&slot->base;
        if (found == 0) found = atomicCAS(&slot->base, 0ull, base + 1);
        if (found != 0 && found != base + 1) continue;
        atomicAdd(&slot->count, 1ull);
        return;
    }
    atomicExch(&params.queue->overflow, SIZES_OVERFLOW);
    atomicExch(&params.queue->stop, 1);
}
