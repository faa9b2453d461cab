// One kernel of kernels/cuda as a shared library: -DKERNEL_FILE='"..."' -DKERNEL=name.
#include "cuda.h"

emulation::Machine emulation::machine;
namespace emulation {
static int numbers[16];  // values of macros that are numbers and nothing else: device.py
}

#include KERNEL_FILE

static void call(void*) { KERNEL(); }

// `block` is the kernel's parameter block.
extern "C" __attribute__((visibility("default"))) void emulate(const void* block, const int* numbers, unsigned n_blocks, unsigned n_threads, unsigned long long seed) {
    memcpy((void*)&params, block, sizeof params);
    memcpy(emulation::numbers, numbers, sizeof emulation::numbers);
    emulation::machine.random = seed | 1;
    emulation::launch(call, nullptr, n_blocks, n_threads);
}
