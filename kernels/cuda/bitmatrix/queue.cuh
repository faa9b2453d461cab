// The queue: first the items of the host, then items that warps give away. Warp-level: the leader does the atomics, and
// a shuffle tells all lanes the result.
//
// A warp draws a ticket, and ticket t gets item t. A ticket beyond the host's items waits for its own flag, so no two
// warps poll the same flag. Working warps see how many tickets are ahead of the items: so many warps wait. `open`
// counts unfinished items. When it is zero, no warp can give anything away any more, and every warp leaves.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Values of Params.ready; 0: nothing was given yet
#define GIVEN 1
#define TAKEN 2

// Whether the launch has to stop, as the leader sees it.
__device__ __forceinline__ bool is_stopped() { return load_now(&params.queue->stop) != 0; }

// Work that had to be written down does not fit, so the slice is void. One lane calls this.
__device__ __forceinline__ void overflow() { atomicExch(&params.queue->overflow, 1); }

// An item with this path, which is in the pool, and these candidates.
__device__ __forceinline__ Item path_item(i64 path_at, i32 n_path, i64 cand_at, i32 n_cand, i32 begin, i32 end, i32 fresh) {
    return {PATH, NOBODY, path_at, NOBODY, cand_at, n_path, 0, n_cand, begin, end, fresh};
}

// Write an item down for the host: unfinished work of a slice that ends, or work that needs more scratch memory.
__device__ inline void put_down(const Item& item, Item* items, i64 n_items, u64* used) {
    if (lane_id() == 0) {
        u64 at = atomicAdd(used, 1ull);
        if ((i64)at < n_items)
            items[at] = item;
        else
            overflow();
    }
    __syncwarp();
}

__device__ __forceinline__ void leave_over(const Item& item) {
    put_down(item, params.left_over, params.n_left_over, &params.queue->left_over);
}

__device__ __forceinline__ void set_oversize(const Item& item) {
    put_down(item, params.oversize, params.n_oversize, &params.queue->oversize);
}

// Add this warp's count to the launch's count. `found` differs from lane to lane, `count` is the same in all lanes.
__device__ __forceinline__ void tell_count(Worker& w) {
    u64 found = warp_sum(w.found);
    if (lane_id() == 0 && w.count + found != 0) atomicAdd(&params.queue->count, w.count + found);
    w.count = w.found = 0;
}

// One thread of the launch tells the host the count so far, and reads whether the launch has to stop.
__device__ inline void talk_to_host() {
    if (blockIdx.x != 0 || threadIdx.x != 0 || params.host_stop == 0) return;
    *params.host_count = (i64) * (volatile u64*)&params.queue->count;
    if (*params.host_stop != 0) atomicExch(&params.queue->stop, 1);
}

// Take the next item. False when the launch is over for this warp.
__device__ inline bool take(Item* item) {
    i64 ticket = (i64)draw(&params.queue->head, 1);
    if (ticket < params.n_items) {
        *item = params.items[ticket];
        if (!is_stopped()) return true;
        leave_over(*item);  // the ticket is drawn, so the host does not see this item behind `head`
        return false;
    }
    // This warp waits. It polls its own flag, which no other warp polls. A ticket beyond the room for given items has
    // no flag, and waits for the end of the launch. The pauses grow, so that waiting warps do not slow memory down.
    i64 slot = ticket - params.n_items;
    u32 pause = 64;
    ROLLED for (u32 round = 0;; round++) {
        // One load reads three values: lane 0 reads the flag, lane 1 `open`, and lane 2 `stop`. All waiting warps share
        // the last two, so they are read only every fourth round.
        const volatile i32* where = lane_id() == 1 ? (volatile i32*)&params.queue->open : &params.queue->stop;
        if (lane_id() == 0 && slot < params.n_given) where = (volatile i32*)&params.ready[slot];
        bool looks = lane_id() == 0 ? slot < params.n_given : lane_id() < 3 && (round & 3) == 0;
        if ((round & 63) == 63) talk_to_host();
        i32 seen = looks ? *where : lane_id() == 1;  // lanes that do not look: no item, 1 open, no stop
        if (from(seen, 2) != 0) return false;  // an item that is GIVEN, not TAKEN, is left for the host
        if (from(seen, 0) != 0) {
            __threadfence();  // pairs with the fence in publish(): the flag is read before any part of the item
            *item = params.given[slot];
            // The host treats items that are still GIVEN as work that no warp has begun.
            if (lane_id() == 0) *(volatile i32*)&params.ready[slot] = TAKEN;
            return true;
        }
        if (from(seen, 1) == 0) return false;  // nothing is open, so no warp can give anything away
        __nanosleep(pause);
        if (pause < 512) pause *= 2;
    }
}

// Count an item as done. A warp that sees `open` at zero leaves. So all lanes must first have counted and written
// everything that this item gave away.
__device__ __forceinline__ void finish_item() {
    __syncwarp();
    if (lane_id() == 0) {
        __threadfence();
        atomicAdd(&params.queue->open, ~0ull);  // minus one
    }
}

// Reserve n ints in the pool. Returns their position, or NOBODY. When pool_limit is passed, the launch ends while there
// is still room to write the open work down. Then the host drops lists that no item refers to any more, and goes on.
__device__ __forceinline__ i64 reserve_pool(i64 n) {
    i64 at = NOBODY;
    // The counter is read before it is raised. Otherwise each refusal would raise it, until even small lists do not
    // fit.
    if (lane_id() == 0 && (i64) * (volatile u64*)&params.queue->pool + n <= params.n_pool) {
        at = (i64)atomicAdd(&params.queue->pool, (u64)n);
        if (at + n > params.pool_limit) atomicExch(&params.queue->stop, 1);
        if (at + n > params.n_pool) at = NOBODY;
    }
    return from(at, 0);
}

// As reserve_pool, for a list that can be done without. It leaves a quarter of what the limit allows.
__device__ inline i64 reserve_spare(i64 n) {
    i64 used = 0;
    if (lane_id() == 0) used = (i64) * (volatile u64*)&params.queue->pool;
    return from(used, 0) + n <= params.pool_limit - params.pool_limit / 4 ? reserve_pool(n) : NOBODY;
}

// Reserve n slots for given items. Returns the first, or NOBODY. The caller must publish them, because warps may
// already wait for these slots.
//
// All warps may read the same tail at the same time, and then add up to 32 items each. So 32 slots per warp are in
// reserve.
__device__ __forceinline__ i64 reserve_given(i32 n) {
    i64 slot = NOBODY;
    if (lane_id() == 0 && (i64) * (volatile u64*)&params.queue->tail + n + 32 * params.n_warps <= params.n_given) {
        atomicAdd(&params.queue->open, (u64)n);  // before any warp can take an item and count it down
        slot = (i64)atomicAdd(&params.queue->tail, (u64)n);
        atomicAdd(&params.queue->given, (u64)n);
    }
    return from(slot, 0);
}

// Hand over children [item.begin, item.end) as n items from `slot` on, in nearly equal ranges. Each lane makes one
// item.
__device__ inline void publish(i64 slot, i32 n, const Item& item) {
    i64 total = (i64)item.end - item.begin;
    // Each lane has written a part of the lists that the item points to. No lane hands an item over before all parts
    // are visible to other warps.
    __threadfence();
    __syncwarp();
    ROLLED for (i32 i = lane_id(); i < n; i += 32) {
        Item part = item;
        part.begin = item.begin + (i32)(total * i / n);
        part.end = item.begin + (i32)(total * (i + 1) / n);
        part.fresh = item.fresh && i == 0;
        params.given[slot + i] = part;
        __threadfence();  // the item becomes visible before its flag
        *(volatile i32*)&params.ready[slot + i] = GIVEN;
    }
    __syncwarp();
}

// Hand an item on to any warp, or to the host if no warp can have it.
__device__ inline void pass_on(const Item& item) {
    i64 slot = reserve_given(1);
    if (slot != NOBODY)
        publish(slot, 1, item);
    else
        leave_over(item);
}

// Hand over the items of the first n lanes: to any warps, or to the host if no warp can have them.
__device__ inline void pass_on_each(const Item& item, i32 n) {
    i64 slot = reserve_given(n);
    if (slot == NOBODY) {
        u64 at = draw(&params.queue->left_over, n) + lane_id();
        if (lane_id() < n && (i64)at < params.n_left_over)
            params.left_over[at] = item;
        else if (lane_id() < n)
            overflow();
        __syncwarp();
        return;
    }
    __threadfence();  // as in publish()
    __syncwarp();
    if (lane_id() < n) {
        params.given[slot + lane_id()] = item;
        __threadfence();
        *(volatile i32*)&params.ready[slot + lane_id()] = GIVEN;
    }
    __syncwarp();
}

// Tell the host the count so far, and look at its request to stop and at the clock. True when the time is over. A warp
// that has visited nothing does not look at the clock, because a slice must make progress.
__device__ __noinline__ bool is_late(Worker& w) {
    tell_count(w);
    talk_to_host();
    bool late = w.visits > 0 && warp_any(w.deadline != 0 && now_ns() >= w.deadline);
    if (late && lane_id() == 0) atomicExch(&params.queue->stop, 1);
    return late;
}

// Look at the queue with one load. Returns whether the launch has to stop. *wanted: how many warps wait for an item
// that was not given yet.
__device__ __forceinline__ bool is_ending(i32* wanted) {
    // The innermost loops call this. Three lanes load at the same time, which takes a third of three loads in a row.
    const Queue* q = params.queue;
    const u64* where = lane_id() == 0 ? &q->head : lane_id() == 1 ? &q->tail : (const u64*)&q->stop;
    u64 seen = lane_id() < 3 ? *(const volatile u64*)where : 0;
    i64 waiting = (i64)(from(seen, 0) - from(seen, 1)) - params.n_items;
    *wanted = (i32)(waiting > (1 << 20) ? 1 << 20 : waiting);
    return (i32)from(seen, 2) != 0;  // the upper half is Queue.overflow
}
