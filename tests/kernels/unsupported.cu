// Code that the executor does not know, behind branches that a launch may not take.
__device__ __noinline__ float not_inlined(float x) { return x * x + 1; }
__device__ int counter;
__device__ int* pointer_to_counter = &counter;

extern "C" __global__ void seldom(float* out, cudaTextureObject_t texture, int reach)
{
    const int i = threadIdx.x;
    out[i] = i;
    if (reach == 3) out[i] = tex2D<float>(texture, i, 0);
    if (reach == 4) out[i] = not_inlined(out[i]) + *pointer_to_counter;
}
