// Wrong kernels, each with one mistake on the line marked MISTAKE, which tests/ptxcount/test_checks.py expects.

constexpr int TILE = 32;

extern "C" __global__ void off_by_one(float* output, const float* input, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) output[i] = input[i + 1]; // MISTAKE
}

extern "C" __global__ void missing_barrier(float* output, const float* input, int rows, int columns)
{
    __shared__ float tile[TILE][TILE + 1];
    const int column = blockIdx.x * TILE, row = blockIdx.y * TILE;
    tile[threadIdx.x][threadIdx.y] = input[(row + threadIdx.y) * columns + column + threadIdx.x];
    output[(column + threadIdx.y) * rows + row + threadIdx.x] = tile[threadIdx.y][threadIdx.x]; // MISTAKE
}

extern "C" __global__ void overwritten_too_early(int* output)
{
    __shared__ int row[64];
    row[threadIdx.x] = threadIdx.x;
    __syncthreads();
    output[threadIdx.x] = row[63 - threadIdx.x];
    row[threadIdx.x] = 0; // MISTAKE
    __syncthreads();
    output[threadIdx.x] += row[threadIdx.x];
}

extern "C" __global__ void never_written(float* output, const float* input)
{
    __shared__ float row[64];
    if (threadIdx.x < 60) row[threadIdx.x] = input[threadIdx.x];
    __syncthreads();
    output[threadIdx.x] = row[63 - threadIdx.x]; // MISTAKE
}

extern "C" __global__ void two_barriers(int* output)
{
    __shared__ int row[64];
    row[threadIdx.x] = threadIdx.x;
    if (threadIdx.x % 2) {
        __syncthreads(); // MISTAKE
        output[threadIdx.x] = row[threadIdx.x ^ 1];
    } else {
        output[threadIdx.x] = row[threadIdx.x] * 3;
        __syncthreads();
    }
}

extern "C" __global__ void endless(volatile int* output)
{
    while (output[0] == 0) output[1] = 1; // MISTAKE
}

extern "C" __global__ void trapped(int* output)
{
    if (threadIdx.x == 5) __trap(); // MISTAKE
    output[threadIdx.x] = 1;
}

extern "C" __global__ void fills_its_input(float* output, float* input)
{
    output[threadIdx.x] = input[threadIdx.x];
    input[threadIdx.x + 3] = 1; // MISTAKE
}

extern "C" __global__ void clears_its_input(float* output, float* input)
{
    if (threadIdx.x >= 40) input[threadIdx.x] = 0; // MISTAKE
    output[threadIdx.x] = 1;
}

extern "C" __global__ void adds_to_its_input(float* output, float* input)
{
    atomicAdd(threadIdx.x == 33 ? input : output, 1.0f); // MISTAKE
}
