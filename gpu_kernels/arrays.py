"""The library face: transposing and copying `pycuda.gpuarray.GPUArray`s by kernel name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_kernels import catalog, flags, launch
from gpu_kernels.errors import ArgumentError
from gpu_kernels.operations import OFFSET_COPY, STRIDE_COPY, TRANSPOSE
from gpu_kernels.spec import Kernel, Operation, Shape

if TYPE_CHECKING:
    from pycuda.gpuarray import GPUArray


def transpose(
    array: GPUArray,
    kernel: str = "transpose_read_write_coalesced",
    *,
    out: GPUArray | None = None,
    flag_set: str = flags.DEFAULT,
    stream: Any = None,
) -> GPUArray:
    """Transpose a matrix on the GPU.

    Parameters
    ----------
    array : row-major rows x columns, of any dtype with 1, 2, 4, 8 or 16 bytes an element.
    kernel : name of a transpose kernel.
    out : row-major columns x rows of the same dtype; made if not given.
    flag_set : nvcc's flags, a row of `flags.FLAG_SETS`.
    stream : a PyCUDA stream; the default stream if not given.

    Returns
    -------
    `out`; the transpose is complete once `stream` is.

    Raises
    ------
    UnknownKernelError, UnknownDtypeError, UnknownFlagsError : bad names.
    ArgumentError : `kernel` does not transpose, or an array is not contiguous or of the wrong shape or dtype.
    NoDeviceError, CompileError : the machine cannot run or build it.
    """
    spec = _kernel_of(TRANSPOSE, kernel)
    if len(array.shape) != 2:
        raise ArgumentError(f"{kernel}: the input must be a matrix; given: shape {array.shape}")
    rows, columns = array.shape
    return _apply(spec, array, out, flag_set, stream, rows=rows, columns=columns)


def offset_copy(
    array: GPUArray, offset: int, *, out: GPUArray | None = None, flag_set: str = flags.DEFAULT, stream: Any = None
) -> GPUArray:
    """Copy a vector from element `offset` on; those before keep their values in `out` (zero if it is made here).

    Parameters, returns and errors as `transpose`, for one-dimensional arrays of one size.
    """
    return _copy(OFFSET_COPY, "offset_copy", array, out, flag_set, stream, array.size - offset, offset=offset)


def stride_copy(
    array: GPUArray, stride: int, *, out: GPUArray | None = None, flag_set: str = flags.DEFAULT, stream: Any = None
) -> GPUArray:
    """Copy every `stride`-th element of a vector; the others keep their values in `out` (zero if it is made here).

    The vector holds (n - 1) * stride + 1 elements for some n. Otherwise as `offset_copy`.
    """
    size = (array.size - 1) // max(stride, 1) + 1
    return _copy(STRIDE_COPY, "stride_copy", array, out, flag_set, stream, size, stride=stride)


def _copy(
    operation: Operation,
    kernel: str,
    array: GPUArray,
    out: GPUArray | None,
    flag_set: str,
    stream: Any,
    size: int,
    **argument: int,
) -> GPUArray:
    return _apply(_kernel_of(operation, kernel), array, out, flag_set, stream, size=size, **argument)


def _kernel_of(operation: Operation, name: str) -> Kernel:
    spec = catalog.get(name)
    if spec.operation is not operation:
        allowed = ", ".join(row.name for row in catalog.KERNELS.values() if row.operation is operation)
        raise ArgumentError(f"kernel {name!r} does not perform a {operation.name}; allowed are {allowed}")
    return spec


def _apply(
    spec: Kernel, array: GPUArray, out: GPUArray | None, flag_set: str, stream: Any, **arguments: int
) -> GPUArray:
    output_shape, input_shape = spec.arrays(**arguments)
    function = launch.load(spec, array.dtype, flag_set)
    if out is None:
        import pycuda.gpuarray  # noqa: PLC0415 -- only when called

        out = pycuda.gpuarray.zeros(output_shape, array.dtype)
    for role, given, shape in (("input", array, input_shape), ("output", out, output_shape)):
        _check_array(spec, role, given, shape, array.dtype)
    function(out.gpudata, array.gpudata, stream=stream, **arguments)
    return out


def _check_array(spec: Kernel, role: str, given: GPUArray, shape: Shape, dtype: Any) -> None:
    if given.shape != shape:
        raise ArgumentError(f"{spec.name}: the {role} must have the shape {shape}; given: {given.shape}")
    if given.dtype != dtype:
        raise ArgumentError(f"{spec.name}: the {role} must have the input's dtype {dtype}; given: {given.dtype}")
    if not given.flags.c_contiguous:
        raise ArgumentError(
            f"{spec.name}: the {role} must be contiguous and row-major; given strides: {given.strides}; "
            "pass array.copy() of a row-major layout"
        )
