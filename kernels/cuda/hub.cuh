// Nodes with more than 64 left vertices: lists, intersected with one candidate after the other. Warp-level.
//
// A child with at most 64 left vertices becomes a word problem; a larger one is tested here (its closure is
// among the neighbours of any one of its left vertices) and pushed as a frame of its own.
#pragma once
#include "frames.cuh"
#include "lists.cuh"
#include "near.cuh"
#include "search.cuh"

// Position of v among the frame's candidates, or NOBODY. Thread-level.
__device__ inline i32 position(const HubFrame& f, i32 v) {
    if (f.cand == 0) return v;
    ROLLED for (i32 i = 0; i < f.n_cand; i++)
        if (f.cand[i] == v) return i;
    return NOBODY;
}

__device__ inline bool listed(const i32* list, i32 n, i32 v) {
    ROLLED for (i32 i = 0; i < n; i++)
        if (list[i] == v) return true;
    return false;
}

// Closure of a list of left vertices to `out` (at most `room`). The node is dead when a member is neither in
// the parent's closure, nor `self`, nor a candidate of the frame behind `self`. Returns the size, -1 when
// dead, -2 when there is no room.
__device__ inline i32 close(const i32* left, i32 n, const HubFrame& parent, i32 self, i32 self_at, i32* out, i32 room) {
    i32 u = rarest(left, n);
    i64 at = params.base_indptr[u];
    i32 degree = (i32)(params.base_indptr[u + 1] - at);
    i32 found = 0;
    bool dead = false;
    ROLLED for (i32 base = 0; base < degree; base += 32) {
        i32 i = base + lane_id();
        i32 v = i < degree ? params.base_indices[at + i] : 0;
        u32 maybe = warp_ballot(i < degree && contains_some(v, left, n));
        bool member = false;
        ROLLED for (; maybe; maybe &= maybe - 1) {
            i32 lane = __ffs(maybe) - 1;
            bool is_member = contains_all(from(v, lane), left, n);
            if (lane_id() == lane) member = is_member;
        }
        if (member && v != self && position(parent, v) <= self_at && !listed(parent.closure, parent.n_closure, v)) dead = true;
        u32 all = warp_ballot(member);
        if (warp_any(dead)) return -1;
        if (found + __popc(all) > room) return -2;
        if (member) out[found + __popc(all & lanes_below())] = v;
        found += __popc(all);
    }
    __syncwarp();
    return found;
}

// Report a large node; false when it has to be given back.
__device__ inline bool report_large(Worker& w, const i32* left, i32 n_left, const i32* closure, i32 n_closure) {
    if (!PLAIN) return report(w, left, n_left, closure, n_closure, sums_of(params.root_weight, params.root_hash, closure, n_closure));
    w.count += 1;
    return true;
}

// Kin of child `self` of a frame.
__device__ __forceinline__ Kin kin_of(const HubFrame& f, i32 self, i32 self_at) {
    Kin kin;
    kin.bound = f.cand == 0 ? self : NOBODY;
    kin.self = self;
    kin.cand = f.cand + self_at + 1;
    kin.n_cand = f.cand == 0 ? 0 : f.n_cand - self_at - 1;
    kin.begin = 0;
    kin.end = kin.n_cand;
    kin.closure = f.closure;
    kin.n_closure = f.n_closure;
    kin.alive = false;
    return kin;
}

// Open and explore a word problem whose left vertices are in s->left. STOPPED: the rest is written down, but
// for the node itself, which has not been begun when *begun stays false.
__device__ __noinline__ i32 solve(Worker& w, i32 n_bits, const Kin& kin, bool fresh, bool* begun, bool* too_large) {
    Problem problem;
    *begun = true;
    *too_large = false;
    i32 opened = open_problem(w, n_bits, kin, &problem);
    if (opened == OVERSIZE) *too_large = true;
    if (opened == OVERSIZE || opened == DEAD) return DONE;
    w.tests += 1;
    if (MEASURED && params.min_base > 1 && left_members(w, low_bits(n_bits)) < params.min_base) return DONE;
    if (PLAIN) {
        w.count += fresh;
    } else {
        sum_closure(w, problem);
        if (fresh && !report(w, w.s->left, n_bits, w.s->full, problem.n_full, warp_shared().full)) {
            *begun = false;
            return STOPPED;
        }
    }
    if (problem.n_cand == 0) return DONE;
    if (opened == LATTICE_OPEN) return solve_lattice(w, problem, low_bits(n_bits), problem.n_cand) ? DONE : STOPPED;
    return search(w, problem);
}

__device__ __forceinline__ void set_next(Worker& w, i32 depth, i32 next) {
    __syncwarp();
    if (lane_id() == 0) w.s->frame[depth].next = next;
    __syncwarp();
}

// Children from `at` on of the frame at `depth`, for which there is no room.
__device__ inline void set_rest_aside(Worker& w, i32 depth, const HubFrame& f, i32 at) {
    set_aside(f, at, f.end, depth > 0);
    set_next(w, depth, f.end);
}

// A large child whose left vertices are at `left`: test it, report it, push its frame. STOPPED: give it back.
__device__ inline i32 push_large(Worker& w, const HubFrame& f, i32 v, i32 at, i32* left, i32 n, i32* depth) {
    i32* closure = left + n;
    i32 room = (i32)(w.s->list + LIST_CAP - closure);
    i32 n_closure = close(left, n, f, v, at, closure, room);
    if (n_closure == -1) return DONE;
    if (n_closure == -2 || *depth + 1 == HUB_DEPTH) {
        set_rest_aside(w, *depth, f, at);
        return DONE;
    }
    if (!report_large(w, left, n, closure, n_closure)) return STOPPED;
    HubFrame child;
    child.left = left;
    child.closure = closure;
    child.cand = f.cand == 0 ? 0 : f.cand + at + 1;
    child.n_left = n;
    child.n_closure = n_closure;
    child.n_cand = f.cand == 0 ? 0 : f.n_cand - at - 1;
    child.next = f.cand == 0 ? v + 1 : 0;
    child.end = f.cand == 0 ? (i32)params.n_roots : child.n_cand;
    child.bound = NOBODY;
    child.list_end = (i32)(closure + n_closure - w.s->list);
    open_range(w, &child);
    *depth += 1;
    if (lane_id() == 0) w.s->frame[*depth] = child;
    __syncwarp();
    return DONE;
}

// Whether an earlier root vertex contains all left vertices of a small child of a range. Then the child is dead, which its
// wedges would tell, too, but there are many more of those than neighbours of one left vertex.
__device__ inline bool is_dead(const HubFrame& f, i32 v, const i32* left, i32 n) {
    i32 u = rarest(left, n);
    const i32* near = params.base_indices + params.base_indptr[u];
    i32 degree = (i32)(params.base_indptr[u + 1] - params.base_indptr[u]);
    ROLLED for (i32 base = 0; base < degree; base += 32) {
        i32 earlier = base + lane_id() < degree ? near[base + lane_id()] : v;
        bool dead = earlier < v && params.root_indptr[earlier + 1] - params.root_indptr[earlier] >= n;
        const u32* row = bit_row(earlier);
        ROLLED for (i32 i = 0; i < n && dead; i++) dead = is_neighbour(row, earlier, left[i]);
        if (warp_any(dead && !listed(f.closure, f.n_closure, earlier))) return true;
        if (warp_any(earlier >= v)) return false;
    }
    return false;
}

// One child of the frame at *depth. STOPPED: the slice ends, the child is given back unless begun.
__device__ inline i32 visit_child(Worker& w, i32* depth, bool* begun) {
    HubFrame f = w.s->frame[*depth];
    i32 at = next_near(w, *depth);
    *begun = true;
    set_next(w, *depth, at < f.end ? at + 1 : at);
    if (at == f.end) return DONE;
    i32 v = f.cand == 0 ? at : f.cand[at];
    i32* left = w.s->list + f.list_end;
    if (f.list_end + f.n_left > LIST_CAP) {
        set_rest_aside(w, *depth, f, at);
        return DONE;
    }
    w.visits += 1;
    i32 n = intersect(f.left, f.n_left, v, left);
    if (n == 0 || n == f.n_left) return DONE;
    w.tests += 1;
    if (MEASURED && params.min_base > 1 && sums_of(params.base_weight, params.base_hash, left, n).members < params.min_base) return DONE;
    if (n > LEFT_CAP) {
        i32 ended = push_large(w, f, v, at, left, n, depth);
        *begun = ended == DONE;
        return ended;
    }
    if (f.cand == 0 && is_dead(f, v, left, n)) return DONE;
    write_list(left, n, w.s->left);
    __syncwarp();
    bool too_large = false;
    i32 ended = solve(w, n, kin_of(f, v, at), true, begun, &too_large);
    if (too_large) set_aside(f, at, at + 1, false);
    return ended;
}

// Explore the large node in s->frame[0].
__device__ __noinline__ i32 search_large(Worker& w) {
    i32 depth = 0, work = 0;
    ROLLED while (depth >= 0) {
        w.hub_depth = depth;
        if (work >= POLL) {
            work = 0;
            i32 wanted;
            bool ends = is_ending(&wanted) || is_late(w);
            if (w.visits > 0 && ends) {
                leave_frames(w, depth);
                return STOPPED;
            }
            if (wanted > 0) give_children(w, depth, wanted);
        }
        if (w.s->frame[depth].next >= w.s->frame[depth].end) {
            depth -= 1;
            continue;
        }
        bool begun = true;
        i32 at = w.s->frame[depth].next, level = depth;
        // counted here, so that a warp visits a child before it first looks: else the last two go from warp to warp
        work += 1 + (w.s->frame[depth].n_left >> 8);
        if (visit_child(w, &depth, &begun) == STOPPED) {
            if (!begun) set_next(w, level, at);
            leave_frames(w, level);
            return STOPPED;
        }
    }
    return DONE;
}
