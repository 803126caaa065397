// Idea:     copy `size` elements that start `offset` elements into both arrays.
// Pattern:  a warp touches 32 consecutive elements; unless the offset is a multiple of a 32-byte sector, it
//           reaches into one more sector than it needs, on the load and on the store.
// Origin:   the misalignment exercise of CUDA teaching (DTU course 02614, "Memory optimization"), rewritten with
//           a bounds check and 64-bit indices.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float offset_copy.cu

extern "C" __global__ void offset_copy(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long size, long long offset)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < size) {
        output[index + offset] = input[index + offset];
    }
}
