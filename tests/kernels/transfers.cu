// One warp, one kind of transfer each: bulk copies, tiles, another block's shared memory, local memory.

#include "cluster.cuh"

__device__ void begin(u64* bar, u32 bytes)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.proxy.async.shared::cta;" ::"r"(shared_address(bar)) : "memory");
    asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], %1; }" ::"r"(shared_address(bar)),
                 "r"(bytes) : "memory");
}

// Gives up after 0.1 s, so that no wrong count of bytes hangs a device.
__device__ void wait(u64* bar)
{
    const long long start = clock64();
    for (u32 done = 0; !done;) {
        asm volatile("{ .reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(shared_address(bar)) : "memory");
        if (!done && clock64() - start > 200000000ll) __trap();
    }
}

__device__ void finish() { asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory"); }

// A load, a reduction or a copy within shared memory counts per lane, a store per distinct set of operands.
// Lanes below `lanes` copy `bytes` each, from `places` places of `in` 1,024 bytes apart.
extern "C" __global__ void bulk_load(const char* in, int from, int to, int bytes, int lanes, int places)
{
    __shared__ alignas(1024) char tile[4096];
    __shared__ alignas(8) u64 bar;
    const int lane = threadIdx.x;
    if (lane == 0) begin(&bar, bytes * lanes);
    __syncwarp();
    if (lane < lanes)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         shared_address(tile + to)), "l"(in + from + lane % places * 1024), "r"(bytes),
                     "r"(shared_address(&bar)) : "memory");
    wait(&bar);
}

extern "C" __global__ void bulk_store(char* out, int to, int from, int bytes, int lanes, int places)
{
    __shared__ alignas(1024) int tile[1024];
    const int lane = threadIdx.x;
    for (int i = lane; i < 1024; i += 32) tile[i] = 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (lane < lanes)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + to + lane % places * 1024),
                     "r"(shared_address(reinterpret_cast<char*>(tile) + from)), "r"(bytes) : "memory");
    finish();
}

extern "C" __global__ void bulk_reduce(char* out, int to, int from, int bytes, int lanes, int places)
{
    __shared__ alignas(1024) int tile[1024];
    const int lane = threadIdx.x;
    for (int i = lane; i < 1024; i += 32) tile[i] = 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (lane < lanes)
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(
                         out + to + lane % places * 1024), "r"(shared_address(reinterpret_cast<char*>(tile) + from)),
                     "r"(bytes) : "memory");
    finish();
}

// Copies within shared memory, which needs clusters; the global array stays as it is.
extern "C" __global__ void __cluster_dims__(1, 1, 1) shared_copy(char*, int to, int from, int bytes, int lanes, int)
{
    __shared__ alignas(1024) int source[1024], target[1024];
    __shared__ alignas(8) u64 bar;
    const int lane = threadIdx.x;
    for (int i = lane; i < 1024; i += 32) source[i] = 1;
    if (lane == 0) begin(&bar, bytes * lanes);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (lane < lanes)
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         shared_address(reinterpret_cast<char*>(target) + to)),
                     "r"(shared_address(reinterpret_cast<char*>(source) + from)), "r"(bytes), "r"(shared_address(&bar))
                     : "memory");
    wait(&bar);
}

extern "C" __global__ void tile_load(const __grid_constant__ Map map, int x, int y, int bytes, int lanes)
{
    __shared__ alignas(1024) char tile[16384];
    __shared__ alignas(8) u64 bar;
    if (threadIdx.x == 0) begin(&bar, bytes * lanes);
    __syncwarp();
    if (threadIdx.x < lanes)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(shared_address(tile)), "l"(&map), "r"(x), "r"(y), "r"(shared_address(&bar)) : "memory");
    wait(&bar);
}

#define TO_TILE(NAME, COPY)                                                                                \
    extern "C" __global__ void NAME(const __grid_constant__ Map map, int x, int y, int, int lanes)         \
    {                                                                                                      \
        __shared__ alignas(1024) int tile[4096];                                                           \
        for (int i = threadIdx.x; i < 4096; i += 32) tile[i] = 1;                                          \
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                                       \
        __syncwarp();                                                                                      \
        if (threadIdx.x < lanes)                                                                           \
            asm volatile(COPY ".bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x), "r"(y),             \
                         "r"(shared_address(tile)) : "memory");                                            \
        finish();                                                                                          \
    }
TO_TILE(tile_store, "cp.async.bulk.tensor.2d.global.shared::cta")
TO_TILE(tile_reduce, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add")

// Block 0 of a cluster copies to each block of a mask, which waits for the bytes.
extern "C" __global__ void __cluster_dims__(4, 1, 1) multicast_load(const char* in, int from, int to, int bytes, int mask)
{
    __shared__ alignas(1024) char tile[4096];
    __shared__ alignas(8) u64 bar;
    if (threadIdx.x == 0) begin(&bar, bytes);
    meet();
    if (rank() == 0 && threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                     ::"r"(shared_address(tile + to)), "l"(in + from), "r"(bytes), "r"(shared_address(&bar)),
                     "h"(static_cast<unsigned short>(mask)) : "memory");
    if (mask >> rank() & 1) wait(&bar);
    meet();
}

extern "C" __global__ void __cluster_dims__(4, 1, 1) multicast_tile(const __grid_constant__ Map map, int x, int y, int bytes, int mask)
{
    __shared__ alignas(1024) char tile[16384];
    __shared__ alignas(8) u64 bar;
    if (threadIdx.x == 0) begin(&bar, bytes);
    meet();
    if (rank() == 0 && threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                     ::"r"(shared_address(tile)), "l"(&map), "r"(x), "r"(y), "r"(shared_address(&bar)),
                     "h"(static_cast<unsigned short>(mask)) : "memory");
    if (mask >> rank() & 1) wait(&bar);
    meet();
}

// Block 0 of a cluster accesses block 1, at a place for each lane.
#define REMOTE(NAME, WORDS, CODE)                                                                 \
    extern "C" __global__ void __cluster_dims__(2, 1, 1) NAME(int* out, const int* index)         \
    {                                                                                             \
        __shared__ alignas(1024) int words[8192];                                                 \
        for (int i = threadIdx.x; i < 8192; i += 32) words[i] = i;                                \
        const int at = index[threadIdx.x];                                                        \
        int v = 1, w = 2, x = 3, y = 4;                                                           \
        meet();                                                                                   \
        if (rank() == 0) {                                                                        \
            const u32 place = mapped(words + WORDS * at, 1);                                      \
            CODE;                                                                                 \
            out[threadIdx.x] = v + w + x + y;                                                     \
        }                                                                                         \
        meet();                                                                                   \
    }
REMOTE(remote_load, 1, asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(place) : "memory"))
REMOTE(remote_load_quad, 4, asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                                         : "=r"(v), "=r"(w), "=r"(x), "=r"(y) : "r"(place) : "memory"))
REMOTE(remote_store, 1, asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(place), "r"(at) : "memory"))
REMOTE(remote_store_pair, 2, asm volatile("st.shared::cluster.v2.u32 [%0], {%1, %1};" ::"r"(place), "r"(at) : "memory"))
REMOTE(remote_atom, 1, asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;" : "=r"(v) : "r"(place), "r"(at) : "memory"))
REMOTE(remote_red, 1, asm volatile("red.shared::cluster.add.u32 [%0], %1;" ::"r"(place), "r"(at) : "memory"))

// As above with asynchronous stores, for which block 1 waits.
extern "C" __global__ void __cluster_dims__(2, 1, 1) remote_async(int* out, const int* index)
{
    __shared__ alignas(1024) int words[8192];
    __shared__ alignas(8) u64 bar;
    if (threadIdx.x == 0) begin(&bar, 128);
    const int at = index[threadIdx.x];
    meet();
    if (rank() == 0)
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(mapped(words + at, 1)),
                     "r"(at), "r"(mapped(&bar, 1)) : "memory");
    else {
        wait(&bar);
        out[threadIdx.x] = words[at];
    }
    meet();
}

extern "C" __global__ void local_words(int* out, const int* index)
{
    int words[64];
    for (int i = 0; i < 64; i++) words[i] = index[i % 32];
    words[index[threadIdx.x] % 64] = 7;
    out[threadIdx.x] = words[index[(threadIdx.x + 1) % 32] % 64];
}
