// Emits bicliques, and writes unfinished work down for the host.
#pragma once
#include "common/biclique.cuh"
#include "common/types.cuh"
#include "common/warp.cuh"
#include "cumbe/block.cuh"
#include "cumbe/types.cuh"

// Ints of `values` and entries of `records` that the leader takes at a time.
#define VALUES_TAKEN 2048
#define RECORDS_TAKEN 16

// Add the sums over ranks closure[begin..begin + n) to the counters. The caller synchronises.
__device__ inline void add_root_sums(Block& b, Counters* c, i32 begin, i32 n) {
    const i32* closure = b.s->graph.closure;
    // Each lane sums up its own entries first. Then a warp adds one number per counter, so there are few atomics. Sums
    // of integers do not depend on the order of warps, so the fingerprint is the same in every run.
    i64 members = 0;
    u64 hash = 0;
    for (i32 chunk = warp_id() * 32; chunk < n; chunk += BLOCK) {
        i32 i = chunk + lane_id();
        if (i < n) {
            i32 v = closure[begin + i];
            members += b.p->root_weight[v];
            hash += b.p->root_hash[v];
        }
    }
    // gather_sum needs all lanes of the warp. They leave the loop together, because `chunk` is the same in all of
    // them.
    gather_sum(&c->root_members, members);
    gather_sum(&c->root_hash, hash);
}

// Add the sums over a list of base ids to the counters. The caller synchronises.
__device__ inline void add_base_sums(Block& b, Counters* c, const i32* list, i32 n) {
    const Subgraph& g = b.s->graph;
    i64 members = 0;
    u64 hash = 0;
    for (i32 chunk = warp_id() * 32; chunk < n; chunk += BLOCK) {
        i32 i = chunk + lane_id();
        if (i < n) {
            // The list has ids of the subtree, and weights and hashes are of vertices of the graph.
            i32 u = g.base[list[i]];
            members += b.p->base_weight[u];
            hash += b.p->base_hash[u];
        }
    }
    gather_sum(&c->base_members, members);
    gather_sum(&c->base_hash, hash);
}

// Make room for one record with n values. False when the output is full. Leader.
__device__ inline bool reserve(Block& b, i64 n) {
    const CumbeParams* p = b.p;
    // All blocks draw from the same two counters. The leader draws a chunk at a time, so most bicliques need no
    // atomic.
    bool room = true;
    if (b.value_at + n > b.value_end) {
        // What is left of the old chunk stays unused. No record names it, so the host does not read it.
        i64 taken = n > VALUES_TAKEN ? n : VALUES_TAKEN;
        b.value_at = (i64)atomicAdd(&b.q->values, (u64)taken);
        b.value_end = b.value_at + taken;
        if (b.value_end > p->n_values) {
            b.value_at = b.value_end = 0;
            room = false;
        }
    }
    if (room && b.record_at == b.record_end) {
        b.record_at = (i64)atomicAdd(&b.q->rows, (u64)RECORDS_TAKEN);
        b.record_end = b.record_at + RECORDS_TAKEN;
        if (b.record_end > p->n_records) {
            // The host reads all entries that were drawn, so those that no biclique will fill must be marked.
            for (i64 i = b.record_at; i < p->n_records; i++) p->records[i].n_root = 0;  // holes
            b.record_at = b.record_end = 0;
            room = false;
        }
    }
    if (!room) atomicExch(&b.q->full, 1);
    return room;
}

// Take one of the last `rows_left` places. False when none is left. Leader.
__device__ inline bool within_limit(Block& b) {
    if (!b.p->limited) return true;
    // The atomic adds -1, and the old value says whether there was a place. A block that is refused puts its place
    // back. Until then the counter is too small, which hurts nobody, because no place was left.
    if ((i64)atomicAdd(&b.q->rows_left, ~0ull) > 0) return true;
    atomicAdd(&b.q->rows_left, 1ull);
    return false;
}

#define GIVE_BACK 0  // no room; the node is still to be done
#define COUNTED 1    // nothing has to be written
#define WRITE 2      // the members have to be written at s->out_at

// Decide on a biclique whose sums are known. Leader.
__device__ inline i32 admit(Block& b, i32 n_base, i32 n_root, const Counters* c, i64 root_members, u64 root_hash) {
    const CumbeParams* p = b.p;
    if (!is_wanted(p, c->base_members, root_members)) return COUNTED;
    // Room comes first: a chunk that was drawn serves the next biclique, but a place below the limit would be lost.
    if ((p->list && !reserve(b, (i64)n_base + n_root)) || !within_limit(b)) {
        atomicExch(&b.q->stop, 1);
        return GIVE_BACK;
    }
    // This is the leader's own count. It is added to the queue's once, when the launch ends.
    b.count += 1;
    if (p->sizes != 0) add_size(p, b.q, c->base_members, root_members);
    if (p->prove) b.fingerprint += fingerprint_of(p, c->base_hash, root_hash);
    if (!p->list) return COUNTED;
    Record record;
    record.at = b.s->out_at = b.value_at;
    record.n_base = n_base;
    record.n_root = n_root;
    p->records[b.record_at++] = record;
    b.value_at += (i64)n_base + n_root;
    return WRITE;
}

// Emit the biclique of base ids `list` and the first n_root ranks of the closure. The last n_joined of these are not in
// `level`'s sums. False: it could not be emitted, and the launch stops.
__device__ inline bool emit(Block& b, Counters* c, const Level& level, const i32* list, i32 n_base, i32 n_root,
                              i32 n_joined) {
    Shared* s = b.s;
    // The condition is the same in all threads, so all return before the barriers. Every thread counts, and only the
    // leader's number is used.
    if (b.p->plain) {
        b.count += 1;
        return true;
    }
    add_base_sums(b, c, list, n_base);
    // Sums over the members of the closure above are in the level, so only the new ones are read.
    add_root_sums(b, c, n_root - n_joined, n_joined);
    __syncthreads();
    // Behind the first barrier, all warps have added their sums, so the leader may read them. Behind the second, the
    // leader has decided, so all threads may read the verdict. More barriers lie before the next decision, so no
    // thread can miss this one.
    if (is_leader())
        s->verdict =
            admit(b, n_base, n_root, c, level.root_members + c->root_members, level.root_hash + c->root_hash);
    __syncthreads();
    i32 verdict = s->verdict;
    if (verdict == WRITE) {
        // A thread writes every BLOCK-th member. No barrier follows, because nobody else writes to this place.
        i32* out = b.p->values + s->out_at;
        for (i32 i = threadIdx.x; i < n_base; i += BLOCK) out[i] = s->graph.base[list[i]];
        for (i32 i = threadIdx.x; i < n_root; i += BLOCK) out[n_base + i] = s->graph.closure[i];
    }
    return verdict != GIVE_BACK;
}

// Reserve n ints in the pool. Returns their position, or NOBODY. Leader.
__device__ inline i64 reserve_pool(Block& b, i64 n) {
    // There are no chunks here, because a block writes lists down only when the launch ends.
    i64 at = (i64)atomicAdd(&b.q->pool, (u64)n);
    return at + n <= b.p->n_pool ? at : NOBODY;
}

// Add an entry for the host. The launch is void when there is no room for it. Leader.
__device__ inline void leave(Block& b, const CumbeItem& item) {
    i64 at = (i64)atomicAdd(&b.q->left_over, 1ull);
    if (item.path_at != NOBODY && at < b.p->n_left_over)
        b.p->left_over[at] = item;
    else
        // A store would hide that the table of sizes is full, if that was reported already. The host tells the two
        // apart.
        atomicCAS(&b.q->overflow, 0, 1);
}

// Write down what a level still has to explore: its path, candidates that are to be explored, and other candidates (at
// the first level only).
__device__ inline void leave_level(Block& b, const Level& level, i32 depth, i32 skipped, bool fresh) {
    Shared* s = b.s;
    const Subgraph& g = s->graph;
    i32 n_cand = level.n_cand - (skipped != NOBODY), n_todo = level.todo - (skipped != NOBODY);
    // Threads may still be writing the level before, with out_at and filled, which the leader changes next.
    __syncthreads();
    if (is_leader()) {
        i64 at = reserve_pool(b, (i64)level.n_closure + n_cand);
        CumbeItem item = {NOBODY, fresh, at, at + level.n_closure, level.n_closure, n_cand, n_todo, 0};
        leave(b, item);
        s->out_at = at;
        // The list has two ranges, each with a counter: n_todo candidates that are to be explored, and the others
        // behind them.
        s->filled[0] = 0;
        s->filled[1] = n_todo;
    }
    __syncthreads();
    // `leave` has reported the full pool. All threads see the same place behind the barrier.
    if (s->out_at == NOBODY) return;
    i32* path = b.p->pool + s->out_at;
    i32* cand = path + level.n_closure;
    for (i32 i = threadIdx.x; i < level.n_closure; i += BLOCK) path[i] = g.closure[i];
    // Lanes behind the end stay in the loop, because both claims need all lanes. They have the id `skipped`, which is
    // never written.
    for (i32 chunk = warp_id() * 32; chunk < level.n_cand; chunk += BLOCK) {
        i32 i = chunk + lane_id();
        i32 id = i < level.n_cand ? g.cands[i] : skipped;
        i32 v = id == NOBODY ? 0 : g.vertex[id];
        bool mine = i < level.n_cand && id != skipped, rest = v < 0 && depth == 0;
        // The mark of a candidate that is not to be explored counts on the first level only: deeper levels explore all
        // of theirs.
        i32 at = claim(&s->filled[0], mine && !rest), rest_at = claim(&s->filled[1], mine && rest);
        if (mine) cand[rest ? rest_at : at] = v < 0 ? ~v : v;
    }
}

// Write down every open level. Of the levels above `depth`, the candidate that is being explored is left out.
__device__ inline void leave_levels(Block& b, i32 depth, bool fresh) {
    for (i32 i = 0; i <= depth; i++) {
        // The candidate being explored is the level below, which writes its own rest down.
        Level level = *level_of(b, i);
        i32 skipped = i < depth ? level.chosen : NOBODY;
        if (level.todo > (skipped != NOBODY) || (fresh && i == 0)) leave_level(b, level, i, skipped, fresh && i == 0);
    }
    __syncthreads();
}
