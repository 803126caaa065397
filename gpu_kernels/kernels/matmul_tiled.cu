// Idea:     P = M * N, both row-major; M has `rows` x `inner` elements, N has `inner` x `columns`. Each thread computes
//           four elements of P through tiles in shared memory.
// Pattern:  matmul_tiled: a block copies a 32 x 32 tile of M and one of N into shared memory. A warp loads 32
//           consecutive elements of a row, and each loaded element serves 32 products. From the tiles a warp reads 32
//           consecutive elements of N and four elements of M, each the same for all lanes. So there are no bank
//           conflicts, and an element of N serves four sums.
// Origin:   D. Kirk and W. Hwu, "Programming Massively Parallel Processors": the kernel that texts on coalescing use as
//           an example (the blog series "The CUDA Parallel Programming Model"). Rewritten for any shape with 64-bit
//           indices. Products of float16 are summed in float32.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float matmul_tiled.cu

constexpr int TILE = 32;

// Elements of P per thread, and the distance of their rows.
constexpr int SUMS = 4, ROW_STRIDE = TILE / SUMS;

// The type of a sum, by the size of an element in bytes.
template <int Bytes> struct Sum { using type = float; };
template <> struct Sum<8> { using type = double; };
using sum_t = Sum<sizeof(ELEMENT)>::type;

extern "C" __global__ void matmul_tiled(
    ELEMENT* __restrict__ P, const ELEMENT* __restrict__ M, const ELEMENT* __restrict__ N, long long rows,
    long long inner, long long columns)
{
    __shared__ ELEMENT tile_of_M[TILE][TILE];
    __shared__ ELEMENT tile_of_N[TILE][TILE];

    // A grid has at most 65535 blocks along y. If a matrix needs more, z extends y.
    const long long first_row = (blockIdx.y + static_cast<long long>(blockIdx.z) * gridDim.y) * TILE;
    const long long column = static_cast<long long>(blockIdx.x) * TILE + threadIdx.x;

    sum_t sum[SUMS] = {};
    for (long long first = 0; first < inner; first += TILE) {
        const long long along = first + threadIdx.x;
#pragma unroll
        for (int s = 0; s < SUMS; ++s) {
            const int line = threadIdx.y + s * ROW_STRIDE;
            const long long row = first_row + line, down = first + line;
            tile_of_M[line][threadIdx.x] = row < rows && along < inner ? M[row * inner + along] : ELEMENT(0);
            tile_of_N[line][threadIdx.x] = down < inner && column < columns ? N[down * columns + column] : ELEMENT(0);
        }
        __syncthreads();
        for (int k = 0; k < TILE; ++k) {
            const sum_t n = static_cast<sum_t>(tile_of_N[k][threadIdx.x]);
#pragma unroll
            for (int s = 0; s < SUMS; ++s) {
                sum[s] += static_cast<sum_t>(tile_of_M[threadIdx.y + s * ROW_STRIDE][k]) * n;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int s = 0; s < SUMS; ++s) {
        const long long row = first_row + threadIdx.y + s * ROW_STRIDE;
        if (row < rows && column < columns) {
            P[row * columns + column] = static_cast<ELEMENT>(sum[s]);
        }
    }
}
