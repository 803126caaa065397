// Products of four warps, for sm_90a: factors in shared memory, by rows and by columns, with swizzles and without.

using u64 = unsigned long long;

__device__ unsigned int shared_address(const void* p) { return static_cast<unsigned int>(__cvta_generic_to_shared(p)); }

// d (64 x 32, float) = a (64 x 16) times b (32 x 16, by rows: transposed): halves, in swizzled rows of 32 bytes.
extern "C" __global__ void warpgroup(float* d, const unsigned short* a, const unsigned short* b, int swizzled)
{
    __shared__ alignas(1024) unsigned char left[2048], right[1024];
    for (int i = threadIdx.x; i < 1024 + 512; i += 128) {
        const int k = i % 16, row = (i < 1024 ? i : i - 1024) / 16;
        int at = swizzled ? row * 32 + k * 2 : row / 8 * 256 + k / 8 * 128 + row % 8 * 16 + k % 8 * 2;
        if (swizzled) at ^= at >> 3 & 16;
        *reinterpret_cast<unsigned short*>((i < 1024 ? left : right) + at) = i < 1024 ? a[i] : b[i - 1024];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const u64 mode = swizzled ? 3ull << 62 : 0, sides = 256ull >> 4 << 32 | 128ull >> 4 << 16;
    const u64 da = shared_address(left) >> 4 | sides | mode, db = shared_address(right) >> 4 | sides | mode;
    float r[16] = {};
    asm volatile(
        "wgmma.fence.sync.aligned;\n{ .reg .pred p; setp.ne.u32 p, %18, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
        "%14, %15}, %16, %17, p, 1, 1, 0, 0; }\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
        : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3]), "+f"(r[4]), "+f"(r[5]), "+f"(r[6]), "+f"(r[7]), "+f"(r[8]),
          "+f"(r[9]), "+f"(r[10]), "+f"(r[11]), "+f"(r[12]), "+f"(r[13]), "+f"(r[14]), "+f"(r[15])
        : "l"(da), "l"(db), "r"(0) : "memory");
    const int lane = threadIdx.x % 32, top = threadIdx.x / 32 * 16 + lane / 4;
    for (int i = 0; i < 16; i++) d[(top + i / 2 % 2 * 8) * 32 + i / 4 * 8 + lane % 4 * 2 + i % 2] = r[i];
}

// The same with a (16 x 64) and b (16 x 32) transposed in memory, in patterns of 64 bytes.
extern "C" __global__ void warpgroup_turned(float* d, const unsigned short* a, const unsigned short* b)
{
    __shared__ alignas(1024) unsigned char left[2048], right[1024];
    for (int i = threadIdx.x; i < 1024 + 512; i += 128) {
        const int extent = i < 1024 ? 64 : 32, j = i < 1024 ? i : i - 1024, k = j / extent, m = j % extent;
        int at = m / 32 * 1024 + k / 8 * 512 + k % 8 * 64 + m % 32 * 2;
        at ^= at >> 3 & 48;
        *reinterpret_cast<unsigned short*>((i < 1024 ? left : right) + at) = i < 1024 ? a[j] : b[j];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const u64 sides = 2ull << 62 | 512ull >> 4 << 32 | 1024ull >> 4 << 16;
    const u64 da = shared_address(left) >> 4 | sides, db = shared_address(right) >> 4 | sides;
    float r[16];
    for (int i = 0; i < 16; i++) r[i] = i;
    asm volatile(
        "wgmma.fence.sync.aligned;\n{ .reg .pred p; setp.ne.u32 p, %18, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
        "%14, %15}, %16, %17, p, -1, 1, 1, 1; }\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
        : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3]), "+f"(r[4]), "+f"(r[5]), "+f"(r[6]), "+f"(r[7]), "+f"(r[8]),
          "+f"(r[9]), "+f"(r[10]), "+f"(r[11]), "+f"(r[12]), "+f"(r[13]), "+f"(r[14]), "+f"(r[15])
        : "l"(da), "l"(db), "r"(1) : "memory");
    const int lane = threadIdx.x % 32, top = threadIdx.x / 32 * 16 + lane / 4;
    for (int i = 0; i < 16; i++) d[(top + i / 2 % 2 * 8) * 32 + i / 4 * 8 + lane % 4 * 2 + i % 2] = r[i] - i;
}
