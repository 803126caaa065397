// Code that the executor does not know, behind branches that a launch may not take.
__device__ int counter;
__device__ int* pointer_to_counter = &counter;

extern "C" __global__ void seldom(float* out, cudaTextureObject_t texture, int reach)
{
    const int i = threadIdx.x;
    out[i] = i;
    if (reach == 3) out[i] = tex2D<float>(texture, i, 0);
    if (reach == 4) out[i] = *pointer_to_counter;
}
