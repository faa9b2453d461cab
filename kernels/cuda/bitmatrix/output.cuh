// Emitting a biclique: sizes, filters, fingerprint, and a place in the output. Warp-level.
#pragma once
#include "common/biclique.cuh"
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Ints that a warp takes from `values` at a time.
#ifndef VALUE_CHUNK
#define VALUE_CHUNK 4096
#endif

// A launch ends when seven eighths of the output are in use. The rest is for nodes that warps are emitting then.
__device__ __forceinline__ bool is_nearly_full(i64 used, i64 room) { return used > room - room / 8; }

// Make room for one record with n values. False when the output is full. The launch is stopped earlier, when it is
// nearly full.
__device__ inline bool make_room(Worker& w, i64 n) {
    bool room = true, ends = false;
    if (w.value_at + n > w.value_end) {
        i64 chunk = n > VALUE_CHUNK ? n : VALUE_CHUNK;
        w.value_at = (i64)draw(&params.queue->values, (u64)chunk);
        w.value_end = w.value_at + chunk;
        ends = is_nearly_full(w.value_end, params.n_values);
        if (w.value_end > params.n_values) {
            w.value_end = w.value_at = 0;
            room = false;
        }
    }
    if (room && w.record_at == w.record_end) {
        w.record_at = (i64)draw(&params.queue->rows, (u64)params.record_chunk);
        w.record_end = w.record_at + params.record_chunk;
        ends |= is_nearly_full(w.record_end, params.n_records);
        if (w.record_end > params.n_records) {
            ROLLED for (i64 i = w.record_at + lane_id(); i < params.n_records; i += 32) params.records[i].n_root = 0;  // holes
            w.record_end = w.record_at = 0;
            room = false;
        }
    }
    if (ends && lane_id() == 0) atomicExch(&params.queue->stop, 1);
    return room;
}

// Take one of the last `rows_left` places. When none is left, stop the launch and return false.
__device__ inline bool within_limit() {
    if (!params.limited) return true;
    i64 remaining = (i64)draw(&params.queue->rows_left, ~0ull);
    if (remaining > 0) return true;
    if (lane_id() == 0) {
        atomicAdd(&params.queue->rows_left, 1ull);
        atomicExch(&params.queue->stop, 1);
    }
    return false;
}

// Calls `add_size`, and is not inlined, because its callers need the registers. Thread-level.
__device__ __noinline__ void count_size(i64 n_base, i64 n_root) { add_size(&params, params.queue, n_base, n_root); }

// Decide on a biclique whose sums are known, and reserve its place. Returns -1 when it could not be emitted and is
// still to be done, 0 when it was left out or only counted, and 1 when the caller has to write it at w.value_at and
// call `written`.
__device__ inline i32 admit(Worker& w, i32 n_base, i32 n_root, SideSums base, SideSums root) {
    if (MEASURED && !is_wanted(&params, base.members, root.members)) return 0;
    if (params.list && !make_room(w, (i64)n_base + n_root + NEAR)) return -1;
    if (!within_limit()) return -1;
    w.count += 1;
    if (MEASURED && params.sizes != 0 && lane_id() == 0) count_size(base.members, root.members);
    if (params.prove) w.fingerprint += fingerprint_of(&params, base.hash, root.hash);
    return params.list ? 1 : 0;
}

// Write the record of a biclique whose members were written at w.value_at.
__device__ inline void written(Worker& w, i32 n_base, i32 n_root) {
    Record record = {w.value_at, n_base, n_root};
    if (lane_id() == 0) params.records[w.record_at] = record;
    w.record_at += 1;
    w.value_at += (i64)n_base + n_root + NEAR;
    __syncwarp();
}

// The biclique of one lane, if there is one.
struct OneBiclique {
    bool there;
    i32 n_base, n_root;
    SideSums base, root;
};

// Emit the bicliques of all lanes. All lanes together call write(own, out), and each lane with `own` writes its
// biclique to its `out`. Returns the lanes whose bicliques were not emitted, because the output is full.
//
// A round takes the lanes whose bicliques fit into this warp's chunks of the output, one behind the other. If none
// fits, the warp takes new chunks.
template <class Write>
__device__ inline u32 emit_batch(Worker& w, const OneBiclique& one, const Write& write) {
    u32 wanted = warp_ballot(one.there && (!MEASURED || is_wanted(&params, one.base.members, one.root.members)));
    u64 share = params.prove ? fingerprint_of(&params, one.base.hash, one.root.hash) : 0;
    ROLLED while (wanted) {
        // `wanted` is the same in all lanes, and so is every decision below that is made of ballots. The prefix sum
        // gives each biclique its place behind those of lower lanes.
        bool own = (wanted >> lane_id()) & 1;
        i32 length = own ? one.n_base + one.n_root : 0, before = sum_below(length);
        i32 rank = __popc(wanted & lanes_below());
        u32 lanes = wanted;
        if (params.list) {
            bool fits = w.value_at + before + length <= w.value_end && w.record_at + rank < w.record_end;
            lanes = warp_ballot(own && fits);
            if (lanes == 0) {
                if (!make_room(w, from(length, __ffs(wanted) - 1))) return wanted;
                continue;
            }
        }
        if (params.limited) {
            // Only the lowest lane goes on in this round, because each place below the limit is drawn alone.
            lanes &= ~lanes + 1;
            if (!within_limit()) return wanted;
        }
        own = (lanes >> lane_id()) & 1;
        w.count += __popc(lanes);
        if (MEASURED && params.sizes != 0 && own) count_size(one.base.members, one.root.members);
        w.fingerprint += warp_sum(own ? share : 0ull);
        wanted &= ~lanes;
        if (!params.list) continue;
        Record record = {w.value_at + before, one.n_base, one.n_root};
        if (own) params.records[w.record_at + rank] = record;
        write(own, params.values + w.value_at + before);
        w.record_at += __popc(lanes);
        // The highest lane of the round knows where the values of the round end.
        w.value_at += from(before + length, 31 - __clz(lanes));
        __syncwarp();
    }
    return 0;
}

// Sums over a list of vertices.
__device__ inline SideSums sums_of(const i32* weight, const u64* hash, const i32* list, i32 n) {
    i64 members = 0;
    u64 total = 0;
    ROLLED for (i32 i = lane_id(); i < n; i += 32) {
        if (MEASURED) members += weight[list[i]];
        total += hash[list[i]];
    }
    return {MEASURED ? warp_sum((i32)members) : 0, warp_sum(total)};
}
