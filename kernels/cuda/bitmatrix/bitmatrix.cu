// Maximal biclique enumeration in bit rows, by one persistent kernel in which each warp works on an item.
//
// kernels/shipped.py compiles it ahead in the usual shapes, and kernels/gpu/machine_code.py has NVRTC compile it in others. Both
// set ROW_CAP, LIST_CAP and BLOCK. It also compiles alone, with the defaults of types.cuh.
//
// Input: `params` (types.cuh), which kernels/bitmatrix/engine.py fills: the graph in both directions, with root
// vertices by rank; the host's items, heaviest first; memory for the queue, the pool and the output, and one Scratch
// per warp. Output: counters in Queue. In mode list, Records, and their members in `values`. When the slice ends early,
// the rest of the work as items in `left_over`, and the host items that no warp has begun (from Queue.head on).
//
// Method: docs/kernels.md. A first-level subtree with at most 64 base vertices is one word problem (rows.cuh,
// search.cuh). A larger one is intersected with one candidate after the other (hub.cuh), and each child is again a word
// problem or a hub. Working warps give work to waiting ones (queue.cuh).
//
// Launch: any number of blocks of BLOCK threads that are resident together, without dynamic shared memory. When an
// output buffer or a limit is reached, every warp writes down its open levels and nodes that could not be emitted. So
// nothing is lost, and nothing is emitted twice.
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/candidate_window.cuh"
#include "bitmatrix/hub.cuh"
#include "bitmatrix/launch.cuh"
#include "bitmatrix/level_copy.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/marks.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/twins.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/wedges.cuh"
#include "bitmatrix/worker.cuh"

// Explore the first-level subtree of a root with at most BASE_CAP base vertices.
//
// All run_* functions return DONE or STOPPED. *begun is false when the item's node itself could not be emitted;
// *too_large is true when the item needs more scratch memory. In both cases the caller writes the item down.
__device__ inline i32 run_root(Worker& w, const Item& item, bool* begun, bool* too_large) {
    i64 at = params.root_indptr[item.bound];
    i32 n = (i32)(params.root_indptr[item.bound + 1] - at);
    write_list(params.root_indices + at, n, w.s->base);
    __syncwarp();
    set_kin({item.bound, item.bound, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    return solve(w, n, item.fresh, begun, too_large);
}

// Explore the hub of frame f. If f.closure is NULL, the closure is found here.
__device__ __noinline__ i32 run_frame(Worker& w, const Item& item, HubFrame f, bool* begun, bool* too_large) {
    if (MARKED && !may_be_marked(f.base, f.n_base, f.bound == NOBODY ? 0 : f.bound)) return DONE;
    if (f.closure == 0) {
        i32* closure = w.s->list + f.list_end;
        HubFrame above = f;  // says what the closure may contain: the path, and candidates
        above.closure = item.kind == PATH ? params.pool + item.base_at : 0;
        above.n_closure = item.kind == PATH ? item.n_base : 0;
        i32 n = close(f.base, f.n_base, above, f.bound, f.bound, closure, LIST_CAP - f.list_end);
        if (n == -1) return DONE;
        *too_large = n == -2;
        if (*too_large) return DONE;
        f.closure = closure;
        f.n_closure = n;
        f.list_end += n;
    }
    if (item.fresh) {
        w.tests += 1;
        if (!emit_hub(w, f.base, f.n_base, f.closure, f.n_closure)) {
            *begun = false;
            return STOPPED;
        }
    }
    open_range(w, &f);
    if (lane_id() == 0) w.s->frame[0] = f;
    __syncwarp();
    i32 ended = search_hub(w);
    w.hub_depth = NOBODY;
    return ended;
}

// Explore a hub whose lists are in the pool, or that is the first-level subtree of `bound`.
__device__ inline i32 run_hub(Worker& w, const Item& item, bool* begun, bool* too_large) {
    bool first_level = item.base_at == NOBODY;
    HubFrame f;
    f.base = first_level ? params.root_indices + params.root_indptr[item.bound] : params.pool + item.base_at;
    f.closure = first_level ? 0 : params.pool + item.closure_at;
    f.cand = item.cand_at == NOBODY ? 0 : params.pool + item.cand_at;
    f.n_base = first_level ? (i32)(params.root_indptr[item.bound + 1] - params.root_indptr[item.bound]) : item.n_base;
    f.n_closure = item.n_closure;
    f.n_cand = item.n_cand;
    f.next = item.begin;
    f.end = item.end;
    f.bound = item.bound;
    f.list_end = 0;
    return run_frame(w, item, f, begun, too_large);
}

// Explore a node that is given by its path. L is the common neighbourhood of the path, if no copy of its rows goes with it.
__device__ __noinline__ i32 run_path(Worker& w, const Item& item, bool* begun, bool* too_large) {
    const i32* path = params.pool + item.base_at;
    const i32* cand = item.cand_at == NOBODY ? 0 : params.pool + item.cand_at;
    bool has_copy = item.closure_at != NOBODY && copy_fits(params.pool + item.closure_at, item.n_cand);
    const i32* copy = has_copy ? params.pool + item.closure_at : 0;
    set_kin({NOBODY, NOBODY, cand, item.n_cand, item.begin, item.end, path, item.n_base, copy, 0, 0, 0, 0});
    if (has_copy) return solve(w, 0, item.fresh, begun, too_large);
    i32* base = w.s->list;
    i32 n = write_common(path, item.n_base, base, LIST_CAP);
    *too_large = n == NOBODY;
    if (*too_large) return DONE;
    bool ranged = cand == 0, is_hub = n > BASE_CAP;
    i32 n_bits = ranged ? 0 : find_bits(w, base, n);
    i32 ended = n_bits == 0 ? DONE : solve(w, n_bits, item.fresh, begun, too_large);
    if (n_bits != 0 && !(is_hub && *too_large)) return ended;
    *too_large = false;
    HubFrame f;
    f.base = base;
    f.closure = ranged ? path : 0;
    f.cand = cand;
    f.window = 0;
    f.n_base = n;
    f.n_closure = ranged ? item.n_base : 0;
    f.n_cand = item.n_cand;
    f.next = item.begin;
    f.end = item.end;
    f.bound = NOBODY;
    f.list_end = n;
    return run_frame(w, item, f, begun, too_large);
}

// Explore an item, and write it down if it was not begun or is too large.
__device__ __noinline__ void run_item(Worker& w, const Item& item) {
    bool begun = true, too_large = false;
    i32 ended = DONE;
    w.hub_depth = NOBODY;
    w.visits = 0;
    if (item.kind == ROOT)
        ended = run_root(w, item, &begun, &too_large);
    else if (item.kind == HUB)
        ended = run_hub(w, item, &begun, &too_large);
    else
        ended = run_path(w, item, &begun, &too_large);
    if (too_large) set_oversize(item);
    if (ended == STOPPED && !begun) leave_over(item);
}

extern "C" __global__ void __launch_bounds__(BLOCK, MIN_BLOCKS) bitmatrix() {
    work_on_items<Scratch>([](Worker& w, const Item& item) { run_item(w, item); });
}
