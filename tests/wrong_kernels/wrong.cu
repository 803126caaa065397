// Wrong kernels that the verification must reject, with one fault per entry point.

constexpr int TILE = 32;

// Copies the previous element.
extern "C" __global__ void offset_copy_off_by_one(
    ELEMENT* output, const ELEMENT* input, long long size, long long offset)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < size) {
        output[index + offset] = input[index + offset - 1];
    }
}

// Leaves out partial tiles.
extern "C" __global__ void transpose_skipped_last_tile(
    ELEMENT* output, const ELEMENT* input, long long rows, long long columns)
{
    const long long column = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
    const long long row = static_cast<long long>(blockIdx.y) * TILE + threadIdx.y;
    if (row < rows / TILE * TILE && column < columns / TILE * TILE) {
        output[column * rows + row] = input[row * columns + column];
    }
}

// Writes columns outside the matrix, behind the end of the output.
extern "C" __global__ void transpose_missing_bounds_check(
    ELEMENT* output, const ELEMENT* input, long long rows, long long columns)
{
    const long long column = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
    const long long row = static_cast<long long>(blockIdx.y) * TILE + threadIdx.y;
    if (row < rows) {
        output[column * rows + row] = input[row * columns + column];
    }
}

// Relies on every other row of the output from an earlier launch.
extern "C" __global__ void transpose_stale_output(
    ELEMENT* output, const ELEMENT* input, long long rows, long long columns)
{
    const long long column = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
    const long long row = static_cast<long long>(blockIdx.y) * TILE + threadIdx.y;
    if (row < rows && column < columns && column % 2 == 0) {
        output[column * rows + row] = input[row * columns + column];
    }
}

// Leaves out elements behind the last full warp.
extern "C" __global__ void add_skipped_tail(ELEMENT* output, const ELEMENT* a, const ELEMENT* b, long long size)
{
    const long long index = static_cast<long long>(blockIdx.x) * 1024 + threadIdx.x * 32 + threadIdx.y;
    if (index < size / 32 * 32) {
        output[index] = a[index] + b[index];
    }
}

// Adds elements behind the vectors, and writes behind the output.
extern "C" __global__ void add_missing_bounds_check(ELEMENT* output, const ELEMENT* a, const ELEMENT* b, long long size)
{
    const long long index = static_cast<long long>(blockIdx.x) * 1024 + threadIdx.x * 32 + threadIdx.y;
    output[index] = a[index] + b[index];
}

// Leaves out the products behind the last full tile.
extern "C" __global__ void matmul_skipped_last_step(
    ELEMENT* P, const ELEMENT* M, const ELEMENT* N, long long rows, long long inner, long long columns)
{
    const long long column = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
    const long long row = static_cast<long long>(blockIdx.y) * TILE + threadIdx.y;
    if (row < rows && column < columns) {
        ELEMENT sum = 0;
        for (long long k = 0; k < inner / TILE * TILE; ++k) {
            sum += M[row * inner + k] * N[k * columns + column];
        }
        P[row * columns + column] = sum;
    }
}

// Computes N * M, of square matrices.
extern "C" __global__ void matmul_exchanged_operands(
    ELEMENT* P, const ELEMENT* M, const ELEMENT* N, long long rows, long long inner, long long columns)
{
    const long long column = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
    const long long row = static_cast<long long>(blockIdx.y) * TILE + threadIdx.y;
    if (row < rows && column < columns) {
        ELEMENT sum = 0;
        for (long long k = 0; k < inner; ++k) {
            sum += N[row * inner + k] * M[k * columns + column];
        }
        P[row * columns + column] = sum;
    }
}

// Reads the second matrix as if by rows.
extern "C" __global__ void matmul_forgotten_turn(
    ELEMENT* P, const ELEMENT* M, const ELEMENT* N, long long rows, long long inner, long long columns)
{
    const long long column = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
    const long long row = static_cast<long long>(blockIdx.y) * TILE + threadIdx.y;
    if (row < rows && column < columns) {
        ELEMENT sum = 0;
        for (long long k = 0; k < inner; ++k) {
            sum += M[row * inner + k] * N[k * columns + column];
        }
        P[row * columns + column] = sum;
    }
}

// Writes a second output, the difference, to an input.
extern "C" __global__ void add_with_second_output(ELEMENT* output, const ELEMENT* a, ELEMENT* b, long long size)
{
    const long long index = static_cast<long long>(blockIdx.x) * 1024 + threadIdx.x * 32 + threadIdx.y;
    if (index < size) {
        const ELEMENT x = a[index], y = b[index];
        output[index] = x + y;
        b[index] = x - y;
    }
}

// Reads an element and clears it, in the last row.
extern "C" __global__ void transpose_clears_last_row(
    ELEMENT* output, ELEMENT* input, long long rows, long long columns)
{
    const long long column = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
    const long long row = static_cast<long long>(blockIdx.y) * TILE + threadIdx.y;
    if (row < rows && column < columns) {
        output[column * rows + row] = input[row * columns + column];
        if (row == rows - 1) {
            input[row * columns + column] = ELEMENT();
        }
    }
}
