// Idea:     transpose a row-major `rows` x `columns` matrix through a tile in shared memory, so that both the read
//           and the write run along rows.
// Pattern:  a warp reads 32 consecutive elements and stores them down a column of the tile; after the barrier it
//           reads a row of the tile and writes 32 consecutive elements. Without padding, the elements of a tile's
//           column fall into one bank of shared memory (32-way conflicts at 4 bytes an element); one more column
//           spreads them over all 32.
// Origin:   the shared-memory transpose of CUDA teaching (Lei Mao, "CUDA Coalesced Memory Access"), written anew
//           with 64-bit indices.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float transpose_tiled.cu

constexpr int TILE = 32;

template <int Padding>
__device__ __forceinline__ void transpose_through_tile(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    __shared__ ELEMENT tile[TILE][TILE + Padding];

    const long long first_row = static_cast<long long>(blockIdx.y) * TILE;
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
