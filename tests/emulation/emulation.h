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

// Where to go on: for GCC's built-in functions, which keep much less than those of the C library.
typedef void* Place[5];

// A stack, and where on it to go on. A thread of the next launch takes it over, because making one is slow.
struct Fiber {
    char* stack;
    size_t n_bytes;  // stacks end at different places in their pages, or the caches would keep few of them
    Place here;
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

// What lanes bring to a collective.
struct Meeting {
    uint64_t deposit[32];  // of each
    unsigned folded;       // of all
};

struct Warp {
    Lane lanes[32];
    Block* block;
    unsigned first_thread;
    unsigned arrived = 0, meetings = 0;  // collectives completed
    Meeting last[2];
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
    unsigned begun = 0, offset = 0, stride = 1;  // lanes that had their turn or left it out, and their order
    unsigned long round = 0;
    bool progress = false;
    Place scheduler;
    void (*kernel)(void*) = nullptr;
    void* argument = nullptr;
    uint64_t random = 88172645463325252ull;
    Dim thread, block, block_size, grid;
};

extern Machine machine __attribute__((visibility("hidden")));

inline unsigned shuffled() {  // xorshift64
    machine.random ^= machine.random << 13;
    machine.random ^= machine.random >> 7;
    machine.random ^= machine.random << 17;
    return (unsigned)machine.random;
}

[[noreturn]] __attribute__((noipa)) inline void go_on(Place there) { __builtin_longjmp(there, 1); }

[[noreturn]] void pass_on();

// Let the other lanes run, and go on at the next turn.
__attribute__((noipa)) inline void yield() {
    if (__builtin_setjmp(machine.warp->lanes[machine.lane].fiber->here) == 0) pass_on();
}

// Bring something to a collective, and wait for the other 31 lanes. What all have brought is valid until the next
// collective. `bring(meeting, is_first)` is called for one lane after the other.
template <class Bring>
inline const Meeting& meet(Bring bring) {
    Warp* warp = machine.warp;
    Lane& lane = warp->lanes[machine.lane];
    if (warp->running != 32) {
        std::fprintf(stderr, "a collective after some lanes have left\n");
        std::abort();
    }
    unsigned turn = lane.meetings++;
    Meeting& meeting = warp->last[turn & 1];
    bring(meeting, warp->arrived == 0);
    machine.progress = true;
    if (++warp->arrived == 32) {
        warp->arrived = 0;
        warp->meetings++;
    }
    while (warp->meetings <= turn) yield();
    return meeting;
}

// What all lanes bring, folded into one number.
template <class Fold>
inline unsigned reduced(unsigned x, Fold fold) {
    return meet([=](Meeting& all, bool is_first) { all.folded = is_first ? x : fold(all.folded, x); }).folded;
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
        machine.fibers.back()->n_bytes = STACK_BYTES - machine.fibers.size() % 97 * 320;
    }
    return machine.fibers[i];
}

// Let the next lane of the warp run that has not finished; after the last one of this turn, the scheduler.
[[noreturn]] __attribute__((noipa)) inline void pass_on() {
    Warp* warp = machine.warp;
    while (machine.begun < 32) {
        unsigned l = (machine.offset + machine.begun++ * machine.stride) & 31;
        Lane& lane = warp->lanes[l];
        if (lane.finished) continue;
        machine.lane = l;
        machine.thread = {warp->first_thread + l, 0, 0};
        if (!lane.fiber) {
            lane.fiber = fiber_of((size_t)warp->block->index * machine.block_size.x + machine.thread.x);
            machine.progress = true;
        }
        Fiber& fiber = *lane.fiber;
        if (fiber.entered) go_on(fiber.here);
        fiber.entered = true;
        getcontext(&fiber.first);
        fiber.first.uc_stack.ss_sp = fiber.stack;
        fiber.first.uc_stack.ss_size = fiber.n_bytes;
        fiber.first.uc_link = nullptr;
        makecontext(&fiber.first, enter, 0);
        setcontext(&fiber.first);
    }
    go_on(machine.scheduler);
}

// Every lane of a warp runs once, as far as it can.
__attribute__((noipa)) inline void take_turns(Warp* warp, unsigned offset, unsigned stride) {
    machine.warp = warp;
    machine.block = {warp->block->index, 0, 0};
    machine.begun = 0;
    machine.offset = offset;
    machine.stride = stride;
    if (__builtin_setjmp(machine.scheduler) == 0) pass_on();
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
        take_turns(warp, offset, stride);
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
