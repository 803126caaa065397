// The sum of each row of a row-major matrix. A warp takes a row, and its lanes neighbouring elements, so that a request
// of a warp is as few sectors as its bytes fill.

template <typename T>
__global__ void row_sum(T* output, const T* input, int columns) {
    const T* row = input + (long long)blockIdx.x * columns;
    T sum = 0;
    for (int column = threadIdx.x; column < columns; column += 32) sum += row[column];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x == 0) output[blockIdx.x] = sum;
}
