// One visit: choose a candidate, build L', check maximality, expand.
//
// Each warp takes a vertex, and its lanes take neighbours. With LANES < 32, each part of a warp takes a vertex.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "cumbe/block.cuh"
#include "cumbe/compact_arrays.cuh"
#include "cumbe/types.cuh"

// Write the smallest |N(v) & L| over the candidates that are still to be explored, and its candidate, to c->best. First
// early stop: a vertex is given up when it has as many as the best so far. Second early stop: no candidate has fewer
// than the one that was chosen last at this level, so a vertex with as few ends the search.
__device__ inline void select_candidate(Block& b, const Level& level, bool some_rest, Counters* c) {
    const Subgraph& g = b.s->graph;
    i32 n = level.n_cand;
    // A group of LANES lanes takes a candidate. The count is in the upper half of `best` and the position in g.cands
    // in the lower half, so one atomicMin compares counts and keeps the position that belongs to the smallest.
    for (i32 chunk = warp_id() * GROUPS; chunk < n; chunk += N_WARPS * GROUPS) {
        // The best of all warps so far: atomicMin with the largest value only reads. Its upper half is the count.
        u64 best = ~0ull;
        if (lane_id() == 0) best = atomicMin(&c->best, ~0ull);
        u32 least = (u32)(from(best, 0) >> 32);
        // L does not change within a level, and candidates only leave it. So the smallest count never falls from one
        // selection to the next. `least` is the same in all lanes, so the warp leaves as a whole.
        if (EARLY_STOP && least <= (u32)level.least) break;
        i32 i = chunk + group_id();
        // Most candidates before the last choice had more at that selection, so this one begins there, and goes
        // around.
        i32 at = i + level.cursor < n ? i + level.cursor : i + level.cursor - n;
        bool asked = i < n;
        Span column = {0, 0};
        if (asked) {
            i32 id = g.cands[at];
            // A negative vertex is a candidate that this item does not explore.
            asked = !some_rest || g.vertex[id] >= 0;
            if (asked) column = g.column[id];
        }
        u32 found = 0;
        // A group counts its column, LANES entries at a time. An id is in L if its position is before n_base. A group
        // that is done stays in the loop, because the ballot needs all lanes.
        for (i32 first = column.begin; warp_any(first < column.end); first += LANES) {
            i32 e = first + group_lane();
            bool common = e < column.end && g.base_at[g.column_ids[e]] < level.n_base;
            found += __popc(warp_ballot(common) & group_mask());
            if (EARLY_STOP && found >= least) column.end = 0;
        }
        // `least` may be old by now. Then a count that is no longer the best comes here, too, and atomicMin refuses
        // it.
        if (asked && group_lane() == 0 && found < least) atomicMin(&c->best, (u64)found << 32 | (u32)at);
    }
    __syncthreads();
}

// Write L', the neighbours of the candidate in L, to g.chosen.
__device__ inline void construct_base(Block& b, const Level& level, i32 id, Counters* c) {
    const Subgraph& g = b.s->graph;
    Span column = g.column[id];
    // The whole block takes one column, and a lane takes one entry. A base id is in L if its position lies in the
    // level's prefix. The order of L' is that in which warps claim, and nothing depends on it.
    for (i32 chunk = column.begin + warp_id() * 32; chunk < column.end; chunk += BLOCK) {
        i32 e = chunk + lane_id();
        i32 u = e < column.end ? g.column_ids[e] : 0;
        bool mine = e < column.end && g.base_at[u] < level.n_base;
        i32 at = claim(&c->n_chosen, mine);
        if (mine) g.chosen[at] = u;
    }
    __syncthreads();
}

// Whether the base ids stand for fewer vertices than a biclique must have.
__device__ inline bool is_small(Block& b, const i32* list, i32 n, Counters* c) {
    if (b.p->min_base <= 1) return false;
    // min_base is the same in all threads, so none misses the barrier. The sum has a counter of its own, because
    // `emit` uses base_members in the same visit.
    i64 members = 0;
    for (i32 i = threadIdx.x; i < n; i += BLOCK) members += b.p->base_weight[b.s->graph.base[list[i]]];
    gather_sum(&c->small_members, members);
    __syncthreads();
    return c->small_members < b.p->min_base;
}

// Bring L' to the front of the compact array of L.
__device__ inline void bring_base(Block& b, i32 n, Counters* c) {
    Subgraph& g = b.s->graph;
    // All marks must be there before the first swap, because a swap asks which entries of the front may stay.
    mark_members<1>(g.chosen, 1, n, g.base_at, g.base_movers, &c->n_movers[0]);
    __syncthreads();
    swap_members<1>(g.bases, 1, n, g.base_at, g.base_movers, &c->n_holes[0]);
    __syncthreads();
}

#if REVERSE_SCAN
// Reverse scan: count |N(v) & L'| of every v in P and Q that has neighbours in L', by walking from L'. When L' is
// smaller than the block, a team of more than LANES lanes takes a vertex.
__device__ inline void scan(Block& b, const Level& level, i32 n, Counters* c) {
    const Subgraph& g = b.s->graph;
    // A team may be a part of a warp, a warp, or several warps. A thread's place in it is threadIdx.x modulo its size.
    // Votes and claims are still of one warp, so the warps of a team need not wait for each other.
    i32 team = LANES;
    while (team * n < BLOCK && BLOCK % (2 * team) == 0) team *= 2;
    for (i32 chunk = warp_id() * 32 / team; chunk < n; chunk += BLOCK / team) {
        i32 i = chunk + lane_id() / team;
        // A team without a vertex has an empty row, and its lanes stay for the claims of the others in the warp.
        Span row = {0, 0};
        if (i < n) row = g.row[g.chosen[i]];
        for (i32 first = row.begin; warp_any(first < row.end); first += team) {
            i32 e = first + (i32)threadIdx.x % team;
            bool fresh = false;
            i32 id = 0;
            if (e < row.end) {
                id = g.row_ids[e];
                Place place = g.place[id];
                // in P or Q of this level; the lane that counts first lists the id
                if (place.cand < level.n_cand || place.excluded < level.n_excluded)
                    fresh = atomicAdd(&g.common[id], 1) == 0;
            }
            i32 at = claim(&c->n_touched, fresh);
            if (fresh) g.touched[at] = id;
        }
    }
    // Counts and list are complete behind the barrier; classify gives them to other threads.
    __syncthreads();
}

// The whole test when L' is one vertex, as it is for most children. Every root vertex that is met contains L'.
__device__ inline void scan_single(Block& b, const Level& level, Counters* c) {
    const Subgraph& g = b.s->graph;
    Span row = g.row[g.chosen[0]];
    bool dead = false;
    for (i32 chunk = row.begin + warp_id() * 32; chunk < row.end; chunk += BLOCK) {
        i32 e = chunk + lane_id();
        // Id 0 is in no set, so lanes behind the end do nothing but take part in the claim.
        i32 id = e < row.end ? g.row_ids[e] : 0;
        Place place = g.place[id];
        dead |= place.excluded < level.n_excluded;
        bool joins = place.cand < level.n_cand;
        i32 at = claim(&c->n_joined, joins);
        if (joins) {
            i32 v = g.vertex[id];
            g.closure[level.n_closure + at] = v < 0 ? ~v : v;
        }
    }
    // One atomic per warp is enough: only the bit matters, so the order of warps does not.
    if (warp_any(dead) && lane_id() == 0) atomicOr(&c->dead, 1);
    __syncthreads();
}
#else
// The counts of `scan` by walking from every v. L' is at the front already.
__device__ inline void scan(Block& b, const Level& level, i32 n, Counters* c) {
    const Subgraph& g = b.s->graph;
    i32 all = level.n_cand + level.n_excluded;
    for (i32 chunk = warp_id() * GROUPS; chunk < all; chunk += N_WARPS * GROUPS) {
        i32 i = chunk + group_id();
        i32 id = i < level.n_cand ? g.cands[i] : i < all ? g.excluded[i - level.n_cand] : 0;
        Span column = {0, 0};
        if (i < all) column = g.column[id];
        i32 found = 0;
        for (i32 first = column.begin; warp_any(first < column.end); first += LANES) {
            i32 e = first + group_lane();
            bool common = e < column.end && g.base_at[g.column_ids[e]] < n;
            found += __popc(warp_ballot(common) & group_mask());
        }
        bool met = found > 0 && group_lane() == 0;
        i32 at = claim(&c->n_touched, met);
        if (met) {
            g.touched[at] = id;
            g.common[id] = found;
        }
    }
    __syncthreads();
}
#endif

// Make P', Q' and R' from the counts, and reset the counts to zero. Sets c->dead when an excluded vertex contains L'.
__device__ inline void classify(Block& b, const Level& level, i32 n, Counters* c) {
    const Subgraph& g = b.s->graph;
    u64 least = ~0ull;
    i64 reach = 0;
    // A lane takes one of the root vertices that were met. The others have no neighbour in L': they are in none of the
    // child's sets, and their counters are zero already.
    for (i32 chunk = warp_id() * 32; chunk < c->n_touched; chunk += BLOCK) {
        i32 i = chunk + lane_id();
        bool mine = i < c->n_touched;
        i32 id = mine ? g.touched[i] : 0, common = 0;
        bool candidate = false;
        if (mine) {
            // Each id is listed once, so this lane alone reads the count and clears it for the next visit.
            common = g.common[id];
            g.common[id] = 0;
            candidate = g.place[id].cand < level.n_cand;
        }
        bool full = common == n;  // contains L'
        // An excluded vertex that contains L' was explored before, and the child was found below it.
        if (warp_any(mine && full && !candidate) && lane_id() == 0) atomicOr(&c->dead, 1);
        bool joins = mine && full && candidate, next = mine && !full && candidate, back = mine && !full && !candidate;
        // All lanes make all three claims, because a lane does not know which of the sets other lanes add to.
        i32 join_at = claim(&c->n_joined, joins), next_at = claim(&c->n_next, next), back_at = claim(&c->n_back, back);
        i32 v = joins || next ? g.vertex[id] : 0;
        // Ranks behind the level's closure are free. They become part of a level only if the child is pushed.
        if (joins) g.closure[level.n_closure + join_at] = v < 0 ? ~v : v;
        if (next) {
            g.next[next_at] = id;
            // The key has the id and not the position, because positions in g.cands change when the child is pushed.
            u64 key = (u64)common << 32 | (u32)id;
            least = key < least ? key : least;
            if (b.p->min_root > 1) reach += b.p->root_weight[v < 0 ? ~v : v];
        }
        // P' and Q' have at most n_roots - 1 members together, so the two ends of g.next do not meet.
        if (back) g.next[g.n_roots - 1 - back_at] = id;
    }
    // The smallest count of P' and its id: first over the lanes of the warp, then over the warps. It is the first
    // candidate of the child.
    for (i32 step = 16; step; step >>= 1) {
        u64 other = __shfl_xor_sync(ALL_LANES, least, step);
        least = other < least ? other : least;
    }
    if (lane_id() == 0 && least != ~0ull) atomicMin(&c->next_best, least);
    if (b.p->min_root > 1) gather_sum(&c->reach, reach);
    __syncthreads();
}

// Test whether the child is dead (c->dead), and make its sets.
__device__ inline void test(Block& b, const Level& level, i32 n, Counters* c) {
#if REVERSE_SCAN
    if (n == 1) {
        scan_single(b, level, c);
        return;
    }
#endif
    scan(b, level, n, c);
    classify(b, level, n, c);
}

// Bring the child's sets to the front and put it on the stack.
__device__ inline void descend(Block& b, const Level& level, i32 depth, i32 chosen, i32 n, Counters* c) {
    Subgraph& g = b.s->graph;
    i32 n_next = c->n_next, n_back = c->n_back, last = g.n_roots - 1;
    i32 *cand_table = &g.place[0].cand, *excluded_table = &g.place[0].excluded;
    // All marks of the three sets are made before the barrier, and all swaps behind it. g.next has P' from the front
    // and Q' from the back, and so has g.touched the members that have to move.
    if (REVERSE_SCAN) mark_members<1>(g.chosen, 1, n, g.base_at, g.base_movers, &c->n_movers[0]);
    mark_members<2>(g.next, 1, n_next, cand_table, g.touched, &c->n_movers[1]);
    mark_members<2>(g.next + last, -1, n_back, excluded_table, g.touched + last, &c->n_movers[2]);
    __syncthreads();
    if (REVERSE_SCAN) swap_members<1>(g.bases, 1, n, g.base_at, g.base_movers, &c->n_holes[0]);
    // Each set has as many holes before its new length as movers behind it, so each hole claims a mover of its own.
    swap_members<2>(g.cands, 1, n_next, cand_table, g.touched, &c->n_holes[1]);
    swap_members<2>(g.excluded, -1, n_back, excluded_table, g.touched + last, &c->n_holes[2]);
    // No thread reads a level during the swaps, so the leader writes it at the same time. The others read it behind
    // the barrier with which the next round of explore begins.
    if (is_leader()) {
        Level child;
        child.n_base = n;
        child.n_cand = child.cand_end = child.todo = n_next;
        child.n_excluded = n_back;
        child.n_closure = level.n_closure + c->n_joined;
        // classify has found the first candidate of the child already, so its first visit needs no selection.
        child.least = (i32)(c->next_best >> 32);
        child.cursor = 0;
        child.chosen = (i32)(u32)c->next_best;
        child.known = 1;
        child.root_members = level.root_members + c->root_members;
        child.root_hash = level.root_hash + c->root_hash;
        *level_of(b, depth + 1) = child;
        level_of(b, depth)->chosen = chosen;
    }
}
