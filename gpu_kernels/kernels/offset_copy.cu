// Idea:     copy `size` elements that begin at index `offset` of both arrays.
// Pattern:  a warp accesses 32 consecutive elements. Unless the offset is a multiple of a 32-byte sector, each load and
//           each store touches one sector more than an aligned one.
// Origin:   the misalignment exercise of CUDA teaching (DTU course 02614, "Memory optimization"). Rewritten with a
//           bounds check and 64-bit indices.
// Run:      nvcc --cubin -arch sm_90 -DELEMENT=float offset_copy.cu

extern "C" __global__ void offset_copy(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ input, long long size, long long offset)
{
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < size) {
        output[index + offset] = input[index + offset];
    }
}
