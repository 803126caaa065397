"""The library face: GPUArrays in, GPUArrays out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpu_kernels
from gpu_kernels import launch
from gpu_kernels.errors import ArgumentError, UnknownDtypeError, UnknownFlagsError, UnknownKernelError
from tests.cases import TRANSPOSES

pytestmark = pytest.mark.gpu


def on_gpu(array: Any) -> Any:
    """Copy a NumPy array to the device."""
    from pycuda import gpuarray

    launch.context()
    return gpuarray.to_gpu(array)


@pytest.mark.parametrize("kernel", TRANSPOSES)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "float64", "complex128"])
def test_transpose(kernel: str, dtype: str) -> None:
    """Any dtype of a known item size is transposed, by any transpose kernel."""
    matrix = np.arange(33 * 65).reshape(33, 65).astype(dtype)
    assert np.array_equal(gpu_kernels.transpose(on_gpu(matrix), kernel).get(), matrix.T)


def test_copies_leave_other_elements_alone() -> None:
    """The copies write the elements that they are asked for into an array that is given."""
    vector, zeros = np.arange(1, 102, dtype=np.float32), np.zeros(101, np.float32)
    out = gpu_kernels.offset_copy(on_gpu(vector), 7, out=on_gpu(zeros)).get()
    assert np.array_equal(out, np.where(np.arange(101) >= 7, vector, 0))
    out = gpu_kernels.stride_copy(on_gpu(vector), 4).get()
    assert np.array_equal(out, np.where(np.arange(101) % 4 == 0, vector, 0))


def _matrix(dtype: str = "float32", order: str = "C") -> Any:
    return on_gpu(np.zeros((4, 6), dtype, order=order))  # type: ignore[call-overload]


def _onto_itself(matrix: Any) -> Any:
    return gpu_kernels.transpose(matrix, out=matrix)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gpu_kernels.transpose(_matrix(), "nope"), UnknownKernelError, "allowed are offset_copy"),
        (lambda: gpu_kernels.transpose(_matrix(), "offset_copy"), ArgumentError, "does not perform a transpose"),
        (lambda: gpu_kernels.transpose(_matrix(), flag_set="-O9"), UnknownFlagsError, "'-O9' is not known"),
        (lambda: gpu_kernels.transpose(on_gpu(np.zeros(3))), ArgumentError, "must be a matrix"),
        (lambda: gpu_kernels.transpose(_matrix(order="F")), ArgumentError, "the input must be contiguous"),
        (lambda: gpu_kernels.transpose(_matrix(), out=_matrix()), ArgumentError, r"must have the shape \(6, 4\)"),
        (
            lambda: gpu_kernels.transpose(_matrix(), out=on_gpu(np.zeros((6, 4), "float64"))),
            ArgumentError,
            "must have the input's dtype float32; given: float64",
        ),
        (lambda: gpu_kernels.transpose(_matrix("complex256")), UnknownDtypeError, "has 32 bytes"),
        (lambda: gpu_kernels.offset_copy(on_gpu(np.zeros(5)), 5), ArgumentError, "offset must be from 0 to 4"),
        (lambda: gpu_kernels.offset_copy(on_gpu(np.zeros(5)), -1), ArgumentError, "offset must be from 0 to 4"),
        (
            lambda: gpu_kernels.transpose(np.zeros((2, 3))),
            ArgumentError,
            "must be a pycuda.gpuarray.GPUArray; given: nd",
        ),
        (lambda: _onto_itself(_matrix()[:, :4]), ArgumentError, "the input must be contiguous"),
        (lambda: _onto_itself(on_gpu(np.zeros((4, 4)))), ArgumentError, "input and output overlap in memory"),
        (
            lambda: gpu_kernels.offset_copy(on_gpu(np.zeros(9))[1:].view(np.complex128), 0),
            ArgumentError,
            "the input must begin at a multiple of its item size, 16 bytes",
        ),
        (lambda: gpu_kernels.stride_copy(on_gpu(np.zeros(5)), 0), ArgumentError, "stride must be an integer of at"),
        (lambda: gpu_kernels.stride_copy(on_gpu(np.zeros(6)), 3), ArgumentError, r"must have the shape \(4,\)"),
    ],
)
def test_bad_arrays(call: Any, error: type[Exception], message: str) -> None:
    """A bad array or name is refused with what was given and what is allowed."""
    with pytest.raises(error, match=message):
        call()
