// Barriers in shared memory, bulk copies, and clusters, without headers of CUDA.

#include "cluster.cuh"

__device__ void init(u64* bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count) : "memory");
}

__device__ void arrive(u64* bar)
{
    asm volatile("{ .reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0]; }" ::"r"(shared_address(bar)) : "memory");
}

__device__ void arrive_expecting(u64* bar, u32 bytes)
{
    asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], %1; }" ::"r"(shared_address(bar)),
                 "r"(bytes) : "memory");
}

__device__ void wait(u64* bar, u32 parity)
{
    asm volatile(
        "{ .reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra done;\nbra again;\ndone: }"
        ::"r"(shared_address(bar)), "r"(parity) : "memory");
}

// Half of the threads fill a ring of two places, the others add them up; a place has a "full" and an "empty" barrier.
extern "C" __global__ void ring(int* out, const int* in, int rounds)
{
    __shared__ int place[2][32];
    __shared__ alignas(8) u64 full[2], empty[2];
    const int lane = threadIdx.x % 32;
    if (threadIdx.x < 2) { init(&full[threadIdx.x], 32); init(&empty[threadIdx.x], 32); }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int r = 0; r < rounds; r++) {
            wait(&empty[r % 2], (r / 2 % 2) ^ 1);
            place[r % 2][lane] = in[(blockIdx.x * rounds + r) * 32 + lane];
            arrive(&full[r % 2]);
        }
    } else {
        int sum = 0;
        for (int r = 0; r < rounds; r++) {
            wait(&full[r % 2], r / 2 % 2);
            sum += place[r % 2][31 - lane];
            arrive(&empty[r % 2]);
        }
        out[blockIdx.x * 32 + lane] = sum;
    }
}

// A row of 1024 floats moves in and out without a load or store.
extern "C" __global__ void rows(float* out, const float* in)
{
    __shared__ alignas(128) float row[1024];
    __shared__ alignas(8) u64 bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        arrive_expecting(&bar, sizeof(row));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         shared_address(row)), "l"(in + blockIdx.x * 1024), "r"(4096), "r"(shared_address(&bar)) : "memory");
    }
    __syncthreads();
    wait(&bar, 0);
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) row[i] *= 2;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;\n"
                     "cp.async.bulk.wait_group 0;" ::"l"(out + blockIdx.x * 1024), "r"(shared_address(row)), "r"(4096) : "memory");
}

// A box of 32 x 32 floats is stored to another tensor as it lies in shared memory, and added to a third.
extern "C" __global__ void boxes(const __grid_constant__ Map from, const __grid_constant__ Map to,
                                 const __grid_constant__ Map sum, float* seen, int x, int y)
{
    __shared__ alignas(1024) float box[1024];
    __shared__ alignas(8) u64 bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        arrive_expecting(&bar, sizeof(box));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(shared_address(box)), "l"(&from), "r"(x), "r"(y), "r"(shared_address(&bar)) : "memory");
    }
    __syncthreads();
    wait(&bar, 0);
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) seen[i] = box[i];
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
                     "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%4, {%1, %2}], [%3];\n"
                     "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(&to), "r"(x), "r"(y),
                     "r"(shared_address(box)), "l"(&sum) : "memory");
}

// Each block of a cluster reads its neighbour's numbers, and adds to a counter of the first block.
extern "C" __global__ void __cluster_dims__(4, 1, 1) neighbours(int* out, int* counts)
{
    __shared__ int mine[64], count;
    const int i = threadIdx.x, next = (rank() + 1) % 4;
    mine[i] = blockIdx.x * 100 + i;
    if (i == 0) count = 0;
    meet();
    int value;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(mapped(&mine[63 - i], next)));
    asm volatile("red.shared::cluster.add.u32 [%0], %1;" ::"r"(mapped(&count, 0)), "r"(1) : "memory");
    out[blockIdx.x * 64 + i] = value;
    meet();
    if (rank() == 0 && i == 0) counts[blockIdx.x / 4] = count;
}

// A number for the next block arrives at a barrier of its own, without a barrier of the cluster.
extern "C" __global__ void __cluster_dims__(2, 2, 1) sent(int* out)
{
    __shared__ alignas(8) u64 bar;
    __shared__ int place[32];
    if (threadIdx.x == 0) { init(&bar, 1); arrive_expecting(&bar, 128); }
    meet();
    const u32 to = rank() ^ 3;
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(mapped(&place[threadIdx.x], to)),
                 "r"(rank() * 1000 + threadIdx.x), "r"(mapped(&bar, to)) : "memory");
    wait(&bar, 0);
    out[(blockIdx.y * gridDim.x + blockIdx.x) * 32 + threadIdx.x] = place[threadIdx.x];
    meet();
}
