// Bulk copies and tile copies whose operands obey or break a condition. Each kernel runs in one warp; `n` has numbers
// from the host.
// `python -m experiments.conditions` compiles it for sm_90a, which `tensormap.replace` needs.

#include "../tests/kernels/cluster.cuh"

#define BYTES 16384
#define KERNEL(NAME) extern "C" __global__ void __launch_bounds__(32) NAME
#define TILE __shared__ alignas(1024) u32 tile[BYTES / 4]; __shared__ alignas(8) u64 bar
// `n` has the offset of the shared address, the bytes, up to five coordinates, and up to three im2col offsets.
#define TO (shared_address(tile) + n[0])
#define BAR shared_address(&bar)

// Fills the tile with a pattern, and makes the barrier expect `bytes` bytes.
__device__ void begin(u32* tile, u64* bar, u32 bytes)
{
    for (u32 i = 4 * threadIdx.x; i < BYTES / 4; i += 128)
        reinterpret_cast<uint4*>(tile)[i / 4] = {0xEEEEEEEE - i, 0xEEEEEEED - i, 0xEEEEEEEC - i, 0xEEEEEEEB - i};
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(bar)) : "memory");
        asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], %1; }" ::"r"(shared_address(bar)),
                     "r"(bytes) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
}

// Waits at most 200 million clocks for the bytes. Then stores the tile, and a word that is 1 if all bytes have arrived.
__device__ void end(const u32* tile, u64* bar, u32* out)
{
    const long long start = clock64();
    u32 done = 0;
    do {
        asm volatile("{ .reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(shared_address(bar)) : "memory");
    } while (!done && clock64() - start < 200000000ll);
    __syncwarp();
    for (int i = threadIdx.x; i < BYTES / 16; i += 32) reinterpret_cast<uint4*>(out)[i] = reinterpret_cast<const uint4*>(tile)[i];
    if (threadIdx.x == 0) out[BYTES / 4] = done;
}

__device__ void finish() { asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory"); }

#define BULK "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
#define TENSOR(DIM, MODE) "cp.async.bulk.tensor." DIM ".shared::cluster.global" MODE ".mbarrier::complete_tx::bytes [%0], [%1, "
#define C1 "r"(n[2])
#define C2 C1, "r"(n[3])
#define C3 C2, "r"(n[4])
#define C4 C3, "r"(n[5])
#define C5 C4, "r"(n[6])
#define O1 "h"(static_cast<short>(n[7]))
#define O2 O1, "h"(static_cast<short>(n[8]))
#define O3 O2, "h"(static_cast<short>(n[9]))

#define LOAD(NAME, DIM, MODE, OPERANDS, ...)                                                               \
    KERNEL(NAME)(const __grid_constant__ Map map, u32* out, const int* n)                                  \
    {                                                                                                      \
        TILE;                                                                                              \
        begin(tile, &bar, n[1]);                                                                           \
        if (threadIdx.x == 0)                                                                              \
            asm volatile(TENSOR(DIM, MODE) OPERANDS ::"r"(TO), "l"(&map), "r"(BAR), __VA_ARGS__ : "memory"); \
        end(tile, &bar, out);                                                                              \
    }
LOAD(load_2d, "2d", "", "{%3, %4}], [%2];", C2)
LOAD(load_3d, "3d", "", "{%3, %4, %5}], [%2];", C3)
LOAD(load_4d, "4d", "", "{%3, %4, %5, %6}], [%2];", C4)
LOAD(load_5d, "5d", "", "{%3, %4, %5, %6, %7}], [%2];", C5)
LOAD(im2col_3d, "3d", ".im2col", "{%3, %4, %5}], [%2], {%6};", C3, O1)
LOAD(im2col_4d, "4d", ".im2col", "{%3, %4, %5, %6}], [%2], {%7, %8};", C4, O2)
LOAD(im2col_5d, "5d", ".im2col", "{%3, %4, %5, %6, %7}], [%2], {%8, %9, %10};", C5, O3)

#define STORE(NAME, COPY, OPERANDS, ...)                                                            \
    KERNEL(NAME)(const __grid_constant__ Map map, u32*, const int* n)                               \
    {                                                                                               \
        TILE;                                                                                       \
        begin(tile, &bar, 0);                                                                       \
        if (threadIdx.x == 0)                                                                       \
            asm volatile(COPY ".bulk_group [%0, " OPERANDS "], [%1];" ::"l"(&map), "r"(TO), __VA_ARGS__ : "memory"); \
        finish();                                                                                   \
    }
STORE(store_2d, "cp.async.bulk.tensor.2d.global.shared::cta", "{%2, %3}", C2)
STORE(reduce_2d, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add", "{%2, %3}", C2)
STORE(store_im2col, "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs", "{%2, %3, %4, %5}", C4)

// Copies `n[1]` bytes from `n[2]` bytes into an array. The barrier's address is shifted by `n[3]` bytes.
KERNEL(bulk_load)(const char* in, u32* out, const int* n)
{
    TILE;
    begin(tile, &bar, n[1]);
    if (threadIdx.x == 0) asm volatile(BULK ::"r"(TO), "l"(in + n[2]), "r"(n[1]), "r"(BAR + n[3]) : "memory");
    end(tile, &bar, out);
}

#define BULK_STORE(NAME, COPY, SUFFIX)                                                                \
    KERNEL(NAME)(char* array, u32*, const int* n)                                                     \
    {                                                                                                 \
        TILE;                                                                                         \
        begin(tile, &bar, 0);                                                                         \
        if (threadIdx.x == 0)                                                                         \
            asm volatile(COPY ".global.shared::cta.bulk_group" SUFFIX " [%0], [%1], %2;" ::"l"(array + n[2]), \
                         "r"(TO), "r"(n[1]) : "memory");                                              \
        finish();                                                                                     \
    }
BULK_STORE(bulk_store, "cp.async.bulk", "")
BULK_STORE(bulk_reduce, "cp.reduce.async.bulk", ".add.u32")
KERNEL(bulk_prefetch)(char* array, u32*, const int* n)
{
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(array + n[2]), "r"(n[1]) : "memory");
}

#define REPLACE(FIELD, TYPE, OPERANDS, ...) \
    asm volatile("tensormap.replace.tile." FIELD ".shared::cta.b1024." TYPE " [%0], " OPERANDS ";" ::"r"(TO_MAP), __VA_ARGS__ : "memory")
#define TO_MAP shared_address(copy)
#define WORD "r"(static_cast<u32>(value))
#define FIELD(INDEX, ...) if (field == INDEX) REPLACE(__VA_ARGS__)
#define FIELD_OF(INDEX, NAME) FIELD(INDEX, NAME, "b32", "0, %1", WORD); FIELD(INDEX + 1, NAME, "b32", "1, %1", WORD)
#define CONSTANT(INDEX, NAME, N) if (field == INDEX && value == N) REPLACE(NAME, "b32", "%1", "n"(N))

// Replaces a field of a tensor map in shared memory, copies the map to `workspace`, and loads a tile with it. Fields:
// 0 address of `other` + value, 1 rank, 2 and 3 box, 4 and 5 extents, 6 row stride, 7 and 8 element strides,
// 9 element type, 10 interleaving, 11 swizzle, 12 fill.
KERNEL(replace_2d)(const __grid_constant__ Map map, u32* out, const int* n, const char* other, u64* workspace)
{
    TILE;
    __shared__ alignas(128) u64 copy[16];
    begin(tile, &bar, n[1]);
    if (threadIdx.x < 16) copy[threadIdx.x] = map.opaque[threadIdx.x];
    __syncwarp();
    const int field = n[4];
    const u64 value = static_cast<u32>(n[5]);
    if (threadIdx.x == 0) {
        FIELD(0, "global_address", "b64", "%1", "l"(other + value));
        FIELD(1, "rank", "b32", "%1", WORD);
        FIELD_OF(2, "box_dim");
        FIELD_OF(4, "global_dim");
        FIELD(6, "global_stride", "b64", "0, %1", "l"(value));
        FIELD_OF(7, "element_stride");
        CONSTANT(9, "elemtype", 0); CONSTANT(9, "elemtype", 1); CONSTANT(9, "elemtype", 4); CONSTANT(9, "elemtype", 7);
        CONSTANT(10, "interleave_layout", 0); CONSTANT(10, "interleave_layout", 1);
        CONSTANT(11, "swizzle_mode", 0); CONSTANT(11, "swizzle_mode", 1);
        CONSTANT(11, "swizzle_mode", 2); CONSTANT(11, "swizzle_mode", 3);
        CONSTANT(12, "fill_mode", 0); CONSTANT(12, "fill_mode", 1);
    }
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(
                     workspace), "r"(TO_MAP) : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(workspace) : "memory");
    if (threadIdx.x == 0)
        asm volatile(TENSOR("2d", "") "{%3, %4}], [%2];" ::"r"(TO), "l"(workspace), "r"(BAR), C2 : "memory");
    end(tile, &bar, out);
    if (threadIdx.x < 16) reinterpret_cast<u64*>(out)[BYTES / 8 + 1 + threadIdx.x] = copy[threadIdx.x];
}
