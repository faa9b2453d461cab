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

__device__ __forceinline__ bool is_stopped(const Worker& w) { return load_now(&w.q->stop) != 0; }

// Write an item down for the host: unfinished work when the slice ends, or work that needs more scratch.
__device__ inline void put_down(Worker& w, const Item& item, Item* items, i64 n_items, u64* used) {
    if (lane_id() == 0) {
        u64 at = atomicAdd(used, 1ull);
        if ((i64)at < n_items)
            items[at] = item;
        else
            atomicExch(&w.q->overflow, 1);
    }
    __syncwarp();
}

__device__ __forceinline__ void leave_over(Worker& w, const Item& item) {
    put_down(w, item, w.p->left_over, w.p->n_left_over, &w.q->left_over);
}

__device__ __forceinline__ void set_oversize(Worker& w, const Item& item) {
    put_down(w, item, w.p->oversize, w.p->n_oversize, &w.q->oversize);
}

// Add what this warp has counted to the launch's count.
__device__ __forceinline__ void tell_count(Worker& w) {
    u64 found = warp_sum(w.found);
    if (lane_id() == 0 && w.count + found != 0) atomicAdd(&w.q->count, w.count + found);
    w.count = w.found = 0;
}

// One warp tells the host how far the launch is, and hears whether it has to stop.
__device__ inline void talk_to_host(Worker& w) {
    if (blockIdx.x != 0 || threadIdx.x != 0 || w.p->host_stop == 0) return;
    *w.p->host_count = (i64) * (volatile u64*)&w.q->count;
    if (*w.p->host_stop != 0) atomicExch(&w.q->stop, 1);
}

// Next item, or false when the launch is over for this warp.
__device__ inline bool take(Worker& w, Item* item) {
    const Params* p = w.p;
    i64 ticket = (i64)draw(&w.q->head, 1);
    if (ticket < p->n_items) {
        *item = p->items[ticket];
        if (!is_stopped(w)) return true;
        leave_over(w, *item);
        return false;
    }
    i64 slot = ticket - p->n_items;
    u32 pause = 64;
    ROLLED for (u32 round = 0;; round++) {
        // one load for the three things to look at; what all waiting warps share, more seldom
        const volatile i32* where = lane_id() == 1 ? (volatile i32*)&w.q->open : &w.q->stop;
        if (lane_id() == 0 && slot < p->n_given) where = (volatile i32*)&p->ready[slot];
        bool looks = lane_id() == 0 ? slot < p->n_given : lane_id() < 3 && (round & 3) == 0;
        if ((round & 63) == 63) talk_to_host(w);
        i32 seen = looks ? *where : lane_id() == 1;
        if (from(seen, 2) != 0) return false;  // what is only GIVEN is left for the host
        if (from(seen, 0) != 0) {
            __threadfence();
            *item = p->given[slot];
            if (lane_id() == 0) *(volatile i32*)&p->ready[slot] = TAKEN;
            return true;
        }
        if (from(seen, 1) == 0) return false;
        __nanosleep(pause);
        if (pause < 512) pause *= 2;
    }
}

__device__ __forceinline__ void finish_item(Worker& w) {
    __syncwarp();
    if (lane_id() == 0) {
        __threadfence();
        atomicAdd(&w.q->open, ~0ull);
    }
}

// How many warps wait for an item that nobody has given yet.
__device__ __forceinline__ i32 demand(const Worker& w) {
    u64 seen = lane_id() < 2 ? *(volatile u64*)(lane_id() == 0 ? &w.q->head : &w.q->tail) : 0;
    i64 wanted = (i64)(from(seen, 0) - from(seen, 1)) - w.p->n_items;
    return (i32)(wanted > (1 << 20) ? 1 << 20 : wanted);
}

// Room for n ints in the pool, or NOBODY. When it is filling up the launch ends, while there is room for what is left to
// do: the host throws away what nobody refers to any more, and goes on.
__device__ __forceinline__ i64 reserve_pool(Worker& w, i64 n) {
    i64 at = NOBODY;
    if (lane_id() == 0 && (i64) * (volatile u64*)&w.q->pool + n <= w.p->n_pool) {
        at = (i64)atomicAdd(&w.q->pool, (u64)n);
        if (at + n > w.p->pool_limit) atomicExch(&w.q->stop, 1);
        if (at + n > w.p->n_pool) at = NOBODY;
    }
    return from(at, 0);
}

// Room for n given items, or NOBODY. What is reserved must be published.
__device__ __forceinline__ i64 reserve_given(Worker& w, i32 n) {
    i64 slot = NOBODY;
    if (lane_id() == 0 && (i64) * (volatile u64*)&w.q->tail + n + 32 * w.p->n_warps <= w.p->n_given) {
        atomicAdd(&w.q->open, (u64)n);
        slot = (i64)atomicAdd(&w.q->tail, (u64)n);
        atomicAdd(&w.q->given, (u64)n);
    }
    return from(slot, 0);
}

// Hand over children [item.begin, item.end) in n items from `slot` on, in nearly equal ranges.
__device__ inline void publish(Worker& w, i64 slot, i32 n, const Item& item) {
    i64 total = (i64)item.end - item.begin;
    __threadfence();  // the lists the item points to
    __syncwarp();
    ROLLED for (i32 i = lane_id(); i < n; i += 32) {
        Item part = item;
        part.begin = item.begin + (i32)(total * i / n);
        part.end = item.begin + (i32)(total * (i + 1) / n);
        part.fresh = item.fresh && i == 0;
        w.p->given[slot + i] = part;
        __threadfence();
        *(volatile i32*)&w.p->ready[slot + i] = GIVEN;
    }
    __syncwarp();
}

// Look at the clock and the host. True when the launch has to stop.
__device__ inline bool check_stop(Worker& w) {
    tell_count(w);
    talk_to_host(w);
    if (is_stopped(w)) return true;
    bool late = warp_any(w.deadline != 0 && now_ns() >= w.deadline);
    if (late && lane_id() == 0) atomicExch(&w.q->stop, 1);
    return late;
}
