// Idea:     count the occurrences of each value. A block counts in shared memory, then adds its counts to those in
//           global memory. Values have one signed byte; the caller guarantees 0 <= value < bins.
// Pattern:  a warp reads 32 consecutive values in one sector. Lanes with equal values update one counter in turn. At the
//           end a warp adds 32 consecutive counters with one request.
// Origin:   written for this project, as the usual form of a histogram with atomics in shared memory.
// Run:      nvcc --cubin -arch sm_90 histogram.cu

extern __shared__ unsigned block_counts[];

__global__ void histogram(unsigned* counts, const signed char* values, int size, int bins) {
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) block_counts[bin] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x)
        atomicAdd(&block_counts[values[i]], 1);
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) atomicAdd(&counts[bin], block_counts[bin]);
}
