// Idea:     sum each row of a row-major matrix, one warp per row, in blocks of 32 threads. Shuffles add the sums of
//           the lanes.
// Pattern:  a warp reads 32 consecutive elements of its row per load, and writes one element.
// Origin:   written for this project, as the usual form of a reduction of rows.
// Run:      kernelwatch count row_sum rows=128 columns=1024    (this compiles row_sum<float>)

template <typename T>
__global__ void row_sum(T* output, const T* input, int columns) {
    const T* row = input + (long long)blockIdx.x * columns;
    T sum = 0;
    for (int column = threadIdx.x; column < columns; column += 32) sum += row[column];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x == 0) output[blockIdx.x] = sum;
}
