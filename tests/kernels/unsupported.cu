// A texture behind a branch that a launch may not take.
extern "C" __global__ void seldom(float* out, cudaTextureObject_t texture, int reach)
{
    const int i = threadIdx.x;
    out[i] = i;

    if (reach == 3) out[i] = tex2D<float>(texture, i, 0);
}
