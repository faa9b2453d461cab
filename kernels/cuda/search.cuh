// Search of a word problem in bit columns. Warp-level; a lane holds the words lane, lane + 32, ... of a bit row.
//
// A node is (L as a mask, remaining candidates, closure). Visiting candidate j: L' = L & mask[j]; AND of the
// columns of L' is its closure, OR tells who touches it. The child is canonical iff its closure lies in the
// node's closure, j, and the candidates that remain. Nothing is copied: a level of the stack is two bit rows.
// A child with few left vertices is not searched but solved at once: lattice.cuh.
#pragma once
#include "problem.cuh"

// Closure and candidates of child j with left side `left`, to the stack level behind; false when it is dead.
// *more: whether the child has candidates.
__device__ inline bool open_child(Scratch* s, const Problem& problem, i32 depth, i32 j, u64 left, bool* more) {
    i32 n_words = problem.n_words;
    const u32* cand = cand_of(s, depth, n_words);
    const u32* closed = closed_of(s, depth, n_words);
    bool dead = false, some = false;
    ROLLED for (i32 word = lane_id(); word < n_words; word += 32) {
        u32 in_all = ~0u, in_any = 0;
        ROLLED for (u64 rest = left; rest;) {  // four columns at a time, the last one again and again: each waits for memory
            i32 at[4];
#pragma unroll
            for (i32 k = 0; k < 4; k++) {
                at[k] = rest || k == 0 ? __ffsll((i64)rest) - 1 : at[k - 1 < 0 ? 0 : k - 1];
                rest &= rest - 1;
            }
            u32 bits[4];
#pragma unroll
            for (i32 k = 0; k < 4; k++) bits[k] = s->column[at[k] * n_words + word];
            in_all &= bits[0] & bits[1] & bits[2] & bits[3];
            in_any |= bits[0] | bits[1] | bits[2] | bits[3];
        }
        u32 mine = cand[word];
        u32 allowed = mine | closed[word] | (word == (j >> 5) ? 1u << (j & 31) : 0u);
        dead |= (in_all & ~allowed) != 0;
        u32 below = mine & in_any & ~in_all;
        cand_of(s, depth + 1, n_words)[word] = below;
        closed_of(s, depth + 1, n_words)[word] = in_all;
        s->excluded[word] = in_any & ~in_all & ~below;
        some |= below != 0;
    }
    *more = warp_any(some);
    __syncwarp();
    return !warp_any(dead);
}

// Whether the child's subtree can reach the root side asked for.
__device__ inline bool is_promising(const Worker& w, const Problem& problem, i32 depth) {
    if (!MEASURED || params.min_root <= 1) return true;
    i32 n = 0;
    i64 reach = root_sums(w, problem, closed_of(w.s, depth, problem.n_words), &n).members;
    ROLLED for (i32 word = lane_id(); word < problem.n_words; word += 32) {
        i64 more = 0;
        ROLLED for (u32 rest = cand_of(w.s, depth, problem.n_words)[word]; rest; rest &= rest - 1)
            more += params.root_weight[w.s->row[word * 32 + __ffs(rest) - 1]];
        n += (i32)(more > (1 << 30) ? 1 << 30 : more);
    }
    return reach + warp_sum(n) >= params.min_root;
}

// Bit b of each of the columns as a set.
template <i32 K>
__device__ __forceinline__ u32 set_of(const u32* columns, i32 b) {
    u32 set = 0;
#pragma unroll
    for (i32 t = 0; t < K; t++) set |= ((columns[t] >> b) & 1u) << t;
    return set;
}

// The rows that overlap the child opened last, as sets of its at most K left vertices, to the maps; for reports,
// those that are candidates or in its closure also to the raw rows. Returns how many those are.
template <i32 K>
__device__ inline i32 map_rows(Worker& w, const Problem& problem, i32 depth, u64 left) {
    Scratch* s = w.s;
    i32 n_words = problem.n_words, n = 0;
    clear_maps();
    ROLLED for (i32 base = 0; base < n_words; base += 32) {
        i32 word = base + lane_id();
        bool there = word < n_words;
        u32 columns[K];
        u64 rest = left;
#pragma unroll
        for (i32 t = 0; t < K; t++) {
            columns[t] = rest && there ? s->column[(__ffsll((i64)rest) - 1) * n_words + word] : 0;
            rest &= rest - 1;
        }
        u32 cand = there ? cand_of(s, depth, n_words)[word] : 0;
        u32 excluded = there ? s->excluded[word] : 0;
        ROLLED for (u32 rows = cand | excluded; rows; rows &= rows - 1) {
            i32 b = __ffs(rows) - 1;
            enter_set((cand >> b) & 1 ? CANDIDATES : EXCLUDED, set_of<K>(columns, b));
        }
        if (PLAIN) continue;
        u32 kept = there ? cand | closed_of(s, depth, n_words)[word] : 0;
        i32 at = n + sum_below(__popc(kept));
        n = from(at + __popc(kept), 31);
        ROLLED for (; kept; kept &= kept - 1, at++) {
            i32 b = __ffs(kept) - 1;
            s->raw_row[at] = s->row[word * 32 + b];
            s->raw_mask[at] = set_of<K>(columns, b);
        }
    }
    return n;
}

// From hub.cuh: give away children of the large nodes above this problem; false when there are none.
__device__ bool give_children(Worker& w, i32 depth, i32 wanted);

// Explore an open problem. STOPPED: what is left has been written down.
__device__ inline i32 search(Worker& w, const Problem& problem) {
    Scratch* s = w.s;
    i32 n_words = problem.n_words;
    ROLLED for (i32 word = lane_id(); word < n_words; word += 32) {
        i32 n = problem.n_cand - word * 32;
        cand_of(s, 0, n_words)[word] = n >= 32 ? ~0u : n <= 0 ? 0u : (1u << n) - 1u;
        closed_of(s, 0, n_words)[word] = 0;
    }
    if (lane_id() == 0) {
        s->level_left[0] = low_bits(problem.n_bits);
        s->level_end[0] = problem.end;
    }
    __syncwarp();
    i32 depth = 0;
    ROLLED while (depth >= 0) {
        if ((++w.tick & (POLL - 1)) == 0) {
            i32 wanted;
            bool ends = is_ending(&wanted) || ((w.tick & (FULL_POLL - 1)) == 0 && is_late(w));
            if (w.visits > 0 && ends) {
                leave_levels(w, problem, depth);
                return STOPPED;
            }
            if (wanted > 0 && !give_children(w, w.hub_depth, wanted)) give_some(w, problem, depth, wanted);
        }
        u32* cand = cand_of(s, depth, n_words);
        i32 j = next_candidate(cand, n_words, s->level_end[depth]);
        if (j == NOBODY) {
            depth -= 1;
            continue;
        }
        w.tests += 1;
        w.visits += 1;
        u64 left = s->level_left[depth] & s->mask[j];
        if (MEASURED && params.min_base > 1 && left_sums(w, left).members < params.min_base) continue;
        bool more = false;
        if (!open_child(s, problem, depth, j, left, &more)) continue;
        if (!report(w, problem, left, closed_of(s, depth + 1, n_words))) {
            put_back(cand, j);
            leave_levels(w, problem, depth);
            return STOPPED;
        }
        if (!more || !is_promising(w, problem, depth + 1)) continue;
        if (__popcll(left) <= LATTICE && !params.limited) {
            i32 n = __popcll(left) <= 5 ? map_rows<5>(w, problem, depth + 1, left) : map_rows<LATTICE>(w, problem, depth + 1, left);
            if (solve_lattice(w, problem, left, n)) continue;
            leave_levels(w, problem, depth);
            return STOPPED;
        }
        depth += 1;
        if (lane_id() == 0) {
            s->level_left[depth] = left;
            s->level_end[depth] = problem.n_cand;
        }
        __syncwarp();
    }
    return DONE;
}
