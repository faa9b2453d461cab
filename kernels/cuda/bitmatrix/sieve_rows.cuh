// Bit rows of a sieve: what they have of a child, R2 on them, and their bits without those that a child lacks.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/sieve_types.cuh"
#include "bitmatrix/worker.cuh"

// Members that row i of the frame has of the L at `at`. Thread-level.
__device__ __forceinline__ i32 overlap(const Sieve& v, const SieveFrame& f, i32 at, i32 i) {
    i32 n = 0;
    ROLLED for (i32 w = 0; w < f.words; w++) {
        u64 row = v.bits[f.rows + w * f.n_rows + i];
        ROLLED for (i32 k = 0; k < v.planes; k++) n += __popcll(row & v.bits[at + k * f.words + w]) << k;
    }
    return n;
}

// The bits that some plane of the L at `at` has in word w. Thread-level.
__device__ __forceinline__ u64 word_of(const Sieve& v, i32 at, i32 words, i32 w) {
    u64 x = 0;
    ROLLED for (i32 k = 0; k < v.planes; k++) x |= v.bits[at + k * words + w];
    return x;
}

// Members and base vertices of the L at `at`. Warp-level.
__device__ inline i32 members_at(const Sieve& v, i32 at, i32 words) {
    i32 n = 0;
    ROLLED for (i32 i = lane_id(); i < v.planes * words; i += 32) n += __popcll(v.bits[at + i]) << (i / words);
    return warp_sum(n);
}
__device__ inline i32 vertices_at(const Sieve& v, i32 at, i32 words) {
    i32 n = 0;
    ROLLED for (i32 w = lane_id(); w < words; w += 32) n += __popcll(word_of(v, at, words, w));
    return warp_sum(n);
}

// Each lane has a row of a matrix of 32 x 32 bits, and gets a column.
__device__ inline u32 transposed(u32 x) {
    u32 low = 0x0000ffffu;
    ROLLED for (i32 step = 16; step; step >>= 1, low ^= low << step) {
        // Blocks of `step` rows and columns beside the diagonal change places.
        u32 other = __shfl_xor_sync(ALL_LANES, x, step);
        x = lane_id() & step ? (x & ~low) | ((other >> step) & low) : (x & low) | ((other << step) & ~low);
    }
    return x;
}

// Of half a word of the L at `at`, keep the base vertices of a mask.
__device__ __forceinline__ void keep_half(Sieve& v, const SieveFrame& f, i32 at, i32 half, u32 kept) {
    ROLLED for (i32 k = lane_id(); k < v.planes; k += 32) {
        u32* word = (u32*)(v.bits + at + k * f.words) + half;
        *word &= kept;
    }
    __syncwarp();
}

// As drop_base, where rows have few bits: each row adds its members to the counters of its base vertices, of which there
// are n_base.
__device__ inline bool drop_sparse(Sieve& v, const SieveFrame& f, i32 at, i32 n_base, const i32* alive, i32 n, i32 need) {
    i32* members = (i32*)warp_shared().words;
    ROLLED for (i32 i = lane_id(); i < n_base; i += 32) members[i] = 0;
    __syncwarp();
    i32 before = 0;
    ROLLED for (i32 word = 0; word < f.words; word++) {
        u64 mask = word_of(v, at, f.words, word);
        if (mask == 0) continue;
        const u64* column = v.bits + f.rows + word * f.n_rows;
        ROLLED for (i32 k = lane_id(); k < n; k += 32) {
            i32 i = alive[k], weight = v.weight[f.list0 + i];
            ROLLED for (u64 x = column[i] & mask; x; x &= x - 1)
                atomicAdd(&members[before + __popcll(mask & low_bits(__ffsll((i64)x) - 1))], weight);
        }
        before += __popcll(mask);
    }
    __syncwarp();
    bool dropped = false;
    before = 0;
    ROLLED for (i32 half = 0; half < 2 * f.words; half++) {
        u32 x = (u32)(word_of(v, at, f.words, half >> 1) >> (half & 1 ? 32 : 0));
        if (x == 0) continue;
        bool there = (x >> lane_id()) & 1;
        u32 kept = warp_ballot(there && members[before + __popc(x & lanes_below())] >= need);
        before += __popc(x);
        if (kept == x) continue;
        dropped = true;
        keep_half(v, f, at, half, kept);
    }
    return dropped;
}

// R2: drop base vertices of the child at `at` that occur in candidates with fewer than `need` members. `alive` lists the n
// candidates. Returns whether there were any. Warp-level: a lane has a base vertex, in turns a row.
__device__ inline bool drop_base(Sieve& v, const SieveFrame& f, i32 at, const i32* alive, i32 n, i32 need) {
    bool dropped = false;
    ROLLED for (i32 half = 0; half < 2 * f.words; half++) {
        u32 x = (u32)(word_of(v, at, f.words, half >> 1) >> (half & 1 ? 32 : 0));
        if (x == 0) continue;
        const u64* column = v.bits + f.rows + (half >> 1) * f.n_rows;
        i32 members = 0;
        ROLLED for (i32 chunk = 0; chunk < n; chunk += 32) {
            bool there = chunk + lane_id() < n;
            i32 i = there ? alive[chunk + lane_id()] : 0;
            u32 row = there ? (u32)(column[i] >> (half & 1 ? 32 : 0)) & x : 0;
            i32 weight = there ? v.weight[f.list0 + i] : 0;
            if (!warp_any(weight > 1)) {
                members += __popc(transposed(row));
                continue;
            }
            ROLLED for (u32 rest = warp_ballot(row != 0); rest; rest &= rest - 1) {
                i32 lane = __ffs(rest) - 1;
                u32 other = from(row, lane);
                i32 its = from(weight, lane);
                if ((other >> lane_id()) & 1) members += its;
            }
        }
        u32 kept = x & warp_ballot(members >= need);
        if (kept == x) continue;
        dropped = true;
        keep_half(v, f, at, half, kept);
    }
    return dropped;
}

// How the bits of a mask move to the low end of a word (Warren, Hacker's Delight, 2nd ed., section 7-4: compress).
struct Squeeze {
    u64 mask, move[6];
};

__device__ inline Squeeze squeeze_of(u64 mask) {
    Squeeze q;
    q.mask = mask;
    u64 zeros = ~mask << 1;
#pragma unroll
    for (i32 i = 0; i < 6; i++) {
        u64 odd = zeros;  // bit b: whether the number of zeros below b is odd
#pragma unroll
        for (i32 step = 1; step < 64; step <<= 1) odd ^= odd << step;
        q.move[i] = odd & mask;
        mask = (mask ^ q.move[i]) | (q.move[i] >> (1 << i));
        zeros &= ~odd;
    }
    return q;
}

__device__ __forceinline__ u64 squeezed(const Squeeze& q, u64 x) {
    x &= q.mask;
#pragma unroll
    for (i32 i = 0; i < 6; i++) {
        u64 moved = x & q.move[i];
        x = (x ^ moved) | (moved >> (1 << i));
    }
    return x;
}

// Where the bits of a row go when the L at `at` is packed.
template <class Source, class Target>
__device__ inline void pack_rows(const Sieve& v, i32 at, i32 words, i32 n, const Source& source, const Target& target) {
    // Word after word of L, every lane squeezes the word of its own rows, and adds the bits behind those before.
    i32 done = 0;
    ROLLED for (i32 w = 0; w < words; w++) {
        u64 mask = word_of(v, at, words, w);
        i32 bits = __popcll(mask);
        if (bits == 0) continue;
        Squeeze q = squeeze_of(mask);
        i32 to = done >> 6, shift = done & 63;
        ROLLED for (i32 i = lane_id(); i < n; i += 32) {
            u64 x = squeezed(q, source(i, w));
            if (shift == 0)
                *target(i, to) = x;
            else
                *target(i, to) |= x << shift;
            if (shift + bits > 64) *target(i, to + 1) = x >> (64 - shift);
        }
        done += bits;
    }
    __syncwarp();
}
