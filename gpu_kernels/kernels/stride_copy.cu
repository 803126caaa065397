// Idea:     copy `size` elements that lie `stride` elements apart in both arrays.
// Pattern:  a warp touches 32 elements spread over `stride` times their bytes: the sectors it moves grow with the
//           stride until each element costs a sector of its own, on the load and on the store.
// Origin:   the stride exercise of CUDA teaching (DTU course 02614, "Memory optimization"), rewritten with a
//           bounds check and 64-bit indices.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float stride_copy.cu

extern "C" __global__ void stride_copy(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long size, long long stride)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < size) {
        output[index * stride] = input[index * stride];
    }
}
