// Copies and transposes, coalesced and uncoalesced. ELEMENT is the type of an element.
extern "C" __global__ void offset_copy(ELEMENT* out, const ELEMENT* in, long long size, long long offset)
{
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x + offset;
    if (i < size) out[i] = in[i];
}

extern "C" __global__ void stride_copy(ELEMENT* out, const ELEMENT* in, long long size, long long stride)
{
    const long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) * stride;
    if (i < size) out[i] = in[i];
}

extern "C" __global__ void transpose_direct(ELEMENT* out, const ELEMENT* in, long long rows, long long columns)
{
    const long long row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    if (row < rows && column < columns) out[column * rows + row] = in[row * columns + column];
}

template <int PADDING>
__device__ void through_tile(ELEMENT* out, const ELEMENT* in, long long rows, long long columns)
{
    __shared__ ELEMENT tile[32][32 + PADDING];
    long long row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    if (row < rows && column < columns) tile[threadIdx.x][threadIdx.y] = in[row * columns + column];
    __syncthreads();
    row = blockIdx.y * 32 + threadIdx.x;
    column = blockIdx.x * 32 + threadIdx.y;
    if (row < rows && column < columns) out[column * rows + row] = tile[threadIdx.y][threadIdx.x];
}

extern "C" __global__ void transpose_padded(ELEMENT* out, const ELEMENT* in, long long rows, long long columns)
{
    through_tile<1>(out, in, rows, columns);
}

extern "C" __global__ void transpose_unpadded(ELEMENT* out, const ELEMENT* in, long long rows, long long columns)
{
    through_tile<0>(out, in, rows, columns);
}
