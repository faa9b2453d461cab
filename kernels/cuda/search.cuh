// Search of a word problem in bit columns. Warp-level; a lane holds the words lane, lane + 32, ... of a bit row.
//
// A node is (L as a mask, remaining candidates, closure). Visiting candidate j: L' = L & mask[j]; AND of the
// columns of L' is its closure, OR tells who touches it. The child is canonical iff its closure lies in the
// node's closure, j, and the candidates that remain. Nothing is copied: a level of the stack is two bit rows.
#pragma once
#include "rows.cuh"

// One level of the search, in registers; rows wider than 32 words keep the rest in the stack arrays.
struct Level {
    u64 left;
    i32 end;  // candidates from here on are not explored at this level
};

__device__ __forceinline__ u32* cand_of(Scratch* s, i32 depth, i32 n_words) { return s->cand + depth * n_words; }
__device__ __forceinline__ u32* closed_of(Scratch* s, i32 depth, i32 n_words) { return s->closed + depth * n_words; }

// Next candidate of the level to explore, or NOBODY; it is taken out of the level's candidates.
__device__ __forceinline__ i32 next_candidate(u32* cand, i32 n_words, i32 end) {
    for (i32 base = 0; base < n_words; base += 32) {
        i32 word = base + lane_id();
        u32 bits = word < n_words ? cand[word] : 0;
        u32 holders = warp_ballot(bits != 0);
        if (holders == 0) continue;
        i32 holder = __ffs(holders) - 1;
        i32 j = (base + holder) * 32 + __ffs(from(bits, holder)) - 1;
        if (j >= end) return NOBODY;
        if (lane_id() == holder) cand[word] = bits & (bits - 1);
        __syncwarp();
        return j;
    }
    return NOBODY;
}

// Put candidate j back: it could not be reported.
__device__ __forceinline__ void put_back(u32* cand, i32 j) {
    if (lane_id() == 0) cand[j >> 5] |= 1u << (j & 31);
    __syncwarp();
}

// Closure and candidates of child j with left side `left`, to the stack level behind; false when it is dead.
// *more: whether the child has candidates.
__device__ inline bool open_child(Scratch* s, const Problem& problem, i32 depth, i32 j, u64 left, bool* more) {
    i32 n_words = problem.n_words;
    const u32* cand = cand_of(s, depth, n_words);
    const u32* closed = closed_of(s, depth, n_words);
    bool dead = false, some = false;
    for (i32 word = lane_id(); word < n_words; word += 32) {
        u32 in_all = ~0u, in_any = 0;
        for (u64 rest = left; rest; rest &= rest - 1) {
            u32 bits = s->column[(__ffsll((i64)rest) - 1) * n_words + word];
            in_all &= bits;
            in_any |= bits;
        }
        u32 mine = cand[word];
        u32 allowed = mine | closed[word] | (word == (j >> 5) ? 1u << (j & 31) : 0u);
        dead |= (in_all & ~allowed) != 0;
        u32 below = mine & in_any & ~in_all;
        cand_of(s, depth + 1, n_words)[word] = below;
        closed_of(s, depth + 1, n_words)[word] = in_all;
        some |= below != 0;
    }
    *more = warp_any(some);
    __syncwarp();
    return !warp_any(dead);
}

// Sums over the left vertices of a mask.
__device__ inline SideSums left_sums(const Worker& w, u64 left) {
    i64 members = 0;
    u64 hash = 0;
    for (i32 half = 0; half < 2; half++) {
        i32 b = lane_id() + 32 * half;
        if ((left >> b) & 1) {
            i32 u = w.s->left[b];
            members += w.p->base_weight[u];
            hash += w.p->base_hash[u];
        }
    }
    SideSums sums = {warp_sum(members), warp_sum(hash)};
    return sums;
}

// Sums over the rows of a bit row (NULL: none) and the problem's closure; how many vertices, to *n.
__device__ inline SideSums root_sums(const Worker& w, const Problem& problem, const u32* bits, i32* n) {
    i64 members = 0;
    u64 hash = 0;
    i32 found = 0;
    for (i32 word = lane_id(); bits != 0 && word < problem.n_words; word += 32) {
        for (u32 rest = bits[word]; rest; rest &= rest - 1) {
            i32 v = w.s->row[word * 32 + __ffs(rest) - 1];
            members += w.p->root_weight[v];
            hash += w.p->root_hash[v];
            found += 1;
        }
    }
    SideSums sums = {warp_sum(members), warp_sum(hash)};
    SideSums base = sums_of(w.p->root_weight, w.p->root_hash, w.s->full, problem.n_full);
    sums.members += base.members;
    sums.hash += base.hash;
    *n = warp_sum(found) + problem.n_full;
    return sums;
}

// Write the vertices of a mask, or of a bit row, to `out`; how many. Warp-level.
__device__ inline i32 write_left(const Worker& w, u64 left, i32* out) {
    i32 n = 0;
    for (i32 half = 0; half < 2; half++) {
        i32 b = lane_id() + 32 * half;
        bool mine = (left >> b) & 1;
        u32 all = warp_ballot(mine);
        if (mine) out[n + __popc(all & lanes_below())] = w.s->left[b];
        n += __popc(all);
    }
    return n;
}

__device__ inline i32 write_rows(const Worker& w, const Problem& problem, const u32* bits, i32* out) {
    i32 n = 0;
    for (i32 base = 0; base < problem.n_words; base += 32) {
        i32 word = base + lane_id();
        u32 rest = word < problem.n_words ? bits[word] : 0;
        i32 at = n + sum_below(__popc(rest));
        n += warp_sum(__popc(rest));
        for (; rest; rest &= rest - 1) out[at++] = w.s->row[word * 32 + __ffs(rest) - 1];
    }
    return n;
}

__device__ inline i32 write_list(const i32* list, i32 n, i32* out) {
    for (i32 i = lane_id(); i < n; i += 32) out[i] = list[i];
    return n;
}

// Report the node (left, closure bits); false when it has to be given back.
__device__ inline bool report(Worker& w, const Problem& problem, u64 left, const u32* closed) {
    if (w.p->plain) {
        w.count += 1;
        return true;
    }
    i32 n_root = 0;
    SideSums base = left_sums(w, left);
    SideSums root = root_sums(w, problem, closed, &n_root);
    i32 n_base = __popcll(left);
    i32 admitted = admit(w, n_base, n_root, base, root);
    if (admitted <= 0) return admitted == 0;
    i32* out = w.p->values + w.value_at;
    out += write_left(w, left, out);
    out += write_list(w.s->full, problem.n_full, out);
    if (closed != 0) write_rows(w, problem, closed, out);
    written(w, n_base, n_root);
    return true;
}

// Explored candidates of a level that nobody has begun: those before its end.
__device__ inline i32 remaining(Scratch* s, i32 depth, i32 n_words, i32 end) {
    i32 n = 0;
    for (i32 word = lane_id(); word < n_words; word += 32) {
        i32 first = word * 32;
        u32 bits = cand_of(s, depth, n_words)[word];
        if (end < first + 32) bits &= end <= first ? 0u : (1u << (end - first)) - 1u;
        n += __popc(bits);
    }
    return warp_sum(n);
}

// The level as an item, its lists in the pool: L (as a path, or as left vertices) and all its candidates.
// False when the pool is full.
__device__ inline bool describe(Worker& w, const Problem& problem, i32 depth, i32 n_explored, bool as_path, Item* item) {
    Scratch* s = w.s;
    const u32* cand = cand_of(s, depth, problem.n_words);
    const u32* closed = closed_of(s, depth, problem.n_words);
    u64 left = s->level_left[depth];
    i32 n_cand = 0, n_closed = 0;
    for (i32 word = lane_id(); word < problem.n_words; word += 32) {
        n_cand += __popc(cand[word]);
        n_closed += __popc(closed[word]);
    }
    n_cand = warp_sum(n_cand);
    i32 n_left = as_path ? warp_sum(n_closed) + problem.n_full : __popcll(left);
    i64 at = reserve_pool(w, (i64)n_left + n_cand);
    if (at == NOBODY) return false;
    i32* out = w.p->pool + at;
    if (as_path)
        write_rows(w, problem, closed, out + write_list(s->full, problem.n_full, out));
    else
        write_left(w, left, out);
    write_rows(w, problem, cand, out + n_left);
    item->kind = as_path ? PATH : WORD;
    item->bound = NOBODY;
    item->left_at = at;
    item->n_left = n_left;
    item->cand_at = at + n_left;
    item->n_cand = n_cand;
    item->closure_at = NOBODY;
    item->n_closure = 0;
    item->begin = 0;
    item->end = n_explored;
    item->fresh = 0;
    __syncwarp();
    return true;
}

// Hand n children of a level, the ones that come next, to n_items waiting warps; false when there is no room.
__device__ inline bool give_level(Worker& w, const Problem& problem, i32 level, i32 n, i32 n_items) {
    Item item;
    if (!describe(w, problem, level, n, false, &item)) return false;
    i64 slot = reserve_given(w, n_items);
    if (slot == NOBODY) return false;
    publish(w, slot, n_items, item);
    return true;
}

// When warps wait: give away the shallowest level with children left, but for the next child of the deepest.
__device__ inline void give_some(Worker& w, const Problem& problem, i32 depth) {
    Scratch* s = w.s;
    i32 wanted = demand(w);
    if (wanted <= 0) return;
    for (i32 level = 0; level <= depth; level++) {
        i32 n = remaining(s, level, problem.n_words, s->level_end[level]);
        i32 spare = level == depth ? n - 1 : n;
        if (spare <= 0) continue;
        if ((i64)spare * problem.n_rows < GIVE_MIN) return;
        i32 n_items = spare < wanted ? spare : wanted;
        if (n_items > 32) n_items = 32;
        u32* cand = cand_of(s, level, problem.n_words);
        i32 kept = level == depth ? next_candidate(cand, problem.n_words, s->level_end[level]) : NOBODY;
        bool given = give_level(w, problem, level, spare, n_items);
        if (kept != NOBODY) put_back(cand, kept);
        if (given && lane_id() == 0) s->level_end[level] = kept + 1;
        __syncwarp();
        return;
    }
}

// Write every open level down for the host; the node at hand (given back) is among them as a candidate.
__device__ inline void leave_levels(Worker& w, const Problem& problem, i32 depth) {
    for (i32 level = 0; level <= depth; level++) {
        i32 n = remaining(w.s, level, problem.n_words, w.s->level_end[level]);
        if (n == 0) continue;
        Item item;
        if (describe(w, problem, level, n, true, &item))
            leave_over(w, item);
        else if (lane_id() == 0)
            atomicExch(&w.q->overflow, 1);
    }
    __syncwarp();
}

// Whether the child's subtree can reach the root side asked for.
__device__ inline bool is_promising(const Worker& w, const Problem& problem, i32 depth) {
    if (w.p->min_root <= 1) return true;
    i32 n = 0;
    i64 reach = root_sums(w, problem, closed_of(w.s, depth, problem.n_words), &n).members;
    for (i32 word = lane_id(); word < problem.n_words; word += 32) {
        i64 more = 0;
        for (u32 rest = cand_of(w.s, depth, problem.n_words)[word]; rest; rest &= rest - 1)
            more += w.p->root_weight[w.s->row[word * 32 + __ffs(rest) - 1]];
        n += (i32)(more > (1 << 30) ? 1 << 30 : more);
    }
    return reach + warp_sum(n) >= w.p->min_root;
}

// From hub.cuh: give away children of the large nodes above this problem; false when there are none.
__device__ bool give_children(Worker& w, i32 depth);

// Explore an open problem. STOPPED: what is left has been written down.
__device__ inline i32 search(Worker& w, const Problem& problem) {
    Scratch* s = w.s;
    i32 n_words = problem.n_words;
    for (i32 word = lane_id(); word < n_words; word += 32) {
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
    while (depth >= 0) {
        if ((++w.tick & (POLL - 1)) == 0) {
            if (w.visits > 0 && check_stop(w)) {
                leave_levels(w, problem, depth);
                return STOPPED;
            }
            if (!give_children(w, w.hub_depth)) give_some(w, problem, depth);
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
        if (w.p->min_base > 1 && left_sums(w, left).members < w.p->min_base) continue;
        bool more = false;
        if (!open_child(s, problem, depth, j, left, &more)) continue;
        if (!report(w, problem, left, closed_of(s, depth + 1, n_words))) {
            put_back(cand, j);
            leave_levels(w, problem, depth);
            return STOPPED;
        }
        if (!more || !is_promising(w, problem, depth + 1)) continue;
        depth += 1;
        if (lane_id() == 0) {
            s->level_left[depth] = left;
            s->level_end[depth] = problem.n_cand;
        }
        __syncwarp();
    }
    return DONE;
}
