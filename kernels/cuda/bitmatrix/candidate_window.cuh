// Candidates of a hub by range, when the range is long: only ranks with a base vertex of the node. Warp-level.
//
// Nearly all pairs of the roots of a large sparse graph have nothing in common. The neighbours of the base vertices,
// a window of ranks at a time, say which do; a window begins at the first such rank behind the last one.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

#ifndef WINDOW_WORDS
#define WINDOW_WORDS 256  // words of a window, with 32 ranks each
#endif

#define SHORT_RANGE 64  // ranges of at most so many ranks have no window

// The neighbours of a base vertex, and the position of the first with rank `least` or more. Thread-level.
struct Neighbours {
    const i32* v;
    i32 at, n;
};

__device__ __forceinline__ Neighbours neighbours_from(i32 u, i32 least) {
    const i32* v = params.base_indices + params.base_indptr[u];
    i32 n = (i32)(params.base_indptr[u + 1] - params.base_indptr[u]);
    Neighbours found = {v, lower_bound(v, n, least), n};
    return found;
}

// For a new frame by range: end the range at the last neighbour of its base vertices, and use windows if they have
// fewer neighbours in it than it has ranks. Windows take WINDOW_WORDS ints of the list behind what the frame uses;
// without room for them every rank is visited.
__device__ inline void open_range(const Worker& w, HubFrame* f) {
    f->window = 0;
    f->window_begin = 0x7fffffff;
    if (f->cand != 0 || f->end - f->next <= SHORT_RANGE) return;
    // A lane takes a base vertex. It keeps its own end and its own count, and the warp joins them after the loop.
    i64 neighbours = 0;
    i32 end = f->next;
    ROLLED for (i32 i = lane_id(); i < f->n_base; i += 32) {
        Neighbours from_next = neighbours_from(f->base[i], f->next);
        i32 n = lower_bound(from_next.v, from_next.n, f->end) - from_next.at;
        if (n > 0 && from_next.v[from_next.at + n - 1] >= end) end = from_next.v[from_next.at + n - 1] + 1;
        neighbours += n;
    }
    f->end = (i32)__reduce_max_sync(ALL_LANES, (u32)end);
    if (warp_sum(neighbours) >= f->end - f->next || f->list_end + WINDOW_WORDS > LIST_CAP) return;
    f->window = (u32*)(w.s->list + f->list_end);
    f->list_end += WINDOW_WORDS;
}

// Fill the window that begins at the first rank from `next` on that is adjacent to L. Returns that rank, or the end.
__device__ inline i32 fill_window(const HubFrame& f, i32 next) {
    // A lane takes a base vertex, and looks at its first neighbour from `next` on. The smallest begins the window.
    i32 first = f.end;
    ROLLED for (i32 i = lane_id(); i < f.n_base; i += 32) {
        Neighbours near = neighbours_from(f.base[i], next);
        if (near.at < near.n && near.v[near.at] < first) first = near.v[near.at];
    }
    first = (i32)__reduce_min_sync(ALL_LANES, (u32)first);
    if (first == f.end) return first;  // the same in all lanes
    ROLLED for (i32 word = lane_id(); word < WINDOW_WORDS; word += 32) f.window[word] = 0;
    __syncwarp();  // a lane sets bits in words that other lanes have cleared
    ROLLED for (i32 i = lane_id(); i < f.n_base; i += 32) {
        Neighbours near = neighbours_from(f.base[i], first);
        ROLLED for (; near.at < near.n; near.at++) {
            i32 v = near.v[near.at] - first;
            if (v >= 32 * WINDOW_WORDS) break;  // neighbours ascend, so the others are behind the window, too
            atomicOr(&f.window[v >> 5], 1u << (v & 31));
        }
    }
    __syncwarp();
    return first;
}

// The next candidate of a frame by range, or its end. The lanes look at 32 words at a time; a ballot finds the first
// word with a bit.
__device__ __noinline__ i32 next_in_window(Worker& w, i32 depth) {
    HubFrame f = w.s->frame[depth];
    i32 next = f.next;
    if (f.window == 0) return next;
    ROLLED while (next < f.end) {
        // `next` and the frame are the same in all lanes, so the warp fills a window as a whole.
        i64 seen = (i64)next - f.window_begin;
        if (seen < 0 || seen >= 32 * WINDOW_WORDS) {
            f.window_begin = next = fill_window(f, next);
            if (lane_id() == 0) w.s->frame[depth].window_begin = next;
            __syncwarp();
            continue;
        }
        i32 word = (i32)(seen >> 5) + lane_id();
        u32 bits = word < WINDOW_WORDS ? f.window[word] : 0;
        // Lane 0 has the word of `next` itself, in which earlier ranks do not count.
        if (lane_id() == 0) bits &= ~0u << (seen & 31);
        u32 holders = warp_ballot(bits != 0);
        if (holders != 0) {
            i32 holder = __ffs(holders) - 1;
            i32 found = f.window_begin + 32 * ((i32)(seen >> 5) + holder) + __ffs(from(bits, holder)) - 1;
            return found < f.end ? found : f.end;
        }
        i32 words = WINDOW_WORDS - (i32)(seen >> 5) < 32 ? WINDOW_WORDS - (i32)(seen >> 5) : 32;
        next += 32 * words - (i32)(seen & 31);
    }
    return f.end;
}
