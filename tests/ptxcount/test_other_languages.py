"""Kernels of Numba, CuTe DSL and tilelang, and cubins, with stand-ins for the objects of the packages.

`python -m experiments.generators` counts kernels of the packages themselves.
"""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.source.adapters import adapt_kernel
from ptxcount.util.errors import LaunchError
from tests.ptxcount.languages import Arrays, Record, make_cubin, stand_in, write_copy


def test_default_block_is_that_of_the_kernel(arrays: Arrays) -> None:
    ptx = write_copy([".param .u64"] * 2)
    arrays.count(ptx)
    with pytest.raises(LaunchError, match=r"^block is None, but the kernel has no \.reqntid; give a block$"):
        arrays.count(ptx.replace(".reqntid 32", ""))


def make_numba_kernel(monkeypatch: pytest.MonkeyPatch, tools: Record) -> Any:
    """Make a copy kernel of numba-cuda-mlir, whose module of tools is a stand-in.

    An array of one axis has five parameters: two pointers, of which the second is read, offset, length and step.
    """
    ptx = write_copy([".param .u64"] * 10, source=(1, 0), output=(5 + 1, 0))

    def compile_ptx(function: Any, types: Any, *, lineinfo: bool, cc: tuple[int, int]) -> tuple[str, None]:
        assert (tools._cached_cc, lineinfo) == (cc, True)
        assert types in (("float32", "float32"), "s")
        return ptx, None

    typeof = Record(typeof=lambda argument: str(argument.dtype))
    stand_in(monkeypatch, numba_cuda_mlir__cuda=Record(compile_ptx=compile_ptx), numba_cuda_mlir__tools=tools)
    stand_in(monkeypatch, numba_cuda_mlir__numba_cuda__typing__typeof=typeof)
    return type("Dispatcher", (), {"py_func": len, "targetoptions": {}, "__module__": "numba_cuda_mlir.descriptor"})()


def test_numba_cuda_mlir_gets_arrays_in_parts(arrays: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = Record(_cached_cc=None)
    kernel = make_numba_kernel(monkeypatch, tools)
    arrays.count(kernel)
    assert tools._cached_cc is None  # as before the compilation
    matrix = np.zeros((4, 6), np.float32)[:, :3]
    arguments: Any = adapt_kernel(kernel, "s", [matrix, 2, True], "sm_90").arguments
    _, _, offset, *lengths_and_steps, integer, flag = arguments
    assert (offset, lengths_and_steps) == (0, [4, 3, 6, 1])
    assert (integer, type(integer), flag, type(flag)) == (2, np.int64, True, np.bool_)


def test_numba_cuda_mlir_counts_steps_in_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = make_numba_kernel(monkeypatch, Record(_cached_cc=None))
    fields = np.zeros(4, [("x", "f4"), ("y", "f8")])  # 12 bytes: three elements of x, no whole number of y
    assert adapt_kernel(kernel, "s", [fields["x"]], "sm_90").arguments[-1] == 3
    with pytest.raises(LaunchError, match=r"are \(12,\) bytes; .* elements, of 8 bytes; pass a copy"):
        adapt_kernel(kernel, "s", [fields["y"]], "sm_90")


def test_unknown_release_of_numba_is_refused(arrays: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LaunchError, match="this release of Numba is not supported: it has no _cached_cc; pass the PTX"):
        arrays.count(make_numba_kernel(monkeypatch, Record()))


#: Bytes of a tensor parameter (None: compiled without PTX), and the error. A tensor of one axis is a pointer, or a
#: pointer and a length.
TENSORS = [
    (8, ""), (16, ""), (24, r"the kernel's tensor has 24 bytes; an array of shape \(8,\) takes"),
    (None, r'has no PTX; compile it with options="--keep-ptx"'),
]  # fmt: skip


@pytest.mark.parametrize(("size", "error"), TENSORS)
def test_function_of_cute_takes_arrays(size: int | None, error: str, arrays: Arrays) -> None:
    ptx = write_copy([f".param .align 8 .b8|[{size}]"] * 2) if size else None
    with pytest.raises(LaunchError, match=error) if error else nullcontext():
        arrays.count(Record(kernel_info={}, __ptx__=ptx))


def test_cubin_is_counted_by_its_ptx(arrays: Arrays, tmp_path: Path) -> None:
    pytest.importorskip("elftools")
    ptx = write_copy([".param .u64"] * 2)
    # cuTile's listing of its own code follows the PTX
    cubin = make_cubin(f"{ptx}.nv_intermediate_source_section {{ entry @copy }}\n")
    file = tmp_path / "kernel.cubin"
    file.write_bytes(cubin)
    for kernel in (cubin, file):
        arrays.output[:] = 0
        arrays.count(kernel)


def test_cubin_without_ptx_is_refused(arrays: Arrays) -> None:
    pytest.importorskip("elftools")
    with pytest.raises(LaunchError, match=r"this cubin is .* without embedded PTX; build it with nvcc -lineinfo"):
        arrays.count(make_cubin(""))
    with pytest.raises(LaunchError, match="without embedded PTX"):
        arrays.count(make_cubin(write_copy([".param .u64"] * 2))[:40])  # a part of the header, which has 64 bytes


def test_cubin_needs_pyelftools(arrays: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "elftools.elf.elffile", None)
    with pytest.raises(LaunchError, match="reading the PTX in it needs pyelftools; run: pip install pyelftools"):
        arrays.count(make_cubin(""))


@pytest.fixture
def tilelang_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Record:
    """Return a tilelang kernel that copies an array; its ``attributes`` are those of the launch."""
    source = 'extern "C" __global__ void copy_kernel(float* output, const float* source) {\n' \
        "if (threadIdx.x < 8) output[threadIdx.x] = source[threadIdx.x]; }"  # fmt: skip
    attributes = {"thread_extent": {"threadIdx.x": 32, "threadIdx.y": 1}, "dyn_shared_memory_buf": 512}
    functions = Record(items=lambda: [(Record(name_hint="copy_kernel"), Record(attrs=attributes))])
    stand_in(monkeypatch, tilelang=Record(__file__=str(tmp_path / "__init__.py")))
    kernel = Record(kernel_source=source, device_mod=Record(functions=functions), attributes=attributes)
    kernel.target = Record(attrs={"arch": "sm_90a"})
    return kernel


def test_kernel_of_tilelang_takes_names(arrays: Arrays, tilelang_copy: Record) -> None:
    counters = ptxcount.count(tilelang_copy, None, 1, None, {"source": arrays.source, "output": arrays.output})
    assert (arrays.output == arrays.source).all()
    assert counters.threads == 32
    assert adapt_kernel(tilelang_copy, None, {"source": 1, "output": 2}, "sm_90").dynamic_shared == 512
    with pytest.raises(LaunchError, match="takes a dict of arguments with these names: output, source"):
        arrays.count(tilelang_copy)


def test_attributes_of_tilelang_are_used(arrays: Arrays, tilelang_copy: Record) -> None:
    names = {"source": arrays.source, "output": arrays.output}
    tilelang_copy.target.attrs["arch"] = "sm_10"
    with pytest.raises(ptxcount.CompileError, match="-arch sm_10 "):
        ptxcount.count(tilelang_copy, None, 1, None, names)
    tilelang_copy.target.attrs["arch"] = "sm_90a"
    tilelang_copy.attributes["cluster_dims"] = [2, 1, 1]
    with pytest.raises(LaunchError, match=r"cluster is \(2, 1, 1\); it must divide the grid \(1, 1, 1\)"):
        ptxcount.count(tilelang_copy, None, 1, None, names)


def test_source_of_tilelang_must_have_the_kernel(arrays: Arrays, tilelang_copy: Record) -> None:
    tilelang_copy.kernel_source = tilelang_copy.kernel_source.replace("copy_kernel", "another")
    with pytest.raises(LaunchError, match="declares no kernel copy_kernel; name one as entry: another"):
        arrays.count(tilelang_copy)


@pytest.fixture
def rows_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Record:
    """Return a tilelang kernel of a map of x, 8 rows of 60 floats with a stride of 64, and of an array y."""
    lengths, strides, box, steps = [60, 8], [4, 256], [32, 4], [1, 2]  # x first; strides in bytes
    interleave, swizzle_128, promotion, fills_nan = 0, 3, 2, 1
    numbers = [*lengths, *strides, *box, *steps, interleave, swizzle_128, promotion, fills_nan]
    head = [Record(value="__tvm_tensormap_create_tiled"), Record(name="x_desc"), Record(value=7), Record(value=2)]
    call = [*head, Record(name="x"), *(Record(value=number) for number in numbers)]
    attributes = {"tma_descriptor_args": Record(items=lambda: [(head[1], call)])}
    functions = Record(items=lambda: [(Record(name_hint="rows_kernel"), Record(attrs={"thread_extent": {}}))])
    source = 'extern "C" __global__ void rows_kernel(const CUtensorMap x_desc, float* y) {}'
    kernel = Record(kernel_source=source, device_mod=Record(functions=functions))
    kernel.host_mod = Record(functions={"main": Record(attrs=attributes)})
    stand_in(monkeypatch, tilelang=Record(__file__=str(tmp_path / "__init__.py")))
    return kernel


def test_tilelang_maps_are_made_from_arrays(rows_kernel: Record) -> None:
    x, y = np.zeros((8, 64), np.float32), np.zeros(8, np.float32)
    tensor_map: Any
    tensor_map, output = adapt_kernel(rows_kernel, None, {"y": y, "x": x}, "sm_90").arguments
    assert (tensor_map.array.shape, tensor_map.array.strides, tensor_map.array.base is x) == ((8, 60), (256, 4), True)
    assert (tensor_map.box, tensor_map.swizzle, tensor_map.steps, tensor_map.fills_nan) == ((4, 32), 128, (2, 1), True)
    assert output is y


def test_wrong_arrays_of_tilelang_maps_are_refused(rows_kernel: Record) -> None:
    x, y = np.zeros((8, 64), np.float32), np.zeros(8, np.float32)
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"x": x[:7]}, r"argument x has the shape \(7, 64\); it must have \(8, 60\)"),
        ({"x": x[:, :60]}, "argument x is no C-contiguous array, .*; pass a copy"),
        ({"x": np.float32(1)}, "argument x is no C-contiguous array, .*; pass a copy"),
        ({}, "takes a dict of arguments with these names: x, y"),
    ]
    for arguments, message in refusals:
        with pytest.raises(LaunchError, match=message):
            adapt_kernel(rows_kernel, None, {"y": y, **arguments}, "sm_90")


def test_arrays_of_other_packages_are_viewed(arrays: Arrays) -> None:
    class Tensor:
        dtype = "float32"

        def __init__(self, array: Any) -> None:
            self.array = array

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            if self.array is None:
                raise TypeError("it is on a GPU")
            return self.array

    ptx = write_copy([".param .u64"] * 2)
    ptxcount.count(ptx, None, 1, None, [Tensor(arrays.source), Tensor(arrays.output)])
    assert (arrays.output == arrays.source).all()
    with pytest.raises(LaunchError, match="an argument of type Tensor cannot become a NumPy array: it is on a GPU"):
        ptxcount.count(ptx, None, 1, None, [Tensor(None), arrays.output])


def test_arguments_by_name_are_refused_for_ptx(arrays: Arrays) -> None:
    with pytest.raises(LaunchError, match="arguments by name are only for Triton and tilelang"):
        ptxcount.count(write_copy([".param .u64"] * 2), None, 1, None, {"x": arrays.source})
