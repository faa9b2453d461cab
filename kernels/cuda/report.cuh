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

// Sums over the rows of a bit row (NULL: none) and the problem's closure; how many vertices, to *n.
__device__ inline SideSums root_sums(const Worker& w, const Problem& problem, const u32* bits, i32* n) {
    i64 members = 0;
    u64 hash = 0;
    i32 found = 0;
    ROLLED for (i32 word = lane_id(); bits != 0 && word < problem.n_words; word += 32) {
        ROLLED for (u32 rest = bits[word]; rest; rest &= rest - 1) {
            i32 v = w.s->row[word * 32 + __ffs(rest) - 1];
            if (MEASURED) members += params.root_weight[v];
            hash += params.root_hash[v];
            found += 1;
        }
    }
    SideSums sums = side_sums(members, hash);
    sums.members += warp_shared().full.members;
    sums.hash += warp_shared().full.hash;
    *n = warp_sum(found) + problem.n_full;
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
    ROLLED for (i32 base = 0; base < problem.n_words; base += 32) {
        i32 word = base + lane_id();
        u32 rest = word < problem.n_words ? bits[word] : 0;
        i32 at = n + sum_below(__popc(rest));
        n += warp_sum(__popc(rest));
        ROLLED for (; rest; rest &= rest - 1) out[at++] = w.s->row[word * 32 + __ffs(rest) - 1];
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
