"""Kernels as anybody has them, each with a wrong one; and how they come: as a file, a text, a template, PTX."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelwatch import Kernel, in_and_out, inputs, outputs, scalar
from kernelwatch.toolchain import build
from tests.kernelwatch.counting import test_own as own
from tests.kernelwatch.strangers.texts import CUDA, HEADER, LOAD

MATRIX, SMALL = {"w": 2000, "h": 1000}, {"w": 70, "h": 21}

#: An array that is scaled in place, which no second launch may find as the first left it.
SCALE = "__global__ void scale(float* x, int n) { int i = blockIdx.x * 256 + threadIdx.x; if (i < n) x[i] *= 0.5f; }"

#: A sum of a row by a block, a lane of a warp after the other.
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
    """A kernel's text, what is replaced in it to make a wrong one, what declares it, and extents, also small ones."""

    text: str
    wrong: tuple[str, str]
    declared: dict[str, Any]
    extents: dict[str, int]
    small: dict[str, int]
    dtype: str = "float32"
    file: str = ""
    is_ptx: bool = False
    others: tuple[tuple[str, str], ...] = ()

    def kernel(self, text: str, folder: Path) -> Kernel:
        """Return the kernel with that text."""
        for name, content in ((self.file, text), *self.others):
            if self.file:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(content, encoding="utf-8")
        source: dict[str, Any] = {"file": self.file} if self.file else {"text": text}
        if self.is_ptx:
            source = {"ptx": build.ptx(text, ("-lineinfo",), arch="sm_90")}
        return Kernel(**self.declared, **source)


def _of_own(name: str, text: str, wrong: tuple[str, str], **extents: int) -> Case:
    """Return the case of a kernel that is counted elsewhere, at another size."""
    kernel, dtype, small = next(each for key, each in own.KERNELS.items() if each[0].name == name)
    declared = {
        "name": name,
        "arguments": kernel.declared,
        "block": kernel.block,
        "over": kernel.over,
        "grid": kernel.grid,
        "dynamic_shared": kernel.dynamic_shared,
        "constants": kernel.constants,
        "entry": kernel.entry,
        "reference": kernel.reference,
    }
    return Case(text, wrong, declared, extents, small, dtype)


BRIGHTEN: dict[str, Any] = {
    "name": "brighten",
    "arguments": [outputs("out", "h w"), inputs("image", "h w"), "w", "h"],
    "block": (32, 8),
    "over": ("w", "h"),
    "reference": lambda image: image * 4,
}
FOUR = ("* 4", "* 3")

CASES = {
    "a file of a package": Case(CUDA, FOUR, BRIGHTEN, MATRIX, SMALL, file="imaging/brighten.cu"),
    "a text": Case(CUDA, FOUR, BRIGHTEN, MATRIX, SMALL),
    "a template of a header": Case(
        HEADER,
        ("T(N)", "T(N + 1)"),
        {**BRIGHTEN, "entry": "imaging::brighten<{T}, 4>"},
        MATRIX,
        SMALL,
        "float64",
        file="include/imaging/brighten.cuh",
        others=(("include/imaging/load.h", LOAD),),
    ),
    "PTX": Case(CUDA, FOUR, BRIGHTEN, MATRIX, SMALL, is_ptx=True),
    "a stencil with a halo in shared memory and constants": _of_own(
        "stencil", own.STENCIL, ("tile[r][c + 1]", "tile[r][c]"), w=4000, h=3000
    ),
    "a histogram with shared atomics and an index array": _of_own(
        "histogram", own.HISTOGRAM, ("bin_of[i]]", "(bin_of[i] + 1) % k]"), n=1_000_000, k=200
    ),
    "an array of structs to two arrays": _of_own("split", own.SPLIT, ("id[i] = p[i].id", "id[i] = i"), n=5_000_000),
    "a gather with a struct by value, of a template": _of_own(
        "gather", own.GATHER, ("T(a.shift)", "T(a.shift + 1)"), n=5_000_000, m=30_000
    ),
    "in place": Case(
        SCALE,
        ("0.5f", "0.25f"),
        {
            "name": "scale",
            "arguments": [in_and_out("x", "n"), scalar("n")],
            "block": 256,
            "over": ("n",),
            "reference": lambda x: x * np.float32(0.5),
        },
        {"n": 100_000},
        {"n": 1000},
    ),
    "another kernel is the reference": Case(
        ROW_SUM,
        ("step = 16", "step = 8"),
        {
            "name": "row_sum",
            "arguments": [outputs("out", "h"), inputs("in", "h w"), "w"],
            "block": 32,
            "grid": ("h",),
            "reference": Kernel(
                "slow_row_sum",
                [outputs("out", "h"), inputs("in", "h w"), "w"],
                1,
                grid=("h",),
                text=SLOW_ROW_SUM,
            ),
        },
        {"h": 3000, "w": 999},
        {"h": 30, "w": 99},
    ),
}
