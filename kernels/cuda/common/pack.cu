// Turns the records of a launch into two list columns, one per side, with the members that the vertices stand for.
//
// There are two launches, or three if the rows get another order than the records.
//
// Input: `params` (PackParams), which kernels/gpu/pack.py fills. Records with n_root == 0 are holes; the others are
// rows. Output of the first launch: the number of members of each side of a record, and how many rows and members come
// before each range of records. If keys are wanted, they grow with the members of the left side, and for equal ones with
// those of the right side. Then the host makes the order of the rows, and a launch adds up their ranges anew. Output of
// the last launch: the offsets of the lists, the members, ascending, and every row's id and first root. Each warp takes a
// range of records. Launch: up to 128 threads, and the same every time.
#include "common/biclique.cuh"
#include "common/sort_lists.cuh"
#include "common/types.cuh"
#include "common/warp.cuh"

struct PackSide {
    const i64* indptr;   // members of a vertex
    const i32* members;
    i64 alone;           // whether every vertex stands for one member, so that `indptr` need not be read
    const u64* hashes;   // of a vertex: the sum over its members
    i32* lengths;        // members of each record that is a row; the first launch writes them
    i64* offsets;        // offsets of the rows
    i32* out;
};

struct PackTotals {
    i64 rows, base, root;
};

struct PackParams {
    const Record* records;
    const i32* values;
    i64 n_records;
    PackSide base, root;
    PackTotals* before;  // totals before each range; the last entry has those of all
    u64* ended;          // warps of the first launch that have ended
    i32* first;          // first member of the row's smallest rank
    u64* ids;
    i64 root_is_left;
    i64 writing;         // whether this is the last launch
    void* keys;          // of each record, 0 for a hole; the first launch writes them, if wanted
    i64 key_step;        // more than any list of the right side has, if keys have 32 bits; 0 if they have 64
    const i32* order;    // the numbers of the n_records rows, in the order in which they are written; or none
    i32* missing;        // how many pairs of the row are no edges, which is behind its members; or none
};

__constant__ PackParams params;

// Vertices that stand for more members than this are copied by all lanes together.
#define FEW 8

// Walk the entries of the lanes' lists, one list behind the other, with one entry per lane, because most lists are
// shorter than a warp. Calls visit(there, whose, number, value): whether the lane has an entry, the lane whose list it
// is from, its position there, and its value.
template <class Visit>
__device__ inline void each_entry(i64 list, i32 n, const Visit& visit) {
    i32 before = sum_below(n), end = from(before + n, 31);
    for (i32 begin = 0; begin < end; begin += 32) {
        i32 i = begin + lane_id(), whose = 0;
        for (i32 step = 16; step > 0; step >>= 1) whose += from(before, whose + step) <= i ? step : 0;
        i32 number = i - from(before, whose);
        i64 at = from(list, whose) + number;
        visit(i < end, whose, number, i < end ? params.values[at] : 0);
    }
}

// Number of members of the lane's own list of n vertices.
__device__ inline i32 count_members(const PackSide& side, i64 list, i32 n) {
    if (side.alone) return n;
    i32 more = 0;
    each_entry(list, n, [&](bool there, i32 whose, i32 number, i32 v) {
        i32 others = there ? (i32)(side.indptr[v + 1] - side.indptr[v]) - 1 : 0;
        for (u32 rest = warp_ballot(others > 0); rest; rest &= rest - 1) {
            i32 lane = __ffs(rest) - 1, of_lane = from(others, lane);
            if (from(whose, lane) == lane_id()) more += of_lane;
        }
    });
    return n + more;
}

// Write the members of a list of n vertices, all lanes together.
__device__ inline void write_members(const PackSide& side, i64 offset, const i32* list, i32 n) {
    i32* out = side.out + offset;
    for (i32 begin = 0; begin < n; begin += 32) {
        bool there = begin + lane_id() < n;
        i32 v = there ? list[begin + lane_id()] : 0;
        i64 from_member = there ? side.indptr[v] : 0;
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

// Write the lists of 32 rows, each of n vertices and `length` members, ascending. Short lists whose vertices all stand
// for one member are taken together.
__device__ inline void write_lists(const PackSide& side, i64 offset, i64 list, i32 n, i32 length) {
    bool short_list = length == n && n <= 32;
    write_sorted(side.out, offset, short_list ? n : 0, [&](bool there, i32 whose, i32 number) {
        i64 at = from(list, whose) + number;
        if (!there) return 0;
        i32 v = params.values[at];
        return side.members[side.alone ? v : side.indptr[v]];
    });
    for (u32 rest = warp_ballot(!short_list); rest; rest &= rest - 1) {
        i32 lane = __ffs(rest) - 1;
        i64 to = from(offset, lane);
        write_members(side, to, params.values + from(list, lane), from(n, lane));
        sort_list(side.out + to, from(length, lane));
    }
}

// What is read of a list of vertices.
struct OfList {
    u64 hashes;  // sum of those of the vertices
    u32 least;   // smallest vertex
};

// Add an entry of `values`. Thread-level.
__device__ __forceinline__ void take(const PackSide& side, i64 at, OfList* known) {
    u32 v = (u32)params.values[at];
    known->hashes += side.hashes[v];
    known->least = v < known->least ? v : known->least;
}

// Read the lists of 32 rows, each of n vertices. Each short list has a lane of its own.
__device__ inline OfList read_lists(const PackSide& side, i64 list, i32 n) {
    const OfList nothing = {0, 0x7fffffff};
    OfList known = nothing;
    for (i32 i = 0; i < n && n <= 32; i++) take(side, list + i, &known);
    for (u32 rest = warp_ballot(n > 32); rest; rest &= rest - 1) {
        i32 lane = __ffs(rest) - 1, length = from(n, lane);
        i64 begin = from(list, lane);
        OfList of_lane = nothing;
        for (i32 i = lane_id(); i < length; i += 32) take(side, begin + i, &of_lane);
        of_lane = {warp_sum(of_lane.hashes), __reduce_min_sync(ALL_LANES, of_lane.least)};
        if (lane_id() == lane) known = of_lane;
    }
    return known;
}

// Write the id of each of 32 rows, and its first root: the first member of its smallest rank.
__device__ inline void write_numbers(bool is_row, i64 row, const Record& record) {
    OfList base = read_lists(params.base, record.at, record.n_base);
    OfList root = read_lists(params.root, record.at + record.n_base, record.n_root);
    if (!is_row) return;
    params.ids[row] = fingerprint_of(&params, base.hashes, root.hashes);
    if (params.missing) params.missing[row] = params.values[record.at + record.n_base + record.n_root];
    params.first[row] = params.root.members[params.root.alone ? root.least : params.root.indptr[root.least]];
}

// Write the rows of 32 records, one per lane, with so many members. `sum` has the totals before them.
__device__ inline void write_rows(const Record& record, i32 n_base, i32 n_root, const PackTotals& sum) {
    bool is_row = record.n_root != 0;
    i64 row = sum.rows + __popc(warp_ballot(is_row) & lanes_below());
    i64 base = sum.base + sum_below((i64)n_base), root = sum.root + sum_below((i64)n_root);
    if (is_row) {
        params.base.offsets[row + 1] = base + n_base;
        params.root.offsets[row + 1] = root + n_root;
    }
    write_lists(params.base, base, record.at, record.n_base, n_base);
    write_lists(params.root, root, record.at + record.n_base, record.n_root, n_root);
    write_numbers(is_row, row, record);
}

// Write the key of a record, by its number of members on each side. Thread-level.
__device__ __forceinline__ void write_key(i64 at, i32 n_base, i32 n_root) {
    u64 left = params.root_is_left ? n_root : n_base, right = params.root_is_left ? n_base : n_root;
    if (params.key_step) {
        ((u32*)params.keys)[at] = (u32)(left * params.key_step + right);
    } else {
        ((u64*)params.keys)[at] = left << 32 | right;
    }
}

// Turn the totals of the ranges into the totals before each range. The warp that ends last does this.
__device__ inline void add_up(i64 n_warps) {
    __threadfence();
    PackTotals sum = {0, 0, 0};
    for (i64 begin = 0; begin < n_warps; begin += 32) {
        i64 at = begin + lane_id();
        PackTotals own = {0, 0, 0};
        if (at < n_warps) {
            const volatile PackTotals* written = params.before + at;
            own = {written->rows, written->base, written->root};
        }
        PackTotals here = {sum.rows + sum_below(own.rows), sum.base + sum_below(own.base), sum.root + sum_below(own.root)};
        if (at < n_warps) params.before[at] = here;
        sum = {sum.rows + warp_sum(own.rows), sum.base + warp_sum(own.base), sum.root + warp_sum(own.root)};
    }
    if (lane_id() == 0) params.before[n_warps] = sum;
}

// Each warp takes a range of records, 32 at a time. Nine blocks are resident with 56 registers; sm_90 would take 66.
extern "C" __global__ void __launch_bounds__(128, 9) pack() {
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    i64 n_warps = ((i64)gridDim.x * blockDim.x) >> 5;
    i64 range = ((params.n_records + n_warps - 1) / n_warps + 31) & ~31ll;
    i64 end = (warp + 1) * range < params.n_records ? (warp + 1) * range : params.n_records;
    PackTotals sum = {0, 0, 0};
    if (params.writing) sum = params.before[warp];
    if (params.writing && warp == 0 && lane_id() == 0) params.base.offsets[0] = params.root.offsets[0] = 0;
    for (i64 begin = warp * range; begin < end; begin += 32) {
        i64 at = begin + lane_id();
        i64 number = params.order && at < end ? params.order[at] : at;
        bool is_row = at < end && params.records[number].n_root != 0;
        Record record = {};
        if (is_row) record = params.records[number];  // the other fields of a hole were never written
        i32 n_base, n_root;
        if (params.writing || params.order) {
            n_base = is_row ? params.base.lengths[number] : 0;
            n_root = is_row ? params.root.lengths[number] : 0;
            if (params.writing) write_rows(record, n_base, n_root, sum);
        } else {
            n_base = count_members(params.base, record.at, record.n_base);
            n_root = count_members(params.root, record.at + record.n_base, record.n_root);
            if (is_row) params.base.lengths[at] = n_base;
            if (is_row) params.root.lengths[at] = n_root;
            if (params.keys && at < end) write_key(at, n_base, n_root);
        }
        sum.rows += __popc(warp_ballot(is_row));
        sum.base += warp_sum((i64)n_base);
        sum.root += warp_sum((i64)n_root);
    }
    if (params.writing) return;
    if (lane_id() == 0) params.before[warp] = sum;
    __threadfence();
    if ((i64)draw(params.ended, 1) == n_warps - 1) add_up(n_warps);
}
