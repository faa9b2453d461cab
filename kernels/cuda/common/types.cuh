// Types that all kernels share, and the records of their output, which the host reads.
#pragma once

typedef int i32;
typedef long long i64;
typedef unsigned int u32;
typedef unsigned long long u64;

#define ALL_LANES 0xffffffffu
// For loops of unknown length, which the compiler would unroll by four. The warps of a multiprocessor are in different
// places of the kernel. When the instructions in use exceed the cache, warps wait for instructions half of the time.
#define ROLLED _Pragma("unroll 1")
#define NOBODY (-1)

struct Record {  // one biclique, as (ranks, base vertices), in `values`
    i64 at;
    i32 n_base;
    i32 n_root;  // 0: a hole
};

struct SizeSlot {  // a slot of a hash table: bicliques of one size
    u64 key;       // base members << 32 | root members; 0: free
    u64 count;
};
