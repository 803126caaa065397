// Idea:     add two vectors of `size` elements, one element per thread. The two kernels assign the 1024 elements of a
//           block to its threads in different orders.
// Pattern:  add_coalesced: a warp accesses 32 consecutive elements, 4 sectors per request for 4-byte elements.
//           add_uncoalesced: a warp accesses 32 elements with a stride of 32, 32 sectors per request. Other warps of
//           the block use the rest of these sectors, so later requests may hit in L1.
// Origin:   the example of an article on coalescing for Python programmers, out[i] = a[i] + b[i] in Numba, and its
//           uncoalesced counterpart, which the article times but does not print. Rewritten with a bounds check and
//           64-bit indices.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float add.cu

constexpr int WARP = 32;

__device__ __forceinline__ void add(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, long long size,
    unsigned int place)
{
    const long long index = static_cast<long long>(blockIdx.x) * WARP * WARP + place;
    if (index < size) {
        output[index] = a[index] + b[index];
    }
}

extern "C" __global__ void add_coalesced(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, long long size)
{
    add(output, a, b, size, threadIdx.y * WARP + threadIdx.x);
}

extern "C" __global__ void add_uncoalesced(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, long long size)
{
    add(output, a, b, size, threadIdx.x * WARP + threadIdx.y);
}
