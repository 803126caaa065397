// Idea:     transpose a row-major `rows` x `columns` matrix straight from global to global memory, one element a
//           thread, so that only one side of the copy can be coalesced.
// Pattern:  transpose_read_coalesced: a warp reads along a row and writes down a column, 32 sectors a store.
//           transpose_write_coalesced: a warp writes along a row and reads down a column, 32 sectors a load.
// Origin:   the pair that every introduction to coalescing compares (Lei Mao, "CUDA Coalesced Memory Access"),
//           written anew with 64-bit indices.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float transpose_direct.cu

constexpr int TILE = 32;

extern "C" __global__ void transpose_read_coalesced(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    const long long column = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
    const long long row = static_cast<long long>(blockIdx.y) * TILE + threadIdx.y;
    if (row < rows && column < columns) {
        output[column * rows + row] = input[row * columns + column];
    }
}

extern "C" __global__ void transpose_write_coalesced(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    const long long row = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
    const long long column = static_cast<long long>(blockIdx.y) * TILE + threadIdx.y;
    if (row < rows && column < columns) {
        output[column * rows + row] = input[row * columns + column];
    }
}
