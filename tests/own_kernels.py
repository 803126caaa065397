"""Users' kernels as a file, a text, a template or PTX, each with a wrong variant."""

from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelwatch import Kernel, in_and_out, inputs, outputs, scalar
from kernelwatch.toolchain import build
from tests.kernelwatch.counting import test_own as own
from tests.kernelwatch.strangers.texts import CUDA, HEADER, LOAD

MATRIX, SMALL = {"w": 2000, "h": 1000}, {"w": 70, "h": 21}

#: A kernel that scales an array in place, so that each launch needs a fresh array.
SCALE = "__global__ void scale(float* x, int n) { int i = blockIdx.x * 256 + threadIdx.x; if (i < n) x[i] *= 0.5f; }"

#: A kernel that sums a row per block, with shuffles in a warp.
ROW_SUM = """
__global__ void row_sum(float* out, const float* in, int w) {
    float sum = 0;
    for (int x = threadIdx.x; x < w; x += 32) sum += in[blockIdx.x * w + x];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
"""
SLOW_ROW_SUM = """
__global__ void slow_row_sum(float* out, const float* in, int w) {
    float sum = 0;
    for (int x = 0; x < w; ++x) sum += in[blockIdx.x * w + x];
    out[blockIdx.x] = sum;
}
"""


@dataclass
class Case:
    """A kernel's source, the replacement that makes it wrong, and its extents.

    The source is compiled from `text`, from PTX (`is_ptx`), or from `file`, with `headers` beside it.
    """

    declared: Kernel
    text: str
    wrong: tuple[str, str]
    extents: dict[str, int]
    small: dict[str, int]
    dtype: str = "float32"
    file: str = ""
    is_ptx: bool = False
    headers: tuple[tuple[str, str], ...] = ()

    def kernel(self, text: str, folder: Path) -> Kernel:
        """Return the kernel with a source, whose files are written to a folder."""
        for name, content in ((self.file, text), *self.headers) if self.file else ():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content, encoding="utf-8")
        kernel = copy(self.declared)
        kernel.file, kernel._text, kernel._ptx = self.file, "" if self.file else text, ""
        if self.is_ptx:
            kernel._text, kernel._ptx = "", build.compile_to_ptx(text, ("-lineinfo",), arch="sm_90")
        return kernel


def _make_own_case(name: str, text: str, wrong: tuple[str, str], **extents: int) -> Case:
    kernel, dtype, small = next(case for case in own.KERNELS.values() if case[0].name == name)
    return Case(kernel, text, wrong, extents, small, dtype)


def _brighten(**options: Any) -> Kernel:
    arguments: list[Any] = [outputs("out", "h w"), inputs("image", "h w"), "w", "h"]
    reference = lambda image: image * 4  # noqa: E731 -- as a project writes it
    return Kernel("brighten", arguments, (32, 8), over=("w", "h"), text=CUDA, reference=reference, **options)


_ROWS: list[Any] = [outputs("out", "h"), inputs("in", "h w"), "w"]
FOUR = ("* 4", "* 3")

_SCALE: list[Any] = [in_and_out("x", "n"), scalar("n")]
_HALVED = Kernel("scale", _SCALE, 256, over=("n",), text=SCALE, reference=lambda x: x * np.float32(0.5))
_SUMMED_SLOWLY = Kernel("slow_row_sum", _ROWS, 1, grid=("h",), text=SLOW_ROW_SUM)
_SUMMED = Kernel("row_sum", _ROWS, 32, grid=("h",), text=ROW_SUM, reference=_SUMMED_SLOWLY)
_HEADER = _brighten(entry="imaging::brighten<{T}, 4>")
_LOAD = (("include/imaging/load.h", LOAD),)

CASES = {
    "a file of a package": Case(_brighten(), CUDA, FOUR, MATRIX, SMALL, file="imaging/brighten.cu"),
    "a text": Case(_brighten(), CUDA, FOUR, MATRIX, SMALL),
    "a template of a header": Case(
        _HEADER, HEADER, ("T(N)", "T(N + 1)"), MATRIX, SMALL, "float64", "include/imaging/brighten.cuh", headers=_LOAD
    ),
    "PTX": Case(_brighten(), CUDA, FOUR, MATRIX, SMALL, is_ptx=True),
    "a stencil with a halo in shared memory and constants": _make_own_case(
        "stencil", own.STENCIL, ("tile[r][c + 1]", "tile[r][c]"), w=4000, h=3000
    ),
    "a histogram with shared atomics and an index array": _make_own_case(
        "histogram", own.HISTOGRAM, ("bin_of[i]]", "(bin_of[i] + 1) % k]"), n=1_000_000, k=200
    ),
    "an array of structs": _make_own_case("split", own.SPLIT, ("id[i] = p[i].id", "id[i] = i"), n=5_000_000),
    "a gather with a struct by value, of a template": _make_own_case(
        "gather", own.GATHER, ("T(a.shift)", "T(a.shift + 1)"), n=5_000_000, m=30_000
    ),
    "in place": Case(_HALVED, SCALE, ("0.5f", "0.25f"), {"n": 100_000}, {"n": 1000}),
    "another kernel is the reference": Case(
        _SUMMED, ROW_SUM, ("step = 16", "step = 8"), {"h": 3000, "w": 999}, {"h": 30, "w": 99}
    ),
}
