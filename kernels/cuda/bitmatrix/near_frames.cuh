// Nodes of a search for near-bicliques as problems of their own, and as items for waiting warps and for the host.
// Warp-level.
//
// An item is a path and candidates, as for every engine: S, and C with the children that are left in front. An item that is
// given away also has a copy of the node's problem, if there is room in the pool, because to open it anew takes a walk over
// edges. Its field `bound` says which child of the copy is the first of its candidates. A frame that is given away again
// needs no second copy. The host does not look at copies.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/near_node.cuh"
#include "bitmatrix/near_types.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

#define NEAR_COPY_MOST (1 << 17)  // ints of a copy

// A problem that holds what one node needs, and nothing else: names of both sides, rows of both sides, and sets. Its
// excluded vertices are the rows behind the inner ones.
struct NearBlock {
    i32 inner0, all0, inner1, all1, total;
    i32 n_branch;  // of a copy: its children are behind the sets
};

#define NEAR_HEAD ((i32)(sizeof(NearBlock) / sizeof(i32)))

__device__ __forceinline__ i32 words_for(i32 n_bits) { return (n_bits + 31) >> 5; }

// Words of a block, of which the head is no part.
__device__ __forceinline__ i64 block_words(const NearBlock& b) {
    i64 words0 = words_for(b.inner0), words1 = words_for(b.inner1);
    return b.all0 + b.all1 + b.all0 * words1 + b.all1 * words0 + NEAR_SETS * (words0 + words1);
}

// Make frame `d` a node of the block at `at` in `bits`. Its children are not listed.
__device__ inline void stand_on(const Near& n, i32 d, const NearBlock& b, i32 at) {
    NearFrame* f = n.frame + d;
    i32 words0 = words_for(b.inner0), words1 = words_for(b.inner1);
    i32 names1 = at + b.all0, rows0 = names1 + b.all1, rows1 = rows0 + b.all0 * words1, sets = rows1 + b.all1 * words0;
    i32 out0 = sets + NEAR_SETS * (words0 + words1), n0 = b.all0 - b.inner0, n1 = b.all1 - b.inner1;
    ROLLED for (i32 i = lane_id(); i < n0; i += 32) n.bits[out0 + i] = (u32)(b.inner0 + i);
    ROLLED for (i32 i = lane_id(); i < n1; i += 32) n.bits[out0 + n0 + i] = (u32)(b.inner1 + i);
    if (lane_id() == 0) {
        f->side[0] = {words0, b.all0, at, rows0, out0, n0};
        f->side[1] = {words1, b.all1, names1, rows1, out0 + n0, n1};
        f->sets = sets;
        f->total = b.total;
        f->branch = f->top = out0 + n0 + n1;
        f->next = f->end = f->copied = f->n_copy = 0;
        f->copy_at = NOBODY;
    }
    __syncwarp();
}

// List the rows of one side that a node needs: S and C, then what excludes, among it the first n_explored children. Returns
// how many there are, and in *inner how many of them are in S and C.
__device__ inline i32 list_rows(const Near& n, const NearFrame* f, i32 side, i32 n_explored, i32* inner) {
    u32* out = (u32*)inner_of(n, side);
    const u32* chosen = n.bits + set_at(f, CHOSEN, side);
    const u32* addable = n.bits + set_at(f, ADDABLE, side);
    i32 all = list_bits(f->side[side].words, out, [&](i32 w) { return chosen[w] | addable[w]; }, [&](i32 i) { return i; });
    *inner = all;
    i32 n_excluded = f->side[side].n_excluded;
    write_list((const i32*)n.bits + f->side[side].excluded, n_excluded, (i32*)out + all);
    all += n_excluded;
    ROLLED for (i32 chunk = 0; chunk < n_explored; chunk += 32) {
        i32 r = chunk + lane_id() < n_explored ? (i32)n.bits[f->branch + chunk + lane_id()] : 0;
        bool own = chunk + lane_id() < n_explored && (r < 0) == (side == 1);
        u32 owners = warp_ballot(own);
        if (own) out[all + __popc(owners & lanes_below())] = (u32)(r < 0 ? ~r : r);
        all += __popc(owners);
    }
    __syncwarp();
    return all;
}

// What the listed rows of one side have of S and C of the other side, packed.
__device__ inline void pack_side(const Near& n, const NearFrame* f, i32 side, i32 all, u32* out) {
    const i32* rows = inner_of(n, side);
    const NearSide own = f->side[side];
    i32 chosen = set_at(f, CHOSEN, 1 - side), addable = set_at(f, ADDABLE, 1 - side), n_words = f->side[1 - side].words;
    ROLLED for (i32 i = lane_id(); i < all; i += 32) {
        i32 r = rows[i], at = 0;
        u32 packed = 0;
        u32* to = out + i;
        ROLLED for (i32 w = 0; w < n_words; w++) {
            u32 row = n.bits[own.rows + w * own.all + r];
            // The mask is the same in all lanes.
            ROLLED for (u32 mask = n.bits[chosen + w] | n.bits[addable + w]; mask; mask &= mask - 1) {
                packed |= ((row >> (__ffs(mask) - 1)) & 1) << (at & 31);
                if ((++at & 31) == 0) {
                    *to = packed;
                    to += all;
                    packed = 0;
                }
            }
        }
        if (at & 31) *to = packed;
    }
}

// Write the sets of one side as sets of the listed rows. A set has `step` words, which are those of both sides.
__device__ inline void pack_sets(const Near& n, const NearFrame* f, i32 side, i32 inner, u32* out, i32 step) {
    const i32* rows = inner_of(n, side);
    ROLLED for (i32 which = 0; which < NEAR_SETS; which++) {
        const u32* set = n.bits + set_at(f, which, side);
        ROLLED for (i32 w = 0; w < words_for(inner); w++) {
            i32 i = 32 * w + lane_id(), r = i < inner ? rows[i] : 0;
            u32 word = warp_ballot(which != JOINED && i < inner && (set[r >> 5] >> (r & 31)) & 1);
            if (lane_id() == 0) out[which * step + w] = word;
        }
    }
}

// Write the block of a node to `out`. Its rows were listed.
__device__ __noinline__ void write_block(const Near& n, const NearFrame* f, const NearBlock& b, u32* out) {
    i32 words0 = words_for(b.inner0), words1 = words_for(b.inner1);
    ROLLED for (i32 side = 0; side < 2; side++) {
        const i32* rows = inner_of(n, side);
        i32 names = f->side[side].names, all = side ? b.all1 : b.all0;
        ROLLED for (i32 i = lane_id(); i < all; i += 32) out[i] = n.bits[names + rows[i]];
        out += all;
    }
    pack_side(n, f, 0, b.all0, out);
    out += b.all0 * words1;
    pack_side(n, f, 1, b.all1, out);
    out += b.all1 * words0;
    pack_sets(n, f, 0, b.inner0, out, words0 + words1);
    pack_sets(n, f, 1, b.inner1, out + words0, words0 + words1);
    __syncwarp();
}

__device__ inline NearBlock list_block(const Near& n, const NearFrame* f, i32 n_explored) {
    NearBlock b;
    b.all0 = list_rows(n, f, 0, n_explored, &b.inner0);
    b.all1 = list_rows(n, f, 1, n_explored, &b.inner1);
    b.total = f->total;
    b.n_branch = 0;
    return b;
}

// Give frame `d` a problem of its own if its rows become half as long. Its children are not listed yet.
__device__ inline void shrink_node(const Near& n, i32 d, Pivot* pivot) {
    NearFrame* f = n.frame + d;
    i32 step = f->side[0].words + f->side[1].words;
    if (step < 3) return;
    i32 words = words_for(size_of_side(n, f, 0)) + words_for(size_of_side(n, f, 1));
    if (2 * words > step) return;
    NearBlock b = list_block(n, f, 0);
    i64 most = f->top + block_words(b) + 2ll * (b.all0 + b.all1);
    if (most > n.room) return;
    if (pivot->fewest != NO_PIVOT) {
        const i32* rows = inner_of(n, pivot->side);
        i32 all = pivot->side ? b.all1 : b.all0, at = 0;
        ROLLED for (i32 i = lane_id(); i < all; i += 32)
            if (rows[i] == pivot->at) at = i;
        pivot->at = (i32)__reduce_max_sync(ALL_LANES, (u32)at);
    }
    i32 to = f->top;
    write_block(n, f, b, n.bits + to);
    stand_on(n, d, b, to);
}

// Mark children [begin, end) of a frame in the set JOINED, and nothing else.
__device__ inline void mark_children(const Near& n, const NearFrame* f, i32 begin, i32 end) {
    i32 step = f->side[0].words + f->side[1].words;
    u32* marked = n.bits + f->sets + JOINED * step;
    ROLLED for (i32 i = lane_id(); i < step; i += 32) marked[i] = 0;
    __syncwarp();
    ROLLED for (i32 i = begin + lane_id(); i < end; i += 32) {
        i32 r = (i32)n.bits[f->branch + i];
        i32 bit = r < 0 ? ~r + 32 * f->side[0].words : r;
        atomicOr(&marked[bit >> 5], 1u << (bit & 31));
    }
    __syncwarp();
}

// The vertex of a row, as paths and candidates name it.
__device__ __forceinline__ i32 name_of(const Near& n, const NearFrame* f, i32 side, i32 r) {
    return (i32)n.bits[f->side[side].names + r] + (side ? (i32)params.n_roots : 0);
}

// Write the vertices of both sides whose bits word(which word) has, and return how many there are.
template <class Word>
__device__ inline i32 write_vertices_of(const Near& n, const NearFrame* f, i32* out, const Word& word) {
    i32 words0 = f->side[0].words;
    i32 count = list_bits(words0, (u32*)out, word, [&](i32 i) { return name_of(n, f, 0, i); });
    return count + list_bits(
                       f->side[1].words, (u32*)out + count, [&](i32 w) { return word(words0 + w); },
                       [&](i32 i) { return name_of(n, f, 1, i); });
}

__device__ inline i32 size_of_set(const Near& n, const NearFrame* f, i32 which) {
    i32 size = 0;
    ROLLED for (i32 w = lane_id(); w < f->side[0].words + f->side[1].words; w += 32) size += __popc(n.bits[set_at(f, which, 0) + w]);
    return warp_sum(size);
}

// Describe the children of a frame from `next + begin` on, with its lists in the pool. False when the pool is full.
__device__ __noinline__ bool describe_near(const Near& n, const NearFrame* f, i32 begin, Item* item) {
    i32 n_path = size_of_set(n, f, CHOSEN), n_cand = size_of_set(n, f, ADDABLE);
    i64 at = reserve_pool((i64)n_path + n_cand);
    if (at == NOBODY) return false;
    const u32* chosen = n.bits + set_at(f, CHOSEN, 0);
    const u32* addable = n.bits + set_at(f, ADDABLE, 0);
    const u32* listed = n.bits + set_at(f, JOINED, 0);
    i32* out = params.pool + at;
    out += write_vertices_of(n, f, out, [&](i32 w) { return chosen[w]; });
    mark_children(n, f, f->next, f->end);
    ROLLED for (i32 i = f->next + lane_id(); i < f->end; i += 32) {
        i32 r = (i32)n.bits[f->branch + i];
        out[i - f->next] = r < 0 ? name_of(n, f, 1, ~r) : name_of(n, f, 0, r);
    }
    write_vertices_of(n, f, out + f->end - f->next, [&](i32 w) { return addable[w] & ~listed[w]; });
    *item = path_item(at, n_path, at + n_path, n_cand, begin, f->end - f->next, 0);
    __syncwarp();
    return true;
}

// Attach a copy of a frame to an item.
__device__ __noinline__ void attach_near(const Near& n, NearFrame* f, Item* item) {
    item->bound = f->next - f->copied;
    if (f->copy_at != NOBODY) {
        item->closure_at = f->copy_at;
        item->n_closure = f->n_copy;
        return;
    }
    NearBlock b = list_block(n, f, f->next);
    b.n_branch = f->end - f->next;
    i64 size = NEAR_HEAD + block_words(b) + b.n_branch;
    i64 at = size > NEAR_COPY_MOST ? NOBODY : reserve_spare(size);
    item->bound = at == NOBODY ? NOBODY : 0;
    if (at == NOBODY) return;
    item->closure_at = at;
    item->n_closure = (i32)size;
    u32* out = (u32*)params.pool + at;
    if (lane_id() == 0) *(NearBlock*)out = b;
    write_block(n, f, b, out + NEAR_HEAD);
    out += NEAR_HEAD + block_words(b);
    ROLLED for (i32 i = lane_id(); i < b.n_branch; i += 32) {
        // The number of a child among S and C is its row in the block.
        i32 r = (i32)n.bits[f->branch + f->next + i], side = r < 0, old = side ? ~r : r, row = 0;
        i32 chosen = set_at(f, CHOSEN, side), addable = set_at(f, ADDABLE, side);
        ROLLED for (i32 w = 0; w <= old >> 5; w++) {
            u32 word = n.bits[chosen + w] | n.bits[addable + w];
            row += __popc(w < old >> 5 ? word : word & ((1u << (old & 31)) - 1));
        }
        out[i] = (u32)(side ? ~row : row);
    }
    __syncwarp();
    if (lane_id() == 0 && at <= 0x7fffffff) {
        f->copy_at = (i32)at;
        f->n_copy = (i32)size;
        f->copied = f->next;
    }
    __syncwarp();
}

// Make frame 0 from the copy of an item, with the children of the item. False when there is no room for it.
__device__ __noinline__ bool take_near(const Near& n, const Item& item) {
    const i32* in = params.pool + item.closure_at;
    NearBlock b = *(const NearBlock*)in;
    i64 words = block_words(b);
    if (words + b.all0 + b.all1 + b.n_branch > n.room) return false;
    in += NEAR_HEAD;
    write_list(in, (i32)words, (i32*)n.bits);
    __syncwarp();
    stand_on(n, 0, b, 0);
    NearFrame* f = n.frame;
    write_list(in + words, b.n_branch, (i32*)n.bits + f->branch);
    __syncwarp();
    i32 first = item.bound + item.begin;  // children before it exclude, because other items have them
    mark_children(n, f, 0, first);
    i32 step = f->side[0].words + f->side[1].words;
    ROLLED for (i32 i = lane_id(); i < step; i += 32) n.bits[f->sets + ADDABLE * step + i] &= ~n.bits[f->sets + JOINED * step + i];
    if (lane_id() == 0) {
        f->next = first;
        f->end = item.bound + item.end;
        f->top += b.n_branch;
        f->copy_at = item.closure_at <= 0x7fffffff ? (i32)item.closure_at : NOBODY;
        f->n_copy = item.n_closure;
    }
    __syncwarp();
    return true;
}

// Write a leaf down for the host, because the output has no room for it. The slice is void if the pool is full.
__device__ inline void leave_leaf(const Near& n, const NearFrame* f) {
    Item item;
    bool described = describe_near(n, f, 0, &item);
    item.fresh = 1;
    if (described)
        leave_over(item);
    else if (lane_id() == 0)
        overflow();
    __syncwarp();
}

// Write every frame that still has children down for the host. The slice is void if the pool is full.
__device__ __noinline__ void leave_near(const Near& n, i32 depth) {
    ROLLED for (i32 level = 0; level <= depth; level++) {
        const NearFrame* f = n.frame + level;
        if (f->next >= f->end) continue;
        Item item;
        if (describe_near(n, f, 0, &item))
            leave_over(item);
        else if (lane_id() == 0)
            overflow();
    }
    __syncwarp();
}

// When warps wait, give away the children of the shallowest frame that has enough of them. Of the deepest one, this warp
// keeps the next child.
__device__ __noinline__ void give_near(const Near& n, i32 depth, i32 wanted) {
    ROLLED for (i32 level = 0; level <= depth; level++) {
        NearFrame* f = n.frame + level;
        i32 kept = level == depth, left = f->end - f->next - kept;
        i64 work = (i64)f->side[0].all * f->side[1].words + (i64)f->side[1].all * f->side[0].words;
        if (left < 1 || left * work < GIVE_MIN) continue;  // too little work to be worth an item
        i32 n_items = left < wanted ? left : wanted;
        if (n_items > 32) n_items = 32;  // one per lane, which is what reserve_given keeps in reserve
        Item item;
        if (!describe_near(n, f, kept, &item)) return;  // no room now, so the children stay here
        attach_near(n, f, &item);
        i64 slot = reserve_given(n_items);
        if (slot == NOBODY) return;
        publish(slot, n_items, item);
        if (lane_id() == 0) f->end = f->next + kept;
        __syncwarp();
        return;
    }
}

// Make a child of frame `d` an item of its own, because there is no room for it here. It is no candidate of the frame any
// more. The slice is void if the pool is full.
__device__ __noinline__ void put_near_aside(const Near& n, i32 d, i32 side, i32 y) {
    const NearFrame* f = n.frame + d;
    i32 n_path = size_of_set(n, f, CHOSEN) + 1, n_cand = size_of_set(n, f, ADDABLE);
    i64 at = reserve_pool((i64)n_path + n_cand);
    if (at == NOBODY) {
        if (lane_id() == 0) overflow();
        return;
    }
    const u32* chosen = n.bits + set_at(f, CHOSEN, 0);
    const u32* addable = n.bits + set_at(f, ADDABLE, 0);
    i32* out = params.pool + at;
    out += write_vertices_of(n, f, out, [&](i32 w) { return chosen[w]; });
    if (lane_id() == 0) *out = name_of(n, f, side, y);
    write_vertices_of(n, f, out + 1, [&](i32 w) { return addable[w]; });
    pass_on(path_item(at, n_path, at + n_path, n_cand, 0, n_cand, 1));
}
