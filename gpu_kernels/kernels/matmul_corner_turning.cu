// Idea:     P = M * N for a column-major N: memory holds its transpose, `columns` x `inner`. M is row-major, `rows` x
//           `inner`. Each thread computes one element of P. Tiles in shared memory make the loads of N coalesced.
// Pattern:  each thread needs a column of N. If lanes loaded their own columns, a load would touch 32 sectors. Instead
//           a block copies a 32 x 32 tile of N into shared memory in the order of global memory: a warp loads 32
//           consecutive elements of a column. Each lane then reads its column from the tile. One element of padding
//           per row avoids bank conflicts, except one at every other step for 2-byte elements. M goes through tiles
//           as in matmul_tiled.
// Origin:   corner turning, D. Kirk and W. Hwu, "Programming Massively Parallel Processors", as the blog series "The
//           CUDA Parallel Programming Model" presents it. Rewritten for any shape with 64-bit indices. Products of
//           float16 are summed in float32.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float matmul_corner_turning.cu

constexpr int TILE = 32;

// The type of a sum, by the size of an element in bytes.
template <int Bytes> struct Sum { using type = float; };
template <> struct Sum<8> { using type = double; };
using sum_t = Sum<sizeof(ELEMENT)>::type;

extern "C" __global__ void matmul_corner_turning(
    ELEMENT* __restrict__ P, const ELEMENT* __restrict__ M, const ELEMENT* __restrict__ N, long long rows,
    long long inner, long long columns)
{
    __shared__ ELEMENT tile_of_M[TILE][TILE];
    __shared__ ELEMENT tile_of_N[TILE][TILE + 1]; // row i of the tile is column i of N

    // A grid has at most 65535 blocks along y. If a matrix needs more, z extends y.
    const long long row = (blockIdx.y + static_cast<long long>(blockIdx.z) * gridDim.y) * TILE + threadIdx.y;
    const long long first_column = static_cast<long long>(blockIdx.x) * TILE;
    const long long column = first_column + threadIdx.x;
    const long long loaded_column = first_column + threadIdx.y;
    sum_t sum = 0;
    for (long long first = 0; first < inner; first += TILE) {
        const long long along = first + threadIdx.x;
        tile_of_M[threadIdx.y][threadIdx.x] = row < rows && along < inner ? M[row * inner + along] : ELEMENT(0);
        tile_of_N[threadIdx.y][threadIdx.x] =
            loaded_column < columns && along < inner ? N[loaded_column * inner + along] : ELEMENT(0);
        __syncthreads();
        for (int k = 0; k < TILE; ++k) {
            sum += static_cast<sum_t>(tile_of_M[threadIdx.y][k]) * static_cast<sum_t>(tile_of_N[threadIdx.x][k]);
        }
        __syncthreads();
    }
    if (row < rows && column < columns) {
        P[row * columns + column] = static_cast<ELEMENT>(sum);
    }
}
