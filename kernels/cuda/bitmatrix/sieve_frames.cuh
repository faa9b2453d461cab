// Frames of a sieve as items. They are given to waiting warps, left for the host, or opened anew where room is short.
// Warp-level.
//
// An item is a path and candidates: the closure of the reduced L, and the rows from `next` on. Its L is found again as
// the common neighbours of the path, and shrinks to the same again. To find it takes as long as many visits. So an item
// that is given away also has a copy of the frame, if there is room in the pool. Its field `bound` says which row of the
// copy is the first of its candidates. A frame that is given away again needs no second copy, because only its `next` and
// `end` have changed, and rows that exclude nothing. The host does not look at copies.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/bound.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/sieve_types.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Describe the children of a frame from `next + begin` on, with its lists in the pool. False when the pool is full.
__device__ __noinline__ bool describe_sieve(const Worker& w, const SieveFrame& f, i32 begin, Item* item) {
    i32 n_cand = f.n_rows - f.next;
    i64 at = reserve_pool((i64)f.n_closed + n_cand);
    if (at == NOBODY) return false;
    write_list(w.s->full, f.n_closed, params.pool + at);
    write_list(sieve_of(w).row + f.list0 + f.next, n_cand, params.pool + at + f.n_closed);
    *item = path_item(at, f.n_closed, at + f.n_closed, n_cand, begin, f.end - f.next, 0);
    __syncwarp();
    return true;
}

// Whether children of a frame may lead somewhere.
__device__ __forceinline__ bool has_children(const Worker& w, const SieveFrame& f) {
    return f.next < f.end && smaller((i64)f.members + f.left, params.max_root) >= fewest_roots(w, f.size);
}

// The head of a copy in the pool. Behind it are base vertices, rows, their weights, L, and the bit rows.
struct FrameCopy {
    i32 words, planes, n_base, n_rows, members, size;
};

#define COPY_HEAD ((i32)(sizeof(FrameCopy) / sizeof(i32)))
#define COPY_MOST (9 << 13)  // ints of a copy

// Take room for a copy with this head, and write the head. Returns where the rest begins, or NULL without room.
__device__ inline i32* begin_copy(const FrameCopy& head, Item* item) {
    i64 n = COPY_HEAD + head.n_base + 2ll * head.n_rows + 2ll * head.words * (head.planes + head.n_rows);
    i64 at = n > COPY_MOST ? NOBODY : reserve_spare(n);
    if (at == NOBODY) return 0;
    item->closure_at = at;
    item->n_closure = (i32)n;
    if (lane_id() == 0) *(FrameCopy*)(params.pool + at) = head;
    return params.pool + at + COPY_HEAD;
}

// Attach a copy of the frame of a level to an item.
__device__ __noinline__ void attach_frame(const Worker& w, i32 level, const SieveFrame& f, Item* item) {
    Sieve& v = sieve_of(w);
    item->bound = f.next;
    if (f.copy_at != NOBODY) {
        item->closure_at = f.copy_at;
        item->n_closure = f.n_copy;
        return;
    }
    FrameCopy head = {f.words, v.planes, f.n_base, f.n_rows, f.members, f.size};
    i32* out = begin_copy(head, item);
    if (out == 0) return;
    out += write_list(w.s->list + f.base0, f.n_base, out);
    out += write_list(v.row + f.list0, f.n_rows, out);
    out += write_list(v.weight + f.list0, f.n_rows, out);
    write_list((const i32*)(v.bits + f.at), 2 * f.words * (v.planes + f.n_rows), out);  // L, and behind it the rows
    if (lane_id() == 0 && item->closure_at <= 0x7fffffff) {
        v.frame[level].copy_at = (i32)item->closure_at;
        v.frame[level].n_copy = item->n_closure;
    }
    __syncwarp();
}

// Make frame 0 from the copy of an item, with the children of the item. False when the stack has no room for it.
__device__ __noinline__ bool take_copy(Worker& w, const Item& item, SieveFrame* f) {
    Sieve& v = sieve_of(w);
    const i32* in = params.pool + item.closure_at;
    FrameCopy head = *(const FrameCopy*)in;
    in += COPY_HEAD;
    f->words = head.words;
    f->n_base = head.n_base;
    f->n_rows = head.n_rows;
    f->members = head.members;
    f->size = head.size;
    f->at = f->list0 = f->base0 = 0;
    f->rows = head.words * head.planes;
    f->top = f->rows + head.words * head.n_rows;
    f->n_closed = item.n_base;
    f->next = item.bound + item.begin;  // candidates before it are excluded, because other items have them
    f->end = item.bound + item.end;
    f->copy_at = item.closure_at <= 0x7fffffff ? (i32)item.closure_at : NOBODY;
    f->n_copy = item.n_closure;
    if (head.n_base > LIST_CAP || f->top > SIEVE_WORDS || f->n_rows + f->n_closed > ROW_CAP) return false;
    if (lane_id() == 0) v.planes = head.planes;
    write_list(params.pool + item.base_at, item.n_base, w.s->full);
    in += write_list(in, f->n_base, w.s->list);
    in += write_list(in, f->n_rows, v.row);
    i32 left = 0;
    ROLLED for (i32 i = lane_id(); i < f->n_rows; i += 32) {
        v.weight[i] = in[i];
        if (i >= f->next) left += in[i];
    }
    f->left = warp_sum(left);
    write_list(in + f->n_rows, 2 * f->top, (i32*)v.bits);
    __syncwarp();
    return true;
}

// Write every frame that still has children down for the host. The slice is void if the pool is full.
__device__ __noinline__ void leave_sieve(Worker& w, i32 depth) {
    ROLLED for (i32 level = 0; level <= depth; level++) {
        SieveFrame f = sieve_of(w).frame[level];
        if (!has_children(w, f)) continue;
        Item item;
        if (describe_sieve(w, f, 0, &item))
            leave_over(item);
        else if (lane_id() == 0)
            overflow();
    }
    __syncwarp();
}

// When warps wait, give away the children of the shallowest frame that has enough of them. Returns whether there was
// such a frame. Of the deepest one, this warp keeps the next child.
__device__ __noinline__ bool give_sieve(Worker& w, i32 depth, i32 wanted) {
    ROLLED for (i32 level = 0; level <= depth; level++) {
        SieveFrame f = sieve_of(w).frame[level];
        i32 kept = level == depth, n = f.end - f.next - kept;
        if (n < 1 || !has_children(w, f)) continue;
        if ((i64)n * f.n_rows * f.words < GIVE_SIEVE) continue;  // too little work to be worth an item
        i32 n_items = n < wanted ? n : wanted;
        if (n_items > 32) n_items = 32;  // one per lane, which is what reserve_given keeps in reserve
        Item item;
        if (!describe_sieve(w, f, kept, &item)) return true;  // no room now, so the children stay here
        attach_frame(w, level, f, &item);
        i64 slot = reserve_given(n_items);
        if (slot == NOBODY) return true;
        publish(slot, n_items, item);
        if (lane_id() == 0) sieve_of(w).frame[level].end = f.next + kept;
        __syncwarp();
        return true;
    }
    return false;
}

// Make child j of a frame an item of its own, because there is no room for it here. The slice is void if the pool is
// full.
__device__ __noinline__ void put_aside(const Worker& w, const SieveFrame& f, i32 j) {
    const i32* rows = sieve_of(w).row + f.list0;
    i32 n_path = f.n_closed + 1, n_cand = f.n_rows - j - 1;
    i64 at = reserve_pool((i64)n_path + n_cand);
    if (at == NOBODY) {
        if (lane_id() == 0) overflow();
        return;
    }
    i32* out = params.pool + at;
    write_list(w.s->full, f.n_closed, out);
    if (lane_id() == 0) out[f.n_closed] = rows[j];
    write_list(rows + j + 1, n_cand, out + n_path);
    __syncwarp();
    pass_on(path_item(at, n_path, at + n_path, n_cand, 0, n_cand, 1));
}
