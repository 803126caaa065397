// Elements by their indices. Indices and results are neighbours; the elements lie anywhere, and each takes a sector.

template <typename T>
__global__ void gather(T* output, const T* input, const int* index, int size) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) output[i] = input[index[i]];
}
