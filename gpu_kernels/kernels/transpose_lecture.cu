// Idea:     transpose a row-major `rows` x `columns` matrix, in the steps of a lecture: with one thread, with
//           one thread per row of the input, and through a tile in shared memory. The loads from the tile transpose
//           it.
// Pattern:  transpose_serial: one thread; each access is one request and one sector.
//           transpose_row_per_thread: each lane transposes its row. A warp reads 32 rows, 32 sectors per load, and
//           writes 32 consecutive elements. The grid has only one thread per row.
//           transpose_tile_load_transposed: a warp reads 32 consecutive elements and stores them to a row of the
//           tile, which has no padding. After the barrier it loads a column of the tile, which lies in one bank
//           (32-way conflicts for 4-byte elements), and writes 32 consecutive elements. In transpose.cu,
//           transpose_read_write_coalesced_unpadded has the conflicts in the store to shared memory instead.
// Origin:   H. H. B. Sorensen, "CUDA Performance Tuning: Memory Optimization" (DTU course 02614), versions 1, 2 and 4.
//           Rewritten for any shape with 64-bit indices. Its version 3 is transpose_write_coalesced.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=double transpose_lecture.cu

constexpr int TILE = 32;

extern "C" __global__ void transpose_serial(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    for (long long row = 0; row < rows; ++row) {
        for (long long column = 0; column < columns; ++column) {
            output[column * rows + row] = input[row * columns + column];
        }
    }
}

extern "C" __global__ void transpose_row_per_thread(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    const long long row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row < rows) {
        for (long long column = 0; column < columns; ++column) {
            output[column * rows + row] = input[row * columns + column];
        }
    }
}

extern "C" __global__ void transpose_tile_load_transposed(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    __shared__ ELEMENT tile[TILE][TILE];

    // A grid has at most 65535 blocks along y. If a matrix needs more, z extends y.
    const long long first_row = (blockIdx.y + static_cast<long long>(blockIdx.z) * gridDim.y) * TILE;
    const long long first_column = static_cast<long long>(blockIdx.x) * TILE;

    long long row = first_row + threadIdx.y;
    long long column = first_column + threadIdx.x;
    if (row < rows && column < columns) {
        tile[threadIdx.y][threadIdx.x] = input[row * columns + column];
    }
    __syncthreads();

    row = first_row + threadIdx.x;
    column = first_column + threadIdx.y;
    if (row < rows && column < columns) {
        output[column * rows + row] = tile[threadIdx.x][threadIdx.y];
    }
}
