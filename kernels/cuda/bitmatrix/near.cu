// Search for near-bicliques, of whose pairs a few may be no edges, by one persistent kernel in which each warp works on an
// item.
//
// Input, output and launch are those of sieve.cu, but that the memory of a warp has params.scratch_bytes, and that paths and
// candidates have vertices of both sides: base vertex u is n_roots + u. Items are roots (ROOT), and nodes by their paths
// (PATH). kernels/reference/near.py has the tree and its proof; docs/kernels.md says how warps go about it.
#ifndef NEAR
#define NEAR 1
#endif
#ifndef BOUNDED
#define BOUNDED 1  // without a measure the bound is 0, and nothing is below it
#endif
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/bound.cuh"
#include "bitmatrix/launch.cuh"
#include "bitmatrix/near_frames.cuh"
#include "bitmatrix/near_node.cuh"
#include "bitmatrix/near_open.cuh"
#include "bitmatrix/near_search.cuh"
#include "bitmatrix/near_types.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

__device__ inline void run_item(Worker& w, const Near& n, const Item& item) {
    w.visits = 0;
    look_at_bound(w);
    bool too_large = false;
    i32 became = BRANCHES;
    if (item.closure_at == NOBODY || !take_near(n, item)) became = open_near(w, n, item, &too_large);
    if (too_large) set_oversize(item);
    if (became == LEAF && !emit_near(w, n, n.frame)) leave_over(item);
    if (became == BRANCHES) search_near(w, n);
    // Most roots have no children to visit. Somebody has to look at the clock all the same.
    w.visits = 1;
    if ((++w.tick & (POLL - 1)) == 0) is_late(w);
}

extern "C" __global__ void __launch_bounds__(BLOCK, MIN_BLOCKS) near() {
    Near n = near_of(((i64)blockIdx.x * blockDim.x + threadIdx.x) >> 5);
    ROLLED for (i64 i = lane_id(); i < params.n_roots + params.n_base; i += 32) marks_of(n, 0)[i] = 0;
    __syncwarp();
    work_on_items<Scratch>([&](Worker& w, const Item& item) { run_item(w, n, item); });
}
