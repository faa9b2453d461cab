// Runs CUDA code on a CPU: a fiber a thread; those of a warp meet at its collectives, those of a block at barriers.
//
// Lanes of a warp run one after the other between two collectives, and warps a while each, in an order that
// changes every time, so that code which relies on lock step without saying so gives wrong results. One operating
// system thread runs everything: atomics are plain. Shared memory is a section of this library, exchanged when
// another block's turn comes: `__shared__ int x[10];` inside a kernel works, `extern __shared__` does not.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <csetjmp>
#include <sys/mman.h>
#include <type_traits>
#include <ucontext.h>
#include <vector>

#define EMULATED 1
#define __device__
#define __global__
#define __constant__ static
#define __shared__ static __attribute__((section("emulated_shared")))
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __launch_bounds__(...)

struct Dim {
    unsigned x, y, z;
};

namespace emulation {

const size_t STACK_BYTES = 256 * 1024;

// A stack, and where on it to go on. A thread of the next launch takes it over, because making one is slow.
struct Fiber {
    char* stack;
    jmp_buf here;
    ucontext_t first;
    bool entered = false;
};

struct Lane {
    Fiber* fiber = nullptr;
    bool finished = false;
    unsigned meetings = 0;  // collectives entered
    unsigned barriers = 0;  // barriers entered
};

struct Block {
    unsigned index;
    unsigned running;                      // threads that have not left
    unsigned arrived = 0, barriers = 0;    // barriers completed
    unsigned truths[2] = {0, 0};           // threads that brought a true value to the barrier
    std::vector<char> shared;              // its shared memory while another block runs
};

struct Warp {
    Lane lanes[32];
    Block* block;
    unsigned first_thread;
    unsigned arrived = 0, meetings = 0;  // collectives completed
    uint64_t deposit[2][32];
    unsigned running = 32;
    unsigned long wakes = 0;  // round in which it goes on
};

struct Machine {
    std::vector<Warp*> warps;
    std::vector<Block*> blocks;
    std::vector<Fiber*> fibers;  // kept from launch to launch: one a thread
    Warp* warp = nullptr;
    Block* present = nullptr;  // whose shared memory is in place
    unsigned lane = 0;
    unsigned long round = 0;
    bool progress = false;
    jmp_buf scheduler;
    void (*kernel)(void*) = nullptr;
    void* argument = nullptr;
    uint64_t random = 88172645463325252ull;
    Dim thread, block, block_size, grid;
};

extern Machine machine;

inline unsigned shuffled() {  // xorshift64
    machine.random ^= machine.random << 13;
    machine.random ^= machine.random >> 7;
    machine.random ^= machine.random << 17;
    return (unsigned)machine.random;
}

inline void yield() {
    if (_setjmp(machine.warp->lanes[machine.lane].fiber->here) == 0) _longjmp(machine.scheduler, 1);
}

// Deposit a value, wait for the other 31 lanes; everybody's values, valid until the next collective.
inline const uint64_t* meet(uint64_t value) {
    Warp* warp = machine.warp;
    Lane& lane = warp->lanes[machine.lane];
    if (warp->running != 32) {
        std::fprintf(stderr, "a collective after some lanes have left\n");
        std::abort();
    }
    unsigned turn = lane.meetings++;
    warp->deposit[turn & 1][machine.lane] = value;
    machine.progress = true;
    if (++warp->arrived == 32) {
        warp->arrived = 0;
        warp->meetings++;
    }
    while (warp->meetings <= turn) yield();
    return warp->deposit[turn & 1];
}

// Wait for all threads of the block; how many of them brought a true value.
inline unsigned meet_block(bool truth) {
    Block* block = machine.warp->block;
    Lane& lane = machine.warp->lanes[machine.lane];
    if (block->running != machine.block_size.x) {
        std::fprintf(stderr, "a barrier after some threads have left\n");
        std::abort();
    }
    unsigned turn = lane.barriers++;
    block->truths[turn & 1] += truth;
    machine.progress = true;
    if (++block->arrived == machine.block_size.x) {
        block->arrived = 0;
        block->truths[(turn + 1) & 1] = 0;
        block->barriers++;
    }
    while (block->barriers <= turn) yield();
    return block->truths[turn & 1];
}

template <class T>
inline uint64_t pack(T x) {
    static_assert(sizeof(T) <= 8, "64 bits at most");
    uint64_t bits = 0;
    std::memcpy(&bits, &x, sizeof(T));
    return bits;
}

template <class T>
inline T unpack(uint64_t bits) {
    T x;
    std::memcpy(&x, &bits, sizeof(T));
    return x;
}

inline void enter() {
    while (true) {  // a turn is a thread of another launch
        machine.kernel(machine.argument);
        machine.warp->lanes[machine.lane].finished = machine.progress = true;
        machine.warp->running--;
        machine.warp->block->running--;
        yield();
    }
}

// Fiber number i; memory is only touched as far as it goes.
inline Fiber* fiber_of(size_t i) {
    while (machine.fibers.size() <= i) {
        void* stack = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED) {
            std::fprintf(stderr, "no memory for the stack of thread %zu\n", i);
            std::abort();
        }
        machine.fibers.push_back(new Fiber());
        machine.fibers.back()->stack = (char*)stack;
    }
    return machine.fibers[i];
}

inline void resume(Warp* warp, unsigned l) {
    Lane& lane = warp->lanes[l];
    machine.warp = warp;
    machine.lane = l;
    machine.thread = {warp->first_thread + l, 0, 0};
    machine.block = {warp->block->index, 0, 0};
    if (!lane.fiber) {
        lane.fiber = fiber_of((size_t)warp->block->index * machine.block_size.x + machine.thread.x);
        machine.progress = true;
    }
    Fiber& fiber = *lane.fiber;
    if (_setjmp(machine.scheduler) != 0) return;
    if (fiber.entered) _longjmp(fiber.here, 1);
    fiber.entered = true;
    getcontext(&fiber.first);
    fiber.first.uc_stack.ss_sp = fiber.stack;
    fiber.first.uc_stack.ss_size = STACK_BYTES;
    fiber.first.uc_link = nullptr;
    makecontext(&fiber.first, enter, 0);
    setcontext(&fiber.first);
}

}  // namespace emulation

// Bounds of the shared variables, by the linker; NULL when the kernel has none.
extern char __start_emulated_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_emulated_shared[] __attribute__((weak, visibility("hidden")));

namespace emulation {

// Put the shared memory of `block` in place; a block that begins finds rubbish.
inline void bring(Block* block) {
    size_t n = (size_t)(__stop_emulated_shared - __start_emulated_shared);
    if (machine.present == block || n == 0) return;
    if (machine.present) machine.present->shared.assign(__start_emulated_shared, __stop_emulated_shared);
    if (block->shared.empty()) block->shared.assign(n, (char)0xA5);
    std::memcpy(__start_emulated_shared, block->shared.data(), n);
    machine.present = block;
}

// Let the lanes of a warp run to their next collective, up to 128 times.
inline void run_for_a_while(Warp* warp) {
    bring(warp->block);
    unsigned turns = 1 + (shuffled() & 127);
    for (unsigned turn = 0; turn < turns && warp->running; turn++) {
        unsigned offset = shuffled(), stride = (shuffled() & 30) | 1;
        unsigned before = warp->meetings;
        for (unsigned i = 0; i < 32; i++) {
            unsigned l = (offset + i * stride) & 31;
            if (!warp->lanes[l].finished) resume(warp, l);
        }
        if (warp->meetings == before) return;  // waits for other warps
    }
}

// Run `kernel(argument)` on n_blocks blocks of n_threads threads, a warp a little at a time.
inline void launch(void (*kernel)(void*), void* argument, unsigned n_blocks, unsigned n_threads) {
    machine.kernel = kernel;
    machine.argument = argument;
    machine.block_size = {n_threads, 1, 1};
    machine.grid = {n_blocks, 1, 1};
    machine.present = nullptr;
    for (unsigned b = 0; b < n_blocks; b++) {
        Block* block = new Block();
        block->index = b;
        block->running = n_threads;
        machine.blocks.push_back(block);
        for (unsigned t = 0; t < n_threads; t += 32) {
            Warp* warp = new Warp();
            warp->block = block;
            warp->first_thread = t;
            machine.warps.push_back(warp);
        }
    }
    bool alive = true;
    while (alive) {
        alive = machine.progress = false;
        machine.round++;
        for (Warp* warp : machine.warps) {
            bool asleep = warp->wakes > machine.round;
            if (warp->running && !asleep) run_for_a_while(warp);
            alive |= warp->running != 0;
            machine.progress |= asleep;
        }
        if (alive && !machine.progress) {
            std::fprintf(stderr, "threads wait for one another at different collectives\n");
            std::abort();
        }
    }
    for (Warp* warp : machine.warps) delete warp;
    for (Block* block : machine.blocks) delete block;
    machine.warps.clear();
    machine.blocks.clear();
}

}  // namespace emulation

#define threadIdx (emulation::machine.thread)
#define blockIdx (emulation::machine.block)
#define blockDim (emulation::machine.block_size)
#define gridDim (emulation::machine.grid)

inline unsigned __ballot_sync(unsigned, bool x) {
    const uint64_t* all = emulation::meet(x);
    unsigned bits = 0;
    for (unsigned i = 0; i < 32; i++) bits |= (unsigned)(all[i] != 0) << i;
    return bits;
}
inline bool __any_sync(unsigned m, bool x) { return __ballot_sync(m, x) != 0; }
inline bool __all_sync(unsigned m, bool x) { return __ballot_sync(m, x) == ~0u; }
inline void __syncwarp(unsigned = ~0u) { emulation::meet(0); }
inline void __syncthreads() { emulation::meet_block(false); }
inline int __syncthreads_or(int x) { return emulation::meet_block(x != 0) != 0; }
inline int __syncthreads_and(int x) { return emulation::meet_block(x != 0) == emulation::machine.block_size.x; }
inline int __syncthreads_count(int x) { return (int)emulation::meet_block(x != 0); }

template <class T>
inline T __shfl_sync(unsigned, T x, int lane) {
    return emulation::unpack<T>(emulation::meet(emulation::pack(x))[lane & 31]);
}
template <class T>
inline T __shfl_xor_sync(unsigned, T x, int mask) {
    unsigned self = emulation::machine.lane;
    return emulation::unpack<T>(emulation::meet(emulation::pack(x))[(self ^ mask) & 31]);
}
template <class T>
inline T __shfl_up_sync(unsigned, T x, unsigned step) {
    unsigned self = emulation::machine.lane;
    return emulation::unpack<T>(emulation::meet(emulation::pack(x))[self >= step ? self - step : self]);
}
template <class T>
inline T __shfl_down_sync(unsigned, T x, unsigned step) {
    unsigned self = emulation::machine.lane;
    return emulation::unpack<T>(emulation::meet(emulation::pack(x))[self + step < 32 ? self + step : self]);
}
inline unsigned __reduce_or_sync(unsigned, unsigned x) {
    const uint64_t* all = emulation::meet(x);
    unsigned y = 0;
    for (unsigned i = 0; i < 32; i++) y |= (unsigned)all[i];
    return y;
}
inline unsigned __reduce_add_sync(unsigned, unsigned x) {
    const uint64_t* all = emulation::meet(x);
    unsigned y = 0;
    for (unsigned i = 0; i < 32; i++) y += (unsigned)all[i];
    return y;
}
inline unsigned __reduce_and_sync(unsigned, unsigned x) {
    const uint64_t* all = emulation::meet(x);
    unsigned y = ~0u;
    for (unsigned i = 0; i < 32; i++) y &= (unsigned)all[i];
    return y;
}
inline unsigned __reduce_min_sync(unsigned, unsigned x) {
    const uint64_t* all = emulation::meet(x);
    unsigned y = ~0u;
    for (unsigned i = 0; i < 32; i++) y = (unsigned)all[i] < y ? (unsigned)all[i] : y;
    return y;
}
inline unsigned __reduce_max_sync(unsigned, unsigned x) {
    const uint64_t* all = emulation::meet(x);
    unsigned y = 0;
    for (unsigned i = 0; i < 32; i++) y = (unsigned)all[i] > y ? (unsigned)all[i] : y;
    return y;
}
template <class T>
inline unsigned __match_any_sync(unsigned, T x) {
    uint64_t mine = emulation::pack(x);
    const uint64_t* all = emulation::meet(mine);
    unsigned bits = 0;
    for (unsigned i = 0; i < 32; i++) bits |= (unsigned)(all[i] == mine) << i;
    return bits;
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
