// Records of a launch as two list columns: what the vertices of each side stand for, one list after the other.
//
// Input: `params` (PackParams), filled by kernels/gpu/pack.py: records, of which those with n_root == 0 are holes; the others
// are the rows, counted by `until`.
// Output: in the first launch how many members each side of a row has, and the row's first root; in the second, with
// `offset` made of these numbers, the members. The order of a list is that of the record's vertices, and of the members
// of each. A warp a row. Launch: any.
#include "warp.cuh"

struct PackSide {
    const i64* indptr;   // members of a vertex
    const i32* members;
    i64* lengths;        // of the rows: written by the first launch
    const i64* offsets;  // read by the second
    i32* out;
};

struct PackParams {
    const Record* records;
    const i32* values;
    const i64* until;  // rows up to a record, itself among them
    i64 n_records;
    PackSide base, root;
    i32* first;    // member of the row's smallest rank
    i64 writing;   // the second launch
};

__constant__ PackParams params;

// Vertices that stand for more members than this are copied by all lanes together.
#define FEW 8

__device__ inline void count_members(const PackSide& side, i64 row, const i32* list, i32 n) {
    i64 total = 0;
    for (i32 i = lane_id(); i < n; i += 32) total += side.indptr[list[i] + 1] - side.indptr[list[i]];
    total = warp_sum(total);
    if (lane_id() == 0) side.lengths[row] = total;
}

__device__ inline void write_members(const PackSide& side, i64 row, const i32* list, i32 n) {
    i32* out = side.out + side.offsets[row];
    for (i32 begin = 0; begin < n; begin += 32) {
        bool there = begin + lane_id() < n;
        i32 v = there ? list[begin + lane_id()] : 0;
        i64 from_member = side.indptr[v];
        i32 count = there ? (i32)(side.indptr[v + 1] - from_member) : 0;
        i32 before = sum_below(count);
        for (i32 k = 0; k < count && count <= FEW; k++) out[before + k] = side.members[from_member + k];
        for (u32 rest = warp_ballot(count > FEW); rest; rest &= rest - 1) {
            i32 lane = __ffs(rest) - 1, n_members = from(count, lane), at = from(before, lane);
            i64 first_member = from(from_member, lane);
            for (i32 k = lane_id(); k < n_members; k += 32) out[at + k] = side.members[first_member + k];
        }
        out += from(before + count, 31);
    }
}

extern "C" __global__ void pack() {
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    i64 n_warps = ((i64)gridDim.x * blockDim.x) >> 5;
    for (i64 at = warp; at < params.n_records; at += n_warps) {
        if (params.records[at].n_root == 0) continue;  // whose other fields nobody has written
        Record record = params.records[at];
        i64 row = params.until[at] - 1;
        const i32* base = params.values + record.at;
        const i32* root = base + record.n_base;
        if (params.writing) {
            write_members(params.base, row, base, record.n_base);
            write_members(params.root, row, root, record.n_root);
            continue;
        }
        count_members(params.base, row, base, record.n_base);
        count_members(params.root, row, root, record.n_root);
        u32 least = 0x7fffffff;
        for (i32 i = lane_id(); i < record.n_root; i += 32) least = (u32)root[i] < least ? (u32)root[i] : least;
        least = __reduce_min_sync(ALL_LANES, least);
        if (lane_id() == 0) params.first[row] = params.root.members[params.root.indptr[least]];
    }
}
