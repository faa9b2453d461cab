// The queue: items of the host first, then items that warps give away. Warp-level.
//
// A warp draws a ticket; ticket t is served by item t. Beyond the host's items a ticket waits for its own
// flag, so nobody contends. The number of tickets ahead of the items is the demand that working warps see.
// `open` counts unfinished items; when it reaches zero nothing can be given any more and everybody leaves.
#pragma once
#include "worker.cuh"

// Params.ready
#define GIVEN 1
#define TAKEN 2

__device__ __forceinline__ bool is_stopped() { return load_now(&params.queue->stop) != 0; }

// What had to be written down does not fit: the slice is void. By one lane.
__device__ __forceinline__ void overflow() { atomicExch(&params.queue->overflow, 1); }

// Write an item down for the host: unfinished work when the slice ends, or work that needs more scratch.
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

// Add what this warp has counted to the launch's count.
__device__ __forceinline__ void tell_count(Worker& w) {
    u64 found = warp_sum(w.found);
    if (lane_id() == 0 && w.count + found != 0) atomicAdd(&params.queue->count, w.count + found);
    w.count = w.found = 0;
}

// One warp tells the host how far the launch is, and hears whether it has to stop.
__device__ inline void talk_to_host() {
    if (blockIdx.x != 0 || threadIdx.x != 0 || params.host_stop == 0) return;
    *params.host_count = (i64) * (volatile u64*)&params.queue->count;
    if (*params.host_stop != 0) atomicExch(&params.queue->stop, 1);
}

// Next item, or false when the launch is over for this warp.
__device__ inline bool take(Item* item) {
    i64 ticket = (i64)draw(&params.queue->head, 1);
    if (ticket < params.n_items) {
        *item = params.items[ticket];
        if (!is_stopped()) return true;
        leave_over(*item);
        return false;
    }
    i64 slot = ticket - params.n_items;
    u32 pause = 64;
    ROLLED for (u32 round = 0;; round++) {
        // one load for the three things to look at; what all waiting warps share, more seldom
        const volatile i32* where = lane_id() == 1 ? (volatile i32*)&params.queue->open : &params.queue->stop;
        if (lane_id() == 0 && slot < params.n_given) where = (volatile i32*)&params.ready[slot];
        bool looks = lane_id() == 0 ? slot < params.n_given : lane_id() < 3 && (round & 3) == 0;
        if ((round & 63) == 63) talk_to_host();
        i32 seen = looks ? *where : lane_id() == 1;
        if (from(seen, 2) != 0) return false;  // what is only GIVEN is left for the host
        if (from(seen, 0) != 0) {
            __threadfence();
            *item = params.given[slot];
            if (lane_id() == 0) *(volatile i32*)&params.ready[slot] = TAKEN;
            return true;
        }
        if (from(seen, 1) == 0) return false;
        __nanosleep(pause);
        if (pause < 512) pause *= 2;
    }
}

__device__ __forceinline__ void finish_item() {
    __syncwarp();
    if (lane_id() == 0) {
        __threadfence();
        atomicAdd(&params.queue->open, ~0ull);
    }
}

// Room for n ints in the pool, or NOBODY. When it is filling up the launch ends, while there is room for what is left to
// do: the host throws away what nobody refers to any more, and goes on.
__device__ __forceinline__ i64 reserve_pool(i64 n) {
    i64 at = NOBODY;
    if (lane_id() == 0 && (i64) * (volatile u64*)&params.queue->pool + n <= params.n_pool) {
        at = (i64)atomicAdd(&params.queue->pool, (u64)n);
        if (at + n > params.pool_limit) atomicExch(&params.queue->stop, 1);
        if (at + n > params.n_pool) at = NOBODY;
    }
    return from(at, 0);
}

// Room for n given items, or NOBODY. What is reserved must be published.
__device__ __forceinline__ i64 reserve_given(i32 n) {
    i64 slot = NOBODY;
    if (lane_id() == 0 && (i64) * (volatile u64*)&params.queue->tail + n + 32 * params.n_warps <= params.n_given) {
        atomicAdd(&params.queue->open, (u64)n);
        slot = (i64)atomicAdd(&params.queue->tail, (u64)n);
        atomicAdd(&params.queue->given, (u64)n);
    }
    return from(slot, 0);
}

// Hand over children [item.begin, item.end) in n items from `slot` on, in nearly equal ranges.
__device__ inline void publish(i64 slot, i32 n, const Item& item) {
    i64 total = (i64)item.end - item.begin;
    __threadfence();  // the lists the item points to
    __syncwarp();
    ROLLED for (i32 i = lane_id(); i < n; i += 32) {
        Item part = item;
        part.begin = item.begin + (i32)(total * i / n);
        part.end = item.begin + (i32)(total * (i + 1) / n);
        part.fresh = item.fresh && i == 0;
        params.given[slot + i] = part;
        __threadfence();
        *(volatile i32*)&params.ready[slot + i] = GIVEN;
    }
    __syncwarp();
}

// Look at the clock and the host, and tell it how far the launch is. True when the time is over; who has visited nothing
// leaves it to others to see that, for a slice has to get on.
__device__ __noinline__ bool is_late(Worker& w) {
    tell_count(w);
    talk_to_host();
    bool late = w.visits > 0 && warp_any(w.deadline != 0 && now_ns() >= w.deadline);
    if (late && lane_id() == 0) atomicExch(&params.queue->stop, 1);
    return late;
}

// Look at the queue, with one load: whether the launch has to stop, and how many warps wait for an item that nobody has
// given yet.
__device__ __forceinline__ bool is_ending(i32* wanted) {
    const Queue* q = params.queue;
    const u64* where = lane_id() == 0 ? &q->head : lane_id() == 1 ? &q->tail : (const u64*)&q->stop;
    u64 seen = lane_id() < 3 ? *(const volatile u64*)where : 0;
    i64 waiting = (i64)(from(seen, 0) - from(seen, 1)) - params.n_items;
    *wanted = (i32)(waiting > (1 << 20) ? 1 << 20 : waiting);
    return (i32)from(seen, 2) != 0;  // the upper half is Queue.overflow
}
