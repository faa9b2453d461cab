// Frames of hubs as items. They are given to waiting warps, left for the host, or set aside where room is short.
// Warp-level: all lanes have the same copy of a frame, share the copying of lists, and the leader writes the frame.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Describe a frame's children [f.next, f.end) as an item, without its lists L and R.
__device__ __forceinline__ void describe_children(const HubFrame& f, Item* item) {
    item->bound = f.bound;
    item->base_at = item->closure_at = NOBODY;
    item->cand_at = f.cand == 0 ? NOBODY : f.cand - params.pool;
    item->n_base = f.n_base;
    item->n_closure = f.n_closure;
    item->n_cand = f.n_cand;
    item->begin = f.next;
    item->end = f.end;
    item->fresh = 0;  // the frame itself was emitted when it was pushed
}

// A frame as an item for another warp, which begins at once. L and R go to the pool, unless they are there already. A
// first-level subtree needs neither list, because both are found again from its root. False when the pool is full.
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
    // Scratch memory belongs to this warp, so another warp needs copies. The lanes copy 32 entries at a time.
    write_list(f.base, f.n_base, params.pool + room);
    write_list(f.closure, f.n_closure, params.pool + room + f.n_base);
    item->base_at = room;
    item->closure_at = room + f.n_base;
    __syncwarp();
    return true;
}

// A frame as an item for later. It has only the closure, which is a path to the node. L can be as long as the list of a
// hub's neighbours, and all warps write their frames down at the same time when a launch ends. To find L again takes
// only as long as one visit of a child. False when the pool is full.
__device__ __noinline__ bool describe_path(const HubFrame& f, Item* item) {
    describe_children(f, item);
    item->kind = f.bound == NOBODY ? PATH : HUB;
    if (f.bound != NOBODY) return true;  // a first-level subtree is found again from its root
    item->n_base = f.n_closure;
    item->n_closure = 0;
    // An item that came from the pool still has its closure there.
    bool is_there = f.closure >= params.pool && f.closure < params.pool + params.n_pool;
    item->base_at = is_there ? f.closure - params.pool : reserve_pool(f.n_closure);
    if (item->base_at == NOBODY) return false;
    if (!is_there) write_list(f.closure, f.n_closure, params.pool + item->base_at);
    __syncwarp();
    return true;
}

// Write every frame that still has children down for the host. The slice is void if the pool is full.
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

// When warps wait, give away the children of the shallowest frame that has enough of them. Returns whether there was
// such a frame. Shallow frames go first, because most work is below them.
__device__ __noinline__ bool give_children(Worker& w, i32 depth, i32 wanted) {
    ROLLED for (i32 level = 0; level <= depth; level++) {
        HubFrame f = w.s->frame[level];
        i32 n = f.end - f.next;
        if (n <= 0) continue;
        if (n < 2) continue;  // this warp is about to take the only one
        i32 n_items = n < wanted ? n : wanted;
        if (n_items > 32) n_items = 32;  // one per lane, which is what reserve_given keeps in reserve
        Item item;
        if (!describe_frame(f, &item)) return true;  // no room now, so the children stay here
        i64 slot = reserve_given(n_items);
        if (slot == NOBODY) return true;
        publish(slot, n_items, item);
        if (lane_id() == 0) w.s->frame[level].end = f.next;  // the range is empty now; search_hub drops the frame later
        __syncwarp();
        return true;
    }
    return false;
}

// Make children [at, end) of a frame an item of their own, because they need more scratch memory than is free. A warp
// that begins with this item has its whole list and stack for it. If other frames used them here (`crowded`), that is
// enough, and any warp may take the item. Otherwise the item needs a launch with more scratch memory.
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
            leave_over(item);  // no room among the given items: the host launches it again
    } else if (lane_id() == 0) {
        overflow();
    }
}
