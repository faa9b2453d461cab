// Maximal biclique enumeration with thresholds, by one persistent kernel in which each warp works on an item.
//
// It is the engine of bitmatrix.cu with a sieve (sieve.cuh) instead of hubs. Input, output and launch are the same,
// but that a warp has a SieveScratch. Items are first-level subtrees of any size (ROOT), nodes by their paths (PATH),
// and children of a large node (SPLIT).
//
// Method: docs/kernels.md, section "Thresholds". A problem is opened and reduced (sieve_open.cuh), and its children
// are reduced in turn, until they are word problems (search.cuh).
#ifndef SIEVING
#define SIEVING 1
#endif
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/launch.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/sieve_frames.cuh"
#include "bitmatrix/sieve_open.cuh"
#include "bitmatrix/sieve_table.cuh"
#include "bitmatrix/sieve_types.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Explore the first-level subtree of a root. The run_* functions are like those of bitmatrix.cu.
__device__ inline i32 run_root(Worker& w, const Item& item, bool* begun, bool* too_large) {
    i64 at = params.root_indptr[item.bound];
    i32 n = (i32)(params.root_indptr[item.bound + 1] - at);
    Origin origin = {0, 0, 0, 0, item.bound, (i32)params.n_roots};
    return explore(w, params.root_indices + at, n, origin, item.fresh, begun, too_large);
}

// Explore a node that is given by its path. Without a copy of its frame, L is the common neighbourhood of the path.
__device__ inline i32 run_path(Worker& w, const Item& item, bool* begun, bool* too_large) {
    SieveFrame f;
    if (item.closure_at != NOBODY && take_copy(w, item, &f)) return search_frame(w, f);
    const i32* path = params.pool + item.base_at;
    i32 n = write_common(path, item.n_base, w.s->list, LIST_CAP);
    *too_large = n == NOBODY;
    if (*too_large) return DONE;
    Origin origin = {path, item.cand_at == NOBODY ? 0 : params.pool + item.cand_at, item.n_base, item.n_cand, item.begin, item.end};
    return explore(w, w.s->list, n, origin, item.fresh, begun, too_large);
}

// Explore an item that is one node, and write it down if it was not begun or is too large.
__device__ inline i32 run_one(Worker& w, const Item& item) {
    bool begun = true, too_large = false;
    i32 ended = DONE;
    w.hub_depth = NOBODY;
    if (item.kind == ROOT)
        ended = run_root(w, item, &begun, &too_large);
    else
        ended = run_path(w, item, &begun, &too_large);
    if (too_large) set_oversize(item);
    if (ended == STOPPED && !begun) leave_over(item);
    return ended;
}

// Child j of a SPLIT as an item. The slice is void if the pool is full.
__device__ inline bool describe_child(const Item& item, i32 j, Item* child) {
    i64 at = reserve_pool(item.n_base + 1);
    if (at == NOBODY) {
        if (lane_id() == 0) overflow();
        return false;
    }
    write_list(params.pool + item.base_at, item.n_base, params.pool + at);
    if (lane_id() == 0) params.pool[at + item.n_base] = params.pool[item.cand_at + j];
    __syncwarp();
    i32 behind = item.n_cand - j - 1;
    *child = path_item(at, item.n_base + 1, item.cand_at + j + 1, behind, 0, behind, 1);
    return true;
}

// Explore the children of a SPLIT one by one. When warps wait, they get parts of what is left behind the next child.
__device__ inline void run_split(Worker& w, Item rest) {
    ROLLED for (; rest.begin < rest.end; rest.begin += 1) {
        i32 wanted;
        bool ends = is_ending(&wanted) || ((++w.tick & (POLL - 1)) == 0 && is_late(w));
        if (w.visits > 0 && ends) {
            leave_over(rest);
            return;
        }
        Item others = rest;
        others.begin += 1;
        i32 n = others.end - others.begin < wanted ? others.end - others.begin : wanted;
        if (n > 32) n = 32;  // one per lane, which is what reserve_given keeps in reserve
        i64 slot = n > 0 ? reserve_given(n) : NOBODY;
        if (slot != NOBODY) {
            publish(slot, n, others);
            rest.end = others.begin;
        }
        Item child;
        if (!describe_child(rest, rest.begin, &child)) return;
        i32 ended = run_one(w, child);
        w.visits += 1;  // many children lead nowhere at once
        if (ended == STOPPED && rest.begin + 1 < rest.end) {
            rest.begin += 1;
            leave_over(rest);
        }
        if (ended == STOPPED) return;
    }
}

__device__ inline void run_item(Worker& w, const Item& item) {
    w.visits = 0;
    if (item.kind == SPLIT)
        run_split(w, item);
    else
        run_one(w, item);
    // Most roots have no children to visit. Somebody has to look at the clock all the same.
    w.visits = 1;
    if ((++w.tick & (POLL - 1)) == 0) is_late(w);
}

extern "C" __global__ void __launch_bounds__(BLOCK, MIN_BLOCKS) sieve() {
    work_on_items<SieveScratch>([](Worker& w, const Item& item) { run_item(w, item); });
}
