"""The four kernels in tilelang."""

from __future__ import annotations

import tilelang
import tilelang.language as T  # noqa: N812 -- as tilelang's documentation has it
from tilelang import tvm

from ..problems import THREADS, Launch, N, Problem

VERSION = f"tilelang {tilelang.__version__}"


@T.prim_func
def copy(source: T.Tensor((N * N,), "float32"), output: T.Tensor((N * N,), "float32")):
    with T.Kernel(N * N // THREADS, threads=THREADS) as block:
        for i in T.Parallel(THREADS):
            output[block * THREADS + i] = source[block * THREADS + i]


@T.prim_func
def transpose(source: T.Tensor((N, N), "float32"), output: T.Tensor((N, N), "float32")):
    with T.Kernel(2, 2, threads=THREADS) as (x, y):
        tile = T.alloc_shared((32, 32), "float32")
        T.copy(source[y * 32, x * 32], tile)
        for i, j in T.Parallel(32, 32):
            output[x * 32 + i, y * 32 + j] = tile[j, i]


@T.prim_func
def reduction(source: T.Tensor((N, N), "float32"), output: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=THREADS) as _:
        rows, sums = T.alloc_fragment((N, N), "float32"), T.alloc_fragment((N,), "float32")
        T.copy(source, rows)
        T.reduce_sum(rows, sums, dim=1)
        T.copy(sums, output)


@T.prim_func
def product(left: T.Tensor((N, N), "float16"), right: T.Tensor((N, N), "float16"), output: T.Tensor((N, N), "float32")):
    with T.Kernel(1, threads=THREADS) as _:
        a, b = T.alloc_shared((N, N), "float16"), T.alloc_shared((N, N), "float16")
        total = T.alloc_fragment((N, N), "float32")
        T.copy(left, a)
        T.copy(right, b)
        T.clear(total)
        T.gemm(a, b, total)
        T.copy(total, output)


def make_launch(problem: Problem, arch: str) -> Launch:
    """Make the launch of a problem."""
    function, grid = {
        "copy": (copy, N * N // THREADS),
        "transpose": (transpose, (2, 2)),
        "reduction": (reduction, 1),
        "product": (product, 1),
    }[problem.name]
    arch = arch.replace("sm_90", "sm_90a")  # for wgmma
    target = tvm.target.Target({"kind": "cuda", "arch": arch})
    with target:
        artifact = tilelang.lower(function, target=target)
    inputs = ("left", "right") if problem.name == "product" else ("source",)
    arguments = dict(zip(inputs, problem.inputs, strict=True)) | {"output": problem.output}
    return Launch(artifact, grid, None, arguments, options={"arch": None})  # None: the target's architecture
