// Work stealing. Each block has a shelf for children of its upper levels. A block without work tries the shelves in a
// circle, beginning with its own.
//
// The paper stops the whole grid to fill the shelves. Here a working block that sees hungry blocks fills its own shelf.
// It puts the children of its shallowest open node there, in the order in which they are to be explored. Each hungry
// block, also the owner, takes one child at a time by counting `available` down. A shelf is filled again only when it
// is empty and no block reads it, so its lists do not change while a block copies them.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "cumbe/block.cuh"
#include "cumbe/emit.cuh"
#include "cumbe/types.cuh"

// Whether the launch has to stop. Thread.
__device__ __forceinline__ bool is_stopped(const Block& b) { return now(&b.q->stop) != 0; }

// Whether this block's shelf may be filled. Leader.
__device__ inline bool is_shelf_free(const Block& b) {
    if (now(&b.p->available[blockIdx.x]) > 0) return false;
    __threadfence();  // `available` is read first, because a reader adds itself to `readers` before it takes a child
    return now(&b.p->readers[blockIdx.x]) == 0;
}

// Count |N(v) & L| of the candidates of a level. The counts go to g.next by position, and into bins. The `skipped`
// candidate gets NOBODY.
__device__ inline void count_candidates(Block& b, const Level& level, i32 skipped, bool some_rest, i32* bins) {
    const Subgraph& g = b.s->graph;
    // A warp takes a candidate, and its lanes take its column. g.next is free between two visits.
    for (i32 i = warp_id(); i < level.n_cand; i += N_WARPS) {
        i32 id = g.cands[i];
        Span column = g.column[id];
        i32 found = 0;
        for (i32 e = column.begin + lane_id(); e < column.end; e += 32)
            found += g.base_at[g.column_ids[e]] < level.n_base;
        found = warp_sum(found);
        // A candidate has a neighbour in L, so a true count is never 0 or NOBODY, and both can say something else.
        if (id == skipped) found = NOBODY;
        if (some_rest && g.vertex[id] < 0) found = 0;  // a candidate that is not to be explored
        if (lane_id() == 0) {
            g.next[i] = found;
            // Leaders of other warps may count into the same bin.
            if (found > 0) atomicAdd(&bins[found], 1);
        }
    }
    __syncthreads();
}

// Turn bins into first positions behind n_rest, with the largest count first. Warp 0.
__device__ inline void place_bins(i32* bins, i32 n_base, i32 n_rest) {
    // Lane 0 has the largest bin of each chunk, so the prefix sum runs from large counts to small ones. `total` is the
    // same in all lanes, and carries the sum from one chunk to the next. Bin 0 stays unused.
    i32 total = n_rest;
    for (i32 chunk = n_base; chunk > 0; chunk -= 32) {
        i32 bin = chunk - lane_id();
        i32 n = bin > 0 ? bins[bin] : 0;
        i32 before = sum_below(n);
        if (bin > 0) bins[bin] = total + before;
        total += from(before + n, 31);
    }
}

// Put the remaining children of the level at `depth` on the shelf, except `skipped`, which this block is exploring.
__device__ inline void fill_shelf(Block& b, i32 depth, i32 skipped, bool some_rest) {
    Shared* s = b.s;
    const Subgraph& g = s->graph;
    const CumbeParams* p = b.p;
    Level level = *level_of(b, depth);
    // The shelf lies in this block's arena. Other blocks read it while they copy a child, and is_shelf_free has made
    // sure that none does now.
    i32 *bins = b.arena + bins_at(p), *base = b.arena + shelf_base_at(p);
    i32 *cand = b.arena + shelf_cand_at(p), *path = b.arena + shelf_path_at(p);
    i32 n_children = level.todo - (skipped != NOBODY);
    i32 n_rest = level.n_cand - level.todo;
    for (i32 i = threadIdx.x; i <= level.n_base; i += BLOCK) bins[i] = 0;
    if (is_leader()) s->filled[0] = 0;
    __syncthreads();
    count_candidates(b, level, skipped, some_rest, bins);
    // The barriers before and behind separate the bins as counts from the bins as places.
    if (warp_id() == 0) place_bins(bins, level.n_base, n_rest);
    __syncthreads();
    for (i32 i = threadIdx.x; i < level.n_cand; i += BLOCK) {
        i32 found = g.next[i];
        if (found == NOBODY) continue;
        i32 v = g.vertex[g.cands[i]];
        // The order on the shelf: candidates that are not to be explored, then children, those with the largest counts
        // first. Blocks take from the end. So the child with the fewest goes first, as in a search by one block, and
        // the candidates before it are those that are still unexplored when it is. Atomics place equal counts in any
        // order.
        i32 at = found == 0 ? atomicAdd(&s->filled[0], 1) : atomicAdd(&bins[found], 1);
        cand[at] = v < 0 ? ~v : v;
    }
    // The lists have vertices of the graph, because the block that takes a child numbers them anew.
    for (i32 i = threadIdx.x; i < level.n_base; i += BLOCK) base[i] = g.base[g.bases[i]];
    for (i32 i = threadIdx.x; i < level.n_closure; i += BLOCK) path[i] = g.closure[i];
    __threadfence();  // all threads have written their part of the lists, visible to other blocks,
    __syncthreads();  // before the leader offers the shelf
    if (is_leader()) {
        Shelf shelf = {level.n_base, level.n_closure, n_rest, s->source.level + depth + 1};
        p->shelves[blockIdx.x] = shelf;
        // The children count as open before they can be seen. So `open` is never zero while one of them is to be done,
        // and no block leaves too early. This block's own item is still open here.
        atomicAdd(&b.q->open, (u64)n_children);
        atomicAdd(&b.q->published, (u64)n_children);
        __threadfence();
        atomicExch(&p->available[blockIdx.x], n_children);
        // `offered` only says whether a search of the shelves may be worth it. A fast thief may subtract first, so it
        // may be below zero for a moment.
        atomicAdd(&b.q->offered, n_children);
        // Of this level, the block keeps only the child that it is exploring.
        level_of(b, depth)->todo = skipped != NOBODY;
    }
    __syncthreads();
}

// Offer the children of the shallowest level that may be stolen from and has at least two.
__device__ inline void offer(Block& b, i32 depth) {
    for (i32 i = 0; i <= depth && b.s->source.level + i < STEAL_LEVELS; i++) {
        // The stack belongs to the block, so all threads see the same level and take the same way to the barrier
        // below.
        const Level* level = level_of(b, i);
        bool is_open = i < depth;  // one of its children is being explored
        if (level->todo < 2) continue;
        i32 skipped = is_open ? level->chosen : NOBODY;
        __syncthreads();
        fill_shelf(b, i, skipped, i == 0 && b.s->graph.has_rest);
        return;
    }
}

// Answers of a look at the queue
#define GO_ON 0
#define STOP 1
#define OFFER 2

// Look at the clock and at the other blocks.
__device__ inline i32 look(Block& b) {
    // The leader alone looks: other blocks change these values at any time, so threads that looked on their own could
    // see different ones, and part before the next barrier.
    if (is_leader()) {
        i32 answer = GO_ON;
        if (b.visits > 0) {  // a slice stops only after the first visit, to make progress
            if (b.deadline != 0 && now_ns() >= b.deadline) atomicExch(&b.q->stop, 1);
            if (is_stopped(b)) answer = STOP;
        }
        if (answer == GO_ON && STEAL_LEVELS > 1 && now(&b.q->hungry) > 0 && is_shelf_free(b)) answer = OFFER;
        b.s->look = answer;
    }
    __syncthreads();
    return b.s->look;
}

// Take a child from the shelf of `victim` as the source. False when other blocks were faster. Leader.
__device__ inline bool take_child(Block& b, i32 victim) {
    const CumbeParams* p = b.p;
    Source& source = b.s->source;
    // The owner must not fill the shelf between the claim and the end of the copy. So this block is a reader before it
    // looks, and stays one until let_go. The owner reads in the opposite order.
    atomicAdd(&p->readers[victim], 1);
    __threadfence();
    // The load keeps the counter from falling further each time that a block looks. Two blocks may still pass it
    // together for the last child. Then one gets an old value of 0 or less, and has lost.
    i32 remaining = now(&p->available[victim]) > 0 ? atomicSub(&p->available[victim], 1) : 0;
    if (remaining <= 0) {
        atomicSub(&p->readers[victim], 1);
        return false;
    }
    atomicSub(&b.q->offered, 1);
    __threadfence();
    // The fence keeps the reads of shelf and lists behind the claim.
    const i32* lists = p->arena + (i64)victim * p->arena_ints;
    const volatile Shelf* shelf = &p->shelves[victim];
    // `remaining` is the value before the claim, so it is the child's number counted from 1. Everything before the
    // child is a candidate for it, also what is no child.
    i32 at = shelf->n_rest + remaining - 1;
    source.kind = STOLEN;
    source.root = NOBODY;
    source.victim = victim;
    source.base = lists + shelf_base_at(p);
    source.n_base = shelf->n_base;
    source.path = lists + shelf_path_at(p);
    source.n_path = shelf->n_path;
    source.cand = lists + shelf_cand_at(p);
    source.n_cand = source.n_todo = at;
    source.self = now(&source.cand[at]);
    source.level = shelf->level;
    source.fresh = 1;
    if (victim != (i32)blockIdx.x) atomicAdd(&b.q->stolen, 1ull);
    return true;
}

// Stop reading the shelf that the source came from, because its lists were copied. Leader.
__device__ inline void let_go(Block& b) {
    // open_subtree returns behind a barrier, so all threads have read the lists. The fence puts these reads before the
    // release.
    __threadfence();
    if (b.s->source.kind == STOLEN) atomicSub(&b.p->readers[b.s->source.victim], 1);
}

// The number of steps around the circle to the first block whose shelf is not empty. The number of blocks when there is
// none.
__device__ inline i32 find_victim(Block& b) {
    i32 n = (i32)gridDim.x;
    if (is_leader()) b.s->victim = n;
    // This is a barrier as well as a vote, so all threads see `victim` set, and all leave together.
    if (!__syncthreads_or(is_leader() && now(&b.q->offered) > 0)) return n;
    // A thread looks at one shelf. Of those that have a child, atomicMin keeps the nearest one in the circle.
    for (i32 chunk = 0; chunk < n; chunk += BLOCK) {
        i32 step = chunk + (i32)threadIdx.x;
        bool has = step < n && now(&b.p->available[(blockIdx.x + step) % n]) > 0;
        if (has) atomicMin(&b.s->victim, step);
        // This is a barrier, too. Behind it all threads have taken part in the minimum, and shelves farther away do
        // not matter.
        if (__syncthreads_or(has)) break;
    }
    return b.s->victim;
}

// Wait for a child from any shelf. False when the launch is over.
__device__ inline bool steal(Block& b) {
    Shared* s = b.s;
    // Working blocks read `hungry` to know whether an offer is wanted. The pauses grow, so that waiting blocks do not
    // slow down memory that working blocks need.
    u32 pause = 128;
    if (is_leader()) atomicAdd(&b.q->hungry, 1);
    while (true) {
        i32 step = find_victim(b);
        if (is_leader()) {
            bool taken = step < (i32)gridDim.x && take_child(b, (i32)((blockIdx.x + step) % gridDim.x));
            // When no item is open, no block can offer anything any more.
            bool over = !taken && (is_stopped(b) || now(&b.q->open) == 0);
            s->verdict = taken ? 1 : over ? -1 : 0;
            if (taken || over) atomicSub(&b.q->hungry, 1);
            lap(b, taken ? STEALING : IDLING);
        }
        __syncthreads();
        if (s->verdict != 0) return s->verdict > 0;
        if (is_leader()) __nanosleep(pause);
        pause = pause < 2048 ? 2 * pause : pause;
    }
}

// The launch stops. Write down the children that are still on this block's shelf, the next one first.
__device__ inline void close_shelf(Block& b) {
    const CumbeParams* p = b.p;
    Shared* s = b.s;
    const i32 *cand = b.arena + shelf_cand_at(p), *path = b.arena + shelf_path_at(p);
    if (is_leader()) {
        const Shelf& shelf = p->shelves[blockIdx.x];
        // The exchange takes all children that are left at once. So each child is either here or with the block that
        // counted it down, and none is done twice. The old value may be below zero, when blocks came too late.
        i32 n = atomicExch(&p->available[blockIdx.x], 0);
        s->verdict = n;
        if (n > 0) {
            i64 at = reserve_pool(b, (i64)shelf.n_path + shelf.n_rest + n);
            CumbeItem item = {NOBODY, 0, at, at + shelf.n_path, shelf.n_path, shelf.n_rest + n, n, 0};
            leave(b, item);
            s->out_at = at;
        }
    }
    __syncthreads();
    i32 n = s->verdict;
    if (n <= 0 || s->out_at == NOBODY) return;
    // The host's items have the candidates to explore first, in the order of exploring, and a shelf has them last and
    // backwards.
    Shelf shelf = p->shelves[blockIdx.x];
    i32* out = p->pool + s->out_at;
    for (i32 i = threadIdx.x; i < shelf.n_path; i += BLOCK) out[i] = path[i];
    out += shelf.n_path;
    for (i32 i = threadIdx.x; i < n; i += BLOCK) out[i] = cand[shelf.n_rest + n - 1 - i];
    for (i32 i = threadIdx.x; i < shelf.n_rest; i += BLOCK) out[n + i] = cand[i];
}
