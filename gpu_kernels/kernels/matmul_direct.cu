// Idea:     P = M * N, both row-major; M has `rows` x `inner` elements, N has `inner` x `columns`. Each thread computes
//           one element of P from global memory. In one kernel the lanes of a warp lie along a row of P, in the other
//           along a column.
// Pattern:  matmul_coalesced: in each iteration a warp reads one element of M, the same for all lanes, and 32
//           consecutive elements of N. It writes 32 consecutive elements.
//           matmul_uncoalesced: in each iteration a warp reads 32 rows of M, 32 sectors per load, and one element of
//           N. It writes to 32 rows. Each thread reads consecutive elements of its row of M, so later iterations may
//           hit in L1.
// Origin:   D. Kirk and W. Hwu, "Programming Massively Parallel Processors": the favorable and the unfavorable access
//           pattern, as the blog series "The CUDA Parallel Programming Model" presents them. Rewritten for any shape
//           with 64-bit indices. Products of float16 are summed in float32.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float matmul_direct.cu

constexpr int TILE = 32;

// The type of a sum, by the size of an element in bytes.
template <int Bytes> struct Sum { using type = float; };
template <> struct Sum<8> { using type = double; };
using sum_t = Sum<sizeof(ELEMENT)>::type;

__device__ __forceinline__ void multiply(
    ELEMENT* __restrict__ P, const ELEMENT* __restrict__ M, const ELEMENT* __restrict__ N, long long rows,
    long long inner, long long columns, long long row, long long column)
{
    if (row < rows && column < columns) {
        sum_t sum = 0;
        for (long long k = 0; k < inner; ++k) {
            sum += static_cast<sum_t>(M[row * inner + k]) * static_cast<sum_t>(N[k * columns + column]);
        }
        P[row * columns + column] = static_cast<ELEMENT>(sum);
    }
}

// The index of a thread along x and along y of the grid. A grid has at most 65535 blocks along y. If a matrix needs
// more, z extends y.
__device__ __forceinline__ long long along_x()
{
    return static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;
}

__device__ __forceinline__ long long along_y()
{
    return (blockIdx.y + static_cast<long long>(blockIdx.z) * gridDim.y) * TILE + threadIdx.y;
}

extern "C" __global__ void matmul_coalesced(
    ELEMENT* __restrict__ P, const ELEMENT* __restrict__ M, const ELEMENT* __restrict__ N, long long rows,
    long long inner, long long columns)
{
    multiply(P, M, N, rows, inner, columns, along_y(), along_x());
}

extern "C" __global__ void matmul_uncoalesced(
    ELEMENT* __restrict__ P, const ELEMENT* __restrict__ M, const ELEMENT* __restrict__ N, long long rows,
    long long inner, long long columns)
{
    multiply(P, M, N, rows, inner, columns, along_x(), along_y());
}
