"""The library's functions: transpose and copy a `pycuda.gpuarray.GPUArray` by the name of a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelwatch.errors import ArgumentError
from kernelwatch.kernel import Operation, Row, Shape, dtypes, loading
from kernelwatch.kernel.arguments import integer
from kernelwatch.kernel.launch import FLAGS, words

from . import catalog
from .catalog import KERNELS
from .operations import TRANSPOSE

if TYPE_CHECKING:
    from pycuda.gpuarray import GPUArray


def transpose(
    array: GPUArray,
    kernel: str = "transpose_read_write_coalesced",
    *,
    out: GPUArray | None = None,
    flag_set: str = FLAGS,
    stream: Any = None,
) -> GPUArray:
    """Transpose a matrix on the GPU.

    Parameters
    ----------
    array : GPUArray
        Row-major rows x columns, of any dtype with 1, 2, 4, 8 or 16 bytes an element.
    kernel : str
        Name of a transpose kernel.
    out : GPUArray, optional
        Row-major columns x rows of the same dtype; made if not given.
    flag_set : str
        nvcc's flags, as typed.
    stream : object, optional
        A PyCUDA stream; the default stream if not given.

    Returns
    -------
    GPUArray
        `out`; the transpose is complete once `stream` is.

    Raises
    ------
    UnknownKernelError, UnknownDtypeError, UnknownFlagsError
        Bad names.
    ArgumentError
        `kernel` does not transpose, or an array is not on the GPU, not contiguous, not aligned, of the wrong shape or
        dtype, or overlaps the other.
    NoDeviceError, CompileError
        The machine cannot run or build it.
    """
    spec = _kernel_of(TRANSPOSE, kernel)
    _check_on_gpu(kernel, "input", array)
    if len(array.shape) != 2:
        raise ArgumentError(f"{kernel}: the input must be a matrix; given: shape {array.shape}")
    rows, columns = array.shape
    return _apply(spec, array, out, flag_set, stream, rows=rows, columns=columns)


def offset_copy(
    array: GPUArray, offset: int, *, out: GPUArray | None = None, flag_set: str = FLAGS, stream: Any = None
) -> GPUArray:
    """Copy a vector from element `offset` on. The others keep their values in `out`; they are zero without `out`.

    Parameters, returns and errors as `transpose`, for one-dimensional arrays of one size.
    """
    name = "offset_copy"
    _check_vector(name, array)
    offset = integer(name, "offset", offset, 0)
    if offset >= array.size:
        raise ArgumentError(f"{name}: offset must be from 0 to {array.size - 1}, inside the array; given: {offset}")
    return _apply(KERNELS[name], array, out, flag_set, stream, size=array.size - offset, offset=offset)


def stride_copy(
    array: GPUArray, stride: int, *, out: GPUArray | None = None, flag_set: str = FLAGS, stream: Any = None
) -> GPUArray:
    """Copy every `stride`-th element of a vector. The others keep their values in `out`; they are zero without `out`.

    The vector holds (n - 1) * stride + 1 elements for some n. Otherwise as `offset_copy`.
    """
    name = "stride_copy"
    _check_vector(name, array)
    stride = integer(name, "stride", stride, 1)
    size = (array.size - 1) // stride + 1
    extent = (size - 1) * stride + 1
    if extent != array.size:
        raise ArgumentError(
            f"{name}: an array for stride {stride} must end with an element that is copied, so hold {extent} or "
            f"{extent + stride} elements; given: {array.size}"
        )
    return _apply(KERNELS[name], array, out, flag_set, stream, size=size, stride=stride)


def _kernel_of(operation: Operation, name: str) -> Row:
    spec = catalog.get(name)
    if spec.operation is not operation:
        allowed = ", ".join(row.name for row in KERNELS.values() if row.operation is operation)
        raise ArgumentError(f"kernel {name!r} does not perform a {operation.name}; allowed are {allowed}")
    return spec


def _apply(spec: Row, array: GPUArray, out: GPUArray | None, flag_set: str, stream: Any, **arguments: int) -> GPUArray:
    words(flag_set)
    dtypes.get(array.dtype)
    output_shape, input_shape = spec.arrays(**arguments)
    _check_array(spec, "input", array, input_shape, array.dtype)
    if out is not None:
        _check_array(spec, "output", out, output_shape, array.dtype)
        first, last = sorted((int(one.gpudata), one.nbytes) for one in (array, out))
        if sum(first) > last[0]:
            raise ArgumentError(f"{spec.name}: input and output overlap in memory; pass another array as `out`")
    function = loading.load(spec, array.dtype, flag_set)
    if out is None:
        out = _make(spec, output_shape, array.dtype, stream)
    function(out.gpudata, array.gpudata, stream=stream, **arguments)
    return out


def _make(spec: Row, shape: Shape, dtype: Any, stream: Any) -> GPUArray:
    """An output array; zero where the operation leaves elements alone, by the driver (PyCUDA's would call nvcc)."""
    import pycuda.driver as cuda  # noqa: PLC0415 -- only when called
    import pycuda.gpuarray  # noqa: PLC0415

    out = pycuda.gpuarray.GPUArray(shape, dtype)
    if spec.operation is not TRANSPOSE:
        cuda.memset_d8_async(out.gpudata, 0, out.nbytes, stream)
    return out


def _check_on_gpu(kernel: str, role: str, given: object) -> None:
    if not hasattr(given, "gpudata"):
        raise ArgumentError(
            f"{kernel}: the {role} must be a pycuda.gpuarray.GPUArray; given: {type(given).__name__}; "
            "pass pycuda.gpuarray.to_gpu(array)"
        )


def _check_vector(kernel: str, given: GPUArray) -> None:
    _check_on_gpu(kernel, "input", given)
    if len(given.shape) != 1 or given.size == 0:
        raise ArgumentError(f"{kernel}: the input must be a vector of elements; given: shape {given.shape}")


def _check_array(spec: Row, role: str, given: GPUArray, shape: Shape, dtype: Any) -> None:
    _check_on_gpu(spec.name, role, given)
    if given.shape != shape:
        raise ArgumentError(f"{spec.name}: the {role} must have the shape {shape}; given: {given.shape}")
    if given.dtype != dtype:
        raise ArgumentError(f"{spec.name}: the {role} must have the input's dtype {dtype}; given: {given.dtype}")
    if not given.flags.c_contiguous:
        raise ArgumentError(
            f"{spec.name}: the {role} must be contiguous and row-major; given strides: {given.strides}; "
            "pass array.copy() of a row-major layout"
        )
    if int(given.gpudata) % given.dtype.itemsize:
        raise ArgumentError(
            f"{spec.name}: the {role} must begin at a multiple of its item size, {given.dtype.itemsize} bytes; "
            f"given address: {int(given.gpudata):#x}; pass array.copy()"
        )
