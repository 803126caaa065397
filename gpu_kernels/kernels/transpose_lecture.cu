// Idea:     transpose a row-major `rows` x `columns` matrix, as a lecture comes to it step by step: by one thread for
//           everything, by a thread a row of the input, and through a tile in shared memory that is turned as it is
//           loaded.
// Pattern:  transpose_serial: one lane of one warp; every access is a request and a sector of its own.
//           transpose_row_per_thread: lanes hold neighbouring rows and walk along them in step. A warp reads from 32
//           rows, 32 sectors a load, and writes 32 consecutive elements. There are as many threads as rows, so few.
//           transpose_tile_load_transposed: a warp reads 32 consecutive elements and stores them along a row of the
//           tile, which has no padding; after the barrier it loads a column of the tile, all of it in one bank
//           (32-way conflicts at 4 bytes an element), and writes 32 consecutive elements. The other order, with the
//           conflicts on the store to shared memory, is transpose_read_write_coalesced_unpadded in transpose.cu.
// Origin:   H. H. B. Sorensen, "CUDA Performance Tuning: Memory Optimization" (DTU course 02614), versions 1, 2 and 4,
//           written anew for any shape with 64-bit indices. Its version 3 is transpose_write_coalesced.
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

    // A grid allows 65535 blocks along y: where a matrix needs more, z carries on where y ends.
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
