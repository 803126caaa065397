"""What a kernel may be: any number of inputs, numbers of both kinds, any geometry, arithmetic in every dtype."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelwatch.kernel
from gpu_kernels import KERNELS
from kernelwatch.counting import transactions
from kernelwatch.errors import ArgumentError, UnknownDtypeError
from kernelwatch.kernel import Array, Operation, Row, Shape, geometry
from kernelwatch.kernel.geometry import Geometry

#: What packages of commits import whose rows are the library's: these names stay.
IMPORTED = {
    "kernelwatch": "Kernel in_and_out inputs outputs",
    "kernelwatch.errors": "ArgumentError UnknownKernelError",
    "kernelwatch.kernel": "Array Kernel Operation Shape dtypes geometry loading",
    "kernelwatch.kernel.arguments": "integer",
    "kernelwatch.kernel.geometry": "Extent cover_or_finer one_block",
    "kernelwatch.kernel.launch": "FLAGS words",
}


def test_names_that_older_packages_import() -> None:
    """They are there, and a row may be made as those packages make it."""
    for module, names in IMPORTED.items():
        assert all(hasattr(importlib.import_module(module), name) for name in names.split()), module
    made = kernelwatch.kernel.Kernel("k", Path("k.cu"), KERNELS["offset_copy"].operation, (32, 1, 1), ("size",))
    assert made.geometry("int8", size=65, offset=1) == Geometry((3, 1, 1), (32, 1, 1))


def _vectors(inputs: int) -> Any:
    return lambda size: ((size,),) * (inputs + 1)


def _sum_of(output: Array, *inputs: Array, size: int) -> Array:
    return np.sum(inputs, axis=0, dtype=output.dtype) if inputs else np.zeros(size, output.dtype)


def _kernel(folder: Path, name: str, body: str, operation: Operation, **geometry: Any) -> Row:
    """A kernel of one's own, whose parameters are as the contract has them."""
    pointers = ["ELEMENT* output", *(f"const ELEMENT* in{place}" for place in range(operation.inputs))]
    scalars = [f"long long {each}" for each in operation.minimum] + [f"double {each}" for each in operation.scalars]
    source = folder / f"{name}.cu"
    source.write_text(f'extern "C" __global__ void {name}({", ".join([*pointers, *scalars])})\n{{\n{body}\n}}\n')
    shape = {"block": (128, 1, 1), "over": ("size",)} | geometry
    return Row(name, source, operation, **shape)


INDEX = "const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; if (i >= size) return;"


@pytest.mark.parametrize(("inputs", "dtype"), [(0, "float32"), (1, "float64"), (2, "int8"), (8, "float32")])
def test_any_number_of_inputs(inputs: int, dtype: str, tmp_path: Path) -> None:
    """From none to eight, each once in the useful bytes; verified bit for bit on exact values."""
    operation = Operation(
        "sum", {"size": 1}, _vectors(inputs), _sum_of, values="exact", names=("float32", "float64", "int8")
    )
    total = " + ".join(f"in{place}[i]" for place in range(inputs)) or "0"
    kernel = _kernel(tmp_path, "sum", f"{INDEX} output[i] = {total};", operation)
    counted = transactions.count(kernel, dtype, size=1000)
    assert counted.problem() is None
    assert kernel.useful_bytes(dtype, size=1000) == (inputs + 1) * 1000 * np.dtype(dtype).itemsize
    assert counted.counters.totals()["load_requests"] == 32 * inputs


def test_a_wrong_sum_is_found(tmp_path: Path) -> None:
    """An input read in the place of another, or not at all, is another sum."""
    operation = Operation("sum", {"size": 1}, _vectors(2), _sum_of, values="exact", names=("float32",))
    for wrong in ("in0[i] + in0[i]", "in1[i]", "in0[i] - in1[i]", "in0[i] + in1[i ? i - 1 : 0]"):
        kernel = _kernel(tmp_path, "sum", f"{INDEX} output[i] = {wrong};", operation)
        assert transactions.count(kernel, "float32", size=1000).problem() is not None, wrong


def test_scalars(tmp_path: Path) -> None:
    """Floating-point arguments follow the integers; what is no finite number is refused."""
    operation = Operation(
        "scaled sum",
        {"size": 1},
        _vectors(2),
        lambda output, one, other, size, factor: (factor * one + other).astype(output.dtype),
        scalars=("factor",),
        values="exact",
        names=("float32",),
        flops=lambda size: 2 * size,
    )
    kernel = _kernel(tmp_path, "axpy", f"{INDEX} output[i] = ELEMENT(factor) * in0[i] + in1[i];", operation)
    assert kernel.parameters == ("size", "factor")
    assert [each.value for each in kernel.bound("float32", size=5, factor=2)[3:]] == [5, 2]  # type: ignore[union-attr]
    assert kernel.flops(size=7, factor=0.25) == 14
    assert transactions.count(kernel, "float32", size=500, factor=0.25).problem() is None


@pytest.mark.parametrize(
    ("dtype", "arch"),
    [
        ("float16", "sm_80"),
        ("float32", "sm_90"),
        ("float64", "sm_100"),
        ("bfloat16", "sm_80"),
        ("bfloat16", "sm_100"),
        ("complex128", "sm_90"),
    ],
)
def test_every_dtype_computes(dtype: str, arch: str, tmp_path: Path) -> None:
    """By CUDA's own headers where C++ has no such type; as machine code of its own."""
    operation = Operation("sum", {"size": 1}, _vectors(2), _sum_of, values="exact", names=(dtype,))
    kernel = _kernel(tmp_path, "sum", f"{INDEX} output[i] = in0[i] + in1[i];", operation)
    assert kernel.cubin(dtype, arch=arch).resources.registers > 0


def test_a_half_is_near(tmp_path: Path) -> None:
    """Sums that round are compared with float64, within the bound that the operation states, and not beyond it."""

    def sums(output: Array, matrix: Array, size: int, count: int) -> Array:
        assert output.dtype == matrix.dtype == np.float64
        return np.asarray((matrix.reshape(size, count) ** 2).sum(axis=1))

    def operation(ulp: float) -> Operation:
        shapes = lambda size, count: ((size,), (size * count,))  # noqa: E731
        return Operation(
            "sums of squares",
            {"size": 1, "count": 1},
            shapes,
            sums,
            values="exact",
            names=("float16",),
            ulp={"float16": ulp},
        )

    body = f"""{INDEX} ELEMENT sum = 0;
    for (long long k = 0; k < count; ++k) sum += in0[i * count + k] * in0[i * count + k];
    output[i] = sum;"""
    sizes = {"size": 64, "count": 400}
    assert transactions.count(_kernel(tmp_path, "sums", body, operation(64)), "float16", **sizes).problem() is None
    said = transactions.count(_kernel(tmp_path, "sums", body, operation(0.01)), "float16", **sizes).problem()
    assert said is not None
    assert "of output is" in said


def test_what_an_operation_lacks_is_named() -> None:
    """A dtype that it does not compute is refused by name, even if another of its size is there."""
    operation = Operation("sum", {"size": 1}, _vectors(1), _sum_of, values="exact", names=("float32", "float64"))
    kernel = Row("sum", KERNELS["offset_copy"].source, operation, (32, 1, 1), ("size",))
    for dtype in ("int32", "int8", "float16"):
        with pytest.raises(UnknownDtypeError, match=f"sum has no {dtype}; it has float32, float64"):
            kernel.cubin(dtype, arch="sm_90")
    with pytest.raises(ValueError, match="name the dtypes that it has"):
        Operation("sum", {"size": 1}, _vectors(1), _sum_of, values="exact")


def _matrix(rows: int, columns: int) -> tuple[Shape, ...]:
    return ((rows, columns),) * 2


MATRIX = Operation("copy", {"rows": 1, "columns": 1}, _matrix, lambda output, input, rows, columns: input)
SIDES = {"rows": 1000, "columns": 130}


@pytest.mark.parametrize(
    ("shape", "itemsize", "expected"),
    [
        ({"block": (32, 8, 1), "tile": (32, 32)}, 4, Geometry((5, 32, 1), (32, 8, 1))),
        ({"block": (32, 8, 1), "tile": (32, 32), "grid": geometry.linear}, 4, Geometry((160, 1, 1), (32, 8, 1))),
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
    """Tiles apart from threads, one block, a thread a row, tiles along one axis, blocks that stay, all by item size."""
    kernel = Row("k", Path("transpose.cu"), MATRIX, **({"over": ("columns", "rows")} | shape))
    assert kernel.geometry(f"f{itemsize}", **SIDES) == expected


def test_a_linear_grid_has_an_end() -> None:
    """What needs more blocks than there can be is refused, with what was given."""
    kernel = Row("k", Path("transpose.cu"), MATRIX, (1, 1, 1), ("columns", "rows"), grid=geometry.linear)
    with pytest.raises(ArgumentError, match="columns = 65536, rows = 65536 needs 4294967296 blocks; a grid allows"):
        kernel.geometry(rows=65536, columns=65536)


def test_dynamic_shared_memory(tmp_path: Path) -> None:
    """As many bytes a block as the row says, beyond what a function may have without asking."""
    body = f"""extern __shared__ ELEMENT tile[]; {INDEX.replace("return", "{}")}
    for (int k = threadIdx.x; k < 20000; k += blockDim.x) tile[k] = in0[i < size ? i : 0];
    __syncthreads();
    if (i < size) output[i] = tile[19999 - (127 - threadIdx.x)];"""
    operation = Operation("copy", {"size": 1}, _vectors(1), lambda output, input, size: input)
    kernel = _kernel(tmp_path, "through", body, operation, dynamic_shared=80000)
    assert geometry.MAX_SHARED < 80000
    result = transactions.count(kernel, "float32", size=128)
    assert result.geometry.dynamic_shared == 80000
