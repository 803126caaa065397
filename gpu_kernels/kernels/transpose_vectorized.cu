// Idea:     transpose a row-major `rows` x `columns` matrix by the widest accesses that its rows allow: a thread loads V
//           vectors of V elements, turns this V x V square round in registers, and stores V vectors.
// Pattern:  transpose_vectorized: a warp loads up to 16 bytes a thread along rows. The squares meet in a tile in shared
//           memory, as vectors of the output, each at its place XOR its square's column, over all banks: neither stores
//           nor loads of a large tile conflict, and nothing is padded. Blocks follow one another along the output's
//           rows, so that what is written at a time lies together in DRAM. Ragged rows, no multiple of 8 elements long,
//           and arrays that do not begin at a vector, are moved element by element, many in flight a thread.
// Origin:   written for this project; XOR swizzles as in NVIDIA's CUTLASS, squares in registers as in many a library.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float transpose_vectorized.cu

constexpr int THREADS = 256;

template <int Bytes>
struct Word;
template <>
struct Word<1> {
    using type = unsigned char;
};
template <>
struct Word<2> {
    using type = unsigned short;
};
template <>
struct Word<4> {
    using type = unsigned int;
};
template <>
struct Word<8> {
    using type = uint2;
};
template <>
struct Word<16> {
    using type = uint4;
};

// V elements a vector; a tile of ROWS x COLUMNS of the input; BLOCKS that must fit on a multiprocessor at once.
template <int Bytes>
struct Large;
template <>
struct Large<1> {
    static constexpr int V = 8, ROWS = 64, COLUMNS = 256, BLOCKS = 8;
};
template <>
struct Large<2> {
    static constexpr int V = 8, ROWS = 128, COLUMNS = 128, BLOCKS = 4;
};
template <>
struct Large<4> {
    static constexpr int V = 4, ROWS = 64, COLUMNS = 64, BLOCKS = 4;
};
template <>
struct Large<8> {
    static constexpr int V = 2, ROWS = 64, COLUMNS = 32, BLOCKS = 6;
};
template <>
struct Large<16> {
    static constexpr int V = 1, ROWS = 32, COLUMNS = 16, BLOCKS = 8;
};
using LargeTile = Large<sizeof(ELEMENT)>;

// For matrices with few large tiles: one square of V x V a thread.
struct SmallTile {
    static constexpr int V = sizeof(ELEMENT) < 16 ? 2 : 1, ROWS = 16 * V, COLUMNS = 16 * V;
};

// For ragged rows, element by element, IN_FLIGHT at once a thread.
template <int Bytes>
struct Ragged;
template <>
struct Ragged<1> {
    static constexpr int ROWS = 64, COLUMNS = 64, IN_FLIGHT = 4;
};
template <>
struct Ragged<2> {
    static constexpr int ROWS = 64, COLUMNS = 64, IN_FLIGHT = 16;
};
template <>
struct Ragged<4> {
    static constexpr int ROWS = 128, COLUMNS = 32, IN_FLIGHT = 16;
};
template <>
struct Ragged<8> {
    static constexpr int ROWS = 32, COLUMNS = 32, IN_FLIGHT = 4;
};
template <>
struct Ragged<16> {
    static constexpr int ROWS = 32, COLUMNS = 16, IN_FLIGHT = 2;
};
using RaggedTile = Ragged<sizeof(ELEMENT)>;

constexpr int ELEMENTS = LargeTile::ROWS * LargeTile::COLUMNS;
static_assert(RaggedTile::ROWS * RaggedTile::COLUMNS <= ELEMENTS, "every tile fits");
__shared__ __align__(16) unsigned char shared[sizeof(ELEMENT) * ELEMENTS];

// A grid allows 65535 blocks along y: where a matrix needs more, z carries on where y ends.
__device__ __forceinline__ long long block_along_y()
{
    return blockIdx.y + static_cast<long long>(blockIdx.z) * gridDim.y;
}

template <int V>
union Elements {
    typename Word<V * sizeof(ELEMENT)>::type vector;
    ELEMENT element[V];
    __device__ Elements() {}
};

template <typename Tile>
__device__ __forceinline__ void transpose_vectors(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns,
    long long first_row, long long first_column)
{
    constexpr int V = Tile::V, ACROSS = Tile::COLUMNS / V, DOWN = Tile::ROWS / V, SQUARES = ACROSS * DOWN / THREADS;
    using Vector = typename Word<V * sizeof(ELEMENT)>::type;
    constexpr int IN_ALL_BANKS = 128 / sizeof(Vector), SWIZZLE = (IN_ALL_BANKS < DOWN * V ? IN_ALL_BANKS : DOWN * V) - 1;
    Vector* tile = reinterpret_cast<Vector*>(shared);

    Elements<V> square[SQUARES][V];
#pragma unroll
    for (int s = 0; s < SQUARES; ++s) {
        const int across = (threadIdx.x + s * THREADS) % ACROSS, down = (threadIdx.x + s * THREADS) / ACROSS;
        const long long row = first_row + down * V, column = first_column + across * V;
        if (row < rows && column < columns) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                square[s][i].vector = __ldg(reinterpret_cast<const Vector*>(input + (row + i) * columns + column));
            }
        }
    }
#pragma unroll
    for (int s = 0; s < SQUARES; ++s) {
        const int across = (threadIdx.x + s * THREADS) % ACROSS, down = (threadIdx.x + s * THREADS) / ACROSS;
#pragma unroll
        for (int j = 0; j < V; ++j) {
            Elements<V> turned;
#pragma unroll
            for (int i = 0; i < V; ++i) {
                turned.element[i] = square[s][i].element[j];
            }
            tile[((across * V + j) * DOWN + down) ^ (across & SWIZZLE)] = turned.vector;
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SQUARES * V; ++k) {
        const int place = (threadIdx.x + k * THREADS) % DOWN, line = (threadIdx.x + k * THREADS) / DOWN;
        const long long row = first_row + place * V, column = first_column + line;
        if (row < rows && column < columns) {
            *reinterpret_cast<Vector*>(output + column * rows + row) =
                tile[(line * DOWN + place) ^ (line / V & SWIZZLE)];
        }
    }
}

// WHOLE: all of the tile lies in the matrix.
template <typename Tile, bool WHOLE>
__device__ __forceinline__ void transpose_elements(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns,
    long long first_row, long long first_column)
{
    constexpr int ROWS = Tile::ROWS, COLUMNS = Tile::COLUMNS, EACH = ROWS * COLUMNS / THREADS;
    constexpr int AT_ONCE = EACH < RaggedTile::IN_FLIGHT ? EACH : RaggedTile::IN_FLIGHT;
    constexpr int IN_BANK = sizeof(ELEMENT) < 4 ? 4 / sizeof(ELEMENT) : 1, IN_ALL_BANKS = 128 / sizeof(ELEMENT);
    constexpr int LINES = IN_ALL_BANKS > ROWS ? IN_ALL_BANKS / ROWS : 1, SWIZZLE = IN_ALL_BANKS / LINES - 1;
    static_assert(THREADS % COLUMNS == 0 && THREADS % ROWS == 0, "a thread keeps its column, and its row of the output");
    using Element = typename Word<sizeof(ELEMENT)>::type;
    Element* tile = reinterpret_cast<Element*>(shared);
    const int height = static_cast<int>(min(rows - first_row, static_cast<long long>(ROWS)));
    const int width = static_cast<int>(min(columns - first_column, static_cast<long long>(COLUMNS)));

    const int column = threadIdx.x % COLUMNS;
    const Element* from = reinterpret_cast<const Element*>(input) + first_row * columns + first_column + column;
#pragma unroll 1
    for (int first = threadIdx.x / COLUMNS; first < ROWS; first += AT_ONCE * (THREADS / COLUMNS)) {
        Element element[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            const int row = first + k * (THREADS / COLUMNS);
            if (WHOLE || (row < height && column < width)) {
                element[k] = __ldg(from + row * columns);
            }
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            const int row = first + k * (THREADS / COLUMNS);
            tile[column * ROWS + (row ^ (column / LINES * IN_BANK & SWIZZLE))] = element[k];
        }
    }
    __syncthreads();

    const int row = threadIdx.x % ROWS;
    Element* const to = reinterpret_cast<Element*>(output) + first_column * rows + first_row + row;
#pragma unroll 4
    for (int line = threadIdx.x / ROWS; line < COLUMNS; line += THREADS / ROWS) {
        if (WHOLE || (row < height && line < width)) {
            to[line * rows] = tile[line * ROWS + (row ^ (line / LINES * IN_BANK & SWIZZLE))];
        }
    }
}

// Transposes the tile of this block, of Tile::ROWS x Tile::COLUMNS, as its place in the grid says.
template <typename Tile>
__device__ __forceinline__ void transpose_tile(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    const long long first_row = static_cast<long long>(blockIdx.x) * Tile::ROWS;
    const long long first_column = block_along_y() * Tile::COLUMNS;
    const unsigned long long addresses =
        reinterpret_cast<unsigned long long>(output) | reinterpret_cast<unsigned long long>(input);
    if (((rows | columns) & (Tile::V - 1)) == 0 && (addresses & (Tile::V * sizeof(ELEMENT) - 1)) == 0) {
        transpose_vectors<Tile>(output, input, rows, columns, first_row, first_column);
    } else {
#pragma unroll 1
        for (int row = 0; row < Tile::ROWS; row += SmallTile::ROWS) {
#pragma unroll 1
            for (int column = 0; column < Tile::COLUMNS; column += SmallTile::COLUMNS) {
                transpose_elements<SmallTile, false>(
                    output, input, rows, columns, first_row + row, first_column + column);
                __syncthreads();
            }
        }
    }
}

// The same, where rows are ragged.
__device__ __forceinline__ void transpose_ragged_tile(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    const long long first_row = static_cast<long long>(blockIdx.x) * RaggedTile::ROWS;
    const long long first_column = block_along_y() * RaggedTile::COLUMNS;
    if (first_row + RaggedTile::ROWS <= rows && first_column + RaggedTile::COLUMNS <= columns) {
        transpose_elements<RaggedTile, true>(output, input, rows, columns, first_row, first_column);
    } else {
        transpose_elements<RaggedTile, false>(output, input, rows, columns, first_row, first_column);
    }
}

template <typename Tile>
__device__ __forceinline__ long long blocks_along(long long rows)
{
    return (rows + Tile::ROWS - 1) / Tile::ROWS;
}

// Consecutive blocks follow the rows of the output. A grid that is finer than it would be of large tiles, or of those
// for ragged rows, is of small ones.
extern "C" __global__ void __launch_bounds__(THREADS, LargeTile::BLOCKS) transpose_vectorized(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    const bool is_ragged = (rows | columns) % 8 != 0;
    if (gridDim.x != (is_ragged ? blocks_along<RaggedTile>(rows) : blocks_along<LargeTile>(rows))) {
        transpose_tile<SmallTile>(output, input, rows, columns);
    } else if (is_ragged) {
        transpose_ragged_tile(output, input, rows, columns);
    } else {
        transpose_tile<LargeTile>(output, input, rows, columns);
    }
}
