// Count of all p x q bicliques, maximal or not, by one persistent kernel in which each warp works on an item.
//
// Input, items and launch are those of near.cu, and so is the memory of a warp. Nothing is emitted: the result is the table
// params.leaves, in which each kind of leaf has a slot, with how many there are (schemas/leaves.py).
// ONE_SIDE: count of all cliques. kernels/reference/pivot.py has the tree and its proof; docs/kernels.md says how warps go about it.
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/launch.cuh"
#include "bitmatrix/near_types.cuh"
#include "bitmatrix/pivot_node.cuh"
#include "bitmatrix/pivot_open.cuh"
#include "bitmatrix/pivot_types.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Hand a child on that has no room for children of its own. The slice is void if the pool is full.
__device__ __noinline__ void put_child_aside(const Near& n, const PivotFrame* child) {
    Item item;
    i32 became = describe_pivot(n, child, false, &item);
    if (became == DESCRIBED) pass_on(item);
    if (became == NO_ROOM && lane_id() == 0) overflow();
    __syncwarp();
}

// Explore frame 0, depth first. A warp that has counted nothing goes on until it has, so that each launch makes progress.
__device__ __noinline__ void search_pivot(Worker& w, const Near& n) {
    i32 depth = 0, work = POLL;  // the first look is at once, because other warps may wait
    ROLLED while (depth >= 0) {
        if (work >= POLL) {
            i32 wanted;
            work = 0;
            w.tick += POLL;
            bool ends = is_ending(&wanted) || ((w.tick & (FULL_POLL - 1)) < POLL && is_late(w));
            if (w.visits > 0 && ends) {
                leave_pivots(n, depth);
                return;
            }
            if (wanted > 0) give_pivot(n, depth);
        }
        PivotFrame* f = pivot_frame(n, depth);
        i32 pivot = f->pivot;
        __syncwarp();
        if (pivot == GONE) {
            depth -= 1;
            continue;
        }
        if (pivot == NEW) {
            i32 words0 = words_of(f->side[0].n), words1 = words_of(f->side[FACING(0)].n);
            work += 1 + ((words0 + words1 + 2 * words0 * words1) >> 3);
            w.tests += 1;
            if (!choose_pivot(n, f)) {
                add_leaf(w, f->side[0].held, f->side[0].free, f->side[1].held, f->side[1].free);
                depth -= 1;
                continue;
            }
        }
        i32 r = next_other(n, f), side = FACING(f->pivot_side);
        if (r == NOBODY) {
            free_pivot(n, f);
            continue;
        }
        if (f->side[side].held + 1 > most_held(side)) continue;
        PivotFrame* child = pivot_frame(n, depth + 1);
        hold(n, f, child, r);
        if (depth + 2 == NEAR_DEPTH || child->top + words_of_sets(child->side[0].n, child->side[1].n) > n.room)
            put_child_aside(n, child);
        else
            depth += 1;
    }
}

__device__ inline void run_item(Worker& w, const Near& n, const Item& item) {
    w.visits = 0;
    if (open_pivot(w, n, item) == OPENED) search_pivot(w, n);
    // Most roots are leaves. Somebody has to look at the clock all the same.
    w.visits = 1;
    if ((++w.tick & (POLL - 1)) == 0) is_late(w);
}

extern "C" __global__ void __launch_bounds__(BLOCK, MIN_BLOCKS) pivot() {
    Near n = near_of(((i64)blockIdx.x * blockDim.x + threadIdx.x) >> 5);
    ROLLED for (i64 i = lane_id(); i < params.n_roots; i += 32) marks_of(n, 0)[i] = 0;
    __syncwarp();
    work_on_items<Scratch>([&](Worker& w, const Item& item) { run_item(w, n, item); });
}
