// Subtree fetching: it makes a subgraph of a source, with its own vertex numbers, and the first level's L, P, Q and R.
//
// Only the neighbourhood of L is read. A hash table in the arena counts, for every root vertex that is adjacent to L,
// its neighbours in L. Root vertices that are adjacent to all of L are the closure. The node is dead when one of them
// is excluded. The other root vertices get ids: candidates go to P, and the rest to Q. Adjacency by ids is built in
// both directions.
#pragma once
#include "common/hash.cuh"
#include "common/types.cuh"
#include "common/warp.cuh"
#include "cumbe/block.cuh"
#include "cumbe/emit.cuh"
#include "cumbe/types.cuh"

// Reserve n ints (n + 1 if n is odd) in shared memory, or in the arena when that is full. Leader.
__device__ inline i32* allot(Block& b, i64 n, bool hot) {
    Subgraph& g = b.s->graph;
    // An even length keeps all arrays aligned to eight bytes, which Span and Place are read with.
    n = (n + 1) & ~1ll;
    if (hot && g.shared.begin + n <= g.shared.end) {
        i32* room = (i32*)b.s->space + g.shared.begin;
        g.shared.begin += (i32)n;
        return room;
    }
    i32* room = b.arena + g.used;
    g.used += n;
    return room;
}

// Slot of root vertex v. It is taken if v has none yet (*fresh). Thread.
__device__ inline i32 enter(i32* key, u32 mask, i32 v, bool* fresh) {
    u32 slot = first_slot(v, mask);
    while (true) {
        // Most edges lead to a root vertex that has a slot already, so a load comes before the atomic. A key is
        // written once and stays: a stale load says UNUSED at worst, and then the atomicCAS decides. Of threads with
        // the same v, exactly one gets the slot fresh. The table is at most half full, so the probing ends.
        i32 found = now(&key[slot]);
        if (found == UNUSED) found = atomicCAS(&key[slot], UNUSED, v);
        *fresh = found == UNUSED;
        if (found == UNUSED || found == v) return (i32)slot;
        slot = (slot + 1) & mask;
    }
}

// Slot of root vertex v, or NOBODY if it has none. Thread.
__device__ inline i32 find(const i32* key, u32 mask, i32 v) {
    // Plain loads are enough, because a barrier lies between the last `enter` and this.
    u32 slot = first_slot(v, mask);
    while (key[slot] != v) {
        if (key[slot] == UNUSED) return NOBODY;
        slot = (slot + 1) & mask;
    }
    return (i32)slot;
}

// Set source.base to a list of base vertices that contains L. For a node by its path, these are the neighbours of the
// path's vertex with the fewest.
__device__ inline void find_base(Block& b) {
    Source& source = b.s->source;
    const CumbeParams* p = b.p;
    if (source.kind == LISTED) {
        // One thread takes one vertex of the path. Degree and vertex in one 64-bit value make one atomicMin enough:
        // the smaller rank wins among equal degrees, so the choice does not depend on the order of threads.
        for (i32 i = threadIdx.x; i < source.n_path; i += BLOCK) {
            i32 v = source.path[i];
            u64 degree = (u64)(p->root_indptr[v + 1] - p->root_indptr[v]);
            atomicMin(&b.s->tally.shortest, degree << 32 | (u32)v);
        }
        __syncthreads();
    }
    if (is_leader()) {
        Subgraph& g = b.s->graph;
        i32 v = source.kind == LISTED ? (i32)(u32)b.s->tally.shortest : source.root;
        if (source.kind != STOLEN) {
            source.base = p->root_indices + p->root_indptr[v];
            source.n_base = (i32)(p->root_indptr[v + 1] - p->root_indptr[v]);
        }
        // All arrays are as long as the list, because the length of L is known only after fill_base has asked each
        // vertex. A vertex needs seven ints: five arrays have one each, and a Span is two.
        bool few = 7ll * source.n_base <= SHARED_INTS / 4;  // the root side is read more often
        g.base = allot(b, source.n_base, few);
        g.base_at = allot(b, source.n_base, few);
        g.bases = allot(b, source.n_base, few);
        g.chosen = allot(b, source.n_base, few);
        g.base_movers = allot(b, source.n_base, few);
        g.row = (Span*)allot(b, 2ll * source.n_base, few);
    }
    __syncthreads();
}

// Whether base vertex u of source.base belongs to L. Thread.
__device__ inline bool belongs(const Block& b, const Source& source, i32 u) {
    if (source.kind == STOLEN) return are_adjacent(b.p, source.self, u);
    // A thread asks alone. For a whole first-level subtree the loop has no round, because the list is L itself.
    bool all = true;
    for (i32 i = 0; source.kind == LISTED && all && i < source.n_path; i++) all = are_adjacent(b.p, source.path[i], u);
    return all;
}

// Write L, and reserve room for the edges around each of its vertices.
__device__ inline void fill_base(Block& b) {
    const Source& source = b.s->source;
    const CumbeParams* p = b.p;
    Subgraph& g = b.s->graph;
    Tally& tally = b.s->tally;
    // Each lane holds one vertex of the list. `chunk` is the same in all lanes of a warp, so the whole warp reaches
    // the claims. Lanes behind the end claim nothing.
    for (i32 chunk = warp_id() * 32; chunk < source.n_base; chunk += BLOCK) {
        i32 i = chunk + lane_id();
        i32 u = i < source.n_base ? source.base[i] : 0;
        bool mine = i < source.n_base && belongs(b, source, u);
        // Warps come in any order, so ids and ranges of edges do, too. Nothing depends on the order: each id keeps its
        // own range, and the two claims need not agree.
        i32 at = claim(&tally.n_base, mine);
        i32 degree = mine ? (i32)(p->base_indptr[u + 1] - p->base_indptr[u]) : 0;
        i32 begin = claim_many(&tally.n_wedges, degree);
        if (mine) {
            g.base[at] = u;
            g.bases[at] = g.base_at[at] = at;
            Span row = {begin, begin + degree};
            g.row[at] = row;
        }
    }
    __syncthreads();
    // The tally is complete behind the barrier. The caller synchronises before other threads use the arrays.
    if (is_leader()) {
        g.n_base = tally.n_base;
        g.row_ids = allot(b, tally.n_wedges, tally.n_wedges <= SHARED_INTS / 4);
        g.column_ids = allot(b, tally.n_wedges, tally.n_wedges <= SHARED_INTS / 4);
    }
}

// Make a slot for every root vertex around L, with the number of its neighbours in L. row_ids hold slots until
// `connect`. Returns the mask of the hash table.
__device__ inline u32 walk(Block& b) {
    const CumbeParams* p = b.p;
    Subgraph& g = b.s->graph;
    Tally& tally = b.s->tally;
    // The first `table` ints of the arena are keys, and the next are what is known of the key in the same slot.
    i32 *key = b.arena, *slots = b.arena + p->table;
    u32 table = 32;
    // The table is as small as the wedges allow, because all of its slots are cleared and read.
    while (table < (u32)p->table && table < 2u * (u32)tally.n_wedges) table *= 2;
    for (u32 i = threadIdx.x; i < table; i += BLOCK) {
        key[i] = UNUSED;
        slots[i] = 0;
    }
    __syncthreads();
    // A group of LANES lanes takes a base vertex, and its lanes take the edges. `e` counts in row_ids, and `at` moves
    // it to base_indices.
    for (i32 chunk = warp_id() * GROUPS; chunk < g.n_base; chunk += N_WARPS * GROUPS) {
        i32 i = chunk + group_id();
        Span row = {0, 0};
        i64 at = 0;
        if (i < g.n_base) {
            row = g.row[i];
            at = p->base_indptr[g.base[i]] - row.begin;
        }
        // All lanes stay in the loop until the longest row of the warp is done, because `claim` needs all of them.
        for (i32 e = row.begin + group_lane(); warp_any(e < row.end); e += LANES) {
            bool fresh = false;
            // Several groups may meet the same root vertex at the same time, so the count is atomic. The thread that
            // made the slot is no exception, because others may count in it before that thread does.
            if (e < row.end) {
                i32 slot = enter(key, table - 1, p->base_indices[at + e], &fresh);
                atomicAdd(&slots[slot], 1);
                g.row_ids[e] = slot;
            }
            // Only the number matters here, not the places. A claim is one atomic per warp instead of one per root
            // vertex.
            claim(&tally.n_roots, fresh);
        }
    }
    __syncthreads();
    if (is_leader()) {
        // Id 0 stands for the closure, so there is one id more than there are root vertices. NOWHERE is behind every
        // prefix: a scan that meets id 0 finds it in no set, and needs no test of its own.
        i64 n = tally.n_roots + 1;
        g.common = allot(b, n, true);
        g.place = (Place*)allot(b, 2 * n, true);
        g.touched = allot(b, n, true);
        g.next = allot(b, n, true);
        g.cands = allot(b, n, true);
        g.excluded = allot(b, n, true);
        g.column = (Span*)allot(b, 2 * n, true);
        g.vertex = allot(b, n, true);
        g.closure = allot(b, n, true);
        g.n_roots = (i32)n;
        g.place[0].cand = g.place[0].excluded = NOWHERE;
        g.common[0] = 0;
    }
    __syncthreads();
    return table - 1;
}

// Values of a slot whose root vertex was listed: CLOSED is in the closure, numbered(id) has an id already. Other slots
// hold their count.
#define CLOSED (-1)
#define numbered(id) (-1 - (id))

// Give the root vertices of lanes with `mine` ids, and put them into P or Q. Each has `n` neighbours in L. Warp.
__device__ inline i32 number(Block& b, bool mine, i32 v, i32 n, bool candidate, bool todo) {
    Subgraph& g = b.s->graph;
    Tally& tally = b.s->tally;
    // All 32 lanes claim, also those without `mine`, because a claim is a collective.
    i32 id = 1 + claim(&tally.n_ids, mine);
    // A column has exactly n entries, so connect fills it without a gap and never beyond.
    i32 begin = claim_many(&tally.n_columns, mine ? n : 0);
    i32 cand = claim(&tally.n_cand, mine && candidate);
    i32 excluded = claim(&tally.n_excluded, mine && !candidate);
    claim(&tally.n_todo, mine && candidate && todo);
    // From here on each lane works alone, on entries that no other lane has.
    if (!mine) return NOBODY;
    g.vertex[id] = todo ? v : ~v;
    // connect counts the entries of the column with it.
    g.common[id] = 0;
    Span column = {begin, begin + n};
    g.column[id] = column;
    Place place = {candidate ? cand : NOWHERE, candidate ? NOWHERE : excluded};
    g.place[id] = place;
    if (candidate)
        g.cands[cand] = id;
    else
        g.excluded[excluded] = id;
    return id;
}

// Put the path into the closure, and listed candidates that contain L, too. The other listed candidates get ids.
__device__ inline void enter_lists(Block& b, u32 mask) {
    const Source& source = b.s->source;
    Subgraph& g = b.s->graph;
    i32 *key = b.arena, *slots = b.arena + b.p->table;
    // A thread takes one vertex of the path. The vertices differ, so no two threads write the same slot. For a stolen
    // child, the candidate that makes it is the last one: it is in the closure, but not in its parent's path.
    for (i32 i = threadIdx.x; i < source.n_path + (source.kind == STOLEN); i += BLOCK) {
        i32 slot = find(key, mask, i < source.n_path ? source.path[i] : source.self);
        if (slot != NOBODY) slots[slot] = CLOSED;
    }
    __syncthreads();
    // Behind the barrier a candidate that is also in the path is seen as CLOSED, and gets no id.
    for (i32 chunk = warp_id() * 32; chunk < source.n_cand; chunk += BLOCK) {
        i32 i = chunk + lane_id();
        i32 v = i < source.n_cand ? source.cand[i] : 0;
        i32 slot = i < source.n_cand ? find(key, mask, v) : NOBODY;
        // A candidate without a slot has no neighbour in L. It is treated like one of the closure: it gets no id.
        i32 n = slot == NOBODY ? CLOSED : slots[slot];
        // A candidate may join the closure, so it must not look like an excluded vertex to sort_out.
        if (n == g.n_base) slots[slot] = CLOSED;
        bool mine = n != CLOSED && n < g.n_base;
        i32 id = number(b, mine, v, n, true, i < source.n_todo);
        if (mine) slots[slot] = numbered(id);
    }
    __syncthreads();
}

// Make the closure, P and Q from the slots. The slots hold ids afterwards.
__device__ inline void sort_out(Block& b, u32 mask) {
    const Source& source = b.s->source;
    Subgraph& g = b.s->graph;
    Tally& tally = b.s->tally;
    i32 *key = b.arena, *slots = b.arena + b.p->table;
    if (source.root == NOBODY) enter_lists(b, mask);
    // A lane takes a slot, which it alone reads and writes, so no barrier lies between. The table has a multiple of 32
    // slots, so no lane is behind its end.
    for (i32 chunk = warp_id() * 32; chunk <= (i32)mask; chunk += BLOCK) {
        i32 v = key[chunk + lane_id()], n = slots[chunk + lane_id()];
        bool full = v != UNUSED && (n == CLOSED || n == g.n_base);
        // A root vertex that contains L, but was neither listed nor is a later rank, is excluded: the node is dead.
        if (full && n != CLOSED && (source.root == NOBODY || v < source.root)) atomicOr(&tally.dead, 1);
        i32 at = claim(&tally.n_closure, full);
        if (full) g.closure[at] = v;
        // A negative value is a listed vertex that has an id already; CLOSED is full.
        bool mine = v != UNUSED && !full && n > 0;
        bool candidate = source.root != NOBODY && v > source.root;
        i32 id = number(b, mine, v, n, candidate, true);
        // This inverts `numbered`. CLOSED is numbered(0), and id 0 stands for the closure.
        if (v != UNUSED && !mine) id = full ? 0 : -1 - n;
        if (v != UNUSED) slots[chunk + lane_id()] = id;
    }
    __syncthreads();
}

// Build adjacency by ids in both directions. g.common counts the entries of each column meanwhile.
__device__ inline void connect(Block& b) {
    Subgraph& g = b.s->graph;
    const i32* slots = b.arena + b.p->table;
    // A warp takes a base vertex, and its lanes take its edges.
    for (i32 i = warp_id(); i < g.n_base; i += N_WARPS) {
        Span row = g.row[i];
        for (i32 e = row.begin + lane_id(); e < row.end; e += 32) {
            // Each entry of row_ids belongs to one lane, so slot and id change places without a barrier.
            i32 id = slots[g.row_ids[e]];
            g.row_ids[e] = id;
            // id 0 is a member of the closure, which has no column
            // The atomic gives each entry of a column a place, because warps with other base vertices fill the same
            // column. So the order in a column changes from run to run, and nothing may depend on it.
            if (id) g.column_ids[g.column[id].begin + atomicAdd(&g.common[id], 1)] = i;
        }
    }
    __syncthreads();
    // The counters are zero between visits: `scan` relies on it to see which thread counts first.
    for (i32 id = threadIdx.x; id < g.n_roots; id += BLOCK) g.common[id] = 0;
}

// Open the source's subtree, and put its first level on the stack. False when it is empty, or belongs to an earlier
// node.
__device__ inline bool open_subtree(Block& b) {
    Shared* s = b.s;
    Subgraph& g = s->graph;
    if (is_leader()) {
        g.shared.begin = 0;
        g.shared.end = SHARED_INTS;
        g.used = ground_at(b.p);
        memset(&s->tally, 0, sizeof(Tally));
        s->tally.shortest = ~0ull;
        clear(&s->counters[0]);
        clear(&s->counters[1]);
    }
    __syncthreads();
    find_base(b);
    fill_base(b);
    __syncthreads();
    // Both early returns read a value behind a barrier, so all threads of the block take them together.
    if (g.n_base == 0) return false;
    u32 mask = walk(b);
    sort_out(b, mask);
    if (s->tally.dead) return false;
    connect(b);
    // Sums over the closure are made once per subtree. Deeper levels add the sums over those that join.
    Counters* c = &s->counters[b.turn];
    if (!b.p->plain) add_root_sums(b, c, 0, s->tally.n_closure);
    __syncthreads();
    if (is_leader()) {
        Level first = {g.n_base,           s->tally.n_cand, s->tally.n_cand, s->tally.n_excluded, s->tally.n_closure,
                       s->tally.n_todo, 0,               0,               NOBODY,              0,
                       c->root_members,    c->root_hash};
        g.n_excluded = s->tally.n_excluded;
        g.has_rest = s->tally.n_todo < s->tally.n_cand;
        *level_of(b, 0) = first;
        c->root_members = 0;  // they are in the level now
        c->root_hash = 0;
    }
    __syncthreads();
    return true;
}
