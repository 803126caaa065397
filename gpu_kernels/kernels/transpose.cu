// Idea:     transpose a row-major `rows` x `columns` matrix, one element per thread. Directly from
//           global to global memory, either the loads or the stores are coalesced. Through a tile in shared memory,
//           both are.
// Pattern:  transpose_read_coalesced: a warp reads a row and writes a column, 32 sectors per store.
//           transpose_write_coalesced: a warp reads a column and writes a row, 32 sectors per load.
//           transpose_read_write_coalesced: a warp reads 32 consecutive elements and stores them to a column of the
//           tile. After the barrier it reads a row of the tile and writes 32 consecutive elements. One column of
//           padding spreads a column of the tile over all 32 banks of shared memory.
//           transpose_read_write_coalesced_unpadded: the same without padding. A column of the tile lies in one bank
//           (32-way conflicts for 4-byte elements).
// Origin:   the transposes that every introduction to coalescing compares (Lei Mao, "CUDA Coalesced Memory Access").
//           Rewritten with 64-bit indices.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float transpose.cu

constexpr int TILE = 32;

// A grid has at most 65535 blocks along y. If a matrix needs more, z extends y.
__device__ __forceinline__ long long block_along_y()
{
    return blockIdx.y + static_cast<long long>(blockIdx.z) * gridDim.y;
}

extern "C" __global__ void transpose_read_coalesced(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    const long long column = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
    const long long row = block_along_y() * TILE + threadIdx.y;
    if (row < rows && column < columns) {
        output[column * rows + row] = input[row * columns + column];
    }
}

extern "C" __global__ void transpose_write_coalesced(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    const long long row = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
    const long long column = block_along_y() * TILE + threadIdx.y;
    if (row < rows && column < columns) {
        output[column * rows + row] = input[row * columns + column];
    }
}

template <int Padding>
__device__ __forceinline__ void transpose_through_tile(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    __shared__ ELEMENT tile[TILE][TILE + Padding];

    const long long first_row = block_along_y() * TILE;
    const long long first_column = static_cast<long long>(blockIdx.x) * TILE;

    long long row = first_row + threadIdx.y;
    long long column = first_column + threadIdx.x;
    if (row < rows && column < columns) {
        tile[threadIdx.x][threadIdx.y] = input[row * columns + column];
    }
    __syncthreads();

    row = first_row + threadIdx.x;
    column = first_column + threadIdx.y;
    if (row < rows && column < columns) {
        output[column * rows + row] = tile[threadIdx.y][threadIdx.x];
    }
}

extern "C" __global__ void transpose_read_write_coalesced(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    transpose_through_tile<1>(output, input, rows, columns);
}

extern "C" __global__ void transpose_read_write_coalesced_unpadded(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    transpose_through_tile<0>(output, input, rows, columns);
}
