// Warp-level primitives. Every function is called by all 32 lanes together.
#pragma once
#include "common/types.cuh"

__device__ __forceinline__ i32 lane_id() { return threadIdx.x & 31; }

// Mask of the lanes below this one.
__device__ __forceinline__ u32 lanes_below() { return (1u << lane_id()) - 1u; }

__device__ __forceinline__ bool warp_any(bool x) { return __any_sync(ALL_LANES, x); }
__device__ __forceinline__ u32 warp_ballot(bool x) { return __ballot_sync(ALL_LANES, x); }

// The x of one lane, in every lane.
template <class T>
__device__ __forceinline__ T from(T x, i32 lane) { return __shfl_sync(ALL_LANES, x, lane); }

// Sums over the warp, in every lane. The hardware adds 32-bit values. A sum of 32 values of 22 bits fits, so larger
// values are added in parts of 22 bits.
__device__ __forceinline__ i32 warp_sum(i32 x) { return (i32)__reduce_add_sync(ALL_LANES, (u32)x); }
__device__ __forceinline__ u64 warp_sum(u64 x) {
    const u32 BITS = 22, MASK = (1u << BITS) - 1;
    u64 low = __reduce_add_sync(ALL_LANES, (u32)x & MASK);
    u64 middle = __reduce_add_sync(ALL_LANES, (u32)(x >> BITS) & MASK);
    u64 high = __reduce_add_sync(ALL_LANES, (u32)(x >> 2 * BITS));
    return low + (middle << BITS) + (high << 2 * BITS);
}
__device__ __forceinline__ i64 warp_sum(i64 x) { return (i64)warp_sum((u64)x); }

// Union over the warp, in every lane.
__device__ __forceinline__ u64 reduce_or(u64 x) {
    u32 low = __reduce_or_sync(ALL_LANES, (u32)x), high = __reduce_or_sync(ALL_LANES, (u32)(x >> 32));
    return (u64)low | (u64)high << 32;
}

// Sum over the lanes below this one.
template <class T>
__device__ __forceinline__ T sum_below(T x) {
    T total = x;
    ROLLED for (i32 step = 1; step < 32; step <<= 1) {
        T other = __shfl_up_sync(ALL_LANES, total, step);
        if (lane_id() >= step) total += other;
    }
    return total - x;
}

// The leader does an atomicAdd. Returns the old value, in every lane.
__device__ __forceinline__ u64 draw(u64* counter, u64 amount) {
    u64 old = 0;
    if (lane_id() == 0) old = atomicAdd(counter, amount);
    return from(old, 0);
}

// The leader reads a value that other warps change. Returns it, in every lane.
__device__ __forceinline__ i32 load_now(const volatile i32* x) {
    i32 value = 0;
    if (lane_id() == 0) value = *x;
    return from(value, 0);
}

// Position of x in ascending a[0..n), or of the first larger entry, or n. Thread-level.
__device__ __forceinline__ i32 lower_bound(const i32* a, i32 n, i32 x) {
    i32 lo = 0;
    ROLLED while (n > 0) {
        i32 half = n >> 1;
        if (a[lo + half] < x) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return lo;
}

__device__ __forceinline__ u64 low_bits(i32 n) { return n >= 64 ? ~0ull : (1ull << n) - 1ull; }

__device__ __forceinline__ u64 now_ns() {
    u64 t;
#ifdef EMULATED
    t = emulated_ns();
#else
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
#endif
    return t;
}
