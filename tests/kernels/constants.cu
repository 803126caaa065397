// Loads from constant memory beside loads from global memory.
constexpr int RADIUS = 4;
__constant__ float taps[2 * RADIUS + 1] = {0.5f, 1, -2, 4, 8, 4, -2, 1, 0.25f};

// One pass of a separable convolution, along the rows.
extern "C" __global__ void convolve_rows(float* out, const float* image, int rows, int columns)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (row >= rows || column >= columns) return;
    float sum = 0;
    for (int k = -RADIUS; k <= RADIUS; ++k) {
        const int from = column + k;
        if (from >= 0 && from < columns) sum += image[row * columns + from] * taps[RADIUS + k];
    }
    out[row * columns + column] = sum;
}

extern "C" __global__ void through_a_pointer(float* out, const float* in, int from_constant)
{
    const volatile float* from = from_constant ? taps : in;
    out[threadIdx.x] = from[threadIdx.x % 9];
}

extern "C" __global__ void write_through_a_pointer(float* out, int to_constant)
{
    volatile float* to = to_constant ? const_cast<float*>(taps) : out;
    to[threadIdx.x % 9] = 1;
}
