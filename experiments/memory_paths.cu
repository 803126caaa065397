// Paths through shared memory, L1, L2, translation and DRAM, one kernel each, for `python -m experiments.memory_paths`.

using u32 = unsigned int;
using u64 = unsigned long long;

#define KERNEL(NAME) extern "C" __global__ void NAME

__device__ u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
__device__ u64 index() { return blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x; }
__device__ u64 threads() { return gridDim.x * static_cast<u64>(blockDim.x); }

// `ldmatrix` and `stmatrix` of rows of 16 bytes; the row of a lane begins at byte `16 * place[lane]`.
#define MATRIX(NAME, CODE)                                                       \
    KERNEL(NAME)(u32* out, const int* place)                                     \
    {                                                                            \
        __shared__ alignas(1024) u32 words[8192];                                \
        const int lane = threadIdx.x;                                            \
        for (int i = lane; i < 8192; i += 32) words[i] = i;                      \
        __syncwarp();                                                            \
        const u32 row = shared_address(words) + 16 * place[lane];                \
        u32 a = lane, b = lane, c = lane, d = lane;                              \
        asm volatile(CODE : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : "r"(row) : "memory"); \
        __syncwarp();                                                            \
        out[lane] = a + b + c + d + words[lane];                                 \
    }
MATRIX(load_x1, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%4];")
MATRIX(load_x2, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%4];")
MATRIX(load_x4, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];")
MATRIX(load_x4_trans, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];")
MATRIX(store_x1, "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%4], {%0};")
MATRIX(store_x2, "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%4], {%0, %1};")
MATRIX(store_x4, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%4], {%0, %1, %2, %3};")
MATRIX(store_x4_trans, "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%4], {%0, %1, %2, %3};")

// Each thread reads eight consecutive floats, one after the other; threads are `stride` floats apart.
KERNEL(strided)(const float* in, float* out, int stride)
{
    float sum = 0, value;
    for (int k = 0; k < 8; k++) {
        asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(in + index() * stride + k));
        sum += value;
    }
    if (sum == 1) *out = sum;
}

// Each thread writes one `TYPE` at the beginning of its own sector of 32 bytes.
#define PART(NAME, TYPE) \
    KERNEL(NAME)(char* out, int) { *reinterpret_cast<TYPE*>(out + 32 * index()) = TYPE{}; }
PART(part_1, char)
PART(part_4, int)
PART(part_8, int2)
PART(part_16, int4)
KERNEL(part_32)(char* out, int)
{
    reinterpret_cast<int4*>(out + 16 * index())[0] = int4{};
}
// Each thread writes the first half of a sector, and later the second half of the sector `distance` sectors ahead.
KERNEL(halves)(char* out, int distance)
{
    *reinterpret_cast<int4*>(out + 32 * index()) = int4{};
    __threadfence();
    const u64 other = (index() + distance) % threads();
    *reinterpret_cast<int4*>(out + 32 * other + 16) = int4{};
}
// Each thread writes 28 bytes of its own sector of 32.
KERNEL(part_28)(char* out, int)
{
    int* p = reinterpret_cast<int*>(out + 32 * index());
    *reinterpret_cast<int4*>(p) = int4{};
    *reinterpret_cast<int2*>(p + 4) = int2{};
    p[6] = 0;
}

// Barrier of all blocks of the grid, which must be resident at once.
__device__ void meet(u32* arrivals)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        const u32 before = atomicAdd(arrivals, 1), goal = (before / gridDim.x + 1) * gridDim.x;
        while (*reinterpret_cast<volatile u32*>(arrivals) < goal) {}
        __threadfence();
    }
    __syncthreads();
}

__device__ u32 read_all(const uint4* in, u64 count, u64 policy, bool hinted)
{
    u32 sum = 0;
    for (u64 i = index(); i < count; i += threads()) {
        uint4 v;
        if (hinted)
            asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                         : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(in + i), "l"(policy));
        else
            asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(in + i));
        sum += v.x + v.y + v.z + v.w;
    }
    return sum;
}

#define POLICY(NAME, KIND) \
    u64 NAME;              \
    asm("createpolicy.fractional.L2::" KIND ".b64 %0, 1.0;" : "=l"(NAME))

// Reads `hot`, then `cold`, then `hot` again. Modes: 0 plain, 1 hot by evict_last, 2 the same with
// `applypriority` evict_normal before cold, 3 cold by evict_first, 4 hot by a prefetch to evict_last, 5 both 1 and 3.
KERNEL(keep)(const uint4* hot, const uint4* cold, u64 hot_count, u64 cold_count, int mode, u32* arrivals, u64* out)
{
    POLICY(last, "evict_last");
    POLICY(first, "evict_first");
    u32 sum = 0;
    if (mode == 4)
        for (u64 i = index(); i < hot_count / 8; i += threads())
            asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(hot + 8 * i));
    sum += read_all(hot, hot_count, last, mode == 1 || mode == 2 || mode == 5);
    meet(arrivals);
    if (mode == 2)
        for (u64 i = index(); i < hot_count / 8; i += threads())
            asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(hot + 8 * i) : "memory");
    meet(arrivals);
    sum += read_all(cold, cold_count, first, mode == 3 || mode == 5);
    meet(arrivals);
    u64 begin, end;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    sum += read_all(hot, hot_count, last, false);
    meet(arrivals);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end));
    if (index() == 0) out[0] = end - begin;
    if (sum == 1) out[1] = sum;
}

// Writes `hot`, discards it if `mode`, and reads `cold`, which drives `hot` out of L2.
KERNEL(forget)(uint4* hot, const uint4* cold, u64 hot_count, u64 cold_count, int mode, u32* arrivals, u64* out)
{
    for (u64 i = index(); i < hot_count; i += threads()) hot[i] = uint4{1, 2, 3, 4};
    meet(arrivals);
    if (mode == 1)
        for (u64 i = index(); i < hot_count / 8; i += threads())
            asm volatile("discard.global.L2 [%0], 128;" ::"l"(hot + 8 * i) : "memory");
    meet(arrivals);
    const u32 sum = read_all(cold, cold_count, 0, false);
    if (sum == 1) out[1] = sum;
}

// Each thread reads eight random words of a table, whose length is a power of two.
__device__ u64 scatter(u64 i)
{
    i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9ull;
    i = (i ^ (i >> 27)) * 0x94d049bb133111ebull;
    return i ^ (i >> 31);
}
#define RANDOM(NAME, TABLE, LOAD)                                                        \
    KERNEL(NAME)(TABLE table, u64 mask, u32* out)                                        \
    {                                                                                    \
        u32 sum = 0, value;                                                              \
        for (int k = 0; k < 8; k++) {                                                    \
            const u64 at = scatter(8 * index() + k) & mask;                              \
            LOAD;                                                                        \
            sum += value;                                                                \
        }                                                                                \
        if (sum == 1) *out = sum;                                                        \
    }
RANDOM(random_plain, const u32*, asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(table + at)))
RANDOM(random_nc, const u32*, asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(table + at)))
RANDOM(random_cg, const u32*, asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(table + at)))
RANDOM(random_texture, u64, asm volatile("{ .reg .b32 a, b, c;\ntex.1d.v4.u32.s32 {%0, a, b, c}, [%1, {%2}]; }"
                                         : "=r"(value) : "l"(table), "r"(static_cast<int>(at))))

// Byte offsets of a chain: `stride` bytes apart, plus one of 256 lines in turn, so that they differ in their line.
__device__ u64 place(u64 i, u64 stride) { return i * stride + (i & 255) * 128; }
KERNEL(link)(char* base, u64 stride, u64 count, u64 step)
{
    for (u64 i = index(); i < count; i += threads())
        *reinterpret_cast<u64*>(base + place(i, stride)) = place((i + step) & (count - 1), stride);
}
// Measures the clocks of `count` dependent loads, after as many that warm the caches.
KERNEL(chase)(const char* base, u64 count, u64* out)
{
    u64 at = 0;
    for (int lap = 0; lap < 2; lap++) {
        const long long begin = clock64();
        for (u64 i = 0; i < count; i++)
            asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(at) : "l"(base + at) : "memory");
        out[lap] = clock64() - begin;
    }
    out[2] = at;
}

KERNEL(copy)(const uint4* in, uint4* out, u64 count)
{
    for (u64 i = index(); i < count; i += threads()) out[i] = in[i];
}
