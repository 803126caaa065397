// Common kernels; tests/ptxcount/test_everyday.py has their outputs.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <math_constants.h>
namespace cg = cooperative_groups;
#define KERNEL extern "C" __global__ void
#define INDEX const int i = blockIdx.x * blockDim.x + threadIdx.x
#define FULL 0xffffffffu

// Element by element.
KERNEL saxpy(float* y, const float* x, float a, int n) { INDEX; if (i < n) y[i] = a * x[i] + y[i]; }
KERNEL gelu(float* y, const float* x, int n) { INDEX; if (i < n) y[i] = 0.5f * x[i] * (1 + erff(x[i] * 0.70710678f)); }
KERNEL logs(float* y, const float* x, int n) { INDEX; if (i < n) y[i] = logf(1 + x[i] * x[i]) + log1pf(fabsf(x[i])) + rsqrtf(2 + x[i]) + cbrtf(x[i]); }
KERNEL waves(float* y, const float* x, int n) { INDEX; float s, c; if (i < n) { sincosf(x[i] * 100, &s, &c); y[i] = s + 2 * c + atan2f(s, c) + tanf(x[i]); } }
KERNEL powers(double* y, const double* x, int n) { INDEX; if (i < n) y[i] = pow(fabs(x[i]) + 0.5, 2.5) + sin(1e6 * x[i]) + exp(x[i]) + lgamma(fabs(x[i]) + 1); }
KERNEL rounding(float* y, const float* x, int n) { INDEX; if (i < n) y[i] = roundf(x[i]) + 10 * floorf(x[i]) + 100 * rintf(x[i]) + fmodf(x[i], 0.75f) + truncf(x[i]); }
KERNEL divisions(int* y, const int* x, int n) { INDEX; if (i < n) y[i] = x[i] / (i % 7 + 1) + x[i] % (i + 3) + (int)((unsigned)x[i] / 10u) + (int)((long long)x[i] * x[i] / (i + 1)); }
KERNEL black_scholes(float* call, const float* price, const float* strike, float rate, float volatility, int n)
{
    INDEX;
    if (i >= n) return;
    const float spread = (logf(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility)) / volatility;
    call[i] = price[i] * normcdff(spread) - strike[i] * expf(-rate) * normcdff(spread - volatility);
}
KERNEL bits(unsigned* y, const unsigned* x, int n) { INDEX; if (i < n) y[i] = __popc(x[i]) + 100 * __clz(x[i]) + 10000 * __ffs(x[i]) + (__brev(x[i]) & 1) + __byte_perm(x[i], 7, 0x2103); }
KERNEL halves_twice(__half2* y, const __half2* x, int n) { INDEX; if (i < n) y[i] = __hfma2(x[i], x[i], __hmax2(x[i], __float2half2_rn(0.5f))); }
KERNEL bfloat_scale(__nv_bfloat16* y, const __nv_bfloat16* x, float by, int n) { INDEX; if (i < n) y[i] = __float2bfloat16(__bfloat162float(x[i]) * by); }
struct Polynomial { float of[6]; int degree; };
KERNEL horner(float* y, const float* x, const __grid_constant__ Polynomial p, int n)
{
    INDEX;
    if (i >= n) return;
    float sum = 0;
    for (int k = i % (p.degree + 1); k >= 0; --k) sum = sum * x[i] + p.of[k];
    y[i] = sum;
}

// Functions that are not inlined, structs by value.
struct Complex { float re, im; };
__device__ __noinline__ Complex times(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
__device__ __noinline__ int gcd(int a, int b) { while (b) { const int rest = a % b; a = b; b = rest; } return a; }
__device__ __noinline__ void add_up(float* total, float x) { __shared__ float row[64]; row[threadIdx.x] = x; __syncthreads(); if (threadIdx.x == 0) for (int k = 0; k < blockDim.x; ++k) *total += row[k]; }
KERNEL mandelbrot(int* y, int width, int limit)
{
    INDEX;
    const Complex c = {(i % width) * 3.0f / width - 2, (i / width) * 2.0f / width - 1};
    Complex z = {0, 0};
    int k = 0;
    for (; k < limit && z.re * z.re + z.im * z.im < 4; ++k) { z = times(z, z); z.re += c.re; z.im += c.im; }
    y[i] = k;
}
KERNEL greatest_divisors(int* y, const int* x, int n) { INDEX; if (i < n) y[i] = gcd(x[i], x[n - 1 - i]) + gcd(i, 12); }
KERNEL summed_by_function(float* y, const float* x) { add_up(y + blockIdx.x, x[blockIdx.x * blockDim.x + threadIdx.x]); }

// Reductions and scans.
KERNEL block_max(float* y, const float* x, int n)
{
    extern __shared__ float part[];
    float best = -CUDART_INF_F;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) best = fmaxf(best, x[i]);
    part[threadIdx.x] = best;
    for (int half = blockDim.x / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
__device__ float warp_sum(float v) { for (int step = 16; step; step /= 2) v += __shfl_xor_sync(FULL, v, step); return v; }
__device__ float block_sum(float v)
{
    __shared__ float part[32];
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0;
    __syncthreads();
    return warp_sum(v);
}
KERNEL dot(float* y, const float* a, const float* b, int n)
{
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i] * b[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) atomicAdd(y, sum);
}
KERNEL arg_max(unsigned long long* y, const unsigned* x, int n) { INDEX; if (i < n) atomicMax(y, (unsigned long long)x[i] << 32 | i); }
KERNEL last_block_sums(float* y, float* parts, unsigned* tickets, const float* x)
{
    __shared__ bool last;
    const float sum = block_sum(x[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x == 0) { parts[blockIdx.x] = sum; __threadfence(); last = atomicInc(tickets, gridDim.x - 1) == gridDim.x - 1; }
    __syncthreads();
    if (last && threadIdx.x == 0) { float total = 0; for (int k = 0; k < gridDim.x; ++k) total += parts[k]; *y = total; }
}
KERNEL tiles(int* y, const int* x)
{
    const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int v = x[threadIdx.x];
    for (int step = 4; step; step /= 2) v += tile.shfl_down(v, step);
    y[threadIdx.x] = tile.shfl(v, 0) + 1000 * tile.any(x[threadIdx.x] == 5);
}
KERNEL counted_below(int* y, const int* x, int limit)
{
    const int here = __syncthreads_count(x[threadIdx.x] < limit), any = __syncthreads_or(x[threadIdx.x] == limit), all = __syncthreads_and(x[threadIdx.x] > -9);
    y[threadIdx.x] = here + 1000 * (any != 0) + 2000 * (all != 0);
}
KERNEL compacted(int* y, int* count, const int* x, int n)
{
    INDEX;
    const bool keep = i < n && x[i] % 3 == 0;
    const unsigned who = __ballot_sync(FULL, keep);
    int base = 0;
    if (threadIdx.x % 32 == 0) base = atomicAdd(count, __popc(who));
    base = __shfl_sync(FULL, base, 0);
    if (keep) y[base + __popc(who & ((1u << threadIdx.x % 32) - 1))] = x[i];
}
KERNEL coalesced_count(int* count, const int* x)
{
    if (x[threadIdx.x] % 3 == 0) { const auto group = cg::coalesced_threads(); if (group.thread_rank() == 0) atomicAdd(count, group.size()); }
}
KERNEL warp_scan(int* y, const int* x)
{
    const int t = threadIdx.x, lane = t % 32;
    int v = x[t];
    for (int step = 1; step < 32; step *= 2) { const int other = __shfl_up_sync(FULL, v, step); if (lane >= step) v += other; }
    y[t] = v;
}
KERNEL bitonic(int* y)
{
    __shared__ int row[512];
    const int t = threadIdx.x;
    row[t] = y[t];
    __syncthreads();
    for (int size = 2; size <= 512; size *= 2)
        for (int step = size / 2; step; step /= 2) {
            const int other = t ^ step;
            if (other > t && ((t & size) == 0) == (row[t] > row[other])) { const int kept = row[t]; row[t] = row[other]; row[other] = kept; }
            __syncthreads();
        }
    y[t] = row[t];
}
KERNEL byte_histogram(unsigned* bins, const unsigned char* x, int n)
{
    __shared__ unsigned mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(mine + x[i], 1u);
    __syncthreads();
    atomicAdd(bins + threadIdx.x, mine[threadIdx.x]);
}
KERNEL reduced_by_hardware(unsigned* y, const unsigned* x) { y[threadIdx.x] = __reduce_add_sync(FULL, x[threadIdx.x]) + __reduce_max_sync(FULL, x[threadIdx.x]); }

// Rows of matrices: one block a row.
KERNEL softmax(float* y, const float* x, int columns)
{
    __shared__ float part[32];
    const float* row = x + blockIdx.x * columns;
    float top = -CUDART_INF_F, sum = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) top = fmaxf(top, row[c]);
    for (int step = 16; step; step /= 2) top = fmaxf(top, __shfl_xor_sync(FULL, top, step));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = top;
    __syncthreads();
    for (int k = 0; k < blockDim.x / 32; ++k) top = fmaxf(top, part[k]);
    __syncthreads();
    for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += expf(row[c] - top);
    sum = block_sum(sum);
    for (int c = threadIdx.x; c < columns; c += blockDim.x) y[blockIdx.x * columns + c] = expf(row[c] - top) / sum;
}
KERNEL rms_norm(__half* y, const __half* x, int columns)
{
    float squares = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) { const float v = __half2float(x[blockIdx.x * columns + c]); squares += v * v; }
    const float scale = 1 / sqrtf(block_sum(squares) / columns + 1e-6f);
    for (int c = threadIdx.x; c < columns; c += blockDim.x) y[blockIdx.x * columns + c] = __float2half(__half2float(x[blockIdx.x * columns + c]) * scale);
}
KERNEL rotary(float* x, int pairs)
{
    const int row = blockIdx.x, k = threadIdx.x;
    float s, c;
    sincosf(row * powf(10000.0f, -(float)k / pairs), &s, &c);
    float2* at = (float2*)x + row * pairs + k;
    const float2 v = *at;
    *at = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
}
KERNEL quantised(signed char* q, float* scale, const float* x, int columns)
{
    __shared__ int most;
    if (threadIdx.x == 0) most = 0;
    __syncthreads();
    for (int c = threadIdx.x; c < columns; c += blockDim.x) atomicMax(&most, __float_as_int(fabsf(x[blockIdx.x * columns + c])));
    __syncthreads();
    const float by = __int_as_float(most) / 127;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) q[blockIdx.x * columns + c] = __float2int_rn(x[blockIdx.x * columns + c] / by);
    if (threadIdx.x == 0) scale[blockIdx.x] = by;
}

#include "everyday_products.cuh"
