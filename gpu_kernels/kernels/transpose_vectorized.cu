// Idea:     transpose a row-major `rows` x `columns` matrix by the widest accesses that its rows allow: a thread loads V
//           vectors of V elements, turns this V x V square round in registers, and stores V vectors.
// Pattern:  transpose_vectorized: a warp loads up to 16 bytes a thread along rows. The squares meet in a tile in shared
//           memory, as vectors of the output, each at its place XOR its square's column, over all banks: neither stores
//           nor loads of a large tile conflict, and nothing is padded. Blocks follow one another along the output's
//           rows, so that what is written at a time lies together in DRAM. Rows that are no multiple of 8 elements long
//           are read as aligned words and shifted into place; whole sectors of 32 bytes are written, wherever a row of
//           the output begins. Small matrices, and arrays that do not begin at a vector, move element by element.
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
    using type = unsigned long long;
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
    static constexpr int V = 4, ROWS = 64, COLUMNS = 64, BLOCKS = 6;
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

// For ragged rows: ROWS x COLUMNS that a tile stores; words in a row of a thread's square; squares loaded at once.
template <int Bytes>
struct Ragged;
template <>
struct Ragged<1> {
    static constexpr int ROWS = 96, COLUMNS = 128, WORDS = 2, AT_ONCE = 1;
};
template <>
struct Ragged<2> {
    static constexpr int ROWS = 112, COLUMNS = 64, WORDS = 2, AT_ONCE = 2;
};
template <>
struct Ragged<4> {
    static constexpr int ROWS = 56, COLUMNS = 32, WORDS = 2, AT_ONCE = 2;
};
template <>
struct Ragged<8> {
    static constexpr int ROWS = 60, COLUMNS = 32, WORDS = 1, AT_ONCE = 8;
};
template <>
struct Ragged<16> {
    static constexpr int ROWS = 30, COLUMNS = 16, WORDS = 1, AT_ONCE = 2;
};
using RaggedTile = Ragged<sizeof(ELEMENT)>;

// Room for each of the tiles.
constexpr int LARGE = sizeof(ELEMENT) * LargeTile::ROWS * LargeTile::COLUMNS;
constexpr int RAGGED = sizeof(ELEMENT) * (RaggedTile::ROWS + 32 / sizeof(ELEMENT)) * RaggedTile::COLUMNS + 512;
__shared__ __align__(16) unsigned char shared[LARGE > RAGGED ? LARGE : RAGGED];

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

template <typename Tile>
__device__ __forceinline__ void transpose_elements(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns,
    long long first_row, long long first_column)
{
    constexpr int ROWS = Tile::ROWS, COLUMNS = Tile::COLUMNS, EACH = ROWS * COLUMNS / THREADS;
    constexpr int IN_BANK = sizeof(ELEMENT) < 4 ? 4 / sizeof(ELEMENT) : 1, IN_ALL_BANKS = 128 / sizeof(ELEMENT);
    constexpr int LINES = IN_ALL_BANKS > ROWS ? IN_ALL_BANKS / ROWS : 1, SWIZZLE = IN_ALL_BANKS / LINES - 1;
    static_assert(THREADS % COLUMNS == 0 && THREADS % ROWS == 0, "a thread keeps its column, and its row of the output");
    using Element = typename Word<sizeof(ELEMENT)>::type;
    Element* tile = reinterpret_cast<Element*>(shared);
    const int height = static_cast<int>(min(rows - first_row, static_cast<long long>(ROWS)));
    const int width = static_cast<int>(min(columns - first_column, static_cast<long long>(COLUMNS)));

    const int column = threadIdx.x % COLUMNS;
    const Element* from = reinterpret_cast<const Element*>(input) + first_row * columns + first_column + column;
    Element element[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int row = threadIdx.x / COLUMNS + k * (THREADS / COLUMNS);
        if (row < height && column < width) {
            element[k] = __ldg(from + row * columns);
        }
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int row = threadIdx.x / COLUMNS + k * (THREADS / COLUMNS);
        tile[column * ROWS + (row ^ (column / LINES * IN_BANK & SWIZZLE))] = element[k];
    }
    __syncthreads();

    const int row = threadIdx.x % ROWS;
    Element* const to = reinterpret_cast<Element*>(output) + first_column * rows + first_row + row;
#pragma unroll
    for (int line = threadIdx.x / ROWS; line < COLUMNS; line += THREADS / ROWS) {
        if (row < height && line < width) {
            to[line * rows] = tile[line * ROWS + (row ^ (line / LINES * IN_BANK & SWIZZLE))];
        }
    }
}

// Turns a square of elements round, V words of V.
template <int V, typename Type>
__device__ __forceinline__ void turn(Type* word)
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

// The word that begins so many bits after the first of two does: none, where an element is no shorter than a word.
template <typename Type>
__device__ __forceinline__ Type shifted(Type low, Type high, unsigned int bits)
{
    if constexpr (sizeof(ELEMENT) < sizeof(unsigned int)) {
        return __funnelshift_r(low, high, bits);
    } else {
        return low;
    }
}

// Each row of the output is stored from the first sector on that begins in the tile; what of the next tile lies in its
// last sector is loaded twice. WHOLE: all of that lies in the matrix, and so do the words around it.
template <bool WHOLE>
__device__ __forceinline__ void transpose_shifted(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long rows, long long columns,
    long long first_row, long long first_column)
{
    // A thread turns squares of N x N elements round, each row WORDS words of V elements.
    using Word = typename Word<sizeof(ELEMENT) < 4 ? 4 : sizeof(ELEMENT)>::type;
    using Element = typename ::Word<sizeof(ELEMENT)>::type;
    constexpr int SIZE = sizeof(ELEMENT), SECTOR = 32, V = sizeof(Word) / SIZE, WORDS = RaggedTile::WORDS, N = WORDS * V;
    constexpr int ROWS = RaggedTile::ROWS + SECTOR / SIZE, ACROSS = RaggedTile::COLUMNS / N, DOWN = ROWS / N;
    constexpr int STEP = THREADS / ACROSS, AT_ONCE = RaggedTile::AT_ONCE, LINE = ROWS / V;
    constexpr int IN_ALL_BANKS = 128 / (WORDS * sizeof(Word)), PAD = ACROSS < IN_ALL_BANKS ? IN_ALL_BANKS / ACROSS : 1;
    static_assert(THREADS % ACROSS == 0 && THREADS % DOWN == 0 && DOWN % (STEP * AT_ONCE) == 0, "all threads do as much");
    static_assert(sizeof(Word) * (RaggedTile::COLUMNS * LINE + ACROSS * PAD * WORDS) <= sizeof(shared), "it fits");
    union Vector {
        typename ::Word<N * SIZE>::type vector;
        Word word[WORDS];
        __device__ Vector() {}
    };
    Word* const tile = reinterpret_cast<Word*>(shared);
    const auto line_of = [](int column) { return column * LINE + column / N * PAD * WORDS; };
    const int height = static_cast<int>(min(rows - first_row, static_cast<long long>(ROWS)));
    const int width = static_cast<int>(min(columns - first_column, static_cast<long long>(RaggedTile::COLUMNS)));
    // Rows from `high` on, whose words would reach beyond an end of the input, are moved element by element.
    int high = height;
    if (!WHOLE && N > 1) {
        if (first_row + first_column == 0 && reinterpret_cast<unsigned long long>(input) % sizeof(Word) != 0) {
            high = 0;
        }
        while (high > 0 && (first_row + high - 1) * columns + first_column + RaggedTile::COLUMNS + N > rows * columns) {
            --high;
        }
    }

    // At an edge, threads beyond it load what others do: no load waits for a branch.
    const int column = threadIdx.x % ACROSS * N, top = threadIdx.x / ACROSS;
    const long long pitch = columns * SIZE;
    const ELEMENT* const corner = input + first_row * columns + first_column + (WHOLE || column < width ? column : 0);
    auto from = reinterpret_cast<unsigned long long>(corner) + top * N * pitch;
#pragma unroll 1
    for (int first = top; first < DOWN && (WHOLE || high > 0); first += AT_ONCE * STEP) {
        Vector square[AT_ONCE][N];
#pragma unroll
        for (int s = 0; s < AT_ONCE; ++s) {
#pragma unroll
            for (int i = 0; i < N; ++i) {
                const int row = (first + s * STEP) * N + i;
                const unsigned long long address = WHOLE
                    ? from + (s * STEP * N + i) * pitch
                    : reinterpret_cast<unsigned long long>(corner) + min(row, high - 1) * pitch;
                const Word* const words = reinterpret_cast<const Word*>(address & ~(sizeof(Word) - 1ull));
                Word word[WORDS + 1];
#pragma unroll
                for (int w = 0; w < WORDS + (V > 1); ++w) {
                    word[w] = __ldg(words + w);
                }
#pragma unroll
                for (int w = 0; w < WORDS; ++w) {
                    square[s][i].word[w] = shifted(word[w], word[w + 1], static_cast<unsigned int>(address) * 8);
                }
            }
        }
#pragma unroll
        for (int s = 0; s < AT_ONCE; ++s) {
            Vector turned[N];
#pragma unroll
            for (int part = 0; part < WORDS * WORDS; ++part) {
                const int i = part / WORDS, j = part % WORDS;
                Word word[V];
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    word[v] = square[s][i * V + v].word[j];
                }
                turn<V>(word);
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    turned[j * V + v].word[i] = word[v];
                }
            }
#pragma unroll
            for (int j = 0; j < N; ++j) {
                const int place = line_of(column) + j * LINE + (first + s * STEP) * WORDS;
                *reinterpret_cast<decltype(turned[j].vector)*>(tile + place) = turned[j].vector;
            }
        }
        from += AT_ONCE * STEP * N * pitch;
    }
    if (!WHOLE && high < height) {
        __syncthreads();
        for (int k = threadIdx.x; k < (height - high) * width; k += THREADS) {
            const int line = k % width, row = high + k / width;
            reinterpret_cast<Element*>(tile + line_of(line))[row] =
                reinterpret_cast<const Element*>(input)[(first_row + row) * columns + first_column + line];
        }
    }
    __syncthreads();

    // Threads with nothing to store of most tiles store what lies before the first sector of the output's rows.
    const int turn_of = threadIdx.x % DOWN, place = turn_of * N < RaggedTile::ROWS ? turn_of : turn_of - DOWN;
    if (place < 0 && first_row > 0) {
        return;
    }
    int line = threadIdx.x / DOWN;
    Element* to = reinterpret_cast<Element*>(output) + (first_column + line) * rows + first_row;
#pragma unroll
    for (int k = 0; k < RaggedTile::COLUMNS / (THREADS / DOWN); ++k) {
        const int before = -static_cast<unsigned int>(reinterpret_cast<unsigned long long>(to)) % SECTOR;
        const int row = before / SIZE + place * N;
        const Word* const words = tile + line_of(line);
        if (WHOLE || (row >= 0 && row + N <= height && line < width)) {
            Vector found;
#pragma unroll
            for (int w = 0; w < WORDS; ++w) {
                found.word[w] = shifted(words[row / V + w], words[row / V + w + 1], row * SIZE * 8);
            }
            *reinterpret_cast<decltype(found.vector)*>(to + row) = found.vector;
        } else if (line < width) {
#pragma unroll
            for (int i = row; i < row + N; ++i) {
                if (i >= 0 && i < height) {
                    to[i] = reinterpret_cast<const Element*>(words)[i];
                }
            }
        }
        line += THREADS / DOWN;
        to += THREADS / DOWN * rows;
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
                transpose_elements<SmallTile>(
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
    const long long beyond = first_row + RaggedTile::ROWS + 32 / sizeof(ELEMENT);
    if (first_row > 0 && beyond < rows && first_column + RaggedTile::COLUMNS <= columns) {
        transpose_shifted<true>(output, input, rows, columns, first_row, first_column);
    } else {
        transpose_shifted<false>(output, input, rows, columns, first_row, first_column);
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
