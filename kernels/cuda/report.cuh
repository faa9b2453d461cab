// Reporting a node of a word problem: its left side is a mask, its closure a bit row and the problem's own. Warp-level.
#pragma once
#include "rows.cuh"

// Sums over the left vertices of a mask.
__device__ inline SideSums left_sums(const Worker& w, u64 left) {
    i64 members = 0;
    u64 hash = 0;
    ROLLED for (i32 half = 0; half < 2; half++) {
        i32 b = lane_id() + 32 * half;
        if ((left >> b) & 1) {
            i32 u = w.s->left[b];
            if (MEASURED) members += params.base_weight[u];
            hash += params.base_hash[u];
        }
    }
    return side_sums(members, hash);
}

// Words of a bit row whose rows are listed at a time: there is room for all of them, and a lane for each word.
#define LISTED_WORDS (SHARED_SLOTS / 32 < 32 ? SHARED_SLOTS / 32 : 32)

// Rows of the words from `first` on to shared memory, where the hash table was; how many. Then lanes share them: a lane
// that went through the rows of its own word would wait for the memory at each, while the others have none.
__device__ inline i32 list_rows(const u32* bits, i32 n_words, i32 first) {
    i32 word = first + lane_id();
    u32 rest = lane_id() < LISTED_WORDS && word < n_words ? bits[word] : 0;
    if (!warp_any(rest != 0)) return 0;
    i32 at = sum_below(__popc(rest));
    i32 n = from(at + __popc(rest), 31);
    i32* listed = warp_shared().key;
    __syncwarp();  // who still reads the last ones
    ROLLED for (; rest; rest &= rest - 1) listed[at++] = word * 32 + __ffs(rest) - 1;
    __syncwarp();
    return n;
}

// Sums over the rows of a bit row (NULL: none) and the problem's closure; how many vertices, to *n.
__device__ inline SideSums root_sums(const Worker& w, const Problem& problem, const u32* bits, i32* n) {
    i64 members = 0;
    u64 hash = 0;
    i32 found = 0;
    ROLLED for (i32 first = 0; bits != 0 && first < problem.n_words; first += LISTED_WORDS) {
        i32 n_listed = list_rows(bits, problem.n_words, first);
        ROLLED for (i32 i = lane_id(); i < n_listed; i += 32) {
            i32 v = w.s->row[warp_shared().key[i]];
            if (MEASURED) members += params.root_weight[v];
            hash += params.root_hash[v];
        }
        found += n_listed;
    }
    SideSums sums = side_sums(members, hash);
    sums.members += warp_shared().full.members;
    sums.hash += warp_shared().full.hash;
    *n = found + problem.n_full;
    return sums;
}

// Write the vertices of a mask, or of a bit row, to `out`; how many. Warp-level.
__device__ inline i32 write_left(const Worker& w, u64 left, i32* out) {
    i32 n = 0;
    ROLLED for (i32 half = 0; half < 2; half++) {
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
    ROLLED for (i32 first = 0; first < problem.n_words; first += LISTED_WORDS) {
        i32 n_listed = list_rows(bits, problem.n_words, first);
        ROLLED for (i32 i = lane_id(); i < n_listed; i += 32) out[n + i] = w.s->row[warp_shared().key[i]];
        n += n_listed;
    }
    return n;
}

__device__ inline i32 write_list(const i32* list, i32 n, i32* out) {
    ROLLED for (i32 i = lane_id(); i < n; i += 32) out[i] = list[i];
    return n;
}

// Put the sums of a new problem's closure down, which every report below adds.
__device__ inline void sum_closure(const Worker& w, const Problem& problem) {
    SideSums sums = sums_of(params.root_weight, params.root_hash, w.s->full, problem.n_full);
    if (lane_id() == 0) warp_shared().full = sums;
    __syncwarp();
}

// Report the node (left, closure bits); false when it has to be given back.
__device__ inline bool report(Worker& w, const Problem& problem, u64 left, const u32* closed) {
    if (PLAIN) {
        w.count += 1;
        return true;
    }
    i32 n_root = 0;
    SideSums base = left_sums(w, left);
    SideSums root = root_sums(w, problem, closed, &n_root);
    i32 n_base = __popcll(left);
    i32 admitted = admit(w, n_base, n_root, base, root);
    if (admitted <= 0) return admitted == 0;
    i32* out = params.values + w.value_at;
    out += write_left(w, left, out);
    out += write_list(w.s->full, problem.n_full, out);
    if (closed != 0) write_rows(w, problem, closed, out);
    written(w, n_base, n_root);
    return true;
}
