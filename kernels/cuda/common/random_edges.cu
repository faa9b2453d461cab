// Draws the edges of a random graph, as kernels/compiled/random_edges.py does, whose rules these are. kernels/gpu/random_edges.py
// launches the phases below, says why the order of the draws does not matter, and what is done where it does.
//
// Input: `params` (RandomEdgesParams). A row is a left vertex. Its neighbours are a hash set in global memory, which all
// threads fill together. Output: the labels of both ends of all edges, the sum of their hashes, and the degrees of right
// vertices. Every function is called by one thread. Launch: any grid.
#include "common/hash.cuh"
#include "common/types.cuh"

#define PHASE_PLANT 0    // put planted neighbours into the sets
#define PHASE_DRAW 1     // draw `missing` neighbours of each row, and count those that were there already
#define PHASE_CHECK 2    // look for rows in which too many draws after one another were there already
#define PHASE_COLLECT 3  // turn sets into the edges (row << 32 | right vertex), which the host sorts
#define PHASE_LABEL 4    // write the edges with labels

#define MOST_TRIES 64    // draws that lead to nothing, after which the order matters
#define MOST_DRAWS (1ll << 31)
#define CHANCE_BITS 24
#define WORDS_PER_DRAW 16

// An entry of a set: the right vertex << 32 | its order. The least order of all that lead to the vertex stays.
#define EMPTY (~0ull)
#define REMOVED 0ull     // a planted edge that noise took: nothing draws it, and it is no edge
#define FIRST_ORDER 1ull // planted, or by a stub
#define DRAWN_ORDER 2ull // of draw 0 of the row

struct RandomEdgesParams {
    i64 phase;
    i64 n;                      // planted neighbours, draws, slots of all sets, or edges: what threads take one of
    i64 n_rows;
    const i64* vertices;        // left vertex of each row
    const i64* firsts;          // its first stub
    const i64* spaces;          // half of where its set begins; one more than there are rows
    const i64* planted_indptr;  // where its planted neighbours begin
    const i64* planted;         // these; ~v is one whose edge was removed
    const i64* starts;          // where its draws begin, of this launch
    const i64* done;            // its draws of launches before
    u64* missing;               // its draws of this launch that were there already
    const i64* run;             // its last draws, before this launch, that were there already
    i64* next_run;              // and after it
    u64* hard;                  // not 0: the host draws its neighbours; then 1 + where its slots are in `fixed`
    u64* n_hard;
    const u64* fixed;
    u64* sets;
    i64* places;                // slot of each draw
    i64 by_stubs;               // otherwise by quadrants
    i64 pairing;                // whether this launch pairs stubs, which are no draws
    u64 key;
    const u64* keys;            // of the permutation
    i64 n_keys;
    i64 height;                 // of its grid
    i64 width;
    i64 n_stubs;
    const i64* class_starts;    // of runs of right vertices with equal degrees: first stub,
    const i64* class_vertices;  // first vertex,
    const i64* class_degrees;   // degree
    const i64* guide;           // class of the first stub with this `stub >> shift`
    i64 shift;
    i64 in_first;               // chance of the first half of the right side, by where the left vertex is in its range
    i64 in_second;
    i64 in_one;
    i64 n_left;
    i64 n_right;
    i64 left_factor;            // vertex v has the label (v * factor + shift) % n
    i64 left_shift;
    i64 right_factor;
    i64 right_shift;
    i32* out_left;
    i32* out_right;
    u32* occurrences;
    u64* total;
};

__constant__ RandomEdgesParams params;

// The row that entry `i` belongs to, of rows that begin at `begins`; some have no entries.
__device__ inline i64 row_of(const i64* begins, i64 i) {
    i64 lo = 0, n = params.n_rows - 1;
    ROLLED while (n > 0) {
        i64 half = n >> 1;
        if (begins[lo + half + 1] <= i) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return lo;
}

// A number below n, which is less than 2**32, from the upper half of a random word.
__device__ __forceinline__ i64 below(u64 word, i64 n) { return (i64)((word >> 32) * (u64)n >> 32); }

__device__ inline i64 permuted(i64 x) {
    do {
        i64 row = x / params.width, column = x % params.width;
        ROLLED for (i64 k = 0; k < params.n_keys; k += 2) {
            row += below(mix64(params.keys[k] ^ (u64)column), params.height);
            row -= row >= params.height ? params.height : 0;
            column += below(mix64(params.keys[k + 1] ^ (u64)row), params.width);
            column -= column >= params.width ? params.width : 0;
        }
        x = row * params.width + column;
    } while (x >= params.n_stubs);
    return x;
}

__device__ inline i64 owner(i64 stub) {
    i64 k = params.guide[stub >> params.shift];
    ROLLED while (params.class_starts[k + 1] <= stub) k++;
    return params.class_vertices[k] + (stub - params.class_starts[k]) / params.class_degrees[k];
}

// The right vertex that a draw of a left vertex leads to by quadrants.
__device__ inline i64 column(u64 own, u64 number, i64 vertex) {
    i64 first = 0, size = params.n_right, left_first = 0, left_size = params.n_left;
    u64 word = 0;
    ROLLED for (i32 level = 0; size > 1; level++) {
        i64 chance = params.in_one;
        if (left_size > 1) {
            i64 half = (left_size + 1) / 2;
            bool in_first = vertex < left_first + half;
            chance = in_first ? params.in_first : params.in_second;
            left_first += in_first ? 0 : half;
            left_size = in_first ? half : left_size - half;
        }
        if (level % 2 == 0) word = mix64(own + (number * WORDS_PER_DRAW + level / 2) * STREAM_STEP);
        i64 part = (i64)(word >> (64 - CHANCE_BITS)), half = (size + 1) / 2;
        word <<= CHANCE_BITS;
        first += part < chance ? 0 : half;
        size = part < chance ? half : size - half;
    }
    return first;
}

// Put a vertex into the set of a row. Returns whether it is new, and its slot.
__device__ inline bool insert(i64 row, i64 v, u64 order, i64* at) {
    i64 begin = 2 * params.spaces[row], size = 2 * params.spaces[row + 1] - begin;
    i64 slot = begin + below(mix64((u64)v), size);
    u64 entry = (u64)v << 32 | order;
    while (true) {
        u64 there = params.sets[slot];
        if (there == EMPTY) there = atomicCAS(params.sets + slot, EMPTY, entry);
        if (there == EMPTY || (i64)(there >> 32) == v) {
            if (there > entry && there != EMPTY) atomicMin(params.sets + slot, entry);
            *at = slot;
            return there == EMPTY;
        }
        slot = slot + 1 < begin + size ? slot + 1 : begin;
    }
}

__device__ inline void plant(i64 i) {
    i64 row = row_of(params.planted_indptr, i), v = params.planted[i], at;
    insert(row, v < 0 ? ~v : v, v < 0 ? REMOVED : FIRST_ORDER, &at);
}

__device__ inline void draw_one(i64 i) {
    i64 row = row_of(params.starts, i), k = i - params.starts[row], vertex = params.vertices[row], v, at;
    u64 order = FIRST_ORDER;
    if (params.pairing) {
        v = owner(permuted(params.firsts[row] + k));
    } else {
        u64 own = mix64(params.key ^ (u64)vertex), number = (u64)(params.done[row] + k);
        v = params.by_stubs ? owner((i64)(mix64(own + number * STREAM_STEP) % (u64)params.n_stubs))
                            : column(own, number, vertex);
        order = DRAWN_ORDER + number;
    }
    if (!insert(row, v, order, &at)) atomicAdd(params.missing + row, 1ull);
    if (!params.pairing) params.places[i] = at;
}

// Whether draw `i` of this launch, the k-th of its row, led to something new, had all been made one after the other.
__device__ __forceinline__ bool is_new(i64 i, i64 row, i64 k) {
    return (params.sets[params.places[i]] & 0xffffffffu) == DRAWN_ORDER + (u64)(params.done[row] + k);
}

// Every new draw, and the last one of a row, looks back to the new one before it.
__device__ inline void check(i64 i) {
    i64 row = row_of(params.starts, i), begin = params.starts[row], j = i;
    bool is_last = i + 1 == params.starts[row + 1], found = is_new(i, row, i - begin);
    if (!found && !is_last) return;
    i64 in_vain = found ? 0 : 1;
    while (--j >= begin && in_vain < MOST_TRIES && !is_new(j, row, j - begin)) in_vain++;
    if (j < begin) in_vain += params.run[row];
    if (is_last) params.next_run[row] = found ? 0 : in_vain;
    if (in_vain < MOST_TRIES && params.done[row] + i - begin < MOST_DRAWS) return;
    if (atomicExch(params.hard + row, 1ull) == 0) atomicAdd(params.n_hard, 1ull);
    params.missing[row] = 0;  // nothing more is drawn here
}

__device__ inline void collect(i64 slot) {
    i64 row = row_of(params.spaces, slot >> 1);
    u64 entry = params.sets[slot], hard = params.hard[row];
    if (hard) {
        params.sets[slot] = params.fixed[hard - 1 + (slot - 2 * params.spaces[row])];
    } else if (entry != EMPTY) {
        bool is_edge = (entry & 0xffffffffu) != REMOVED;
        params.sets[slot] = is_edge ? (u64)row << 32 | entry >> 32 : EMPTY;
    }
}

__device__ inline u64 label(i64 i) {
    u64 edge = params.sets[i];
    i64 right = (i64)(edge & 0xffffffffu);
    i64 own = (params.vertices[edge >> 32] * params.left_factor + params.left_shift) % params.n_left;
    i64 other = (right * params.right_factor + params.right_shift) % params.n_right;
    params.out_left[i] = (i32)own;
    params.out_right[i] = (i32)other;
    atomicAdd(params.occurrences + right, 1u);
    return mix64((u64)own ^ mix64((u64)other));
}

extern "C" __global__ void random_edges() {
    i64 step = (i64)gridDim.x * blockDim.x;
    u64 total = 0;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < params.n; i += step) {
        if (params.phase == PHASE_PLANT) plant(i);
        if (params.phase == PHASE_DRAW) draw_one(i);
        if (params.phase == PHASE_CHECK) check(i);
        if (params.phase == PHASE_COLLECT) collect(i);
        if (params.phase == PHASE_LABEL) total += label(i);
    }
    if (params.phase == PHASE_LABEL) atomicAdd(params.total, total);
}
