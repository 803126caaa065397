// Idea:     transpose a row-major `rows` x `columns` matrix with the widest accesses that its rows allow. A thread
//           loads V vectors of V elements, transposes this V x V square in registers, and stores V vectors.
// Pattern:  transpose_vectorized: a thread loads up to 16 bytes at once. The squares are stored to a tile in shared
//           memory, as vectors of the output. An XOR swizzle spreads them over all banks, so a large tile has neither
//           bank conflicts nor padding. Consecutive blocks write consecutive parts of the output's rows, because
//           neighbouring writes are faster in DRAM. A matrix is ragged if its rows are not a multiple of 8 elements,
//           or the output's rows do not begin at a sector. Ragged or unaligned arrays are loaded as aligned words, one
//           per lane; a funnel shift with the next lane's word aligns them. Stores write whole sectors of 32 bytes,
//           wherever a row of the output begins. Small ragged matrices are moved element by element.
// Origin:   written for this project. XOR swizzles as in NVIDIA's CUTLASS, squares in registers as in many libraries.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float transpose_vectorized.cu

constexpr int THREADS = 256;

template <int Bytes> struct Word;
template <> struct Word<1> { using type = unsigned char; };
template <> struct Word<2> { using type = unsigned short; };
template <> struct Word<4> { using type = unsigned int; };
template <> struct Word<8> { using type = uint2; };
template <> struct Word<16> { using type = uint4; };

// V: elements per vector. ROWS, COLUMNS: the tile of the input. BLOCKS: resident blocks per multiprocessor.
// RAGGED_ROWS: rows that a ragged tile stores.
template <int Bytes> struct Large;
template <> struct Large<1> { static constexpr int V = 8, ROWS = 64, COLUMNS = 256, BLOCKS = 8, RAGGED_ROWS = 64; };
template <> struct Large<2> { static constexpr int V = 8, ROWS = 128, COLUMNS = 128, BLOCKS = 4, RAGGED_ROWS = 128; };
template <> struct Large<4> { static constexpr int V = 4, ROWS = 64, COLUMNS = 64, BLOCKS = 6, RAGGED_ROWS = 64; };
template <> struct Large<8> { static constexpr int V = 2, ROWS = 32, COLUMNS = 64, BLOCKS = 6, RAGGED_ROWS = 60; };
template <> struct Large<16> { static constexpr int V = 1, ROWS = 16, COLUMNS = 32, BLOCKS = 8, RAGGED_ROWS = 14; };
using LargeTile = Large<sizeof(ELEMENT)>;

// The tile for matrices with few large tiles: one square of V x V elements per thread.
template <int Bytes> struct Small { static constexpr int V = 2, ROWS = 32, COLUMNS = 32; };
template <> struct Small<1> { static constexpr int V = 4, ROWS = 32, COLUMNS = 128; };
template <> struct Small<2> { static constexpr int V = 4, ROWS = 32, COLUMNS = 128; };
template <> struct Small<16> { static constexpr int V = 1, ROWS = 16, COLUMNS = 16; };
using SmallTile = Small<sizeof(ELEMENT)>;

// Each lane loads one word of a row of a ragged tile. If elements are shorter than a word, lane 31's word is not stored,
// because no next lane completes it. A line is the part of a column that one tile stores. It starts with the first
// sector that begins in the tile. The elements of the next tile in its last sector are loaded twice.
struct RaggedTile {
    static constexpr int SIZE = sizeof(ELEMENT), WORD = SIZE < 4 ? 4 : SIZE, V = WORD / SIZE, VECTOR = 16 / SIZE;
    static constexpr int ROWS = LargeTile::RAGGED_ROWS, LOADED = ROWS + 32 / SIZE, COLUMNS = V > 1 ? 31 * V : 32;

    // The first word of a line. Lanes write V lines apart. They read four words apart, from lines that are 8 V apart.
    // Neither has bank conflicts.
    static __device__ constexpr int line(int column)
    {
        return column * (LOADED / V + (VECTOR > V * V ? VECTOR / V / V : 1)) + column / (8 * V);
    }
};

constexpr int LARGE = sizeof(ELEMENT) * LargeTile::ROWS * LargeTile::COLUMNS;
constexpr int RAGGED = RaggedTile::WORD * RaggedTile::line(32 * RaggedTile::V);
__shared__ __align__(16) unsigned char shared[LARGE > RAGGED ? LARGE : RAGGED];

// A grid has at most 65535 blocks along y. If a matrix needs more, z extends y.
__device__ __forceinline__ long long block_along_y()
{
    return blockIdx.y + static_cast<long long>(blockIdx.z) * gridDim.y;
}

// Rows that are multiples of 128 KiB apart compete for the same memory channels: 0.93 of a copy's rate for float64,
// 2048 x 16384. So consecutive blocks read different places of 16 KiB: 0.95. The step 27 visits all places. Elements of
// one byte do not gain, nor do matrices whose output rows have other lengths.
template <typename Tile>
__device__ __forceinline__ long long column_of_tiles(long long rows, long long columns)
{
    constexpr int SIZE = sizeof(ELEMENT), PLACES = 16384 / (Tile::COLUMNS * SIZE);
    const long long column = block_along_y();
    if (SIZE > 1 && (columns * SIZE) % 131072 == 0 && (rows * SIZE) % 4096 == 0) {
        return column / PLACES * PLACES + (column + blockIdx.x * 27) % PLACES;
    }
    return column;
}

template <int V>
union Elements {
    typename Word<V * sizeof(ELEMENT)>::type vector;
    ELEMENT element[V];
    __device__ Elements() {}
};

template <typename Tile>
__device__ __forceinline__ void transpose_vectors(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    const long long first_row = static_cast<long long>(blockIdx.x) * Tile::ROWS;
    const long long first_column = column_of_tiles<Tile>(rows, columns) * Tile::COLUMNS;
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

// Transpose a small ragged matrix: single elements, through a tile whose columns begin in different banks.
__device__ __forceinline__ void transpose_elements(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    using Element = typename Word<sizeof(ELEMENT)>::type;
    constexpr int SIDE = sizeof(ELEMENT) < 16 ? 32 : 16, STEP = THREADS / SIDE;
    constexpr int LINE = SIDE + (sizeof(ELEMENT) < 4 ? 4 / sizeof(ELEMENT) : 1);
    Element* const tile = reinterpret_cast<Element*>(shared);
    const int along = threadIdx.x % SIDE, across = threadIdx.x / SIDE;
    const long long first_row = static_cast<long long>(blockIdx.x) * SIDE, first_column = block_along_y() * SIDE;
    const Element* const from = reinterpret_cast<const Element*>(input) + first_row * columns + first_column + along;
    Element* const to = reinterpret_cast<Element*>(output) + first_column * rows + first_row + along;
    Element element[SIDE / STEP];
#pragma unroll
    for (int k = 0; k < SIDE / STEP; ++k) {
        if (first_row + across + k * STEP < rows && first_column + along < columns) {
            element[k] = __ldg(from + (across + k * STEP) * columns);
        }
    }
#pragma unroll
    for (int k = 0; k < SIDE / STEP; ++k) {
        tile[along * LINE + across + k * STEP] = element[k];
    }
    __syncthreads();
#pragma unroll
    for (int line = across; line < SIDE; line += STEP) {
        if (first_row + along < rows && first_column + line < columns) {
            to[line * rows] = tile[line * LINE + along];
        }
    }
}

// Transpose a square of V x V elements in V words.
template <int V, typename Type>
__device__ __forceinline__ void transpose_square(Type* word)
{
    if constexpr (V == 2) {
        const unsigned int first = word[0];
        word[0] = __byte_perm(first, word[1], 0x5410);
        word[1] = __byte_perm(first, word[1], 0x7632);
    } else if constexpr (V == 4) {
        const unsigned int a = __byte_perm(word[0], word[1], 0x5140), b = __byte_perm(word[2], word[3], 0x5140);
        const unsigned int c = __byte_perm(word[0], word[1], 0x7362), d = __byte_perm(word[2], word[3], 0x7362);
        word[0] = __byte_perm(a, b, 0x5410);
        word[1] = __byte_perm(a, b, 0x7632);
        word[2] = __byte_perm(c, d, 0x5410);
        word[3] = __byte_perm(c, d, 0x7632);
    }
}

// Transpose a ragged tile. INSIDE: all loaded words lie in the input.
template <bool INSIDE, typename Word = typename Word<RaggedTile::WORD>::type>
__device__ __forceinline__ void transpose_ragged(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns,
    long long first_row, long long first_column)
{
    using Element = typename ::Word<sizeof(ELEMENT)>::type;
    using Address = unsigned long long;
    constexpr int SIZE = RaggedTile::SIZE, WORD = RaggedTile::WORD, V = RaggedTile::V, N = RaggedTile::VECTOR;
    constexpr int ROWS = RaggedTile::ROWS, LOADED = RaggedTile::LOADED, WARPS = THREADS / 32;
    constexpr int SQUARES = LOADED / (V * WARPS), LANES = ROWS / N < 8 ? 4 : 8;
    static_assert(LOADED % (V * WARPS) == 0, "all threads do as much");
    Word* const tile = reinterpret_cast<Word*>(shared);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int height = static_cast<int>(min(rows - first_row, static_cast<long long>(LOADED)));
    const int width = static_cast<int>(min(columns - first_column, static_cast<long long>(RaggedTile::COLUMNS)));

    const Address begin = reinterpret_cast<Address>(input), end = begin + rows * columns * SIZE;
    const Address lowest = (begin + WORD - 1) / WORD * WORD, highest = end / WORD * WORD - WORD;
    const long long pitch = columns * SIZE;
    const Address corner = begin + (first_row * columns + first_column) * SIZE;
    const Address from = corner + warp * V * pitch + lane * WORD;
    Word word[SQUARES][V];
#pragma unroll
    for (int s = 0; s < SQUARES; ++s) {
#pragma unroll
        for (int i = 0; i < V; ++i) {
            Address address = (from + (s * WARPS * V + i) * pitch) & ~(WORD - 1ull);
            if (!INSIDE) {
                address = max(lowest, min(address, highest));
            }
            word[s][i] = INSIDE || lowest <= highest ? __ldg(reinterpret_cast<const Word*>(address)) : Word{};
        }
    }
#pragma unroll
    for (int s = 0; s < SQUARES; ++s) {
        if constexpr (V > 1) {
#pragma unroll
            for (int i = 0; i < V; ++i) {
                const unsigned int bits = static_cast<unsigned int>(corner + i * pitch) * 8;
                word[s][i] = __funnelshift_r(word[s][i], __shfl_down_sync(~0u, word[s][i], 1), bits);
            }
        }
        transpose_square<V>(word[s]);
#pragma unroll
        for (int j = 0; j < V; ++j) {
            tile[RaggedTile::line(V * lane) + RaggedTile::line(j) + warp + s * WARPS] = word[s][j];
        }
    }
    __syncthreads();
    if (!INSIDE && V > 1) {
        // The first and the last elements of the input may lie in words that reach beyond it.
        const int index = threadIdx.x / 2;
        long long row = threadIdx.x % 2 == 0 ? 0 : rows - 1, column = threadIdx.x % 2 == 0 ? index : columns - 1 - index;
        if (index < V) {
            for (; column >= columns; column -= columns) {
                ++row;
            }
            for (; column < 0; column += columns) {
                --row;
            }
            const long long down = row - first_row, across = column - first_column;
            if (0 <= down && down < height && 0 <= across && across < width) {
                reinterpret_cast<Element*>(tile + RaggedTile::line(static_cast<int>(across)))[down] =
                    reinterpret_cast<const Element*>(input)[row * columns + column];
            }
        }
        __syncthreads();
    }

    // LANES lanes store a line. The lines of a warp, LANES * V apart, begin at sector offsets that differ by 0 or 16.
    const int part = lane % LANES;
#pragma unroll
    for (int k = 0; k < LANES * V / WARPS; ++k) {
        const int line = lane / LANES * LANES * V + k * WARPS + warp;
        const Word* const words = tile + RaggedTile::line(line);
        Element* const to = reinterpret_cast<Element*>(output) + (first_column + line) * rows + first_row;
        const int before = static_cast<int>(-static_cast<unsigned int>(reinterpret_cast<Address>(to)) % 32) / SIZE;
        const int limit = min(height, before + ROWS);
        const auto store_elements = [&](int first, int beyond) {  // fewer elements than a sector has
#pragma unroll
            for (int row = part; row < 32 / SIZE; row += LANES) {
                if (first + row < beyond) {
                    to[first + row] = reinterpret_cast<const Element*>(words)[first + row];
                }
            }
        };
        if (line < width) {
#pragma unroll
            for (int row = before + part * N; row + N <= limit; row += LANES * N) {
                union {
                    Word word[16 / WORD];
                    unsigned int quarter[4];
                } vector;
#pragma unroll
                for (int w = 0; w < 16 / WORD; ++w) {
                    if constexpr (V > 1) {
                        vector.word[w] = __funnelshift_r(words[row / V + w], words[row / V + w + 1], row * SIZE * 8);
                    } else {
                        vector.word[w] = words[row + w];
                    }
                }
                __stwb(
                    reinterpret_cast<uint4*>(to + row),
                    make_uint4(vector.quarter[0], vector.quarter[1], vector.quarter[2], vector.quarter[3]));
            }
            if (first_row == 0) {
                store_elements(0, min(before, limit));
            }
            if (height < LOADED) {
                store_elements(limit - (limit - before) % N, limit);
            }
        }
    }
}

// Consecutive blocks write along the rows of the output. A grid of more blocks than large or ragged tiles need has
// small tiles. Unaligned arrays are moved by ragged tiles, whatever the grid.
extern "C" __global__ void __launch_bounds__(THREADS, LargeTile::BLOCKS) transpose_vectorized(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns)
{
    using Tile = RaggedTile;
    const unsigned long long begin = reinterpret_cast<unsigned long long>(input);
    const unsigned long long addresses = begin | reinterpret_cast<unsigned long long>(output);
    constexpr int SIZE = sizeof(ELEMENT), SECTOR = SIZE < 4 ? 32 / SIZE : 8;
    const bool is_ragged = rows % SECTOR != 0 || columns % 8 != 0;
    if (!is_ragged && addresses % (LargeTile::V * sizeof(ELEMENT)) == 0) {
        const long long before_last = static_cast<long long>(gridDim.y - 1) * gridDim.z * LargeTile::COLUMNS;
        if (gridDim.x == (rows + LargeTile::ROWS - 1) / LargeTile::ROWS && before_last < columns) {
            transpose_vectors<LargeTile>(output, input, rows, columns);
        } else {
            transpose_vectors<SmallTile>(output, input, rows, columns);
        }
        return;
    }
    const long long first_row = static_cast<long long>(blockIdx.x) * Tile::ROWS;
    const long long first_column = block_along_y() * Tile::COLUMNS;
    const long long beyond = (first_row + Tile::LOADED - 1) * columns + first_column + 32 * Tile::V;
    if (is_ragged && gridDim.x != (rows + Tile::ROWS - 1) / Tile::ROWS) {
        transpose_elements(output, input, rows, columns);
        return;
    }
    if (is_ragged && beyond <= rows * columns && (first_row + first_column > 0 || begin % Tile::WORD == 0)) {
        transpose_ragged<true>(output, input, rows, columns, first_row, first_column);
        return;
    }
    const long long across = static_cast<long long>(gridDim.y) * gridDim.z * Tile::COLUMNS;
#pragma unroll 1
    for (long long column = first_column; column < columns; column += across) {
#pragma unroll 1
        for (long long row = first_row; row < rows; row += static_cast<long long>(gridDim.x) * Tile::ROWS) {
            transpose_ragged<false>(output, input, rows, columns, row, column);
            __syncthreads();
        }
    }
}
