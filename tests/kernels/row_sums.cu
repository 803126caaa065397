// Sums of rows in the naive form: each thread walks along a row, so neighbouring lanes are a row apart.
extern "C" __global__ void row_sums(float* sums, const float* matrix, int rows, int columns)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int column = 0; column < columns; ++column) {
        sum += matrix[row * columns + column];
    }
    sums[row] = sum;
}
