// cuMBE: maximal biclique enumeration in which each thread block works on a subtree. After C.-Y. Hsieh, C.-M. Chang,
// P.-H. Cheng and S.-Y. Kuo, Accelerating Maximal Biclique Enumeration on GPUs (their code: NTUDDSNLab/cuMBE), and
// C.-M. Chang, Parallel Maximal Biclique Enumeration on GPUs, thesis, National Taiwan University, 2023. None of their
// code is used.
//
// kernels/shipped.py compiles it ahead with the usual options of types.cuh, and kernels/gpu/machine_code.py has NVRTC compile it
// with others. It also compiles alone, with the defaults.
//
// Input: `params` (CumbeParams), which kernels/cumbe/engine.py fills: the graph in both directions, with root vertices
// by rank; items, heaviest first; memory for the pool, the output and the shelves, and one arena per block. Output:
// counters and ticks in CumbeQueue. In mode list, Records, and their members in `values` (base vertices, then ranks).
// When the slice ends early, the rest of the work in `left_over`, and the items that no block has drawn (from
// CumbeQueue.head on).
//
// Method, by header:
//   compact_arrays  one compact array and one lookup table for each of L, P and Q; a level is a few lengths
//   open            fetching: a subtree gets vertex numbers of its own, so that all sizes depend on the neighbourhood
//                   of one root, not on the graph
//   visit           candidate selection with two early stops; reverse scanning from L' for maximality and expansion
//   emit            bicliques to the output, open levels to the host
//   steal           k-level work stealing in a circle, without a barrier of the grid
// This file has the loop that replaces the recursion.
//
// Differences from the paper, for exactness, memory or speed:
//   - Ids are local to a subtree, where the paper has |U| + |V| entries per block.
//   - One reverse scan serves both the maximality check and the expansion. Its time counts as that of the check.
//   - A level's smallest count is known from the expansion that made it, so its first candidate needs no selection.
//
// Launch: any number of blocks of BLOCK threads that are resident together, with static shared memory only. When an
// output buffer or a limit is reached, the node at hand is still to be done, and every block writes its open levels
// down. So nothing is lost, and nothing is emitted twice.
#include "common/types.cuh"
#include "common/warp.cuh"
#include "cumbe/block.cuh"
#include "cumbe/compact_arrays.cuh"
#include "cumbe/open.cuh"
#include "cumbe/emit.cuh"
#include "cumbe/steal.cuh"
#include "cumbe/types.cuh"
#include "cumbe/visit.cuh"

// Whether the child or a node below it can have min_root members on the root side.
__device__ __forceinline__ bool is_promising(const Block& b, const Level& level, const Counters* c) {
    return b.p->min_root <= 1 || level.root_members + c->root_members + c->reach >= b.p->min_root;
}

// Explore one candidate of the level at `depth`. Returns PUSHED when the child has a level of its own now, EXPLORED
// when the candidate is done, and REFUSED when the child could not be emitted.
#define EXPLORED 0
#define PUSHED 1
#define REFUSED 2
__device__ inline i32 visit(Block& b, const Level& level, i32 depth) {
    Subgraph& g = b.s->graph;
    Counters* c = &b.s->counters[b.turn];
    Counters* other = &b.s->counters[b.turn ^= 1];
    i32 id = level.chosen, n = level.least;
    if (!level.known) {
        select_candidate(b, level, depth == 0 && g.has_rest, c);
        id = g.cands[(u32)c->best];
        n = (i32)(c->best >> 32);
        if (is_leader()) {
            level_of(b, depth)->least = n;
            level_of(b, depth)->cursor = (i32)(u32)c->best;
        }
    }
    lap(b, SELECTION);
    construct_base(b, level, id, c);
    if (is_leader()) clear(other);
    if (!REVERSE_SCAN) bring_base(b, n, c);
    lap(b, L_CONSTRUCTION);
    b.visits += 1;
    b.tests += 1;
    bool small = is_small(b, g.chosen, n, c);
    if (!small) test(b, level, n, c);
    lap(b, CHECKING);
    bool pushed = false;
    if (!small && c->dead == 0) {
        if (!emit(b, c, level, g.chosen, n, level.n_closure + c->n_joined, c->n_joined)) return REFUSED;
        pushed = c->n_next > 0 && is_promising(b, level, c);
        if (pushed) descend(b, level, depth, id, n, c);
        lap(b, EXPANSION);
    }
    if (!pushed && is_leader()) retire(g, level_of(b, depth), id);
    return pushed ? PUSHED : EXPLORED;
}

// Explore the open subtree. False: the launch stops, and the rest has been written down.
__device__ inline bool explore(Block& b) {
    i32 depth = 0;
    while (true) {
        __syncthreads();  // waits until the leader has updated the level
        if (++b.tick % POLL == 0) {
            i32 asked = look(b);
            if (asked == STOP) {
                leave_levels(b, depth, false);
                return false;
            }
            if (asked == OFFER) offer(b, depth);
            lap(b, STEALING);
        }
        if (level_of(b, depth)->todo > 0) {
            Level level = *level_of(b, depth);
            i32 end = visit(b, level, depth);
            if (end == REFUSED) {
                leave_levels(b, depth, false);
                return false;
            }
            depth += end == PUSHED;
            continue;
        }
        if (depth == 0) return true;
        if (is_leader()) {
            recall(b.s->graph, level_of(b, depth));
            Level* above = level_of(b, depth - 1);
            retire(b.s->graph, above, above->chosen);
        }
        depth -= 1;
    }
}

// Open and explore the source. False: the launch stops.
__device__ inline bool run_source(Block& b) {
    Shared* s = b.s;
    Subgraph& g = s->graph;
    b.visits = 0;
    bool opened = open_subtree(b);
    if (is_leader()) let_go(b);
    lap(b, FETCHING);
    if (!opened) return true;
    Level first = *level_of(b, 0);
    Counters* c = &s->counters[b.turn];
    b.turn ^= 1;  // the first visit uses the other counters
    bool fresh = s->source.fresh;
    b.tests += fresh;
    if (is_small(b, g.bases, g.n_base, c)) return true;
    if (fresh && !emit(b, c, first, g.bases, g.n_base, first.n_closure, 0)) {
        leave_levels(b, 0, true);
        return false;
    }
    return explore(b);
}

// Take the next host item as the source. False when there is none. Leader.
__device__ inline bool draw(Block& b) {
    const CumbeParams* p = b.p;
    Source& source = b.s->source;
    i64 ticket = is_stopped(b) ? p->n_items : (i64)atomicAdd(&b.q->head, 1ull);
    if (ticket >= p->n_items) return false;
    CumbeItem item = p->items[ticket];
    source.kind = item.root == NOBODY ? LISTED : WHOLE;
    source.root = item.root;
    source.path = p->pool + item.path_at;
    source.cand = p->pool + item.cand_at;
    source.n_path = item.n_path;
    source.n_cand = item.n_cand;
    source.n_todo = item.n_todo;
    source.fresh = item.fresh;
    source.level = 1;
    return true;
}

// Find work: a host item, or a child from a shelf. False when the launch is over for this block.
__device__ inline bool fetch(Block& b) {
    __syncthreads();
    if (is_leader()) b.s->verdict = draw(b);
    __syncthreads();
    bool drawn = b.s->verdict;
    __syncthreads();
    lap(b, FETCHING);
    return drawn || (STEAL_LEVELS > 1 && steal(b));
}

__constant__ CumbeParams params;

extern "C" __global__ void __launch_bounds__(BLOCK, MIN_BLOCKS) cumbe() {
    __shared__ Shared shared;
    Block b;
    b.p = &params;
    b.q = params.queue;
    b.s = &shared;
    b.arena = params.arena + (i64)blockIdx.x * params.arena_ints;
    b.cold = (Level*)(b.arena + levels_at(&params));
    b.count = b.fingerprint = b.tests = 0;
    b.value_at = b.value_end = b.record_at = b.record_end = 0;
    b.deadline = params.deadline_ns == 0 ? 0 : now_ns() + (u64)params.deadline_ns;
    b.tick = blockIdx.x;  // blocks look at the queue at different times
    b.turn = 0;
    b.visits = 0;
    i64 began = clock64();
    b.lap_began = began;
    if (is_leader()) {
        clear(&shared.counters[0]);
        clear(&shared.counters[1]);
        for (i32 i = 0; i < N_PHASES; i++) shared.ticks[i] = 0;
    }
    bool going = true;
    while (going && fetch(b)) {
        going = run_source(b);
        __syncthreads();
        if (is_leader()) {
            __threadfence();  // what this item published is visible before it counts as done
            atomicAdd(&b.q->open, ~0ull);
        }
    }
    __syncthreads();
    if (STEAL_LEVELS > 1) close_shelf(b);
    if (is_leader()) {
        atomicAdd(&b.q->count, b.count);
        atomicAdd(&b.q->fingerprint, b.fingerprint);
        atomicAdd(&b.q->tests, b.tests);
        for (i32 i = 0; i < N_PHASES; i++) atomicAdd(&b.q->ticks[i], shared.ticks[i]);
        atomicMax(&b.q->longest, (u64)(clock64() - began));
        for (i64 i = b.record_at; i < b.record_end; i++) params.records[i].n_root = 0;  // holes
    }
}
