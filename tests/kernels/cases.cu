// Kernels that once stopped, hung or miscounted: test_cases.py has their outputs.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define KERNEL extern "C" __global__ void

// Blocks that wait for each other.
KERNEL wait_for_next(volatile int* flag, int* y)
{
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0)
            while (!*flag) {}
    } else {
        __syncthreads();
        if (threadIdx.x == 0) *flag = 1;
    }
    y[0] = 1;
}
KERNEL in_turn(int* turn, float* y, int backwards)
{
    const int mine = backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x, t = threadIdx.x;
    if (t == 0) {
        int seen;
        do asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(seen) : "l"(turn)); while (seen != mine);
    }
    __syncthreads();
    y[t] = 10 * y[t] + mine + 1;
    __syncthreads();
    if (t == 0) {
        asm volatile("fence.acq_rel.gpu;");
        asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" ::"l"(turn), "r"(1));
    }
}
KERNEL polled_together(int* turn, float* y)
{
    int mine = blockIdx.x, t = threadIdx.x, seen = -1;
    do {
        if (t == 0) asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(seen) : "l"(turn));
    } while (__syncthreads_or(t == 0 && seen != mine));
    y[t] = 10 * y[t] + mine + 1;
    __threadfence();
    __syncthreads();
    if (t == 0) asm volatile("st.global.release.gpu.b32 [%0], %1;" ::"l"(turn), "r"(mine + 1));
}
KERNEL nobody_comes(volatile int* flag)
{
    __shared__ int held[64];
    if (threadIdx.x < 32)
        while (!*flag) {}
    held[threadIdx.x] = 1;
    __syncthreads();
}

// Barriers.
KERNEL halves(float* y)
{
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = t;
    if (t < 32) {
        __syncthreads();
        y[t] = s[t + 32];
    } else {
        __syncthreads();
        y[t] = s[t - 32] + 100.0f;
    }
}
KERNEL named(float* y)
{
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = t;
    if (t < 32) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        y[t] = s[t + 32];
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        y[t] = s[t - 32] + 100.0f;
    }
}
KERNEL unaligned(float* y)
{
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = t;
    if (t % 2) {
        asm volatile("barrier.sync 0;" ::: "memory");
        y[t] = s[t ^ 33];
    } else {
        asm volatile("barrier.sync 0;" ::: "memory");
        y[t] = s[t ^ 33] + 100.0f;
    }
}
KERNEL leaves_early(int* x, int n)
{
    __shared__ int s[64];
    const int t = threadIdx.x;
    for (int i = 0; i < n; ++i) {
        if (t < 32 && i == 1) {
            x[t] = -1;
            return;
        }
        s[t] = x[t] + i;
        __syncthreads();
        x[t] += s[t ^ 1];
        __syncthreads();
    }
}
KERNEL __launch_bounds__(128) bounded(int* x) { x[threadIdx.x] = 1; }

// An unwritten value that is read, and never used.
KERNEL pipelined_sum(const float* x, float* y, int n)
{
    __shared__ float stage[2][32];
    const int t = threadIdx.x;
    stage[0][t] = x[t];
    __syncwarp();
    float held = stage[0][t], sum = 0;
    for (int k = 0; k < n; k++) {
        if (k + 1 < n) stage[(k + 1) & 1][t] = x[t + 32 * (k + 1)];
        __syncwarp();
        const float next = *(volatile float*)&stage[(k + 1) & 1][t];
        sum += held;
        held = next;
    }
    y[t] = sum;
}

// Instructions.
KERNEL greater(int* out, const float* a, const float* b)
{
    const int t = threadIdx.x;
    out[t] = __hgt(__float2bfloat16(a[t]), __float2bfloat16(b[t]));
}
KERNEL rounded(__nv_bfloat16* out, const __nv_bfloat16* x)
{
    out[0] = hfloor(x[0]);
    out[1] = hceil(x[1]);
    out[2] = hrint(x[2]);
}
KERNEL flushed(__half* out, const __half* x) { asm("add.ftz.f16 %0, %1, %2;" : "=h"(*(short*)out) : "h"(*(short*)x), "h"(*(short*)(x + 1))); }
KERNEL on_stack(int* out)
{
    int n = threadIdx.x + 1, sum = 0;
    int* held = (int*)__builtin_alloca(n * sizeof(int));
    for (int i = 0; i < n; i++) held[i] = i;
    for (int i = 0; i < n; i++) sum += held[n - 1 - i];
    out[threadIdx.x] = sum;
}
KERNEL wide_sums(float4* v, float2* w)
{
    atomicAdd(v, make_float4(1, 2, 3, 4));
    atomicAdd(w, make_float2(5, 6));
}
struct __align__(16) Two { long long first, second; };
KERNEL wide_swap(Two* p, long long* out)
{
    out[threadIdx.x] = atomicCAS(p, Two{1, 2}, Two{3, 4}).first;
}
KERNEL two_spaces(int* out, const int* x)
{
    __shared__ int s[64];
    const int t = threadIdx.x;
    s[t] = 1000 + t;
    __syncthreads();
    const int* p = t & 1 ? x : s;
    out[t] = p[t ^ 2];
}
KERNEL histogram(const int* bin, int* count) { count[bin[blockIdx.x * blockDim.x + threadIdx.x] & 15]++; }
KERNEL neighbours(float* a)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = a[i] + a[i + 1];
}
KERNEL scan(int* out, const int* in)
{
    __shared__ int s[256];
    const int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        const int v = t >= d ? s[t - d] : 0;
        s[t] += v;  // without a barrier before
        __syncthreads();
    }
    out[t] = s[t];
}
KERNEL column_sums(float* s, const float* m, int rows, int columns)
{
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    if (c < columns)
        for (int r = 0; r < rows; r++) sum += m[r * columns + c];
    s[c] = sum;
}
KERNEL local_array(int* x, int n)
{
    int a[64];
    for (int i = 0; i < 64; ++i) a[i] = x[i];
    x[threadIdx.x] = a[n * threadIdx.x & 63];
}
KERNEL parted_barriers(int* out)
{
    __shared__ volatile int s;
    if (blockIdx.x) return;
    if (threadIdx.x == 5) s = 1;
    __syncthreads();
    if (threadIdx.x == 3) {
        s = 2;
        out[0] = s;
    }
}
KERNEL behind_a_barrier(int* x)
{
    __syncthreads();
    if (blockIdx.x == 1) x[0] = 5;
    if (blockIdx.x == 0) x[1] = x[0];
}
KERNEL read_twice(int* x)
{
    __shared__ volatile int s[32];
    x[threadIdx.x] = s[threadIdx.x];
    x[threadIdx.x] += s[threadIdx.x];
}
KERNEL pieces_of_the_heap(int* x) { x[threadIdx.x] = (size_t)malloc(5 + threadIdx.x) % 16; }
KERNEL warps_leave(int* x, int n)
{
    int s = 0;
    for (int i = 0; i < n * (1 + threadIdx.x / 32); ++i) s += x[i];
    x[64 + threadIdx.x] = s;
}
KERNEL one_by_one(int* x, int n)
{
    if (blockIdx.x == 0) x[0] = 7;
    if (blockIdx.x == n) x[1 - n] = 7;
}
