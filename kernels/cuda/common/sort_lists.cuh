// Sorts lists of different members, ascending. Every function is called by all 32 lanes together.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"

// Longest list that is sorted in registers: so many entries per lane.
#define IN_REGISTERS 4
#define MOST_IN_REGISTERS (32 * IN_REGISTERS)

// Write the lanes' lists, each of n <= 32 entries, in order. `load(whose, number)` is an entry of a lane's list. Whole
// lists are taken together as long as they have at most 32 entries. Each lane has one of these, and its place is the
// number of smaller entries in its list.
template <class Load>
__device__ inline void write_sorted(i32* out, i64 offset, i32 n, const Load& load) {
    i32 before = sum_below(n), until = before + n, end = from(until, 31);
    for (i32 begin = 0; begin < end;) {
        i32 stop = from(until, __popc(warp_ballot(until <= begin + 32)) - 1);
        i32 i = begin + lane_id(), whose = 0;
        for (i32 step = 16; step > 0; step >>= 1) whose += from(before, whose + step) <= i ? step : 0;
        i32 first = from(before, whose), length = from(n, whose);
        if (i >= stop) length = 0;
        i64 to = from(offset, whose);
        i32 own = load(i < stop, whose, i - first), place = 0;
        i32 longest = (i32)__reduce_max_sync(ALL_LANES, (u32)length);
        ROLLED for (i32 k = 0; k < longest; k++) {
            i32 other = from(own, first - begin + k);
            place += k < length && other < own;
        }
        if (i < stop) out[to + place] = own;
        begin = stop;
    }
}

// Sort a list of at most MOST_IN_REGISTERS entries in place: each lane counts the entries that are smaller than its own.
__device__ inline void sort_in_registers(i32* list, i32 n) {
    i32 own[IN_REGISTERS], place[IN_REGISTERS];
#pragma unroll
    for (i32 j = 0; j < IN_REGISTERS; j++) {
        i32 i = 32 * j + lane_id();
        own[j] = i < n ? list[i] : 0x7fffffff;
        place[j] = 0;
    }
#pragma unroll
    for (i32 j = 0; j < IN_REGISTERS; j++) {
        ROLLED for (i32 k = 0; k < 32 && 32 * j + k < n; k++) {
            i32 other = from(own[j], k);
#pragma unroll
            for (i32 m = 0; m < IN_REGISTERS; m++) place[m] += other < own[m];
        }
    }
    __syncwarp();  // all entries are read before the first is written
#pragma unroll
    for (i32 j = 0; j < IN_REGISTERS; j++) {
        if (32 * j + lane_id() < n) list[place[j]] = own[j];
    }
}

// Sort a list of any length in place, by a bitonic network all of whose comparisons put the smaller entry first. So
// entries beyond the end, which would be the largest, never move.
__device__ inline void sort_in_memory(i32* list, i32 n) {
    i32 size = 1;
    while (size < n) size <<= 1;
    for (i32 block = 2; block <= size && block > 0; block <<= 1) {
        for (i32 step = block >> 1; step > 0; step >>= 1) {
            // the first step of a block compares an entry with its mirror image, and the later ones with a neighbour
            i32 flip = step == block >> 1 ? block - 1 : step;
            ROLLED for (i32 k = lane_id(); k < size >> 1; k += 32) {
                i32 low = (k & ~(step - 1)) << 1 | (k & (step - 1)), high = low ^ flip;
                if (high >= n) continue;
                i32 a = list[low], b = list[high];
                if (a > b) {
                    list[low] = b;
                    list[high] = a;
                }
            }
            __syncwarp();
        }
    }
}

// Sort a list in place.
__device__ inline void sort_list(i32* list, i32 n) {
    __syncwarp();  // it was written by all lanes
    if (n <= MOST_IN_REGISTERS) sort_in_registers(list, n);
    else sort_in_memory(list, n);
}
