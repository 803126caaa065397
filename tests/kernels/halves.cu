// Half precision, single and packed.
#include <cuda_fp16.h>

extern "C" __global__ void halves(__half2* sum, __half2* fused, __half* scaled, float* wide, const __half2* a, const __half2* b)
{
    const int t = threadIdx.x;
    sum[t] = __hadd2(a[t], b[t]);
    fused[t] = __hfma2(a[t], b[t], __hmul2(a[t], a[t]));
    scaled[t] = __hmul(__low2half(a[t]), __float2half(0.1f));
    wide[t] = __half2float(__high2half(b[t])) + (__hlt(__low2half(a[t]), __high2half(a[t])) ? 1.0f : 0.0f);
}
