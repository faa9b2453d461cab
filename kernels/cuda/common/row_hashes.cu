// Hashes the rows of a Parquet part that was read back on the device, one side per launch, compares the hashes with the
// ids of the rows, and counts in how many rows each vertex is.
//
// Input: `params` (RowHashParams), which kernels/gpu/row_hashes.py fills: a list column of labels with its offsets, the
// lengths that another column claims, and a table of the side's vertices. Output: for each row the sum of the hashes of
// its vertices, or, in the launch for the second side, the hash of the whole row; the rows that each vertex is in; and
// what is wrong with the column, if anything is. Lanes take a row each, and long rows are taken by all lanes together.
// Launch: any grid.
#include "common/hash.cuh"
#include "common/types.cuh"
#include "common/warp.cuh"

#ifndef COUNTERS
#define COUNTERS 8192  // counters of a block in shared memory; sides with more vertices are counted in global memory
#endif

// Rows with more members than this are read by all lanes.
#define LONG_ROW 64

struct Wrong {           // each is 0, or 1 + the number of one that is wrong
    i64 length;          // a row: it has no members, or not as many as are claimed
    i64 value;           // an entry of `values`: it is no label of the side
    i64 order;           // an entry of `values`: it is not larger than the one before it in its row
    i64 root;            // a row: the root that it claims is not among its members
    i64 id;              // a row: its id does not follow from its members
};

struct RowHashParams {
    const void* values;  // labels or vertices of all rows, one row behind the other
    i64 wide;            // whether a value has 64 bits; otherwise it has 32
    const i32* offsets;  // of the rows in `values`; one more than there are rows
    const i32* claimed;  // length of each row, as a column says
    i64 n_rows;
    const i64* labels;   // ascending labels of the vertices; null when they are `first`, `first` + 1, ...
    i64 first;
    i64 n_vertices;
    const u64* hashes;   // of the vertices
    u64* occurrences;    // rows that each vertex is in; this launch adds to them
    const i32* roots;    // the vertex that each row has to have on this side, or null
    const u64* before;   // sums of the other side, which was hashed before, or null
    const u64* ids;      // of the rows; they are compared in the launch for the second side
    u64* out;            // by row
    Wrong* wrong;
};

__constant__ RowHashParams params;

// An entry of `values`. Thread-level.
__device__ __forceinline__ i64 value_at(i64 at) {
    return params.wide ? ((const i64*)params.values)[at] : (i64)((const i32*)params.values)[at];
}

// The vertex of a value, or -1 if it is none. Thread-level.
__device__ inline i64 vertex_of(i64 value) {
    if (params.labels == 0) {
        u64 number = (u64)value - (u64)params.first;  // a label that is far away wraps around to a large number
        return number < (u64)params.n_vertices ? (i64)number : -1;
    }
    i64 lo = 0, n = params.n_vertices;
    ROLLED while (n > 0) {
        i64 half = n >> 1;
        if (params.labels[lo + half] < value) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return lo < params.n_vertices && params.labels[lo] == value ? lo : -1;
}

// Count and hash one entry of a row that begins at `begin`, and compare it with the root. Returns its hash.
// Thread-level.
__device__ inline u64 take(i64 at, i64 begin, u32* counts, i64 root, bool* has_root) {
    i64 value = value_at(at), vertex = vertex_of(value);
    if (vertex < 0) {
        params.wrong->value = at + 1;  // several threads may write; any of them will do
        return 0;
    }
    if (at > begin && value_at(at - 1) >= value) params.wrong->order = at + 1;
    if (vertex == root) *has_root = true;
    // neighbouring rows have vertices in common, so atomics on global memory would wait for one another
    if (counts) {
        atomicAdd(counts + vertex, 1u);
    } else {
        atomicAdd(params.occurrences + vertex, 1ull);
    }
    return params.hashes[vertex];
}

// Hash 32 rows, one per lane.
__device__ inline void hash_rows(i64 begin, u32* counts) {
    i64 row = begin + lane_id();
    bool is_row = row < params.n_rows;
    i64 at = is_row ? params.offsets[row] : 0, n = is_row ? params.offsets[row + 1] - at : 0;
    i64 root = is_row && params.roots ? params.roots[row] : -1;
    if (is_row && (n <= 0 || n != params.claimed[row])) params.wrong->length = row + 1;
    bool has_root = root < 0;
    u64 sum = 0;
    for (i64 i = 0; i < n && n <= LONG_ROW; i++) sum += take(at + i, at, counts, root, &has_root);
    for (u32 rest = warp_ballot(n > LONG_ROW); rest; rest &= rest - 1) {
        i32 lane = __ffs(rest) - 1;
        i64 of_list = from(n, lane), begin_at = from(at, lane), its_root = from(root, lane);
        bool found = false;
        u64 own = 0;
        for (i64 i = lane_id(); i < of_list; i += 32) own += take(begin_at + i, begin_at, counts, its_root, &found);
        own = warp_sum(own);
        found = warp_any(found);
        if (lane_id() == lane) {
            sum = own;
            has_root = has_root || found;
        }
    }
    if (!is_row) return;
    if (params.roots && !has_root) params.wrong->root = row + 1;
    u64 hash = params.before ? mix64(params.before[row] ^ mix64(sum)) : sum;
    if (params.before && hash != params.ids[row]) params.wrong->id = row + 1;
    params.out[row] = hash;
}

extern "C" __global__ void row_hashes() {
    __shared__ u32 shared_counts[COUNTERS];
    u32* counts = params.n_vertices <= COUNTERS ? shared_counts : 0;
    for (i32 i = threadIdx.x; counts && i < params.n_vertices; i += blockDim.x) counts[i] = 0;
    __syncthreads();
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    i64 n_warps = ((i64)gridDim.x * blockDim.x) >> 5;
    for (i64 begin = warp * 32; begin < params.n_rows; begin += n_warps * 32) hash_rows(begin, counts);
    __syncthreads();
    for (i32 i = threadIdx.x; counts && i < params.n_vertices; i += blockDim.x) {
        if (counts[i]) atomicAdd(params.occurrences + i, (u64)counts[i]);
    }
}
