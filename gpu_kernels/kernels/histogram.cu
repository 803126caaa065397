// How often each value occurs. A block counts in shared memory, and adds what it found to the counts in global memory.

extern __shared__ unsigned found[];

__global__ void histogram(unsigned* counts, const signed char* values, int size, int bins) {
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) found[bin] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x)
        atomicAdd(&found[values[i]], 1);
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) atomicAdd(&counts[bin], found[bin]);
}
