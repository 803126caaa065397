// Idea:     P = M * N, where N is stored by columns: in memory lies its transpose, `columns` x `inner`. M is row-major,
//           `rows` x `inner`. An element of P a thread, through tiles in shared memory, where N's are turned.
// Pattern:  a thread needs a column of N, so lanes that read for themselves would touch 32 columns, 32 sectors a load.
//           Instead a block brings a 32 x 32 tile of N into shared memory as it lies, 32 consecutive elements of a
//           column a warp; from there each lane reads its own column, across the rows of the tile. One more element a
//           row spreads that over all banks, but for one conflict at every other step at 2 bytes an element. M goes
//           through tiles as in matmul_tiled.
// Origin:   corner turning, D. Kirk and W. Hwu, "Programming Massively Parallel Processors", as the blog series "The
//           CUDA Parallel Programming Model" names it, written anew for any shape with 64-bit indices. A float16
//           product is summed in float32.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float matmul_corner_turning.cu

constexpr int TILE = 32;

// What elements of so many bytes are summed in.
template <int Bytes> struct Sum { using type = float; };
template <> struct Sum<8> { using type = double; };
using sum_t = Sum<sizeof(ELEMENT)>::type;

extern "C" __global__ void matmul_corner_turning(
    ELEMENT* __restrict__ P, const ELEMENT* __restrict__ M, const ELEMENT* __restrict__ N, long long rows,
    long long inner, long long columns)
{
    __shared__ ELEMENT tile_of_M[TILE][TILE];
    __shared__ ELEMENT tile_of_N[TILE][TILE + 1]; // a column of N lies along a row of it

    // A grid allows 65535 blocks along y: where a matrix needs more, z carries on where y ends.
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
