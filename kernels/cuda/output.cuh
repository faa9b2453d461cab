// Reporting a biclique: sizes, filters, fingerprint, and a place in the output. Warp-level.
#pragma once
#include "queue.cuh"

// Ints a warp takes from `values` at a time, and entries from `records`.
#ifndef VALUE_CHUNK
#define VALUE_CHUNK 4096
#endif
#ifndef RECORD_CHUNK
#define RECORD_CHUNK 64
#endif

// Make room for one record with n values; false (and the launch stopped) when the output is full.
__device__ inline bool make_room(Worker& w, i64 n) {
    bool room = true;
    if (w.value_at + n > w.value_end) {
        i64 chunk = n > VALUE_CHUNK ? n : VALUE_CHUNK;
        w.value_at = (i64)draw(&w.q->values, (u64)chunk);
        w.value_end = w.value_at + chunk;
        if (w.value_end > w.p->n_values) {
            w.value_end = w.value_at = 0;
            room = false;
        }
    }
    if (room && w.record_at == w.record_end) {
        w.record_at = (i64)draw(&w.q->rows, RECORD_CHUNK);
        w.record_end = w.record_at + RECORD_CHUNK;
        if (w.record_end > w.p->n_records) {
            w.record_end = w.record_at = 0;
            room = false;
        }
    }
    if (!room && lane_id() == 0) atomicExch(&w.q->stop, 1);
    return room;
}

// One of the last `rows_left` places; false (and the launch stopped) when none is left.
__device__ inline bool within_limit(Worker& w) {
    if (!w.p->limited) return true;
    i64 left = (i64)draw(&w.q->rows_left, ~0ull);
    if (left > 0) return true;
    if (lane_id() == 0) {
        atomicAdd(&w.q->rows_left, 1ull);
        atomicExch(&w.q->stop, 1);
    }
    return false;
}

// One more biclique of a size. Thread-level.
__device__ __noinline__ void count_size(Worker& w, i64 n_base, i64 n_root) {
    u64 key = (u64)n_base << 32 | (u64)n_root, mask = (u64)w.p->n_sizes - 1;
    u64 slot = mix64(key) & mask;
    for (u64 tried = 0;; tried++, slot = (slot + 1) & mask) {
        u64 found = atomicCAS(&w.p->sizes[slot].key, 0ull, key);
        if (found == 0 || found == key) break;
        if (tried == mask) {
            atomicExch(&w.q->overflow, 2);
            atomicExch(&w.q->stop, 1);
            break;
        }
    }
    atomicAdd(&w.p->sizes[slot].count, 1ull);
}

// Whether a biclique with so many members passes the filters. Thread-level.
__device__ __forceinline__ bool is_wanted(const Params* p, i64 base, i64 root) {
    return base >= p->min_base && base <= p->max_base && root >= p->min_root && root <= p->max_root;
}

// What a biclique adds to the fingerprint, by the sums of its sides' hashes. Thread-level.
__device__ __forceinline__ u64 fingerprint_of(const Params* p, u64 base, u64 root) {
    u64 left = p->root_is_left ? root : base, right = p->root_is_left ? base : root;
    return mix64(left ^ mix64(right));
}

// Decide on a biclique whose sums are known, and reserve its place. Returns -1: could not be reported, give
// the node back; 0: filtered or only counted; 1: write it at w.value_at, then call `written`.
__device__ inline i32 admit(Worker& w, i32 n_base, i32 n_root, SideSums base, SideSums root) {
    const Params* p = w.p;
    if (!is_wanted(p, base.members, root.members)) return 0;
    if (p->list && !make_room(w, (i64)n_base + n_root)) return -1;
    if (!within_limit(w)) return -1;
    w.count += 1;
    if (p->sizes != 0 && lane_id() == 0) count_size(w, base.members, root.members);
    if (p->prove) w.fingerprint += fingerprint_of(p, base.hash, root.hash);
    return p->list ? 1 : 0;
}

__device__ inline void written(Worker& w, i32 n_base, i32 n_root) {
    if (lane_id() == 0) {
        Record record;
        record.at = w.value_at;
        record.n_base = n_base;
        record.n_root = n_root;
        w.p->records[w.record_at] = record;
    }
    w.record_at += 1;
    w.value_at += (i64)n_base + n_root;
    __syncwarp();
}

// Sums over a list of vertices.
__device__ inline SideSums sums_of(const i32* weight, const u64* hash, const i32* list, i32 n) {
    i64 members = 0;
    u64 total = 0;
    for (i32 i = lane_id(); i < n; i += 32) {
        members += weight[list[i]];
        total += hash[list[i]];
    }
    SideSums sums = {warp_sum((i32)members), warp_sum(total)};
    return sums;
}
