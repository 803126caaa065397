// Idea:     transpose a row-major `rows` x `columns` matrix, one element a thread: straight from global to global
//           memory, where only one side of the copy can be coalesced, or through a tile in shared memory, where
//           both are.
// Pattern:  transpose_read_coalesced: a warp reads along a row and writes down a column, 32 sectors a store.
//           transpose_write_coalesced: a warp writes along a row and reads down a column, 32 sectors a load.
//           transpose_read_write_coalesced: a warp reads 32 consecutive elements and stores them down a column of
//           the tile; after the barrier it reads a row of the tile and writes 32 consecutive elements. One more
//           column of padding spreads a column of the tile over all 32 banks of shared memory.
//           transpose_read_write_coalesced_unpadded: the same without padding; a column of the tile falls into one
//           bank (32-way conflicts at 4 bytes an element).
// Origin:   the transposes that every introduction to coalescing compares (Lei Mao, "CUDA Coalesced Memory
//           Access"), written anew with 64-bit indices.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float transpose.cu

constexpr int TILE = 32;

// A grid allows 65535 blocks along y: where a matrix needs more, z carries on where y ends.
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
