// Makes the bit rows of the large root vertices. A row has the base vertices that its root is adjacent to.
//
// Input: Params.root_*, first_hub, hub_words, and zeroed hub_bits. Output: hub_bits. Each warp takes a root, and its
// lanes take neighbours in turn. Neighbours may share a word, so the bits are set by atomics. Launch: any.
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/types.cuh"

__constant__ Params params;

extern "C" __global__ void hub_bits() {
    i64 warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    i64 n_warps = ((i64)gridDim.x * blockDim.x) >> 5;
    for (i64 v = params.first_hub + warp; v < params.n_roots; v += n_warps) {
        u32* row = (u32*)params.hub_bits + (v - params.first_hub) * params.hub_words;
        for (i64 e = params.root_indptr[v] + lane_id(); e < params.root_indptr[v + 1]; e += 32) {
            i32 u = params.root_indices[e];
            atomicOr(&row[u >> 5], 1u << (u & 31));
        }
    }
}
