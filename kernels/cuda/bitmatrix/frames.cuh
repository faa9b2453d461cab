// Frames of hubs as items: given to waiting warps, left for the host, or set aside for want of room. Warp-level.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// A frame's children [f.next, f.end) as an item, but for its lists.
__device__ __forceinline__ void describe_children(const HubFrame& f, Item* item) {
    item->bound = f.bound;
    item->base_at = item->closure_at = NOBODY;
    item->cand_at = f.cand == 0 ? NOBODY : f.cand - params.pool;
    item->n_base = f.n_base;
    item->n_closure = f.n_closure;
    item->n_cand = f.n_cand;
    item->begin = f.next;
    item->end = f.end;
    item->fresh = 0;
}

// As an item for another warp, which begins at once: L and R go to the pool unless they are there already. A first-level
// subtree needs neither, because its lists are found again from its root.
__device__ __noinline__ bool describe_frame(const HubFrame& f, Item* item) {
    describe_children(f, item);
    item->kind = HUB;
    if (f.bound != NOBODY) return true;
    if (f.base >= params.pool && f.base < params.pool + params.n_pool) {
        item->base_at = f.base - params.pool;
        item->closure_at = f.closure - params.pool;
        return true;
    }
    i64 room = reserve_pool((i64)f.n_base + f.n_closure);
    if (room == NOBODY) return false;
    write_list(f.base, f.n_base, params.pool + room);
    write_list(f.closure, f.n_closure, params.pool + room + f.n_base);
    item->base_at = room;
    item->closure_at = room + f.n_base;
    __syncwarp();
    return true;
}

// As an item for later: by its closure alone, which is a path to it. L may have as many vertices as a hub has neighbours,
// and all warps write their frames down at once when a launch ends; to find L again takes as long as to visit a child.
__device__ __noinline__ bool describe_path(const HubFrame& f, Item* item) {
    describe_children(f, item);
    item->kind = f.bound == NOBODY ? PATH : HUB;
    if (f.bound != NOBODY) return true;
    item->n_base = f.n_closure;
    item->n_closure = 0;
    bool is_there = f.closure >= params.pool && f.closure < params.pool + params.n_pool;
    item->base_at = is_there ? f.closure - params.pool : reserve_pool(f.n_closure);
    if (item->base_at == NOBODY) return false;
    if (!is_there) write_list(f.closure, f.n_closure, params.pool + item->base_at);
    __syncwarp();
    return true;
}

__device__ __noinline__ void leave_frames(Worker& w, i32 depth) {
    ROLLED for (i32 level = 0; level <= depth; level++) {
        HubFrame f = w.s->frame[level];
        if (f.next >= f.end) continue;
        Item item;
        if (describe_path(f, &item))
            leave_over(item);
        else if (lane_id() == 0)
            overflow();
    }
    __syncwarp();
}

// When warps wait: give away the children of the shallowest frame that has some. Whether there were any.
__device__ __noinline__ bool give_children(Worker& w, i32 depth, i32 wanted) {
    ROLLED for (i32 level = 0; level <= depth; level++) {
        HubFrame f = w.s->frame[level];
        i32 n = f.end - f.next;
        if (n <= 0) continue;
        if ((i64)n * f.n_base < GIVE_MIN || n < 2) continue;
        i32 n_items = n / 2 < wanted ? n / 2 : wanted;  // at least two children each
        if (n_items > 32) n_items = 32;
        Item item;
        if (!describe_frame(f, &item)) return true;
        i64 slot = reserve_given(n_items);
        if (slot == NOBODY) return true;
        publish(slot, n_items, item);
        if (lane_id() == 0) w.s->frame[level].end = f.next;  // the range is empty now; the frame goes when its turn comes
        __syncwarp();
        return true;
    }
    return false;
}

// Children [at, end) of a frame as an item of their own. A warp that begins with it has its list and its stack of frames
// to itself, so where others took them (`crowded`) any warp may have it; else it needs a launch with more scratch.
__device__ __noinline__ void set_aside(HubFrame f, i32 at, i32 end, bool crowded) {
    f.next = at;
    f.end = end;
    Item item;
    if (describe_path(f, &item)) {
        if (!crowded)
            set_oversize(item);
        else if (i64 slot = reserve_given(1); slot != NOBODY)
            publish(slot, 1, item);
        else
            leave_over(item);
    } else if (lane_id() == 0) {
        overflow();
    }
}
