// The compact arrays. All levels share one array per set. The set of a level is a prefix of the array, and a lookup
// table has the position of each member.
//
// P and L only lose members on the way down. So a child's members are brought to the front of its parent's prefix, and
// a step up only restores the old length. Q also gains members: a candidate that was explored is in Q for the rest of
// its level. The entry that was in its place moves to the end of the array, and comes back when the level ends.
#pragma once
#include "common/types.cuh"
#include "cumbe/block.cuh"
#include "cumbe/types.cuh"

// First half of bringing members[0..n) to the front of a compact array: mark them, and list those at n or behind in
// `movers`. `step` is the direction of `members` and of `movers`. The table has an entry every STRIDE ints.
template <i32 STRIDE>
__device__ inline void mark_members(const i32* members, i32 step, i32 n, i32* table, i32* movers, i32* n_movers) {
    // A thread takes a member. The members differ, so no two threads write the same entry of the table. Only `movers`
    // is shared, and the order of movers does not matter.
    for (i32 i = threadIdx.x; i < n; i += BLOCK) {
        i32 id = members[i * step];
        i32 at = table[id * STRIDE];
        if (at >= n) movers[atomicAdd(n_movers, 1) * step] = id;
        table[id * STRIDE] = at | MARK;
    }
}

// Second half, after a barrier: entries before n that are not marked change places with the movers.
template <i32 STRIDE>
__device__ inline void swap_members(i32* array, i32 step, i32 n, i32* table, const i32* movers, i32* n_holes) {
    // A thread takes a place of the new prefix. A member that is marked there stays, and loses its mark.
    for (i32 at = threadIdx.x; at < n; at += BLOCK) {
        i32 id = array[at];
        i32 mark = table[id * STRIDE];
        if (mark & MARK) {
            table[id * STRIDE] = mark & ~MARK;
            continue;
        }
        // The place is a hole: its entry is not a member. There are as many holes as movers, and the atomic gives each
        // hole another mover. So a thread alone changes the two places and the two entries of the table.
        i32 mover = movers[atomicAdd(n_holes, 1) * step];
        i32 behind = table[mover * STRIDE] & ~MARK;
        array[at] = mover;
        table[mover * STRIDE] = at;
        array[behind] = id;
        table[id * STRIDE] = behind;
    }
}

// Move candidate `id` of a level from P to Q, because it has been explored. Leader.
__device__ inline void retire(Subgraph& g, Level* level, i32 id) {
    // The last candidate of the prefix takes its place. The explored one stays behind it, where `recall` looks.
    i32 last = --level->n_cand, at = g.place[id].cand, other = g.cands[last];
    g.cands[at] = other;
    g.place[other].cand = at;
    g.cands[last] = id;
    g.place[id].cand = last;
    level->todo -= 1;
    level->known = 0;  // the next candidate of this level has to be selected
    // Behind the prefix of Q lie entries of the levels above. The first of them gives up its place.
    i32 end = level->n_excluded++;
    i32 displaced = g.n_excluded++;
    if (end < displaced) {
        i32 old = g.excluded[end];
        g.excluded[displaced] = old;
        g.place[old].excluded = displaced;
    }
    g.excluded[end] = id;
    g.place[id].excluded = end;
}

// A level ends. Take the candidates that it put into Q out again, the last one first. Leader.
__device__ inline void recall(Subgraph& g, Level* level) {
    // `retire` fills the range from its end, so the candidate that was explored last comes first.
    for (i32 i = level->n_cand; i < level->cand_end; i++) {
        i32 id = g.cands[i], at = g.place[id].excluded;
        i32 end = --level->n_excluded, displaced = --g.n_excluded;
        i32 last = g.excluded[end];
        g.excluded[at] = last;  // the last entry of the level's prefix fills the gap
        g.place[last].excluded = at;
        if (end < displaced) {  // the entry that was displaced comes back behind the prefix
            i32 old = g.excluded[displaced];
            g.excluded[end] = old;
            g.place[old].excluded = end;
        }
        g.place[id].excluded = NOWHERE;
    }
}
