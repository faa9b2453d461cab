// Search of a sieve: the reductions R1 to R6 at every child (kernels/reference/engine.py). Warp-level.
//
// All lanes have the same copy of a frame. A lane takes a row, or a base vertex for R2. A child whose root side is large
// enough and that has at most 64 base vertices becomes a word problem.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/bound.cuh"
#include "bitmatrix/emit.cuh"
#include "bitmatrix/marks.cuh"
#include "bitmatrix/output.cuh"
#include "bitmatrix/queue.cuh"
#include "bitmatrix/rows.cuh"
#include "bitmatrix/sieve_frames.cuh"
#include "bitmatrix/sieve_rows.cuh"
#include "bitmatrix/sieve_types.cuh"
#include "bitmatrix/sieve_word.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

// What became of a child
#define NOTHING 0   // it leads nowhere
#define EXPLORED 1  // it is explored, or a frame, or an item of its own, or an excluded row contains it
#define FULL 2      // the output has no room for it, and it is still to be done
#define HALTED 3    // the slice ends; what is left of the child was written down

// Up to so many rows are sorted exactly.
#define SORTED 512

// Sort the n keys in s->raw_mask, and write their low 31 bits to s->raw_row. Above these is what a row has of a node
// with `size` members. Bit 62 brings a row behind all others.
__device__ inline void sort_rows(Scratch* s, i32 n, i32 size) {
    __syncwarp();
    if (n <= SORTED) {
        ROLLED for (i32 i = lane_id(); i < n; i += 32) {
            u64 key = s->raw_mask[i];
            i32 rank = 0;
#pragma unroll 4
            for (i32 k = 0; k < n; k++) rank += s->raw_mask[k] < key;
            s->raw_row[rank] = (i32)(key & 0x7fffffff);
        }
        __syncwarp();
        return;
    }
    // Many rows are put into bins, which is sorted enough: 64 for those in front, and 64 for those behind.
    ROLLED for (i32 i = lane_id(); i < N_BINS; i += 32) s->bin[i] = 0;
    __syncwarp();
    auto bin_of_key = [&](u64 key) {
        u64 count = key >> 31 & 0x7fffffff;
        return (i32)(count * 63 / (u64)size) + (key >> 62 ? 64 : 0);
    };
    ROLLED for (i32 i = lane_id(); i < n; i += 32) atomicAdd(&s->bin[bin_of_key(s->raw_mask[i])], 1);
    __syncwarp();
    i32 in_front;
    place_bins(s, &in_front);
    ROLLED for (i32 i = lane_id(); i < n; i += 32) {
        u64 key = s->raw_mask[i];
        s->raw_row[atomicAdd(&s->bin[bin_of_key(key)], 1)] = (i32)(key & 0x7fffffff);
    }
    __syncwarp();
}

// Write the base vertices of the L at `at` to `out`. `at` has bits of the frame.
__device__ inline void write_vertices(const Worker& w, const SieveFrame& f, i32 at, i32* out) {
    const i32* base = w.s->list + f.base0;
    i32 n = 0;
    ROLLED for (i32 word = 0; word < f.words; word++) {
        u64 mask = word_of(sieve_of(w), at, f.words, word);
        ROLLED for (i32 b = lane_id(); b < 64; b += 32)
            if ((mask >> b) & 1) out[n + __popcll(mask & low_bits(b))] = base[64 * word + b];
        n += __popcll(mask);
    }
    __syncwarp();
}

// Emit the node f, whose base vertices are listed, and whose closure is the first part of s->full. False when the output
// is full.
__device__ inline bool emit_sieve(Worker& w, const i32* base, i32 n_base, const SieveFrame& f) {
    if (PLAIN) {
        w.count += 1;
        return true;
    }
    if (BOUNDED && measured(f.size, f.members) < w.bound) return true;
    SideSums root = sums_of(params.root_weight, params.root_hash, w.s->full, f.n_closed);
    SideSums sums = sums_of(params.base_weight, params.base_hash, base, n_base);
    if (!emit(w, base, n_base, w.s->full, f.n_closed, sums, root)) return false;
    if (BOUNDED) raise_bound(w, f.size, f.members);
    return true;
}

// The rows behind j that hold at least `least` of the child at f.top: list them in `alive`, and in `count` what each has.
// If `again`, only the n rows that are listed are looked at. Returns their members, in *n their number, and in *held the
// sum of their counts.
__device__ inline i32 list_alive(Sieve& v, const SieveFrame& f, i32 j, i32 least, bool again, i32* alive, i32* n, i32* held) {
    i32 members = 0, kept = 0, sum = 0, end = again ? *n : f.n_rows - j - 1;
    ROLLED for (i32 chunk = 0; chunk < end; chunk += 32) {
        i32 k = chunk + lane_id();
        i32 i = k >= end ? NOBODY : again ? alive[k] : j + 1 + k;
        i32 count = i == NOBODY ? 0 : overlap(v, f, f.top, i);
        bool holds = i != NOBODY && count >= least;
        u32 holders = warp_ballot(holds);
        if (holds) {  // the list that is read may be the one that is written, but entries only move to the front
            alive[kept + __popc(holders & lanes_below())] = i;
            v.count[i] = count;
            members += v.weight[f.list0 + i];
            sum += count;
        }
        kept += __popc(holders);
    }
    *n = kept;
    *held = warp_sum(sum);
    __syncwarp();
    return warp_sum(members);
}

// Make child j of the frame at f.top, and reduce it by R1, R2 and R4. The *n rows behind j that may be in a result are
// listed in s->raw_row, and `count` has what they have of the child. Returns the members of its L, 0 if it leads
// nowhere. *least is the threshold of R1 and R3 in the child.
__device__ inline i32 reduce_child(const Worker& w, Sieve& v, const SieveFrame& f, i32 j, i32* least, i32* n) {
    i32 at = f.top, closed = f.members + v.weight[f.list0 + j], left = f.members + f.left - closed;
    i32* alive = w.s->raw_row;
    bool again = false;
    *least = fewest_base(w, (i64)closed + left);
    ROLLED for (i32 i = lane_id(); i < v.planes * f.words; i += 32)
        v.bits[at + i] = v.bits[f.at + i] & v.bits[f.rows + i % f.words * f.n_rows + j];
    __syncwarp();
    ROLLED while (true) {
        i32 size = members_at(v, at, f.words), need = fewest_roots(w, size) - closed;
        if (size < *least || left < need) return 0;
        i32 held;
        left = list_alive(v, f, j, *least, again, alive, n, &held);
        again = true;
        // Fewer candidates are left, so a bound demands more base members.
        ROLLED while (BOUNDED && fewest_base(w, (i64)closed + left) > *least) {
            *least = fewest_base(w, (i64)closed + left);
            left = list_alive(v, f, j, *least, again, alive, n, &held);
        }
        if (BOUNDED && size < *least) return 0;
        if (left < need) return 0;
        if (need <= 0) return size;
        // A row with few bits of the child adds them one by one.
        bool sparse = f.words > 1 && held < 3 * f.words * *n && size <= 2 * SHARED_SLOTS;
        bool drops = sparse ? drop_sparse(v, f, at, vertices_at(v, at, f.words), alive, *n, need) : drop_base(v, f, at, alive, *n, need);
        if (!drops) return size;
    }
}

// Whether a result in child j may reach the bound. It has s base members, and its root side is in the closure and in
// candidates that hold at least s. Candidates are in s->raw_row, by ascending number of members.
__device__ inline bool reaches_bound(const Worker& w, const SieveFrame& f, const SieveFrame& child, i32 n) {
    const Sieve& v = sieve_of(w);
    if (ceiling_of(child.size, child.members) >= w.bound || n > SORTED) return true;
    i32 members = child.members;
    ROLLED for (i32 chunk = 0; chunk < n; chunk += 32) {
        i32 k = n - 1 - chunk - lane_id();  // from the largest on
        i32 i = k >= 0 ? w.s->raw_row[k] : 0, weight = k >= 0 ? v.weight[f.list0 + i] : 0;
        i32 before = sum_below(weight);
        if (warp_any(k >= 0 && ceiling_of(v.count[i], (i64)members + before + weight) >= w.bound)) return true;
        members += from(before + weight, 31);
    }
    return false;
}

// List the excluded rows that hold at least `least` of the child in s->slot. Returns their number, or -1 when one holds all
// of it (R6). Fewer cannot contain a result (R3).
__device__ inline i32 list_excluded(Worker& w, const SieveFrame& f, i32 j, i32 size, i32 least) {
    i32 n = 0;
    ROLLED for (i32 chunk = 0; chunk < j; chunk += 32) {
        i32 i = chunk + lane_id();
        i32 count = i < j ? overlap(sieve_of(w), f, f.top, i) : 0;
        if (warp_any(count >= size)) return -1;
        u32 keepers = warp_ballot(count >= least);
        if (count >= least) w.s->slot[n + __popc(keepers & lanes_below())] = i;
        n += __popc(keepers);
    }
    return n;
}

// Write the closure of child j behind that of the frame (R5), and list its candidates for `sort_rows`. Both are among
// the n_alive rows in s->raw_row. Returns the number of candidates.
__device__ inline i32 join_closure(Worker& w, const SieveFrame& f, i32 j, i32 size, i32 n_alive, SieveFrame* child) {
    Sieve& v = sieve_of(w);
    i32 n_closed = f.n_closed + 1, n = 0, members = 0, left = 0;
    if (lane_id() == 0) w.s->full[f.n_closed] = v.row[f.list0 + j];
    ROLLED for (i32 chunk = 0; chunk < n_alive; chunk += 32) {
        bool there = chunk + lane_id() < n_alive;
        i32 i = there ? w.s->raw_row[chunk + lane_id()] : 0;
        i32 count = there ? v.count[i] : 0;
        bool closes = there && count == size, stays = there && count < size;
        u32 closers = warp_ballot(closes), stayers = warp_ballot(stays);
        if (closes) {
            w.s->full[n_closed + __popc(closers & lanes_below())] = v.row[f.list0 + i];
            members += v.weight[f.list0 + i];
        }
        if (stays) {
            w.s->raw_mask[n + __popc(stayers & lanes_below())] = (u64)count << 31 | (u64)i;
            left += v.weight[f.list0 + i];
        }
        n_closed += __popc(closers);
        n += __popc(stayers);
    }
    child->n_closed = n_closed;
    child->members = f.members + v.weight[f.list0 + j] + warp_sum(members);
    child->left = warp_sum(left);
    child->size = size;
    __syncwarp();
    return n;
}

// Write the rows of a new frame, whose numbers in the frame above are in s->slot, and its L. If L needs half the words
// only, or there is no room otherwise, rows are packed.
__device__ inline void write_frame(Worker& w, const SieveFrame& f, const SieveFrame& child) {
    Sieve& v = sieve_of(w);
    const i32* source = w.s->slot;
    ROLLED for (i32 r = lane_id(); r < child.n_rows; r += 32) {
        v.row[child.list0 + r] = v.row[f.list0 + source[r]];
        v.weight[child.list0 + r] = v.weight[f.list0 + source[r]];
    }
    if (child.words < f.words) {
        write_vertices(w, f, f.top, w.s->list + child.base0);
        pack_rows(v, f.top, f.words, v.planes, [&](i32 k, i32 word) { return v.bits[f.top + k * f.words + word]; },
                  [&](i32 k, i32 word) { return &v.bits[child.at + k * child.words + word]; });
        pack_rows(v, f.top, f.words, child.n_rows,
                  [&](i32 r, i32 word) { return v.bits[f.rows + word * f.n_rows + source[r]]; },
                  [&](i32 r, i32 word) { return &v.bits[child.rows + word * child.n_rows + r]; });
        return;
    }
    ROLLED for (i32 word = 0; word < f.words; word++) {
        u64 mask = word_of(v, f.top, f.words, word);
        ROLLED for (i32 r = lane_id(); r < child.n_rows; r += 32)
            v.bits[child.rows + word * child.n_rows + r] = v.bits[f.rows + word * f.n_rows + source[r]] & mask;
    }
    __syncwarp();
}

// Whether the child at f.top may lead to a biclique with a marked edge.
__device__ inline bool child_may_be_marked(const Worker& w, const SieveFrame& f) {
    i32 first = lowest(w.s->full, f.n_closed);
    bool found = false;
    ROLLED for (i32 i = lane_id(); i < f.n_base; i += 32)
        if (word_of(sieve_of(w), f.top, f.words, i >> 6) >> (i & 63) & 1)
            found |= has_mark_from(w.s->list[f.base0 + i], first);
    return warp_any(found);
}

// Visit child j of the frame at *depth. A frame that is pushed changes *depth.
__device__ inline i32 visit_sieve(Worker& w, const SieveFrame& f, i32 j, i32* depth) {
    Sieve& v = sieve_of(w);
    if (f.top + v.planes * f.words > SIEVE_WORDS) {
        put_aside(w, f, j);
        return EXPLORED;
    }
    i32 least, n_alive, size = reduce_child(w, v, f, j, &least, &n_alive);
    if (size == 0 || (MARKED && !child_may_be_marked(w, f))) return NOTHING;
    i32 n_excluded = list_excluded(w, f, j, size, least);
    if (n_excluded < 0) return EXPLORED;
    SieveFrame child;
    i32 n_candidates = join_closure(w, f, j, size, n_alive, &child);
    sort_rows(w.s, n_candidates, size);
    if (BOUNDED && child.members > params.max_root) return EXPLORED;  // all below are larger than the filters allow
    if (BOUNDED && !reaches_bound(w, f, child, n_candidates)) return NOTHING;
    i32 n_base = vertices_at(v, f.top, f.words), words = (n_base + 63) >> 6;
    child.n_rows = n_excluded + n_candidates;
    bool fits = f.top + (v.planes + child.n_rows) * f.words <= SIEVE_WORDS;  // without packing
    bool packs = 2 * words <= f.words || (!fits && words < f.words), found = child.members >= fewest_roots(w, size);
    child.words = packs ? words : f.words;
    child.next = n_excluded;
    child.copy_at = NOBODY;
    child.end = child.n_rows;
    child.list0 = f.list0 + f.n_rows;
    child.base0 = packs ? f.base0 + f.n_base : f.base0;
    child.n_base = packs ? n_base : f.n_base;
    child.at = packs ? f.top + v.planes * f.words : f.top;
    child.rows = child.at + v.planes * child.words;
    child.top = child.rows + child.n_rows * child.words;
    if (*depth + 1 == SIEVE_DEPTH || child.list0 + child.n_rows > SIEVE_ROWS || child.top > SIEVE_WORDS
        || f.base0 + f.n_base + n_base > LIST_CAP) {
        put_aside(w, f, j);
        return EXPLORED;
    }
    if (found) {
        i32* base = w.s->list + f.base0 + f.n_base;
        if (!PLAIN) write_vertices(w, f, f.top, base);
        if (!emit_sieve(w, base, n_base, child)) return FULL;
    }
    if (n_candidates == 0) return EXPLORED;
    ROLLED for (i32 i = lane_id(); i < n_candidates; i += 32) w.s->slot[n_excluded + i] = w.s->raw_row[i];
    __syncwarp();
    write_frame(w, f, child);
    if (!BOUNDED && found && child.words == 1) return search_word(w, child) == DONE ? EXPLORED : HALTED;
    *depth += 1;
    if (lane_id() == 0) v.frame[*depth] = child;
    __syncwarp();
    return EXPLORED;
}

// Explore the sieve of frame 0, depth first. STOPPED: the rest is written down.
__device__ __noinline__ i32 search_sieve(Worker& w) {
    Sieve& v = sieve_of(w);
    i32 depth = 0, work = POLL;  // the first look is at once, because other warps may wait
    ROLLED while (depth >= 0) {
        w.hub_depth = depth;  // the search of a word problem may give children of these frames away
        if (work >= POLL) {
            i32 wanted;
            work = 0;
            w.tick += POLL;
            look_at_bound(w);
            bool ends = is_ending(&wanted) || ((w.tick & (FULL_POLL - 1)) < POLL && is_late(w));
            if (w.visits > 0 && ends) {
                leave_sieve(w, depth);
                return STOPPED;
            }
            if (wanted > 0) give_sieve(w, depth, wanted);
        }
        SieveFrame f = v.frame[depth];
        if (!has_children(w, f)) {
            depth -= 1;
            continue;
        }
        i32 level = depth, j = f.next;
        work += 1 + ((f.n_rows * f.words) >> 7);
        w.tests += 1;
        w.visits += 1;
        // The frame moves behind this child at once, because it may be written down or given away during the visit.
        __syncwarp();
        if (lane_id() == 0) {
            v.frame[level].next = j + 1;
            v.frame[level].left = f.left - v.weight[f.list0 + j];
        }
        __syncwarp();
        i32 became = visit_sieve(w, f, j, &depth);
        if (became == NOTHING) {
            // No two sides that are large enough have this row, so it excludes nothing.
            ROLLED for (i32 word = lane_id(); word < f.words; word += 32) v.bits[f.rows + word * f.n_rows + j] = 0;
            __syncwarp();
        }
        if (became == FULL && lane_id() == 0) {
            v.frame[level].next = j;
            v.frame[level].left = f.left;
        }
        __syncwarp();
        if (became == FULL || became == HALTED) {
            leave_sieve(w, level);
            return STOPPED;
        }
    }
    return DONE;
}
