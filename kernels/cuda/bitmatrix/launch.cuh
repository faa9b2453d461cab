// What a warp does in a launch: it takes items until none is left, and adds its counters to those of the launch.
// Warp-level.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Work on items with run(worker, item). SCRATCH is the record that a warp has at params.scratch, and begins with Scratch.
template <class SCRATCH, class Run>
__device__ __forceinline__ void work_on_items(const Run& run) {
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    Worker w;
    w.s = (Scratch*)((SCRATCH*)params.scratch + warp);
    w.count = w.found = w.fingerprint = w.tests = 0;
    w.value_at = w.value_end = w.record_at = w.record_end = 0;
    w.deadline = params.deadline_ns == 0 ? 0 : now_ns() + (u64)params.deadline_ns;
    w.n_pending = 0;
    w.bound = 0;
    w.tick = (i32)warp;  // warps look at the queue at different times
    i64 began = clock64(), busy = 0;
    Item item;
    ROLLED while (take(&item)) {
        i64 start = clock64();
        run(w, item);
        finish_item();
        busy += clock64() - start;
    }
    tell_count(w);
    if (lane_id() == 0) {
        atomicAdd(&params.queue->fingerprint, w.fingerprint);
        atomicAdd(&params.queue->tests, w.tests);
        atomicAdd(&params.queue->busy, (u64)busy);
        atomicMax(&params.queue->longest, (u64)(clock64() - began));
    }
    // unused records of this warp's chunk are holes
    ROLLED for (i64 i = w.record_at + lane_id(); i < w.record_end; i += 32) params.records[i].n_root = 0;
}
