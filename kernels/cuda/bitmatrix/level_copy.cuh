// Copies of a level of a word problem that go with an item, so that the warp that takes it begins at once. To find the
// rows of a problem again takes a walk over all wedges of its base vertices, which is longer than most searches that are
// given away. Warp-level.
//
// A copy lies in the pool: LevelCopy, the base vertices of the problem, what is known of its classes, the closure of the level,
// and the rows as masks of the problem's base vertices, first the lower halves of all and then the upper halves. Candidates come first, in the order
// of the item's list, then excluded rows. The host does not look at copies: for it the item is as if there were none.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/emit.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/rows.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

struct LevelCopy {
    i32 n_bits, n_full, n_excluded;
    i32 n_members;  // of classes of twins, where bicliques are listed
    u32 low, high;  // the base side of the level, as a mask
};
#define LEVEL_HEAD ((i32)(sizeof(LevelCopy) / sizeof(i32)))
#define BIT_INTS ((i32)(MERGING && !PLAIN ? sizeof(SideSums) / sizeof(i32) : 0))  // of each bit

// What this lane's row of word c of a level has of the level's base side, if it is an excluded row, and nothing otherwise.
__device__ __forceinline__ u64 excluded_part(const Scratch* s, const Problem& problem, i32 depth, i32 c) {
    u32 others = cand_of(s, depth, problem.n_words)[c] | closed_of(s, depth, problem.n_words)[c];
    i32 r = 32 * c + lane_id();
    return r < problem.n_rows && !((others >> lane_id()) & 1) ? s->mask[r] & s->level_base[depth] : 0;
}

// Attach a copy of a level to an item whose list has all candidates of the level. Without room the item stays as it is.
__device__ __noinline__ void attach_level(const Worker& w, const Problem& problem, i32 depth, Item* item) {
    Scratch* s = w.s;
    const u32* cand = cand_of(s, depth, problem.n_words);
    const u32* closed = closed_of(s, depth, problem.n_words);
    u64 base = s->level_base[depth];
    LevelCopy head = {problem.n_bits, problem.n_full + count_rows(closed, problem.n_words), 0, 0, (u32)base, (u32)(base >> 32)};
    if (has_classes(s, problem)) head.n_members = first_of_class(s, problem.n_bits);
    ROLLED for (i32 c = 0; c < problem.n_words; c++) head.n_excluded += __popc(warp_ballot(excluded_part(s, problem, depth, c) != 0));
    i32 n_rows = item->n_cand + head.n_excluded;
    i32 n_ends = head.n_members != 0 ? head.n_bits : 0;
    i32 size = LEVEL_HEAD + head.n_bits * (1 + BIT_INTS) + n_ends + head.n_members + head.n_full + 2 * n_rows;
    i64 at = reserve_spare(size);
    if (at == NOBODY) return;
    item->closure_at = at;
    item->n_closure = size;
    i32* out = params.pool + at;
    if (lane_id() == 0) *(LevelCopy*)out = head;
    out += LEVEL_HEAD;
    out += write_list(s->base, problem.n_bits, out);
    out += write_list((const i32*)s->bit, BIT_INTS * problem.n_bits, out);
    out += write_list(s->bin, n_ends, out);
    out += write_list(problem.member, head.n_members, out);
    write_rows(w, problem, closed, out + write_list(s->full, problem.n_full, out));
    out += head.n_full;
    i32 n = 0;
    auto put = [&](u64 mask) {
        u32 all = warp_ballot(mask != 0);
        i32 place = n + __popc(all & lanes_below());
        n += __popc(all);
        if (mask == 0) return;
        out[place] = (i32)mask;
        out[n_rows + place] = (i32)(mask >> 32);
    };
    // A candidate has some of the base side, so none is left out.
    ROLLED for (i32 c = 0; c < problem.n_words; c++) put((cand[c] >> lane_id()) & 1 ? s->mask[32 * c + lane_id()] & base : 0);
    ROLLED for (i32 c = 0; c < problem.n_words; c++) put(excluded_part(s, problem, depth, c));
    __syncwarp();
}

// Whether a copy that goes with n candidates has no more rows than ROW_CAP. A launch with more room may have made it.
__device__ __forceinline__ bool copy_fits(const i32* copy, i32 n_cand) {
    const LevelCopy* head = (const LevelCopy*)copy;
    return n_cand + head->n_excluded <= ROW_CAP && head->n_full <= ROW_CAP;
}

// Make a problem of the copy of a level: the rows that matter to the children kin.begin to kin.end.
__device__ __noinline__ void take_level(Worker& w, Problem* problem) {
    const Kin kin = warp_shared().kin;
    Scratch* s = w.s;
    const i32* in = kin.copy;
    LevelCopy head = *(const LevelCopy*)in;
    i32 n_rows = kin.n_cand + head.n_excluded;
    in += LEVEL_HEAD;
    in += write_list(in, head.n_bits, s->base);
    in += write_list(in, BIT_INTS * head.n_bits, (i32*)s->bit);
    in += write_list(in, head.n_members != 0 ? head.n_bits : 0, s->bin);
    problem->member = head.n_members != 0 ? in : s->base;
    in += head.n_members;
    in += write_list(in, head.n_full, s->full);
    problem->n_bits = head.n_bits;
    problem->n_full = head.n_full;
    problem->n_rows = n_rows;
    problem->n_words = (n_rows + 31) / 32;
    problem->n_cand = kin.n_cand - kin.begin;
    problem->end = kin.end - kin.begin;
    problem->whole = (u64)head.high << 32 | head.low;
    problem->all = true;
    problem->covered = 0;
    problem->n_known = 0;
    // Candidates before the children of this item belong to other items, so they are excluded here. They go behind the
    // candidates that are left.
    ROLLED for (i32 i = lane_id(); i < n_rows; i += 32) {
        i32 r = i >= kin.n_cand ? i : i >= kin.begin ? i - kin.begin : problem->n_cand + i;
        s->mask[r] = (u64)(u32)in[n_rows + i] << 32 | (u32)in[i];
        if (r < problem->n_cand) s->row[r] = kin.cand[i];
    }
    __syncwarp();
    if (problem->n_words > NARROW) place_columns(w, *problem);
}
