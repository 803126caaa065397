// Idea:     P = M * N, both row-major, M of `rows` x `inner` and N of `inner` x `columns` elements: an element of P a
//           thread, straight from global memory. The two kernels differ in one thing alone: along which side of P
//           neighbouring threads lie.
// Pattern:  matmul_coalesced: lanes lie along a row of P. At each step of the loop a warp reads one element of M, the
//           same for all lanes, and 32 consecutive elements of N; it writes 32 consecutive elements.
//           matmul_uncoalesced: lanes lie along a column of P. A warp reads from 32 rows of M, 32 sectors a load, and
//           one element of N; it writes to 32 rows. Each thread walks along its row of M, so what L1 keeps of these
//           sectors serves the next steps.
// Origin:   D. Kirk and W. Hwu, "Programming Massively Parallel Processors", as the blog series "The CUDA Parallel
//           Programming Model" retells its favorable and its unfavorable pattern of access, written anew for any shape
//           with 64-bit indices. A float16 product is summed in float32.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float matmul_direct.cu

constexpr int TILE = 32;

// What elements of so many bytes are summed in.
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

// Where a thread is along x and y of the grid. A grid allows 65535 blocks along y: where a matrix needs more, z carries
// on where y ends.
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
