// Idea:     copy `size` elements with a stride of `stride` elements in both arrays.
// Pattern:  a warp accesses 32 elements, which span `stride` times their bytes. The sectors per load and per store grow
//           with the stride, until each element costs its own sector.
// Origin:   the stride exercise of CUDA teaching (DTU course 02614, "Memory optimization"). Rewritten with a bounds
//           check and 64-bit indices.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float stride_copy.cu

extern "C" __global__ void stride_copy(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long size, long long stride)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < size) {
        output[index * stride] = input[index * stride];
    }
}
