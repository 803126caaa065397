"""A kernel that brightens an image, in the forms that projects use."""

#: The index with which a warp walks along a row, and the index that replaces it: a warp walks along a column.
ALONG = "y * w + x"
ACROSS = "x * h + y"

CUDA = """\
extern "C" __global__ void brighten(float* out, const float* image, int w, int h)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) {
        out[y * w + x] = image[y * w + x] * 4;
    }
}
"""

HEADER = """\
#pragma once
#include "load.h"

namespace imaging {
template <typename T, int N>
__global__ void brighten(T* out, const T* image, int w, int h)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) {
        out[y * w + x] = load(image + y * w + x) * T(N);
    }
}
}
"""

LOAD = "#pragma once\ntemplate <typename T>\n__device__ T load(const T* p) { return *p; }\n"

HOST = """\
#include <imaging/brighten.cuh>
void brighten(float* out, const float* image, int w, int h)
{
    const dim3 block(32, 8), grid((w + 31) / 32, (h + 7) / 8);
    imaging::brighten<float, 4><<<grid, block>>>(out, image, w, h);
}
"""

FLIP = """\
#include "../include/imaging/load.h"
using pixel = unsigned short;

__global__ void __launch_bounds__(128) flip(pixel* out, const pixel* image, int w, int h)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) {
        out[y * w + w - x - 1] = load(image + y * w + x);
    }
}
"""

NUMBA = """\
from numba import cuda, float32, int32


def brighten(out, image, w, h):
    x, y = cuda.grid(2)
    if x < w and y < h:
        out[y * w + x] = image[y * w + x] * 4


def ptx(arch):
    array = float32[::1]
    major, minor = divmod(int(arch.removeprefix("sm_")), 10)
    return cuda.compile_ptx(brighten, (array, array, int32, int32), cc=(major, minor), lineinfo=True)
"""

TRITON = """\
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def brighten(out, image, w, h, TILE: tl.constexpr):
    x, y = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.program_id(1)
    inside = x < w
    tl.store(out + y * w + x, tl.load(image + y * w + x, mask=inside) * 4, mask=inside)


def ptx(arch):
    signature = {"out": "*fp32", "image": "*fp32", "w": "i32", "h": "i32", "TILE": "constexpr"}
    source = ASTSource(brighten, signature=signature, constexprs={"TILE": 128})
    return triton.compile(source, target=GPUTarget("cuda", int(arch[3:]), 32)).asm["ptx"]
"""

PYPROJECT = """\
[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"
[project]
name = "imaging"
version = "1"
[tool.setuptools]
packages = ["imaging"]
package-data = { imaging = ["*.cu"] }
"""

_IMPORT = "from kernelwatch import Kernel, inputs, outputs, watch\n"

_BENCHMARKS = """\

{name} = Kernel(
    "{name}",
    [outputs("out", "{shape}"), inputs("image", "{shape}"), "w", "h"],
    block=(32, 8),
    over=("w", "h"),
    reference=lambda image: image * 4,
    {source},
)
globals().update(watch({name}, {{"h": [64], "w": [128]}}, archs=["sm_90"]))
"""


TRITON_BENCHMARKS = f"""\
{_IMPORT.replace("outputs, watch", "outputs, triton_arguments, watch")}
brighten = Kernel(
    "brighten",
    triton_arguments(outputs("out", "h w"), inputs("image", "h w"), "w", "h"),
    block=128,
    grid=lambda w, h: (-(-w // 128), h),
    reference=lambda image: image * 4,
    ptx="imaging.kernels:ptx",
)
globals().update(watch(brighten, {{"h": [64], "w": [128]}}, archs=["sm_90"]))
"""


def benchmarks(*, numba: bool = False, **sources: str) -> str:
    """Return the text of benchmarks/kernels.py. `sources` has the argument with the source of each kernel."""
    shape = "h*w" if numba else "h w"
    text = _IMPORT + "".join(
        _BENCHMARKS.format(name=name, source=source, shape=shape) for name, source in sources.items()
    )
    if not numba:
        return text
    return text.replace("outputs, watch", "numba_arguments, outputs, watch").replace(
        '[outputs("out", "h*w"), inputs("image", "h*w"), "w", "h"]',
        'numba_arguments(outputs("out", "h*w"), inputs("image", "h*w"), "w", "h")',
    )
