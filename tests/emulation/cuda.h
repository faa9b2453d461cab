// What kernels call of CUDA, on the fibers of emulation.h.
#pragma once
#include "emulation.h"

#define threadIdx (emulation::machine.thread)
#define blockIdx (emulation::machine.block)
#define blockDim (emulation::machine.block_size)
#define gridDim (emulation::machine.grid)

inline unsigned __ballot_sync(unsigned, bool x) {
    return emulation::reduced((unsigned)x << emulation::machine.lane, [](unsigned a, unsigned b) { return a | b; });
}
inline bool __any_sync(unsigned m, bool x) { return __ballot_sync(m, x) != 0; }
inline bool __all_sync(unsigned m, bool x) { return __ballot_sync(m, x) == ~0u; }
inline void __syncwarp(unsigned = ~0u) {
    emulation::meet([](emulation::Meeting&, bool) {});
}
inline void __syncthreads() { emulation::meet_block(false); }
inline int __syncthreads_or(int x) { return emulation::meet_block(x != 0) != 0; }
inline int __syncthreads_and(int x) { return emulation::meet_block(x != 0) == emulation::machine.block_size.x; }
inline int __syncthreads_count(int x) { return (int)emulation::meet_block(x != 0); }

namespace emulation {

// What a lane brings, for all to see. `from` is the lane whose x this one wants.
template <class T>
inline T shuffle(T x, unsigned from) {
    unsigned self = machine.lane;
    return unpack<T>(meet([=](Meeting& all, bool) { all.deposit[self] = pack(x); }).deposit[from]);
}

}  // namespace emulation

template <class T>
inline T __shfl_sync(unsigned, T x, int lane) { return emulation::shuffle(x, lane & 31); }
template <class T>
inline T __shfl_xor_sync(unsigned, T x, int mask) { return emulation::shuffle(x, (emulation::machine.lane ^ mask) & 31); }
template <class T>
inline T __shfl_up_sync(unsigned, T x, unsigned step) {
    unsigned self = emulation::machine.lane;
    return emulation::shuffle(x, self >= step ? self - step : self);
}
template <class T>
inline T __shfl_down_sync(unsigned, T x, unsigned step) {
    unsigned self = emulation::machine.lane;
    return emulation::shuffle(x, self + step < 32 ? self + step : self);
}
inline unsigned __reduce_or_sync(unsigned, unsigned x) {
    return emulation::reduced(x, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __reduce_add_sync(unsigned, unsigned x) {
    return emulation::reduced(x, [](unsigned a, unsigned b) { return a + b; });
}
inline unsigned __reduce_and_sync(unsigned, unsigned x) {
    return emulation::reduced(x, [](unsigned a, unsigned b) { return a & b; });
}
inline unsigned __reduce_min_sync(unsigned, unsigned x) {
    return emulation::reduced(x, [](unsigned a, unsigned b) { return a < b ? a : b; });
}
inline unsigned __reduce_max_sync(unsigned, unsigned x) {
    return emulation::reduced(x, [](unsigned a, unsigned b) { return a > b ? a : b; });
}

template <class T>
inline T exchange(T* p, T x) {
    T old = *p;
    *p = x;
    return old;
}
template <class T>
inline T atomicAdd(T* p, std::common_type_t<T> x) { return exchange(p, (T)(*p + x)); }
template <class T>
inline T atomicSub(T* p, std::common_type_t<T> x) { return exchange(p, (T)(*p - x)); }
template <class T>
inline T atomicOr(T* p, std::common_type_t<T> x) { return exchange(p, (T)(*p | x)); }
template <class T>
inline T atomicMax(T* p, std::common_type_t<T> x) { return exchange(p, *p > x ? *p : (T)x); }
template <class T>
inline T atomicMin(T* p, std::common_type_t<T> x) { return exchange(p, *p < x ? *p : (T)x); }
template <class T>
inline T atomicExch(T* p, std::common_type_t<T> x) { return exchange(p, (T)x); }
template <class T>
inline T atomicCAS(T* p, std::common_type_t<T> expected, std::common_type_t<T> x) { return exchange(p, *p == expected ? (T)x : *p); }

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned ns) {  // its warp pauses for a while, so that others do not wait for it to look around
    emulation::machine.progress = true;
    emulation::machine.warp->wakes = emulation::machine.round + ns / 16;
    emulation::yield();
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
template <class T>
inline T __ldg(const T* p) { return *p; }
// Virtual: in a round every warp that does not sleep runs for 64 collectives on average. So a launch has the busy ratio
// that it would have if collectives were all that takes time.
inline long long clock64() { return 64ll * (long long)emulation::machine.round; }
inline unsigned long long emulated_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000000000ull + (unsigned long long)t.tv_nsec;
}
