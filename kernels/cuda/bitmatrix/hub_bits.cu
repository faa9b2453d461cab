// Bit rows of the large root vertices: which base vertices each is adjacent to.
//
// Input: Params.root_*, first_hub, hub_words; hub_bits zeroed. Output: hub_bits. A warp a root; lanes take
// neighbours in turn, which may share a word, hence the atomic. Launch: any.
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
