"""The library face before it needs a GPU: what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpu_kernels import arrays, offset_copy, stride_copy, transpose
from kernelwatch.errors import ArgumentError, UnknownDtypeError, UnknownFlagsError, UnknownKernelError
from kernelwatch.kernel import loading

#: What no type checker lets through.
FRACTION: Any = 1.5
TEXT: Any = "1"
NOTHING: Any = None

#: A NumPy array -> the same on the GPU.
Make = Callable[[Any], Any]


def _matrix(make: Make, dtype: str = "float32", order: str = "C") -> Any:
    return make(np.zeros((4, 6), dtype, order=order))  # type: ignore[call-overload]


def _onto_itself(matrix: Any) -> Any:
    return transpose(matrix, out=matrix)


def _within(make: Make, first: int, second: int) -> Any:
    """Transpose 24 elements of one buffer onto others of it."""
    buffer = make(np.zeros(48))
    matrix, out = (buffer[start : start + 24].reshape(shape) for start, shape in ((first, (4, 6)), (second, (6, 4))))
    return transpose(matrix, out=out)


#: (call with a function that puts an array on the GPU, error, what its message says).
BAD: list[tuple[Callable[[Make], Any], type[Exception], str]] = [
    (lambda make: transpose(_matrix(make), "nope"), UnknownKernelError, "allowed are offset_copy"),
    (lambda make: transpose(_matrix(make), "offset_copy"), ArgumentError, "does not perform a transpose"),
    (lambda make: transpose(_matrix(make), flag_set="-O9'"), UnknownFlagsError, "are no words: No closing quotation"),
    (lambda make: transpose(make(np.zeros(3))), ArgumentError, r"must be a matrix; given: shape \(3,\)"),
    (lambda make: transpose(make(np.zeros((0, 3)))), ArgumentError, "rows must be an integer of at least 1; given: 0"),
    (lambda make: transpose(_matrix(make, order="F")), ArgumentError, "the input must be contiguous"),
    (
        lambda make: transpose(_matrix(make), out=_matrix(make)),
        ArgumentError,
        r"the output must have the shape \(6, 4\); given: \(4, 6\)",
    ),
    (
        lambda make: transpose(_matrix(make), out=make(np.zeros((6, 4), "float64"))),
        ArgumentError,
        "must have the input's dtype float32; given: float64",
    ),
    (lambda make: transpose(_matrix(make, "complex256")), UnknownDtypeError, "has 32 bytes"),
    (lambda make: transpose(_matrix(make, "S3")), UnknownDtypeError, "has 3 bytes"),
    (lambda _: transpose(np.zeros((2, 3))), ArgumentError, "must be a pycuda.gpuarray.GPUArray; given: ndarray"),
    (lambda _: transpose([[1, 2]]), ArgumentError, "must be a pycuda.gpuarray.GPUArray; given: list"),
    (lambda _: offset_copy([1, 2], 1), ArgumentError, "must be a pycuda.gpuarray.GPUArray; given: list"),
    (
        lambda make: transpose(_matrix(make), out=np.zeros((6, 4), "float32")),
        ArgumentError,
        "the output must be a pycuda.gpuarray.GPUArray; given: ndarray",
    ),
    (lambda make: _onto_itself(_matrix(make)[:, :4]), ArgumentError, "the input must be contiguous"),
    (lambda make: _onto_itself(make(np.zeros((4, 4)))), ArgumentError, "input and output overlap in memory"),
    (lambda make: _within(make, 0, 23), ArgumentError, "input and output overlap in memory"),
    (lambda make: _within(make, 23, 0), ArgumentError, "input and output overlap in memory"),
    (
        lambda make: offset_copy(make(np.zeros(9))[1:].view(np.complex128), 0),
        ArgumentError,
        "the input must begin at a multiple of its item size, 16 bytes",
    ),
    (lambda make: offset_copy(_matrix(make), 0), ArgumentError, r"must be a vector of elements; given: shape \(4, 6\)"),
    (lambda make: offset_copy(make(np.zeros(5)), 5), ArgumentError, "offset must be from 0 to 4, inside the array"),
    (lambda make: offset_copy(make(np.zeros(5)), -1), ArgumentError, "offset must be an integer of at least 0"),
    (lambda make: offset_copy(make(np.zeros(5)), FRACTION), ArgumentError, "offset must be an integer .* given: 1.5"),
    (lambda make: offset_copy(make(np.zeros(5)), TEXT), ArgumentError, "offset must be an integer .* given: '1'"),
    (
        lambda make: stride_copy(make(np.zeros(0)), 1),
        ArgumentError,
        r"must be a vector of elements; given: shape \(0,\)",
    ),
    (
        lambda make: stride_copy(make(np.zeros(5)), 0),
        ArgumentError,
        "stride must be an integer of at least 1; given: 0",
    ),
    (lambda make: stride_copy(make(np.zeros(5)), NOTHING), ArgumentError, "stride must be an integer .* given: None"),
    (lambda make: stride_copy(make(np.zeros(1)), 2**70), ArgumentError, "stride must fit a signed 64-bit integer"),
    (lambda make: stride_copy(make(np.zeros(6)), 3), ArgumentError, "so hold 4 or 7 elements; given: 6"),
]


class _Fake(np.ndarray[Any, Any]):
    """An array that looks as if it were on a GPU."""

    @property
    def gpudata(self) -> int:
        return self.ctypes.data


@pytest.mark.parametrize("first", [0, 24])
def test_halves_of_one_buffer(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies side by side does not overlap."""
    launched: list[tuple[int, ...]] = []
    monkeypatch.setattr(loading, "load", lambda *_: lambda *addresses, **_how: launched.append(addresses))
    buffer: Any = np.zeros(48).view(_Fake)
    matrix, out = buffer[first : first + 24].reshape(4, 6), buffer[24 - first : 48 - first].reshape(6, 4)
    assert arrays.transpose(matrix, out=out) is out
    assert launched == [(out.gpudata, matrix.gpudata)]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_arrays(call: Any, error: type[Exception], message: str) -> None:
    """A bad array or name is refused with what was given and what is allowed, device or not."""
    with pytest.raises(error, match=message):
        call(lambda array: array.view(_Fake))
