// Search for near-bicliques, depth first. Warp-level.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/bound.cuh"
#include "bitmatrix/near_frames.cuh"
#include "bitmatrix/near_node.cuh"
#include "bitmatrix/near_types.cuh"
#include "bitmatrix/output.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Members and hash of S on one side.
__device__ inline SideSums sums_of_side(const Near& n, const NearFrame* f, i32 side) {
    const u64* hashes = side ? params.base_hash : params.root_hash;
    const u32* names = n.bits + f->side[side].names;
    SideSums sums = {0, 0};
    ROLLED for (i32 w = 0; w < f->side[side].words; w++) {
        u32 chosen = n.bits[set_at(f, CHOSEN, side) + w];
        sums.members += __popc(chosen);
        if (params.prove && (chosen >> lane_id()) & 1) sums.hash += hashes[names[32 * w + lane_id()]];
    }
    return {sums.members, warp_sum(sums.hash)};
}

// Write the vertices of S on one side. Returns how many there are.
__device__ inline i32 write_side(const Near& n, const NearFrame* f, i32 side, i32* out) {
    const u32* chosen = n.bits + set_at(f, CHOSEN, side);
    const u32* names = n.bits + f->side[side].names;
    return list_bits(f->side[side].words, (u32*)out, [&](i32 w) { return chosen[w]; }, [&](i32 i) { return names[i]; });
}

// Emit a leaf: its members, and how many pairs of them are missing. False when the output is full.
__device__ __noinline__ bool emit_near(Worker& w, const Near& n, const NearFrame* f) {
    SideSums root = sums_of_side(n, f, 0), base = sums_of_side(n, f, 1);
    if (params.measure != 0 && most_of(base.members, root.members, f->total) < w.bound) return true;
    i32 admitted = admit(w, (i32)base.members, (i32)root.members, base, root);
    if (admitted <= 0) return admitted == 0;
    i32* out = params.values + w.value_at;
    out += write_side(n, f, 1, out);
    out += write_side(n, f, 0, out);
    if (lane_id() == 0) *out = f->total;
    written(w, (i32)base.members, (i32)root.members);
    if (params.measure != 0) raise_bound(w, base.members, root.members, f->total);
    return true;
}

// Whether frame `d` has room for a child, with all lists that it may need.
__device__ __forceinline__ bool has_room_for_child(const Near& n, const NearFrame* f, i32 d) {
    i32 step = f->side[0].words + f->side[1].words;
    return d + 1 < NEAR_DEPTH && f->top + NEAR_SETS * (i64)step + 2ll * (f->side[0].all + f->side[1].all) <= n.room;
}

// Explore frame 0. STOPPED: the rest is written down.
__device__ __noinline__ i32 search_near(Worker& w, const Near& n) {
    i32 depth = 0, work = POLL;  // the first look is at once, because other warps may wait
    ROLLED while (depth >= 0) {
        if (work >= POLL) {
            i32 wanted;
            work = 0;
            w.tick += POLL;
            look_at_bound(w);
            bool ends = is_ending(&wanted) || ((w.tick & (FULL_POLL - 1)) < POLL && is_late(w));
            if (w.visits > 0 && ends) {
                leave_near(n, depth);
                return STOPPED;
            }
            if (wanted > 0) give_near(n, depth, wanted);
        }
        NearFrame* f = n.frame + depth;
        i32 next = f->next;
        if (next >= f->end) {
            depth -= 1;
            continue;
        }
        i32 r = (i32)n.bits[f->branch + next], side = r < 0, y = side ? ~r : r;
        work += 1 + ((f->side[0].all * f->side[1].words + f->side[1].all * f->side[0].words) >> 7);
        w.tests += 1;
        w.visits += 1;
        // The child is explored from here on, because the frame may be written down or given away meanwhile.
        __syncwarp();
        if (lane_id() == 0) {
            f->next = next + 1;
            n.bits[set_at(f, ADDABLE, side) + (y >> 5)] &= ~(1u << (y & 31));
        }
        __syncwarp();
        if (!has_room_for_child(n, f, depth)) {
            put_near_aside(n, depth, side, y);
            continue;
        }
        add_member(n, depth + 1, side, y);
        Pivot pivot;
        i32 became = settle(n, depth + 1, f, next, true, w.bound, &pivot);
        if (became == LEAF && !emit_near(w, n, f + 1)) {
            leave_leaf(n, f + 1);
            leave_near(n, depth);
            return STOPPED;
        }
        if (became != BRANCHES) continue;
        shrink_node(n, depth + 1, &pivot);
        choose_children(n, depth + 1, pivot);
        depth += 1;
    }
    return DONE;
}
