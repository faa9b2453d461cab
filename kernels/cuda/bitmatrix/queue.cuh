// The queue: items of the host first, then items that warps give away. Warp-level.
//
// A warp draws a ticket; ticket t is served by item t. Beyond the host's items a ticket waits for its own
// flag, so no two warps contend for a flag. The number of tickets ahead of the items is the demand that working warps see.
// `open` counts unfinished items; when it reaches zero nothing can be given any more and every warp leaves.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

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
    // This warp waits. It polls its own flag, a word that no other warp polls; a ticket beyond the room for given items has
    // no flag, and waits for the end. The pauses grow, so that waiting warps leave memory to working ones.
    i64 slot = ticket - params.n_items;
    u32 pause = 64;
    ROLLED for (u32 round = 0;; round++) {
        // Three lanes look at three things with one load: lane 0 at the flag, lane 1 at `open`, lane 2 at `stop`. The last two
        // are shared by all waiting warps, so they are looked at more seldom.
        const volatile i32* where = lane_id() == 1 ? (volatile i32*)&params.queue->open : &params.queue->stop;
        if (lane_id() == 0 && slot < params.n_given) where = (volatile i32*)&params.ready[slot];
        bool looks = lane_id() == 0 ? slot < params.n_given : lane_id() < 3 && (round & 3) == 0;
        if ((round & 63) == 63) talk_to_host();
        i32 seen = looks ? *where : lane_id() == 1;  // a lane that does not look: no item, something open, no stop
        if (from(seen, 2) != 0) return false;  // what is only GIVEN is left for the host
        if (from(seen, 0) != 0) {
            __threadfence();  // with that of publish(): no part of the item is read before its flag
            *item = params.given[slot];
            // for the host, which takes what is only GIVEN for work that no warp has begun
            if (lane_id() == 0) *(volatile i32*)&params.ready[slot] = TAKEN;
            return true;
        }
        if (from(seen, 1) == 0) return false;  // nothing is open, so nothing can be given any more
        __nanosleep(pause);
        if (pause < 512) pause *= 2;
    }
}

// An item is done. Only then may `open` go down: a warp that sees zero leaves, so everything that this item gave away must have
// been counted and written before, by all lanes.
__device__ __forceinline__ void finish_item() {
    __syncwarp();
    if (lane_id() == 0) {
        __threadfence();
        atomicAdd(&params.queue->open, ~0ull);  // minus one
    }
}

// Room for n ints in the pool, or NOBODY. When it is filling up the launch ends, while there is room for what is left to
// do: the host throws away the lists that no item refers to any more, and goes on.
__device__ __forceinline__ i64 reserve_pool(i64 n) {
    i64 at = NOBODY;
    // looked at before it is added to: else each refusal would make the counter larger, and small lists fit no more
    if (lane_id() == 0 && (i64) * (volatile u64*)&params.queue->pool + n <= params.n_pool) {
        at = (i64)atomicAdd(&params.queue->pool, (u64)n);
        if (at + n > params.pool_limit) atomicExch(&params.queue->stop, 1);
        if (at + n > params.n_pool) at = NOBODY;
    }
    return from(at, 0);
}

// Room for n given items, or NOBODY. What is reserved must be published: a warp may be waiting for it already.
//
// All warps may look at the same time, see the same tail, and add up to 32 items each: hence 32 for each warp in reserve.
__device__ __forceinline__ i64 reserve_given(i32 n) {
    i64 slot = NOBODY;
    if (lane_id() == 0 && (i64) * (volatile u64*)&params.queue->tail + n + 32 * params.n_warps <= params.n_given) {
        atomicAdd(&params.queue->open, (u64)n);  // before anybody can take one, and count it down
        slot = (i64)atomicAdd(&params.queue->tail, (u64)n);
        atomicAdd(&params.queue->given, (u64)n);
    }
    return from(slot, 0);
}

// Hand over children [item.begin, item.end) in n items from `slot` on, in nearly equal ranges.
__device__ inline void publish(i64 slot, i32 n, const Item& item) {
    i64 total = (i64)item.end - item.begin;
    __threadfence();  // the lists the item points to: each lane has written a part of them,
    __syncwarp();     // and no lane hands an item over before all have
    ROLLED for (i32 i = lane_id(); i < n; i += 32) {
        Item part = item;
        part.begin = item.begin + (i32)(total * i / n);
        part.end = item.begin + (i32)(total * (i + 1) / n);
        part.fresh = item.fresh && i == 0;
        params.given[slot + i] = part;
        __threadfence();  // the item before its flag
        *(volatile i32*)&params.ready[slot + i] = GIVEN;
    }
    __syncwarp();
}

// Look at the clock and the host, and tell it how far the launch is. True when the time is over; a warp that has visited
// nothing leaves it to others to see that, because a slice has to get on.
__device__ __noinline__ bool is_late(Worker& w) {
    tell_count(w);
    talk_to_host();
    bool late = w.visits > 0 && warp_any(w.deadline != 0 && now_ns() >= w.deadline);
    if (late && lane_id() == 0) atomicExch(&params.queue->stop, 1);
    return late;
}

// Look at the queue, with one load: whether the launch has to stop, and how many warps wait for an item that was not
// given yet.
__device__ __forceinline__ bool is_ending(i32* wanted) {
    // this is in the innermost loops: three loads, one after the other, would take three times as long as three lanes do
    const Queue* q = params.queue;
    const u64* where = lane_id() == 0 ? &q->head : lane_id() == 1 ? &q->tail : (const u64*)&q->stop;
    u64 seen = lane_id() < 3 ? *(const volatile u64*)where : 0;
    i64 waiting = (i64)(from(seen, 0) - from(seen, 1)) - params.n_items;
    *wanted = (i32)(waiting > (1 << 20) ? 1 << 20 : waiting);
    return (i32)from(seen, 2) != 0;  // the upper half is Queue.overflow
}
