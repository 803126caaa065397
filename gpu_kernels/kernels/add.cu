// Idea:     add two vectors of `size` elements, one element a thread. The two kernels differ in one thing alone: which
//           of a block's 1024 elements is whose.
// Pattern:  add_coalesced: the lanes of a warp touch 32 consecutive elements, 4 sectors a request at 4 bytes an element.
//           add_uncoalesced: the lanes of a warp touch elements 32 apart, 32 sectors a request. The block's other warps
//           want the rest of these sectors, so what L1 keeps of them need not be read again.
// Origin:   the example of an article on coalescing for Python programmers, out[i] = a[i] + b[i] in Numba, and its
//           counterpart, which the article times and does not show. Written anew, with a bounds check and 64-bit
//           indices.
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
