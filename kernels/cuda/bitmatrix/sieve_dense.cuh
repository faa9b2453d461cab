// Opens a problem of a sieve by bit rows of roots, where that takes less than a walk over its wedges. Warp-level.
//
// L is a bit row over all base vertices, or several where these have weights. A lane takes a word of it. Roots with few
// neighbours have no bit rows, and their neighbours are looked up in L.
#pragma once
#include "common/types.cuh"
#include "common/warp.cuh"
#include "bitmatrix/bound.cuh"
#include "bitmatrix/lists.cuh"
#include "bitmatrix/sieve_rows.cuh"
#include "bitmatrix/sieve_table.cuh"
#include "bitmatrix/sieve_types.cuh"
#include "bitmatrix/types.cuh"
#include "bitmatrix/worker.cuh"

#define COUNTER_BITS 7  // of a base vertex, for the members of the candidates that have it
#define ROWS_AHEAD 4    // bit rows that are read at the same time

// Words of 64 base vertices of the graph, and bits of L by plane, behind the rows of the frame that is opened.
__device__ __forceinline__ i32 whole_words() { return (i32)((params.hub_words + 1) / 2); }
__device__ __forceinline__ i32 whole_at(i32 planes) { return SIEVE_WORDS - planes * whole_words(); }
__device__ __forceinline__ u32* whole_of(const Worker& w, i32 planes, i32 plane) {
    return (u32*)(sieve_of(w).bits + whole_at(planes) + plane * whole_words());
}

// Whether to walk so many wedges takes longer than to read the bit rows of all roots, and L has room.
__device__ inline bool is_dense(i64 wedges) {
    i64 words = params.hub_words;
    return params.hub_bits != 0 && params.n_roots * words < wedges && 32 * words < SIEVE_WORDS;
}

// Write L as bits. Sets the number of planes.
__device__ inline void write_whole(const Worker& w, Opening* o) {
    u32 weights = 0;
    ROLLED for (i32 i = lane_id(); i < o->n_base; i += 32) weights |= (u32)weight_of(o->base[i]);
    i32 planes = 32 - __clz((i32)__reduce_or_sync(ALL_LANES, weights));
    o->planes = planes;
    u32* bits = whole_of(w, planes, 0);
    ROLLED for (i32 i = lane_id(); i < 2 * planes * whole_words(); i += 32) bits[i] = 0;
    __syncwarp();
    ROLLED for (i32 i = lane_id(); i < o->n_base; i += 32) {
        i32 u = o->base[i], weight = weight_of(u);
        ROLLED for (i32 k = 0; k < planes; k++)
            if ((weight >> k) & 1) atomicOr(whole_of(w, planes, k) + (u >> 5), 1u << (u & 31));
    }
    __syncwarp();
}

// Add what the roots [begin, end) have of L.
__device__ inline void weigh_rows(const Worker& w, const Opening& o, i32 begin, i32 end) {
    Scratch* s = w.s;
    i32 planes = o.planes, few = end < params.first_hub ? end : (i32)params.first_hub;
    ROLLED for (i32 r = begin + lane_id(); r < few; r += 32) {
        i32 n = 0;
        ROLLED for (i64 e = params.root_indptr[r]; e < params.root_indptr[r + 1]; e++) {
            i32 u = params.root_indices[e];
            ROLLED for (i32 k = 0; k < planes; k++) n += (i32)has_bit(whole_of(w, planes, k), u) << k;
        }
        add_to(s, o, r, n);
    }
    ROLLED for (i32 first = begin > few ? begin : few; first < end; first += ROWS_AHEAD) {
        i32 n[ROWS_AHEAD] = {};
        const u32* row = bit_row(first);
        ROLLED for (i32 i = lane_id(); i < params.hub_words; i += 32) {
            u32 x[ROWS_AHEAD];
#pragma unroll
            for (i32 t = 0; t < ROWS_AHEAD; t++) x[t] = first + t < end ? row[t * params.hub_words + i] : 0;
            ROLLED for (i32 k = 0; k < planes; k++) {
                u32 l = whole_of(w, planes, k)[i];
#pragma unroll
                for (i32 t = 0; t < ROWS_AHEAD; t++) n[t] += __popc(x[t] & l) << k;
            }
        }
#pragma unroll
        for (i32 t = 0; t < ROWS_AHEAD; t++) {
            i32 all = warp_sum(n[t]);
            if (lane_id() == 0 && first + t < end) add_to(s, o, first + t, all);
        }
    }
    __syncwarp();
}

// List the roots that are inside and hold at least o.least in s->raw_row. Returns their number.
__device__ inline i32 list_inside(Scratch* s, const Opening& o) {
    i32 n = 0;
    ROLLED for (i32 chunk = 0; chunk < o.n_roots; chunk += 32) {
        i32 slot = chunk + lane_id() < o.n_roots ? s->slot[chunk + lane_id()] : NOBODY;
        bool holds = slot != NOBODY && is_inside(s, slot) && count_of(s, o, slot) >= o.least;
        u32 all = warp_ballot(holds);
        if (holds) s->raw_row[n + __popc(all & lanes_below())] = slot;
        n += __popc(all);
    }
    __syncwarp();
    return n;
}

// Of word i of all base vertices, those that occur in roots of s->raw_row with at least `need` members. Thread-level.
__device__ inline u32 supported(const Scratch* s, i32 n, i32 i, i32 need) {
    u32 counter[COUNTER_BITS] = {}, more = 0;  // bit u of all of them: members beside base vertex u
    ROLLED for (i32 first = 0; first < n; first += ROWS_AHEAD) {
        u32 x[ROWS_AHEAD];
        i32 weight[ROWS_AHEAD];
#pragma unroll
        for (i32 t = 0; t < ROWS_AHEAD; t++) {
            i32 root = s->raw_row[first + t < n ? first + t : first];
            const u32* row = bit_row(root);
            weight[t] = first + t < n ? params.root_weight[root] : 0;
            x[t] = row == 0 ? ~0u : i < params.hub_words ? row[i] : 0;  // a root without a bit row may have all
        }
#pragma unroll
        for (i32 t = 0; t < ROWS_AHEAD; t++) {
            ROLLED for (i32 bit = 0; weight[t] >> bit; bit++) {
                u32 carry = (weight[t] >> bit) & 1 ? x[t] : 0;
#pragma unroll
                for (i32 k = 0; k < COUNTER_BITS; k++) {
                    if (k < bit) continue;
                    u32 both = counter[k] & carry;
                    counter[k] ^= carry;
                    carry = both;
                }
                more |= carry;
            }
        }
    }
    u32 enough = ~0u;
#pragma unroll
    for (i32 k = 0; k < COUNTER_BITS; k++) enough = (need >> k) & 1 ? counter[k] & enough : counter[k] | enough;
    return enough | more;
}

// R2 by bit rows. The base vertices that stay are written to s->list. Returns the members that were dropped, or NOBODY
// when the list is too short. The counts of roots are those of the L before.
__device__ inline i32 drop_words(Worker& w, Opening* o, bool drops) {
    Scratch* s = w.s;
    i32 planes = o->planes, need = fewest_roots(w, o->size) - o->unseen, kept = 0, dropped = 0;
    bool counts = drops && need > 0 && need >> COUNTER_BITS == 0;
    i32 n = counts ? list_inside(s, *o) : 0;
    ROLLED for (i32 chunk = 0; chunk < params.hub_words; chunk += 32) {
        i32 i = chunk + lane_id();
        u32 stays = counts ? supported(s, n, i, need) : ~0u, x = 0;
        ROLLED for (i32 k = 0; k < planes && i < params.hub_words; k++) {
            u32* word = whole_of(w, planes, k) + i;
            dropped += __popc(*word & ~stays) << k;
            *word &= stays;
            x |= *word;
        }
        i32 at = kept + sum_below(__popc(x));
        kept = from(at + __popc(x), 31);
        if (kept > LIST_CAP) return NOBODY;
        ROLLED for (; x; x &= x - 1) s->list[at++] = 32 * i + __ffs(x) - 1;
    }
    __syncwarp();
    o->base = s->list;
    o->n_base = kept;
    return warp_sum(dropped);
}

// Write the bit rows of the frame.
__device__ inline void write_packed(Worker& w, const Opening& o, const SieveFrame& f) {
    Sieve& v = sieve_of(w);
    i32 rows = f.n_rows, words = (i32)params.hub_words;
    if (lane_id() == 0) v.planes = o.planes;  // of L as it is to be packed
    __syncwarp();
    pack_rows(v, whole_at(o.planes), whole_words(), rows,
              [&](i32 r, i32 word) {
                  const u32* row = bit_row(v.row[r]);
                  if (row == 0) return 0ull;
                  u32 high = 2 * word + 1 < words ? row[2 * word + 1] : 0;
                  return (u64)high << 32 | row[2 * word];
              },
              [&](i32 r, i32 word) { return &v.bits[f.rows + word * rows + r]; });
    ROLLED for (i32 r = lane_id(); r < rows; r += 32) {
        i32 root = v.row[r];
        if (bit_row(root) != 0) continue;
        ROLLED for (i64 e = params.root_indptr[root]; e < params.root_indptr[root + 1]; e++) {
            i32 at = lower_bound(o.base, o.n_base, params.root_indices[e]);
            if (at < o.n_base && o.base[at] == params.root_indices[e]) v.bits[f.rows + (at >> 6) * rows + r] |= 1ull << (at & 63);
        }
    }
    __syncwarp();
}
