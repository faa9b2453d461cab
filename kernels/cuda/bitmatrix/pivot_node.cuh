// A node of a pivot tree: its pivot, its children, and as an item for waiting warps and for the host. Warp-level.
//
// A lane takes a vertex, and compares its row with the candidates of the other side.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/near_types.cuh"
#include "bitmatrix/pivot_types.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

#define PIVOT_COPY_MOST (1 << 17)  // ints of an item with its rows
#define MISSES_MOST 0x7fffffff  // more than any number of candidates that a vertex is not joined to

// Write the candidates of a side to `out`: their vertices, or their rows. Returns how many there are.
__device__ inline i32 list_candidates(const Near& n, const PivotFrame* f, i32 side, bool rows, i32* out) {
    const u32* set = n.bits + candidates_at(f, side);
    i32 count = 0;
    ROLLED for (i32 w = 0; w < words_of(f->side[side].n); w++) {
        u32 word = set[w];
        i32 r = 32 * w + lane_id();
        if ((word >> lane_id()) & 1) out[count + __popc(word & lanes_below())] = rows ? r : (i32)n.bits[f->side[side].names + r];
        count += __popc(word);
    }
    return count;
}

// What the rows of the candidates of a side have of the candidates of the other side, packed. The rows were listed.
__device__ inline void pack_candidate_rows(const Near& n, const PivotFrame* f, i32 side, i32 count, u32* out) {
    const i32* listed = inner_of(n, side);
    const u32* set = n.bits + candidates_at(f, FACING(side));
    i32 n_words = words_of(f->side[FACING(side)].n);
    ROLLED for (i32 i = lane_id(); i < count; i += 32) {
        u32 packed = 0;
        u32* to = out + i;
        i32 at = 0, row_at = f->side[side].rows + listed[i];
        ROLLED for (i32 w = 0; w < n_words; w++, row_at += f->side[side].n) {
            u32 row = n.bits[row_at];
            ROLLED for (u32 mask = set[w]; mask; mask &= mask - 1) {  // the mask is the same in all lanes
                packed |= ((row >> (__ffs(mask) - 1)) & 1) << (at & 31);
                if ((++at & 31) == 0) {
                    *to = packed;
                    to += count;
                    packed = 0;
                }
            }
        }
        if (at & 31) *to = packed;
    }
}

// Write the problem that has only the candidates of a node: vertices of both sides, then rows of both sides.
__device__ __noinline__ void write_problem(const Near& n, const PivotFrame* f, i32 n0, i32 n1, u32* out) {
    ROLLED for (i32 side = 0; side < 2; side++) list_candidates(n, f, side, true, inner_of(n, side));
    __syncwarp();
    ROLLED for (i32 side = 0; side < 2; side++) out += list_candidates(n, f, side, false, (i32*)out);
    pack_candidate_rows(n, f, 0, n0, out);
    if (!ONE_SIDE) pack_candidate_rows(n, f, 1, n1, out + (i64)n0 * words_of(n1));
    __syncwarp();
}

__device__ __forceinline__ i64 words_of_problem(i32 n0, i32 n1) {
    return n0 + n1 + (i64)n0 * words_of(ONE_SIDE ? n0 : n1) + (i64)n1 * words_of(n0);
}

// Let a frame stand on the problem at `at` in `bits`, all of whose vertices are candidates.
__device__ inline void stand_on_problem(const Near& n, PivotFrame* f, i32 n0, i32 n1, i32 at) {
    i32 words0 = words_of(n0), words1 = words_of(n1), rows = at + n0 + n1, sets = at + (i32)words_of_problem(n0, n1);
    __syncwarp();
    if (lane_id() == 0) {
        f->side[0].n = n0;
        f->side[1].n = n1;
        f->side[0].names = at;
        f->side[1].names = at + n0;
        f->side[0].rows = rows;
        f->side[1].rows = rows + n0 * words1;
        f->sets = sets;
        f->top = sets + words_of_sets(n0, n1);
        f->pivot = NEW;
    }
    ROLLED for (i32 w = lane_id(); w < words0; w += 32) n.bits[sets + w] = (u32)low_bits(n0 - 32 * w);
    ROLLED for (i32 w = lane_id(); w < words1; w += 32) n.bits[sets + words0 + w] = (u32)low_bits(n1 - 32 * w);
    __syncwarp();
}

// Whether there is room for a problem, and the sets of two nodes.
__device__ __forceinline__ bool has_room_for_problem(const Near& n, i32 n0, i32 n1, i32 at) {
    return at + words_of_problem(n0, n1) + 2ll * words_of_sets(n0, n1) <= n.room;
}

// Free candidates that are joined to all of the other side, and choose the pivot: a candidate that is joined to all but the
// fewest. False if no candidates are left, so the node is a leaf.
__device__ __noinline__ bool choose_pivot(const Near& n, PivotFrame* f) {
    i32 fewest = MISSES_MOST, best = 0, best_side = 0, left[2] = {0, 0}, n_free = f->side[0].free + f->side[1].free;
    ROLLED for (i32 side = 0; side < SIDES; side++) {
        const PivotSide own = f->side[side];
        u32* set = n.bits + candidates_at(f, side);
        const u32* facing = n.bits + candidates_at(f, FACING(side));
        i32 n_words = words_of(own.n), n_facing = words_of(f->side[FACING(side)].n), freed = 0, stay = 0;
        ROLLED for (i32 w = 0; w < n_words; w++) {
            u32 word = set[w];
            if (word == 0) continue;
            i32 r = 32 * w + lane_id(), missed = 0;
            bool is_there = (word >> lane_id()) & 1;
            const u32* row = n.bits + own.rows + r;
            if (is_there) {
                ROLLED for (i32 k = 0; k < n_facing; k++, row += own.n) {
                    u32 wanted = facing[k];
                    if (wanted) missed += __popc(wanted & ~*row);
                }
            }
            u32 joined = warp_ballot(is_there && missed == 0);
            if (joined) {
                if ((joined >> lane_id()) & 1)
                    free_list_end(n)[-1 - (n_free + __popc(joined & lanes_below()))] = (i32)n.bits[own.names + r];
                if (lane_id() == 0) set[w] = word & ~joined;
                if (ONE_SIDE) __syncwarp();
                n_free += __popc(joined);
                freed += __popc(joined);
            }
            stay += __popc(word & ~joined);
            if (is_there && missed != 0 && missed < fewest) {
                fewest = missed;
                best = r;
                best_side = side;
            }
        }
        __syncwarp();
        if (lane_id() == 0) f->side[side].free = own.free + freed;
        left[side] = stay;
        __syncwarp();
    }
    i32 least = (i32)__reduce_min_sync(ALL_LANES, (u32)fewest);
    if (least == MISSES_MOST) return false;
    i32 owner = __ffs(warp_ballot(fewest == least)) - 1;
    best = from(best, owner);
    best_side = from(best_side, owner);
    // A problem of its own, if its rows are half as long.
    i32 words = words_of(f->side[0].n) + words_of(f->side[1].n);
    if (words > SIDES && 2 * (words_of(left[0]) + words_of(left[1])) <= words && has_room_for_problem(n, left[0], left[1], f->top)) {
        write_problem(n, f, left[0], left[1], n.bits + f->top);
        const u32* set = n.bits + candidates_at(f, best_side);
        i32 before = 0;
        ROLLED for (i32 w = lane_id(); w <= best >> 5; w += 32)
            before += __popc(w < best >> 5 ? set[w] : set[w] & ((1u << (best & 31)) - 1));
        best = warp_sum(before);
        stand_on_problem(n, f, left[0], left[1], f->top);
    }
    if (lane_id() == 0) {
        f->pivot = best;
        f->pivot_side = best_side;
    }
    const PivotSide own = f->side[best_side];
    const u32* facing = n.bits + candidates_at(f, FACING(best_side));
    u32* others = n.bits + others_at(f);
    ROLLED for (i32 w = lane_id(); w < words_of(f->side[FACING(best_side)].n); w += 32)
        others[w] = facing[w] & ~n.bits[own.rows + w * own.n + best];
    __syncwarp();
    return true;
}

// Take the next candidate to which the pivot is not joined out of the node. Returns its row, or NOBODY when there is none.
__device__ inline i32 next_other(const Near& n, const PivotFrame* f) {
    i32 side = FACING(f->pivot_side), n_words = words_of(f->side[side].n);
    u32* others = n.bits + others_at(f);
    ROLLED for (i32 first = 0; first < n_words; first += 32) {
        u32 word = first + lane_id() < n_words ? others[first + lane_id()] : 0, lanes = warp_ballot(word != 0);
        if (lanes == 0) continue;
        i32 owner = __ffs(lanes) - 1;
        word = from(word, owner);
        if (lane_id() == 0) {
            others[first + owner] = word & (word - 1);
            n.bits[candidates_at(f, side) + first + owner] &= ~(word & (0 - word));
        }
        __syncwarp();
        return 32 * (first + owner) + __ffs(word) - 1;
    }
    return NOBODY;
}

// The pivot becomes free, because all it is not joined to was explored.
__device__ inline void free_pivot(const Near& n, PivotFrame* f) {
    i32 side = f->pivot_side, p = f->pivot, n_free = f->side[0].free + f->side[1].free;
    __syncwarp();
    if (lane_id() == 0) {
        n.bits[candidates_at(f, side) + (p >> 5)] &= ~(1u << (p & 31));
        free_list_end(n)[-1 - n_free] = (i32)n.bits[f->side[side].names + p];
        f->side[side].free += 1;
        f->pivot = NEW;
    }
    __syncwarp();
}

// Make the frame behind `f` its child, in which row r of the side that faces the pivot is held.
__device__ inline void hold(const Near& n, const PivotFrame* f, PivotFrame* child, i32 r) {
    i32 side = FACING(f->pivot_side), sets = f->top, n_held = f->side[0].held + f->side[1].held;
    const PivotSide own = f->side[side];
    i32 n_facing = words_of(f->side[FACING(side)].n), facing = candidates_at(f, FACING(side)), to = sets + facing - f->sets;
    ROLLED for (i32 w = lane_id(); w < n_facing; w += 32) n.bits[to + w] = n.bits[facing + w] & n.bits[own.rows + w * own.n + r];
    i32 same = candidates_at(f, side);
    ROLLED for (i32 w = lane_id(); !ONE_SIDE && w < words_of(own.n); w += 32) n.bits[sets + same - f->sets + w] = n.bits[same + w];
    if (lane_id() == 0) {
        *child = *f;
        child->side[side].held += 1;
        child->sets = sets;
        child->top = sets + words_of_sets(f->side[0].n, f->side[1].n);
        child->pivot = NEW;
        held_list(n)[n_held] = (i32)n.bits[own.names + r];
    }
    __syncwarp();
}

__device__ inline i32 count_candidates(const Near& n, const PivotFrame* f, i32 side) {
    i32 at = candidates_at(f, side), count = 0;
    ROLLED for (i32 w = lane_id(); w < words_of(f->side[side].n); w += 32) count += __popc(n.bits[at + w]);
    return warp_sum(count);
}

// How an item came about
#define DESCRIBED 0
#define IS_EMPTY 1  // there is nothing below
#define NO_ROOM 2   // in the pool

// Describe what is left of a node, in the pool. `copy`: with its rows, if there is room for what can be done without.
__device__ __noinline__ i32 describe_pivot(const Near& n, const PivotFrame* f, bool copy, Item* item) {
    i32 n0 = count_candidates(n, f, 0), n1 = count_candidates(n, f, 1);
    i32 n_held = f->side[0].held + f->side[1].held, n_free = f->side[0].free + f->side[1].free;
    // Without base vertices the item would be taken for one with all common neighbours.
    if (!ONE_SIDE && f->side[1].held + f->side[1].free + n1 == 0) return IS_EMPTY;
    i64 lists = (i64)n_held + n_free, words = words_of_problem(n0, n1), at = NOBODY;
    if (copy && lists + words <= PIVOT_COPY_MOST) at = reserve_spare(lists + words);
    copy = at != NOBODY;
    if (!copy) at = reserve_pool(lists + n0 + n1);
    if (at == NOBODY) return NO_ROOM;
    i32* out = params.pool + at;
    write_list(held_list(n), n_held, out);
    ROLLED for (i32 i = lane_id(); i < n_free; i += 32) out[n_held + i] = free_list_end(n)[-1 - i];
    out += lists;
    if (copy)
        write_problem(n, f, n0, n1, (u32*)out);
    else
        list_candidates(n, f, 1, false, out + list_candidates(n, f, 0, false, out));
    *item = path_item(at, n_held, at + n_held, n_free + n0 + n1, 0, n_free + n0 + n1, 1);
    if (copy) {
        item->bound = n_free;
        item->closure_at = at + lists;
        item->n_closure = (i32)words;
    }
    __syncwarp();
    return DESCRIBED;
}

// Write what is left of the nodes on the stack down for the host. The slice is void if the pool is full.
__device__ __noinline__ void leave_pivots(const Near& n, i32 depth) {
    ROLLED for (i32 level = 0; level <= depth; level++) {
        const PivotFrame* f = pivot_frame(n, level);
        if (f->pivot == GONE) continue;
        Item item;
        i32 became = describe_pivot(n, f, false, &item);
        if (became == DESCRIBED) leave_over(item);
        if (became == NO_ROOM && lane_id() == 0) overflow();
        __syncwarp();
    }
}

// When warps wait, give away what is left of the shallowest node that has enough of it, but not of the deepest one.
__device__ __noinline__ void give_pivot(const Near& n, i32 depth) {
    ROLLED for (i32 level = 0; level < depth; level++) {
        PivotFrame* f = pivot_frame(n, level);
        if (f->pivot == GONE || (i64)count_candidates(n, f, 0) * count_candidates(n, f, FACING(0)) < GIVE_MIN) continue;
        Item item;
        if (describe_pivot(n, f, true, &item) != DESCRIBED) return;  // no room now, so it stays here
        i64 slot = reserve_given(1);
        if (slot == NOBODY) return;
        publish(slot, 1, item);
        if (lane_id() == 0) f->pivot = GONE;
        __syncwarp();
        return;
    }
}
