// Kernels with one feature of the language each; tests/ptxcount/test_cases.py has their outputs.

extern "C" __global__ void histogram(unsigned* bins, const unsigned char* in, int n)
{
    __shared__ unsigned local[16];
    if (threadIdx.x < 16) local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i] % 16], 1u);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

struct Shape { int columns; short pad; float scale; };

extern "C" __global__ void by_value(float* out, Shape shape, signed char bias)
{
    const int i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)
        + blockDim.x * blockDim.y * blockDim.z * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    out[i] = (i % shape.columns) * shape.scale + bias + shape.pad;
}

__constant__ float weights[5] = {1.0f, -2.0f, 0.5f, 4.0f, 8.0f};
__device__ int counter_of_blocks = 3;

extern "C" __global__ void tables(float* out, int* seen)
{
    float local[5];
    for (int k = 0; k < 5; ++k) local[k] = weights[k] * (threadIdx.x + k);
    out[threadIdx.x] = local[threadIdx.x % 5] + local[(threadIdx.x + 2) % 5];
    if (threadIdx.x == 0) seen[0] = counter_of_blocks;
}

extern "C" __global__ void hinted(float* out, const float* in)
{
    const int i = threadIdx.x;
    float v = __ldcg(in + i) + __ldcs(in + i) + __ldca(in + i) + __ldlu(in + i) + __ldcv(in + i);
    float w;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.f32 %0, [%1];" : "=f"(w) : "l"(in + i));
    __stcs(out + i, v + w);
    __threadfence();
    __stcg(out + i + 32, v);
    __stwt(out + i + 64, w);
}
