// Children of a node of a word problem: their closure and candidates, and the maps of those with few base vertices.
// Warp-level.
//
// In a narrow problem each lane takes a row, word after word. In a wide problem each lane takes a word, column after
// column. (In a problem of three words, one lane per word would leave 29 lanes idle.)
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/emit.cuh"
#include "bitmatrix/lattice.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// Write the bit positions of the base vertices of a mask to shared memory. If these are fewer than LATTICE, the entries
// behind them name a bit that is not in the mask.
__device__ inline const i32* find_places(u64 base) {
    // place[t] is the bit of the t-th base vertex of the mask. It takes the place of the hash table, which opening the
    // problem does not need any more. The first barrier waits for lanes that still read the places of another mask.
    i32* place = warp_shared().key;
    __syncwarp();
    if (lane_id() < LATTICE) place[lane_id()] = __ffsll((i64)~base) - 1;
    __syncwarp();
    // Each lane looks at two bits. The number of bits below its own is the place, so no lane waits for another one.
    ROLLED for (i32 b = lane_id(); b < BASE_CAP; b += 32)
        if ((base >> b) & 1) place[__popcll(base & low_bits(b))] = b;
    __syncwarp();
    return place;
}

// One word of each of two bit rows: the rows that contain a base side, and the rows that have some of it.
struct Touched {
    u32 in_all, in_any;
};

// The words [0, n_words) of a narrow problem. Each lane takes a row, word after word: a ballot over 32 rows is one
// word, and the lane with the number of the word keeps it.
__device__ inline Touched touch_rows(const Scratch* s, const Problem& problem, u64 base) {
    Touched mine = {0, 0};
    // Lane l of round c holds the set that row 32 c + l shares with the base side. A lane behind the last row holds
    // the empty set, which counts as no overlap. It does not count as containing either, because a base side is not
    // empty.
    ROLLED for (i32 c = 0; c < problem.n_words; c += AHEAD) {
        u64 shared[AHEAD];
#pragma unroll
        for (i32 k = 0; k < AHEAD; k++) {
            i32 r = (c + k) * 32 + lane_id();
            shared[k] = r < problem.n_rows ? s->mask[r] & base : 0;
        }
#pragma unroll
        for (i32 k = 0; k < AHEAD; k++) {
            // With thresholds, a row that shares too little can neither lead to a result nor contain one (R1 and R3).
            bool touches = SIEVING ? __popcll(shared[k]) >= problem.least : shared[k] != 0;
            Touched word = {warp_ballot(shared[k] == base), warp_ballot(touches)};
            // All lanes see the word. One keeps it, because open_child goes on with word w in lane w. NARROW is at
            // most 32, so there is a lane for every word.
            if (lane_id() == c + k) mine = word;
        }
    }
    return mine;
}

// One word of a wide problem, column after column. The n base vertices are at `place`. Thread-level.
__device__ inline Touched touch_columns(const Scratch* s, i32 n_words, i32 word, const i32* place, i32 n) {
    // Bits behind the last row are 0 in every column, so the ANDs clear them in the word of ones, too.
    Touched mine = {~0u, 0};
    ROLLED for (i32 t = 0; t < n; t += 4) {  // four loads in flight; the last column may be read more than once
        u32 bits[4];
#pragma unroll
        for (i32 k = 0; k < 4; k++) bits[k] = s->column[place[t + k < n ? t + k : n - 1] * n_words + word];
        mine.in_all &= bits[0] & bits[1] & bits[2] & bits[3];
        mine.in_any |= bits[0] | bits[1] | bits[2] | bits[3];
    }
    return mine;
}

// Write closure and candidates of child j, which has base side `base`, to the next level of the stack. False when the
// child is dead. *more: whether the child has candidates.
__device__ inline bool open_child(Scratch* s, const Problem& problem, i32 depth, i32 j, u64 base, bool* more) {
    i32 n_words = problem.n_words;
    const u32* cand = cand_of(s, depth, n_words);
    const u32* closed = closed_of(s, depth, n_words);
    bool narrow = n_words <= NARROW, dead = false, some = false;
    Touched rows = {0, 0};
    const i32* place = 0;
    if (narrow)
        rows = touch_rows(s, problem, base);
    else
        place = find_places(base);
    // A lane reads word w of this level and writes word w of the next, so lanes need no barrier in between. A narrow
    // problem has one round at most, with the word that touch_rows left in this lane.
    ROLLED for (i32 word = lane_id(); word < n_words; word += 32) {
        if (!narrow) rows = touch_columns(s, n_words, word, place, __popcll(base));
        u32 mine = cand[word];
        // Rows that may contain the child: remaining candidates, the closure of its parent, and j. Any other row is an
        // excluded row or an explored candidate. Then the child was found below that row, and it is dead here.
        u32 allowed = mine | closed[word] | (word == (j >> 5) ? 1u << (j & 31) : 0u);
        dead |= (rows.in_all & ~allowed) != 0;
        // Candidates that other warps explore are still in `cand`, so they stay candidates of the child. All other
        // rows that overlap it, explored candidates among them, are excluded below it.
        u32 partly = rows.in_any & ~rows.in_all, below = mine & partly;
        cand_of(s, depth + 1, n_words)[word] = below;
        closed_of(s, depth + 1, n_words)[word] = rows.in_all;
        s->excluded[word] = partly & ~below;
        some |= below != 0;
    }
    // Any lane may have found a candidate or a row that forbids the child. The votes tell all lanes, so that all take
    // the same way. The barrier makes the three bit rows visible, because the next steps give their words to other
    // lanes.
    *more = warp_any(some);
    __syncwarp();
    return !warp_any(dead);
}

// For the child that was opened last, enter the rows that overlap it into the maps, as sets of its base vertices (at
// most LATTICE). If sets will be emitted, rows that are candidates or in its closure also go to the raw rows. Returns
// the number of these. This is for narrow problems: each lane takes a row, word after word.
__device__ inline i32 map_rows(Worker& w, const Problem& problem, i32 depth, u64 base) {
    Scratch* s = w.s;
    i32 n_words = problem.n_words, n = 0, place[LATTICE];
    const i32* found = find_places(base);
#pragma unroll
    for (i32 t = 0; t < LATTICE; t++) place[t] = found[t];
    clear_maps();
    ROLLED for (i32 word = 0; word < n_words; word++) {
        // All lanes read the same word, in one load. So the test below is the same in all lanes.
        u32 cand = cand_of(s, depth, n_words)[word], mapped = cand | s->excluded[word];
        // A row of the closure contains the child, so its set is full. It is in the closure of every set that is
        // found.
        u32 kept = PLAIN ? 0 : cand | closed_of(s, depth, n_words)[word];
        if ((mapped | kept) == 0) continue;
        i32 r = word * 32 + lane_id();
        u64 mask = r < problem.n_rows ? s->mask[r] & base : 0;
        // Bit t of the set is the t-th base vertex of the child. Unused places name bits that `mask` lacks, so the
        // loop has a fixed length, and `place` stays in registers.
        u32 set = 0;
#pragma unroll
        for (i32 t = 0; t < LATTICE; t++) set |= (u32)((mask >> place[t]) & 1) << t;
        if ((mapped >> lane_id()) & 1) enter_set((cand >> lane_id()) & 1 ? CANDIDATES : EXCLUDED, set);
        if ((kept >> lane_id()) & 1) {
            // `kept` is the same in all lanes and serves as a ballot: the kept rows of lower lanes come first.
            i32 at = n + __popc(kept & lanes_below());
            s->raw_row[at] = s->row[r];
            s->raw_mask[at] = set;
        }
        n += __popc(kept);
    }
    return n;
}

#ifndef JOIN_LEAST
#define JOIN_LEAST 3   // fewest candidates of a node whose base vertices are joined to classes
#endif
#ifndef JOIN_MOST
#define JOIN_MOST 32   // and most of them, at most 32
#endif

// Join the base vertices of the child that was opened last to classes of those that the same candidates have, as twins.cuh
// does. Returns how many classes there are, and in *bits that of this lane; more than LATTICE if there are too many.
__device__ inline i32 join_bits(const Scratch* s, const Problem& problem, i32 depth, u64 base, u64* bits) {
    i32 n_words = problem.n_words, n = count_rows(cand_of(s, depth, n_words), n_words);
    if (n < JOIN_LEAST || n > JOIN_MOST) return LATTICE + 1;
    u64* row = (u64*)warp_shared().words;  // of each candidate
    i32 placed = 0;
    __syncwarp();
    ROLLED for (i32 first = 0; first < n_words; first += 32) {
        i32 word = first + lane_id();
        u32 cand = word < n_words ? cand_of(s, depth, n_words)[word] : 0;
        i32 at = placed + sum_below(__popc(cand));
        placed = from(at + __popc(cand), 31);
        ROLLED for (; cand; cand &= cand - 1, at++) row[at] = s->mask[word * 32 + __ffs(cand) - 1];
    }
    __syncwarp();
    u64 mine = lane_id() < n ? row[lane_id()] : 0, own = 0;
    u32 its = 0;  // the candidates that the class of this lane has
    i32 k = 0;
    ROLLED for (u64 rest = base; rest; rest &= rest - 1) {
        i32 b = __ffsll((i64)rest) - 1;
        u32 has = warp_ballot((mine >> b) & 1), same = warp_ballot(lane_id() < k && its == has);
        i32 at = same != 0 ? __ffs(same) - 1 : k++;
        if (k > LATTICE) return k;
        if (lane_id() == at) {
            its = has;
            own |= 1ull << b;
        }
    }
    *bits = own;
    return k;
}

// The classes, `its` of them, that a row with this mask has. An excluded row has a class if it has all of it.
__device__ __forceinline__ u32 set_of_classes(u64 mask, const u64* its, i32 k) {
    u32 set = 0;
#pragma unroll
    for (i32 t = 0; t < LATTICE; t++) set |= (u32)(t < k && (mask & its[t]) == its[t]) << t;
    return set;
}

// As map_rows, with the k classes of join_bits as base vertices. In a wide problem each lane takes a word.
__device__ inline i32 map_classes(Worker& w, const Problem& problem, i32 depth, i32 k, u64 bits) {
    Scratch* s = w.s;
    i32 n_words = problem.n_words, n = 0;
    u64 its[LATTICE];
#pragma unroll
    for (i32 t = 0; t < LATTICE; t++) its[t] = from(bits, t);
    clear_maps();
    ROLLED for (i32 word = 0; n_words <= NARROW && word < n_words; word++) {
        u32 cand = cand_of(s, depth, n_words)[word], mapped = cand | s->excluded[word];
        u32 kept = PLAIN ? 0 : cand | closed_of(s, depth, n_words)[word];
        if ((mapped | kept) == 0) continue;
        i32 r = word * 32 + lane_id();
        u32 set = set_of_classes(r < problem.n_rows ? s->mask[r] : 0, its, k);
        if ((mapped >> lane_id()) & 1) enter_set((cand >> lane_id()) & 1 ? CANDIDATES : EXCLUDED, set);
        if ((kept >> lane_id()) & 1) {
            i32 at = n + __popc(kept & lanes_below());
            s->raw_row[at] = s->row[r];
            s->raw_mask[at] = set;
        }
        n += __popc(kept);
    }
    ROLLED for (i32 first = 0; n_words > NARROW && first < n_words; first += 32) {
        i32 word = first + lane_id();
        u32 cand = word < n_words ? cand_of(s, depth, n_words)[word] : 0;
        u32 mapped = word < n_words ? cand | s->excluded[word] : 0;
        ROLLED for (; mapped; mapped &= mapped - 1) {
            i32 b = __ffs(mapped) - 1;
            enter_set((cand >> b) & 1 ? CANDIDATES : EXCLUDED, set_of_classes(s->mask[word * 32 + b], its, k));
        }
        if (PLAIN) continue;
        u32 kept = word < n_words ? cand | closed_of(s, depth, n_words)[word] : 0;
        i32 at = n + sum_below(__popc(kept));
        n = from(at + __popc(kept), 31);
        ROLLED for (; kept; kept &= kept - 1, at++) {
            i32 r = word * 32 + __ffs(kept) - 1;
            s->raw_row[at] = s->row[r];
            s->raw_mask[at] = set_of_classes(s->mask[r], its, k);
        }
    }
    return n;
}

// The set of columns that have bit b.
template <i32 K>
__device__ __forceinline__ u32 set_of(const u32* columns, i32 b) {
    u32 set = 0;
#pragma unroll
    for (i32 t = 0; t < K; t++) set |= ((columns[t] >> b) & 1u) << t;
    return set;
}

// As map_rows for a wide problem, with at most K base vertices. Each lane takes a word, row after row.
template <i32 K>
__device__ inline i32 map_columns(Worker& w, const Problem& problem, i32 depth, u64 base) {
    Scratch* s = w.s;
    i32 n_words = problem.n_words, n = 0, k = __popcll(base);
    const i32* place = find_places(base);
    clear_maps();
    ROLLED for (i32 chunk = 0; chunk < n_words; chunk += 32) {
        i32 word = chunk + lane_id();
        // A lane without a word stays in the loop, because the prefix sum below needs all lanes.
        bool there = word < n_words;
        // columns[t] has 32 rows of the t-th base vertex of the child, so a row's set is one bit of each.
        u32 columns[K];
#pragma unroll
        for (i32 t = 0; t < K; t++) columns[t] = there && t < k ? s->column[place[t] * n_words + word] : 0;
        u32 cand = there ? cand_of(s, depth, n_words)[word] : 0;
        u32 excluded = there ? s->excluded[word] : 0;
        // Lanes have different numbers of rows, so they part here. Only atomics are inside, no collectives.
        ROLLED for (u32 rows = cand | excluded; rows; rows &= rows - 1) {
            i32 b = __ffs(rows) - 1;
            enter_set((cand >> b) & 1 ? CANDIDATES : EXCLUDED, set_of<K>(columns, b));
        }
        if (PLAIN) continue;
        u32 kept = there ? cand | closed_of(s, depth, n_words)[word] : 0;
        // Raw rows are in the order of words. Each lane has a range of its own, and lane 31 knows where the last one
        // ends.
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
