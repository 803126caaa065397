// Textures and surfaces of every geometry: each thread fetches once, at given coordinates.

#define EACH const int i = blockIdx.x * blockDim.x + threadIdx.x

extern "C" __global__ void fetch1(float* out, cudaTextureObject_t t, const float* x) { EACH; out[i] = tex1D<float>(t, x[i]); }

extern "C" __global__ void fetch2(float* out, cudaTextureObject_t t, const float* x, const float* y)
{
    EACH;
    out[i] = tex2D<float>(t, x[i], y[i]);
}

extern "C" __global__ void fetch3(float* out, cudaTextureObject_t t, const float* x, const float* y, const float* z)
{
    EACH;
    out[i] = tex3D<float>(t, x[i], y[i], z[i]);
}

extern "C" __global__ void layer1(float* out, cudaTextureObject_t t, const float* x, const int* layer)
{
    EACH;
    out[i] = tex1DLayered<float>(t, x[i], layer[i]);
}

extern "C" __global__ void layer2(float* out, cudaTextureObject_t t, const float* x, const float* y, const int* layer)
{
    EACH;
    out[i] = tex2DLayered<float>(t, x[i], y[i], layer[i]);
}

extern "C" __global__ void element(float* out, cudaTextureObject_t t, const int* x) { EACH; out[i] = tex1Dfetch<float>(t, x[i]); }

extern "C" __global__ void colours(float4* out, cudaTextureObject_t t, const float* x, const float* y)
{
    EACH;
    out[i] = tex2D<float4>(t, x[i], y[i]);
}

extern "C" __global__ void bytes(uchar4* out, cudaTextureObject_t t, const float* x, const float* y)
{
    EACH;
    out[i] = tex2D<uchar4>(t, x[i], y[i]);
}

extern "C" __global__ void gather(float4* out, cudaTextureObject_t t, const float* x, const float* y)
{
    EACH;
    out[i] = tex2Dgather<float4>(t, x[i], y[i], 0);
}

// A transposed tile of the surface, with a thread per element, in blocks of 32 x 8.
extern "C" __global__ void turn(cudaSurfaceObject_t to, cudaSurfaceObject_t from)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float value;
    surf2Dread(&value, from, x * 4, y);
    surf2Dwrite(value, to, y * 4, x);
}

extern "C" __global__ void beyond(float* out, cudaSurfaceObject_t s, const int* x)
{
    EACH;
    float at, off;
    surf1Dread(&at, s, x[i] * 4, cudaBoundaryModeClamp);
    surf1Dread(&off, s, x[i] * 4, cudaBoundaryModeZero);
    out[i] = at * 1000 + off;
}

extern "C" __global__ void trapped(float* out, cudaSurfaceObject_t s, const int* x)
{
    EACH;
    surf1Dread(&out[i], s, x[i] * 4);
}

extern "C" __global__ void stacked(cudaSurfaceObject_t layers, cudaSurfaceObject_t volume)
{
    EACH;
    float2 pair;
    surf3Dread(&pair, volume, i % 4 * 8, i / 4 % 4, i / 16);
    surf2DLayeredwrite(pair.x + pair.y, layers, i % 4 * 4, i / 4 % 4, i / 16);
}
