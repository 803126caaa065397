"""The four kernels as CuPy's raw kernels."""

from __future__ import annotations

import cupy

from ..problems import THREADS, Launch, N, Problem

VERSION = f"CuPy {cupy.__version__}"
SOURCES = {
    "copy": "(const float* x, float* o) { int i = blockIdx.x * blockDim.x + threadIdx.x; o[i] = x[i]; }",
    "transpose": """(const float* x, float* o) {
        int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
        o[c * N + r] = x[r * N + c]; }""",
    "reduction": """(const float* x, float* o) {
        float sum = 0;
        for (int c = threadIdx.x; c < N; c += 32) sum += x[blockIdx.x * N + c];
        for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
        if (!threadIdx.x) o[blockIdx.x] = sum; }""",
    "product": """(const float* a, const float* b, float* o) {
        int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
        float sum = 0;
        for (int k = 0; k < N; ++k) sum += a[r * N + k] * b[k * N + c];
        o[r * N + c] = sum; }""",
}
LAUNCHES = {
    "copy": (N * N // THREADS, THREADS),
    "transpose": ((2, N // 4), (32, 4)),
    "reduction": (N, 32),
    "product": ((2, N // 4), (32, 4)),
}


def make_launch(problem: Problem, arch: str) -> Launch:
    """Make the launch of a problem."""
    source = f'extern "C" __global__ void {problem.name}{SOURCES[problem.name]}'
    kernel = cupy.RawKernel(source, problem.name, options=(f"-DN={N}",))
    return Launch(kernel, *LAUNCHES[problem.name], [*problem.inputs, problem.output])
