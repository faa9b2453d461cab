// Filters, fingerprint and sizes of bicliques, for both kernels. Thread-level; P is Params or CumbeParams, Q the queue
// of the same kernel.
#pragma once
#include "common/hash.cuh"
#include "common/types.cuh"

#define SIZES_OVERFLOW 2  // Queue.overflow: the table of sizes is full; 1 stands for all other buffers

// Whether a biclique with so many members per side passes the filters.
template <class P>
__device__ __forceinline__ bool is_wanted(const P* p, i64 base, i64 root) {
    return base >= p->min_base && base <= p->max_base && root >= p->min_root && root <= p->max_root;
}

// The value that a biclique adds to the fingerprint, from the sums of its sides' hashes.
template <class P>
__device__ __forceinline__ u64 fingerprint_of(const P* p, u64 base, u64 root) {
    u64 left = p->root_is_left ? root : base, right = p->root_is_left ? base : root;
    return mix64(left ^ mix64(right));
}

// Count a biclique in the table of sizes.
template <class P, class Q>
__device__ inline void add_size(const P* p, Q* q, i64 n_base, i64 n_root) {
    u64 key = (u64)n_base << 32 | (u64)n_root, mask = (u64)p->n_sizes - 1;
    u64 slot = mix64(key) & mask;
    ROLLED for (u64 tried = 0; tried <= mask; tried++, slot = (slot + 1) & mask) {
        u64 found = atomicCAS(&p->sizes[slot].key, 0ull, key);
        if (found != 0 && found != key) continue;
        atomicAdd(&p->sizes[slot].count, 1ull);
        return;
    }
    atomicExch(&q->overflow, SIZES_OVERFLOW);
    atomicExch(&q->stop, 1);
}
