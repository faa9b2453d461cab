// Hubs are nodes with more than 64 base vertices. Their lists are intersected with one candidate after the other.
// Warp-level: all lanes have the same copy of a frame, and intersect 32 base vertices at a time.
//
// A child with at most 64 base vertices, or classes of twins, becomes a word problem. Another is tested here, and becomes a
// frame of its own. Its closure is among the neighbours of any one of its base vertices.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/candidate_window.cuh"
#include "bitmatrix/frames.cuh"
#include "bitmatrix/lattice.cuh"
#include "bitmatrix/level_copy.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/marks.cuh"
#include "bitmatrix/output.cuh"
#include "bitmatrix/problem.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/emit.cuh"
#include "bitmatrix/search.cuh"
#include "bitmatrix/twins.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/wedges.cuh"
#include "bitmatrix/worker.cuh"

// Position of v, which is the same in all lanes, among the frame's candidates, or NOBODY.
__device__ inline i32 position(const HubFrame& f, i32 v) {
    if (f.cand == 0) return v;
    ROLLED for (i32 chunk = 0; chunk < f.n_cand; chunk += 32) {
        i32 i = chunk + lane_id();
        u32 at = warp_ballot(i < f.n_cand && f.cand[i] == v);
        if (at != 0) return chunk + __ffs(at) - 1;
    }
    return NOBODY;
}

// Whether v is in a list. Thread-level.
__device__ inline bool listed(const i32* list, i32 n, i32 v) {
    ROLLED for (i32 i = 0; i < n; i++)
        if (list[i] == v) return true;
    return false;
}

// Write the closure of a list of base vertices to `out`, which has `room` entries. The node is dead if a member of the
// closure is neither in the parent's closure, nor `self`, nor a candidate of the frame behind `self`. Returns the size
// of the closure, -1 for a dead node, -2 when there is no room.
//
// The members are among the neighbours of one base vertex, the rarest. Those of the parent's closure and `self` need no
// test, because they contain every base vertex of this child. A full test of another neighbour takes n look-ups, so
// there are two sieves. In the first, each lane has a neighbour of its own and looks at eight base vertices, which
// refuses neighbours with little in common. In the second, all lanes share the n look-ups of one neighbour that passed.
// One lane alone would take up to 32 times as long, while the others wait.
__device__ inline i32 close(const i32* base, i32 n, const HubFrame& parent, i32 self, i32 self_at, i32* out, i32 room) {
    i32 u = rarest(base, n);
    i64 at = params.base_indptr[u];
    i32 degree = (i32)(params.base_indptr[u + 1] - at);
    i32 found = 0;
    ROLLED for (i32 chunk = 0; chunk < degree; chunk += 32) {
        i32 i = chunk + lane_id();
        i32 v = i < degree ? params.base_indices[at + i] : 0;
        bool maybe = i < degree && may_contain_all(v, base, n);
        bool member = maybe && (v == self || listed(parent.closure, parent.n_closure, v));  // of the closure of this child
        ROLLED for (u32 rest = warp_ballot(maybe && !member); rest; rest &= rest - 1) {
            i32 lane = __ffs(rest) - 1, other = from(v, lane);
            if (!contains_all(other, base, n)) continue;
            // A candidate up to `self` was explored before, and this base side was found there.
            if (position(parent, other) <= self_at) return -1;
            if (lane_id() == lane) member = true;
        }
        u32 all = warp_ballot(member);  // has the same value in all lanes, and so has `found`
        if (found + __popc(all) > room) return -2;
        if (member) out[found + __popc(all & lanes_below())] = v;
        found += __popc(all);
    }
    __syncwarp();
    return found;
}

// Emit a hub. False when the output has no room, and the hub is still to be done.
__device__ inline bool emit_hub(Worker& w, const i32* base, i32 n_base, const i32* closure, i32 n_closure) {
    if (PLAIN) {
        w.count += 1;
        return true;
    }
    SideSums sums = sums_of(params.base_weight, params.base_hash, base, n_base);
    return emit(w, base, n_base, closure, n_closure, sums, sums_of(params.root_weight, params.root_hash, closure, n_closure));
}

// Kin (wedges.cuh) of child `self` of a frame. In a range, candidates are the ranks above `self`. In a list, they are
// the entries behind it.
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
    kin.copy = kin.twins = kin.number = 0;
    kin.n_twins = 0;
    kin.several = 0;
    return kin;
}

// Open and explore a word problem whose base vertices are in s->base, and whose Kin is set. STOPPED: the rest is written
// down. If *begun is false, not even the node itself was emitted, and the caller writes it down.
__device__ __noinline__ i32 solve(Worker& w, i32 n_bits, bool fresh, bool* begun, bool* too_large) {
    const Kin kin = warp_shared().kin;  // a copy, which is in registers
    Problem problem;
    *begun = true;
    *too_large = false;
    i32 opened = OPEN;
    if (kin.copy != 0)
        take_level(w, &problem);
    else
        opened = open_problem(w, n_bits, kin, &problem);
    if (opened == OVERSIZE) *too_large = true;  // the caller writes it down, because it knows the candidates
    if (opened == OVERSIZE || opened == DEAD) return DONE;
    if (MARKED) {
        note_marks(w, &problem, opened == LATTICE_OPEN ? w.s->raw_row : w.s->row, problem.n_cand);
        if (problem.live == 0) return DONE;
    }
    w.tests += 1;
    if (MEASURED && params.min_base > 1 && members_of_base(w, problem.whole) < params.min_base) return DONE;
    if (PLAIN) {
        w.count += fresh;
    } else {
        if (MERGING && kin.copy == 0) note_bits(w, kin, &problem);
        sum_closure(w, problem);  // every biclique below has this closure, too
        bool merged = MERGING && kin.n_twins != 0;
        const i32* base = merged ? kin.twins : w.s->base;
        i32 n_base = merged ? kin.n_twins : n_bits;
        if (fresh && !emit(w, base, n_base, w.s->full, problem.n_full, sums_of_bits(w, n_bits), warp_shared().full)) {
            *begun = false;
            return STOPPED;
        }
    }
    if (problem.n_cand == 0) return DONE;
    if (opened == LATTICE_OPEN) return solve_lattice(w, problem, low_bits(n_bits), n_bits, 0, problem.n_cand) ? DONE : STOPPED;
    return search(w, problem);
}

// Set the next candidate of a frame. Frames are in scratch memory, which all lanes read. The first __syncwarp waits for
// lanes that still read the old value, and the second one keeps lanes from going on before the new value is there.
__device__ __forceinline__ void set_next(Worker& w, i32 depth, i32 next) {
    __syncwarp();
    if (lane_id() == 0) w.s->frame[depth].next = next;
    __syncwarp();
}

// Set the children from `at` on of the frame at `depth` aside, because scratch memory has no room for them.
__device__ inline void set_rest_aside(Worker& w, i32 depth, const HubFrame& f, i32 at) {
    set_aside(f, at, f.end, depth > 0);
    set_next(w, depth, f.end);
}

// Test a child that is a hub, emit it and push its frame. Its base vertices are at `base`, on top of the list. STOPPED:
// the output is full, and the child is still to be done.
__device__ inline i32 push_hub(Worker& w, const HubFrame& f, i32 v, i32 at, i32* base, i32 n, i32* depth) {
    i32* closure = base + n;  // the closure goes behind the base vertices
    i32 room = (i32)(w.s->list + LIST_CAP - closure);
    i32 n_closure = close(base, n, f, v, at, closure, room);
    if (n_closure == -1) return DONE;  // dead
    if (n_closure == -2 || *depth + 1 == HUB_DEPTH) {
        set_rest_aside(w, *depth, f, at);
        return DONE;
    }
    if (!emit_hub(w, base, n, closure, n_closure)) return STOPPED;
    HubFrame child;
    child.base = base;
    child.closure = closure;
    child.cand = f.cand == 0 ? 0 : f.cand + at + 1;
    child.n_base = n;
    child.n_closure = n_closure;
    child.n_cand = f.cand == 0 ? 0 : f.n_cand - at - 1;
    child.next = f.cand == 0 ? v + 1 : 0;
    child.end = f.cand == 0 ? (i32)params.n_roots : child.n_cand;
    child.bound = NOBODY;
    child.list_end = (i32)(closure + n_closure - w.s->list);
    open_range(w, &child);  // may take room for a window from the list, and moves list_end then
    *depth += 1;
    if (lane_id() == 0) w.s->frame[*depth] = child;
    __syncwarp();
    return DONE;
}

// The same, apart from the code of its caller. Where hubs are emitted, this is faster (docs/lab/kernels.md).
__device__ __noinline__ i32 push_apart(Worker& w, const HubFrame& f, i32 v, i32 at, i32* base, i32 n, i32* depth) {
    return push_hub(w, f, v, at, base, n, depth);
}

// Whether an earlier root vertex contains all base vertices of a small child of a range. Such a child is dead. A walk
// of its wedges would find that, too, but there are many more wedges than neighbours of one base vertex.
__device__ inline bool is_dead(const HubFrame& f, i32 v, const i32* base, i32 n) {
    i32 u = rarest(base, n);
    const i32* neighbours = params.base_indices + params.base_indptr[u];
    i32 degree = (i32)(params.base_indptr[u + 1] - params.base_indptr[u]);
    ROLLED for (i32 chunk = 0; chunk < degree; chunk += 32) {
        // Lanes behind the end get v itself, which is not earlier. Neighbours ascend, so the loop ends for all lanes as
        // soon as one lane has no earlier vertex.
        i32 earlier = chunk + lane_id() < degree ? neighbours[chunk + lane_id()] : v;
        // A root vertex with fewer than n neighbours cannot contain n base vertices.
        bool dead = earlier < v && params.root_indptr[earlier + 1] - params.root_indptr[earlier] >= n;
        const u32* row = bit_row(earlier);
        ROLLED for (i32 i = 0; i < n && dead; i++) dead = is_neighbour(row, earlier, base[i]);
        // Members of the parent's closure contain every child, so they do not make it dead.
        if (warp_any(dead && !listed(f.closure, f.n_closure, earlier))) return true;
        if (warp_any(earlier >= v)) return false;
    }
    return false;
}

// Visit one child of the frame at *depth. STOPPED: the slice ends. If *begun is false, the child is still to be done.
__device__ inline i32 visit_child(Worker& w, i32* depth, bool* begun) {
    HubFrame f = w.s->frame[*depth];  // a copy, because the frame in scratch memory changes below
    i32 at = next_in_window(w, *depth);
    // The frame moves behind this child at once. It may be written down or given away during the visit, and must not
    // have the child then.
    *begun = true;
    set_next(w, *depth, at < f.end ? at + 1 : at);
    if (at == f.end) return DONE;
    i32 v = f.cand == 0 ? at : f.cand[at];
    i32* base = w.s->list + f.list_end;  // the child's L goes on top of the list
    if (f.list_end + f.n_base > LIST_CAP) {
        set_rest_aside(w, *depth, f, at);
        return DONE;
    }
    w.visits += 1;
    i32 n = intersect(f.base, f.n_base, v, base);
    if (n == 0 || n == f.n_base) return DONE;  // nothing in common, or v is in the closure
    if (MARKED && !may_be_marked(base, n, lowest(f.closure, f.n_closure))) return DONE;
    w.tests += 1;
    if (MEASURED && params.min_base > 1 && sums_of(params.base_weight, params.base_hash, base, n).members < params.min_base) return DONE;
    // Only in a range do earlier candidates have smaller ranks, which is_dead relies on.
    bool is_hub = n > BASE_CAP, too_large = false;
    if (!is_hub && f.cand == 0 && is_dead(f, v, base, n)) return DONE;
    if (MERGING || !is_hub) set_kin(kin_of(f, v, at));
    i32 n_bits = find_bits(w, base, n);
    i32 ended = n_bits == 0 ? DONE : solve(w, n_bits, true, begun, &too_large);
    if (is_hub && (n_bits == 0 || too_large)) {
        ended = PLAIN ? push_hub(w, f, v, at, base, n, depth) : push_apart(w, f, v, at, base, n, depth);
        *begun = ended == DONE;  // STOPPED only if the hub itself could not be emitted
    } else if (too_large) {
        set_aside(f, at, at + 1, false);
    }
    return ended;
}

// Explore the hub in s->frame[0], depth first. `depth` is the same in all lanes. STOPPED: the rest is written down.
__device__ __noinline__ i32 search_hub(Worker& w) {
    i32 depth = 0, work = 0;
    ROLLED while (depth >= 0) {
        w.hub_depth = depth;  // the search of a word problem may give children of these frames away
        // A child may be a whole problem, so this warp looks whether others wait behind each one. It does not look before
        // the first. Otherwise two warps could hand the last two children back and forth for ever.
        if (w.visits > 0) {
            i32 wanted;
            bool ends = is_ending(&wanted);
            if (work >= POLL) {  // the clock is slower to read
                work = 0;
                ends |= is_late(w);
            }
            if (ends) {
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
        work += 1 + (w.s->frame[depth].n_base >> 8);
        if (visit_child(w, &depth, &begun) == STOPPED) {  // a pushed hub changes `depth`, not `level`
            if (!begun) set_next(w, level, at);
            leave_frames(w, level);
            return STOPPED;
        }
    }
    return DONE;
}
