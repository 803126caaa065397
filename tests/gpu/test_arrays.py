"""The library face: GPUArrays in, GPUArrays out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpu_kernels
from kernelwatch.kernel import loading
from tests.cases import TRANSPOSES

pytestmark = pytest.mark.gpu


def on_gpu(array: Any) -> Any:
    """Copy a NumPy array to the device."""
    from pycuda import gpuarray

    loading.context()
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
