// One kernel of kernels/cuda as a shared library: -DKERNEL_FILE='"..."' -DKERNEL=name.
#include "emulation.h"

emulation::Machine emulation::machine;

#include KERNEL_FILE

template <class P>
static void call_with(void (*kernel)(const P*), void* argument) {
    kernel((const P*)argument);
}

static void call(void* argument) { call_with(KERNEL, argument); }

extern "C" void emulate(void* params, unsigned n_blocks, unsigned n_threads, unsigned long long seed) {
    emulation::machine.random = seed | 1;
    emulation::launch(call, params, n_blocks, n_threads);
}
