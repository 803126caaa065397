"""Kernels whose arrays have types of their own, or that many threads write one element of."""

from __future__ import annotations

import numpy as np

from kernelwatch import Kernel, in_and_out, inputs, outputs

#: To add such a kernel: its `.cu`, one row here, and its sweeps in `benchmarks/sweeps.py`.
MIXED: dict[str, Kernel] = {
    row.name: row
    for row in (
        Kernel(
            "row_sum",
            [outputs("output", "rows"), inputs("input", "rows columns", values="exact"), "columns"],
            block=32,
            grid=("rows",),
            file="gpu_kernels/kernels/row_sum.cu",
            entry="row_sum<{T}>",
            reference=lambda input: input.sum(axis=1, dtype=np.float64).astype(input.dtype),
        ),
        Kernel(
            "gather",
            [
                outputs("output", "size"),
                inputs("input", "size"),
                inputs("index", "size", "int32", index="size"),
                "size",
            ],
            block=256,
            over=("size",),
            file="gpu_kernels/kernels/gather.cu",
            entry="gather<{T}>",
            reference=lambda input, index: input[index],
        ),
        Kernel(
            "histogram",
            [
                in_and_out("counts", "bins", "uint32", values="zeros"),
                inputs("values", "size", "int8", index="bins"),
                "size",
                "bins",
            ],
            block=256,
            over=("size",),
            tile=(4096,),
            dynamic_shared="4*bins",
            file="gpu_kernels/kernels/histogram.cu",
            reference=lambda counts, values, bins: counts + np.bincount(values, minlength=bins).astype(np.uint32),
        ),
    )
}
