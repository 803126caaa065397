"""What packages of other commits rely on, and what a row may say: arithmetic in every dtype, any geometry."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import kernelwatch
from benchmarks import installed
from gpu_kernels import KERNELS
from kernelwatch import Kernel, inputs, outputs, scalar, suite
from kernelwatch.counting import transactions
from kernelwatch.errors import UnknownDtypeError
from kernelwatch.instrument import skips
from kernelwatch.kernel import Array, Operation, Row, geometry
from kernelwatch.kernel.geometry import Geometry

#: What packages of commits import whose rows are the library's: these names stay.
IMPORTED = {
    "kernelwatch": "Kernel in_and_out inputs outputs",
    "kernelwatch.errors": "ArgumentError UnknownKernelError",
    "kernelwatch.kernel": "Array Kernel Operation Row Shape geometry",
    "kernelwatch.kernel.geometry": "Extent cover_or_finer one_block",
}

#: Operations as packages of before had them, by the kernel that has them today.
OLDER: dict[str, Operation] = {
    "offset_copy": Operation(
        "copy with an offset",
        {"size": 1, "offset": 0},
        lambda size, offset: ((size + offset,), (size + offset,)),
        lambda output, input, size, offset: np.concatenate([output[:offset], input[offset:]]),
        elements=lambda size, offset: 2 * size,
    ),
    "matmul_tiled": Operation(
        "matrix product",
        {"rows": 1, "inner": 1, "columns": 1},
        lambda rows, inner, columns: ((rows, columns), (rows, inner), (inner, columns)),
        lambda output, m, n, **lengths: m @ n,
        values="exact",
        names=("float16", "float32"),
        ulp={"float16": 0.5},
        flops=lambda rows, inner, columns: 2 * rows * inner * columns,
    ),
}


def test_names_that_older_packages_import() -> None:
    """They are there, and a kernel is one thing by both of its names."""
    for module, names in IMPORTED.items():
        assert all(hasattr(importlib.import_module(module), name) for name in names.split()), module
    assert kernelwatch.Kernel is kernelwatch.kernel.Kernel


@pytest.mark.parametrize(("name", "dtype"), [("offset_copy", "int8"), ("matmul_tiled", "float16")])
def test_rows_of_older_packages(name: str, dtype: str) -> None:
    """A row of an operation compiles to today's machine code, and counts the same of the same launch."""
    today = KERNELS[name]
    file = Path("/site/gpu_kernels/kernels", today.source.name)
    old = Row(name, file, OLDER[name], today.block, today.over, tile=today.tile)
    given = {each: 33 + place for place, each in enumerate(old.parameters)}
    counted = [transactions.count(each, dtype, **given) for each in (old, today)]
    assert [each.problem() for each in counted] == [None, None]
    assert counted[0].counters.totals() == counted[1].counters.totals()
    assert counted[0].geometry == counted[1].geometry
    for what in ("useful_bytes", "arrays"):
        assert getattr(old, what)(dtype, **given) == getattr(today, what)(dtype, **given)
    assert old.flops(**given) == today.flops(**given)
    assert old.cubin(dtype, arch="sm_90") == today.cubin(dtype, arch="sm_90")


@pytest.mark.parametrize("package", [{}, {"CONTRACT": 2}, TypeError("rows of before")], ids=str)
def test_older_packages_are_skipped(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of before contract 3, and of its first day, with a reason: no benchmark of them fails."""

    def imported(_: str) -> Any:
        if isinstance(package, Exception):
            raise package
        return SimpleNamespace(KERNELS={"offset_copy": object()}, **package)

    monkeypatch.setattr(importlib, "import_module", imported)
    monkeypatch.setattr(suite, "current", lambda: SimpleNamespace(kernels=installed.kernels, dtypes={}))
    reason = "its package has no kernels of kernelwatch's"
    with pytest.raises(NotImplementedError, match=reason), skips.of_unknown_names():
        suite.kernel("offset_copy")


def _sums(name: str, dtypes: tuple[str, ...] = (), ulp: Any = None, reference: Any = None) -> Kernel:
    """Sums of `count` squares each."""
    body = (
        "ELEMENT sum = 0; for (int k = 0; k < count; ++k) sum += in[i * count + k] * in[i * count + k]; out[i] = sum;"
    )
    return Kernel(
        name,
        [outputs("out", "size", ulp=ulp), inputs("in", "size*count"), scalar("size", least=1), scalar("count")],
        128,
        over=("size",),
        text=f"""extern "C" __global__ void {name}(ELEMENT* out, const ELEMENT* in, long long size, long long count) {{
            const long long i = blockIdx.x * 128 + threadIdx.x; if (i < size) {{ {body} }} }}""",
        options=["-DELEMENT={T}"],
        dtypes=dtypes,
        reference=reference,
    )


@pytest.mark.parametrize(
    ("dtype", "arch"),
    [
        ("float16", "sm_80"),
        ("float32", "sm_90"),
        ("float64", "sm_100"),
        ("bfloat16", "sm_80"),
        ("bfloat16", "sm_100"),
        ("complex128", "sm_90"),
        ("int32", "sm_90"),
    ],
)
def test_every_dtype_computes(dtype: str, arch: str) -> None:
    """By CUDA's own headers where C++ has no such type; as machine code of its own."""
    assert _sums("sums").cubin(dtype, arch=arch).resources.registers > 0


def test_a_half_is_near() -> None:
    """Sums that round are compared with float64, within the bound that the output states, and not beyond it."""

    def sums(size: int, count: int, **arrays: Array) -> Array:
        assert arrays["in"].dtype == np.float64
        return np.asarray((arrays["in"].reshape(size, count) ** 2).sum(axis=1))

    for bound, said in ((64, None), (0.01, "of out is")):
        kernel = _sums("sums", ulp={"float16": bound}, reference=sums)
        found = transactions.count(kernel, "float16", size=64, count=400).problem()
        assert found is None if said is None else said in str(found)


def test_what_a_kernel_lacks_is_named() -> None:
    """A dtype that it is not for, and one that has no C++ type, are refused by name."""
    kernel = _sums("sums", dtypes=("float32", "float64"))
    for dtype in ("int32", "int8", "float16"):
        with pytest.raises(UnknownDtypeError, match=f"sums has no {dtype}; it has float32, float64"):
            kernel.cubin(dtype, arch="sm_90")
    with pytest.raises(UnknownDtypeError, match="the dtype bool have no C\\+\\+ type; those of int8"):
        _sums("sums").cubin("bool", arch="sm_90")
    with pytest.raises(UnknownDtypeError, match="elements of 3 bytes have no C\\+\\+ type; those of 1, 2, 4, 8, 16"):
        KERNELS["offset_copy"].cubin("S3", arch="sm_90")


SIDES = {"rows": 1000, "columns": 130}
MATRIX: list[Any] = [outputs("output", "rows columns"), "rows", "columns"]


@pytest.mark.parametrize(
    ("shape", "itemsize", "expected"),
    [
        ({"block": (32, 8, 1), "tile": (32, 32)}, 4, Geometry((5, 32, 1), (32, 8, 1))),
        ({"block": (32, 8, 1), "tile": (32, 32), "grid": geometry.persistent(1)}, 4, Geometry((132, 1, 1), (32, 8, 1))),
        ({"block": (32, 8, 1), "tile": (32, 32), "grid": geometry.persistent(2)}, 4, Geometry((160, 1, 1), (32, 8, 1))),
        ({"block": (1, 1, 1), "grid": geometry.one_block}, 4, Geometry((1, 1, 1), (1, 1, 1))),
        ({"block": (256, 1, 1), "over": ("rows",)}, 4, Geometry((4, 1, 1), (256, 1, 1))),
        (
            {
                "block": {4: (256, 1, 1), 8: (512, 1, 1)},
                "tile": {4: (64, 64), 8: (64, 32)},
                "dynamic_shared": {4: 16384, 8: 100000},
            },
            8,
            Geometry((3, 32, 1), (512, 1, 1), 100000),
        ),
    ],
)
def test_geometry(shape: dict[str, Any], itemsize: int, expected: Geometry) -> None:
    """Tiles apart from threads, one block, a thread a row, blocks that stay, all by item size."""
    kernel = Kernel("k", MATRIX, file="k.cu", **({"over": ("columns", "rows")} | shape))
    assert kernel.geometry(f"f{itemsize}", **SIDES) == expected


@pytest.mark.parametrize(
    ("block", "shared", "fixed"),
    [
        ((32, 8), 16, (256, 16)),
        ({4: 64, 8: 32}, {4: 8, 8: 16}, (64, 8)),
        ("rows", 0, None),
        (lambda rows: rows, 0, None),
        (32, "4*rows", None),
        (32, lambda rows: rows, None),
    ],
)
def test_blocks_that_depend_on_nothing(block: Any, shared: Any, fixed: tuple[int, int] | None) -> None:
    """Threads and dynamic shared memory of a block, where no launch must say how long something is."""
    kernel = Kernel("k", MATRIX, block, over=("columns",), file="k.cu", dynamic_shared=shared)
    assert kernel.fixed("float32") == fixed
