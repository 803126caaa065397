// Idea:     gather elements by index, one element per thread.
// Pattern:  a warp reads 32 consecutive indices and writes 32 consecutive elements. It reads elements at unrelated
//           addresses, up to 32 sectors per load.
// Origin:   written for this project, as an access pattern that depends on data.
// Run:      kernelwatch count gather size=4096    (this compiles gather<float>)

template <typename T>
__global__ void gather(T* output, const T* input, const int* index, int size) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) output[i] = input[index[i]];
}
