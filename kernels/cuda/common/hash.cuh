// Hash functions for fingerprints and for hash tables. Thread-level.
#pragma once
#include "common/types.cuh"

#define STREAM_STEP 0x9E3779B97F4A7C15ull  // between the counters of a stream of random numbers

__device__ __forceinline__ u64 mix64(u64 x) {  // splitmix64, as in schemas/bicliques.py
    x += STREAM_STEP;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

#define UNUSED (-1)  // key of a free slot in a table of vertices

// The first slot to try for a vertex, in a table of `table_mask` + 1 slots, a power of two. This is multiplicative
// hashing. The factor is 2**32 divided by the golden ratio, which spreads vertices with close numbers.
__device__ __forceinline__ u32 first_slot(i32 v, u32 table_mask) { return ((u32)v * 2654435769u >> 9) & table_mask; }
