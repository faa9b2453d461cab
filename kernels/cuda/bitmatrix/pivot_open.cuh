// Opens an item of a count of p x q as frame 0. Only this reads the edges. Warp-level.
//
// An item stands for bicliques that have its path and some of its candidates. Of the roots among them, the first one is among
// the first candidates, up to `end`; in a fresh item there may be none, too. If an item names no base vertices, all common
// neighbours of its path are candidates.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/near_types.cuh"
#include "bitmatrix/neighbours.cuh"
#include "bitmatrix/pivot_node.cuh"
#include "bitmatrix/pivot_types.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// What became of an item
#define SETTLED 0
#define OPENED 1
#define TOO_LARGE 2

struct PivotOpening {
    i32 held[2];  // of the path, which is at the beginning of held_list
    i32 n[2];     // candidates: roots in inner_of(n, 0), base vertices, without n_roots, in inner_of(n, 1)
    i32 first;    // of a range: the first root that may be a candidate
};

// How many of a list are roots.
__device__ inline i32 roots_among(const i32* list, i32 n) {
    i32 count = 0;
    ROLLED for (i32 i = lane_id(); i < n; i += 32) count += list[i] < params.n_roots;
    return warp_sum(count);
}

// Append the listed vertices of a side to the candidates, those that face `extra`, if there is one, only if joined to it.
__device__ inline void take_candidates(const Near& n, PivotOpening* o, i32 side, const i32* list, i32 count, i32 extra) {
    const u32* row = extra == NOBODY ? 0 : bit_row(extra);
    i32* out = inner_of(n, side);
    i32 total = o->n[side];
    ROLLED for (i32 chunk = 0; chunk < count; chunk += 32) {
        i32 x = chunk + lane_id() < count ? list[chunk + lane_id()] : NOBODY;
        bool takes = x != NOBODY && (x >= params.n_roots) == (side == 1);
        if (side) x -= (i32)params.n_roots;
        if (takes && (side || ONE_SIDE) && extra != NOBODY) takes = is_neighbour(row, extra, x);
        total = keep(out, total, takes, x);
    }
    o->n[side] = total;
    __syncwarp();
}

// Append the roots from o.first on that have a neighbour among the base candidates, or are the same as one.
__device__ inline void meet_later_roots(const Near& n, PivotOpening* o) {
    u32* marks = marks_of(n, 0);
    i32 total = o->n[0];
    if (ONE_SIDE) {
        ROLLED for (i32 chunk = 0; chunk < o->n[1]; chunk += 32) {
            i32 v = chunk + lane_id() < o->n[1] ? inner_of(n, 1)[chunk + lane_id()] : NOBODY;
            total = keep(inner_of(n, 0), total, v >= o->first, v);
        }
        o->n[0] = total;
        __syncwarp();
        return;
    }
    each_neighbour(inner_of(n, 1), o->n[1], o->first, LATER, [&](i32 i, i32 v) {
        bool is_new = v != NOBODY && atomicAdd(&marks[v], 1u) == 0;
        total = keep(inner_of(n, 0), total, is_new, v);
    });
    o->n[0] = total;
    __syncwarp();
}

// Make frame 0 from an item that has its rows.
__device__ __noinline__ i32 take_problem(const Near& n, const Item& item) {
    const i32* in = params.pool + item.base_at;
    i32 held = item.n_base, freed = item.bound, n_cand = item.n_cand - freed;
    i32 held0 = roots_among(in, held), free0 = roots_among(in + held, freed), n0 = roots_among(params.pool + item.closure_at, n_cand);
    PivotFrame* f = pivot_frame(n, 0);
    if (!has_room_for_problem(n, n0, n_cand - n0, 0)) return TOO_LARGE;
    write_list(in, held, held_list(n));
    ROLLED for (i32 i = lane_id(); i < freed; i += 32) free_list_end(n)[-1 - i] = in[held + i];
    write_list(params.pool + item.closure_at, item.n_closure, (i32*)n.bits);
    if (lane_id() == 0) {
        f->side[0].held = held0;
        f->side[1].held = held - held0;
        f->side[0].free = free0;
        f->side[1].free = freed - free0;
    }
    stand_on_problem(n, f, n0, n_cand - n0, 0);
    return OPENED;
}

// Make frame 0 of the candidates of both sides. They are walked over by the edges of the base vertices.
__device__ __noinline__ void fill_problem(const Near& n, const PivotOpening& o) {
    PivotFrame* f = pivot_frame(n, 0);
    u32* marks = marks_of(n, 0);
    i32 n0 = o.n[0], n1 = o.n[1];
    ROLLED for (i32 i = lane_id(); i < n0; i += 32) {
        i32 v = inner_of(n, 0)[i];
        marks[v] = (u32)i + 1;
        n.bits[i] = (u32)v;
    }
    ROLLED for (i32 i = lane_id(); i < n1; i += 32) n.bits[n0 + i] = (u32)(inner_of(n, 1)[i] + params.n_roots);
    ROLLED for (i64 i = n0 + n1 + lane_id(); i < words_of_problem(n0, n1); i += 32) n.bits[i] = 0;
    if (lane_id() == 0) {
        f->side[0].held = o.held[0];
        f->side[1].held = o.held[1];
        f->side[0].free = f->side[1].free = 0;
    }
    stand_on_problem(n, f, n0, n1, 0);
    u32* rows0 = n.bits + f->side[0].rows;
    if (ONE_SIDE) {
        ROLLED for (i32 i = lane_id(); i < n0; i += 32) rows0[(i64)(i >> 5) * n0 + i] = 1u << (i & 31);
        __syncwarp();
        each_neighbour(inner_of(n, 0), n0, o.first, LATER, [&](i32 i, i32 v) {
            i32 j = v == NOBODY ? NOBODY : (i32)marks[v] - 1;
            if (j != NOBODY) atomicOr(&rows0[(i64)(j >> 5) * n0 + i], 1u << (j & 31));
        });
        __syncwarp();
        return;
    }
    u32* rows1 = n.bits + f->side[1].rows;
    each_neighbour(inner_of(n, 1), n1, o.first, LATER, [&](i32 i, i32 v) {
        i32 j = v == NOBODY ? NOBODY : (i32)marks[v] - 1;
        if (j == NOBODY) return;
        atomicOr(&rows0[(i64)(i >> 5) * n0 + j], 1u << (i & 31));
        atomicOr(&rows1[(i64)(j >> 5) * n1 + i], 1u << (j & 31));
    });
    __syncwarp();
}

// Open an item whose roots are all wanted, with one more root on its path unless `extra` is NOBODY. `alone`: no roots are
// candidates. Counts a leaf at once, if it is one.
__device__ __noinline__ i32 open_whole(Worker& w, const Near& n, const Item& item, i32 extra, bool alone) {
    PivotOpening o = {{0, 0}, {0, 0}, 0};
    const i32* listed = item.cand_at == NOBODY ? 0 : params.pool + item.cand_at;
    i32 n_path = item.kind == ROOT ? 0 : item.n_base, begin = extra == NOBODY ? 0 : item.begin + 1;
    write_list(params.pool + item.base_at, n_path, held_list(n));
    if (item.kind == ROOT) extra = item.bound;
    i32 held0 = roots_among(params.pool + item.base_at, n_path);
    bool names_base = held0 < n_path || (listed != 0 && roots_among(listed, item.n_cand) < item.n_cand);
    if (extra != NOBODY) {
        if (lane_id() == 0) held_list(n)[n_path] = extra;
        held0 += 1;
        n_path += 1;
    }
    __syncwarp();
    o.held[0] = held0;
    o.held[1] = n_path - held0;
    if (o.held[0] > most_held(0) || o.held[1] > most_held(1)) return SETTLED;
    if (names_base)
        take_candidates(n, &o, 1, listed + begin, item.n_cand - begin, extra);
    else
        o.n[1] = write_common(held_list(n), n_path, inner_of(n, 1), 0x7fffffff);
    __syncwarp();
    if (listed == 0) o.first = extra == NOBODY ? item.begin : extra + 1;
    if (listed != 0 && !alone) take_candidates(n, &o, 0, listed + begin, item.n_cand - begin, ONE_SIDE ? extra : NOBODY);
    if (listed == 0 && !alone) meet_later_roots(n, &o);
    if (ONE_SIDE) o.n[1] = 0;
    i32 became = OPENED;
    if (o.n[0] == 0 || (!ONE_SIDE && o.n[1] == 0)) {
        add_leaf(w, o.held[0], o.n[0], o.held[1], o.n[1]);
        became = SETTLED;
    } else if (!has_room_for_problem(n, o.n[0], o.n[1], 0)) {
        became = TOO_LARGE;
    } else {
        fill_problem(n, o);
    }
    ROLLED for (i32 i = lane_id(); i < o.n[0]; i += 32) marks_of(n, 0)[inner_of(n, 0)[i]] = 0;
    __syncwarp();
    return became;
}

// Open an item. Of one that is no node as a whole, parts go on to other warps until one node is left.
__device__ __noinline__ i32 open_pivot(Worker& w, const Near& n, Item item) {
    bool ranged = item.cand_at == NOBODY, every = item.end == (ranged ? params.n_roots : item.n_cand);
    bool alone = item.kind != ROOT && item.fresh && !every;
    Item part = item;
    part.fresh = 0;
    if (alone && part.begin < part.end) pass_on(part);
    ROLLED while (!item.fresh && item.end - item.begin > 1) {
        part.end = item.end;
        part.begin = item.end = item.begin + (item.end - item.begin) / 2;
        pass_on(part);
    }
    i32 extra = NOBODY;
    if (!item.fresh) {
        if (item.begin == item.end) return SETTLED;
        extra = ranged ? item.begin : params.pool[item.cand_at + item.begin];
        if (extra >= params.n_roots) return SETTLED;
    }
    i32 became = item.closure_at == NOBODY ? open_whole(w, n, item, extra, alone) : take_problem(n, item);
    if (became == TOO_LARGE) set_oversize(item);
    return became;
}
