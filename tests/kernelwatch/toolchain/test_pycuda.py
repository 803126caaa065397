"""The PyCUDA path, which needs a driver library but no device: CI runs this against a stub."""

from __future__ import annotations

import itertools

import pytest

from benchmarks.sweeps import FLAG_SETS
from gpu_kernels import KERNELS, catalog
from kernelwatch.errors import CompileError, NoDeviceError
from kernelwatch.kernel import loading
from kernelwatch.kernel.dtypes import DTYPES
from kernelwatch.kernel.launch import DTYPE, FLAGS, words
from kernelwatch.toolchain import nvcc, nvcc_call, resources

pytestmark = pytest.mark.pycuda


#: Every kernel in every dtype that it has, moved ones in all; and in float32 with every flag set.
CASES = [
    (name, dtype, flag_set)
    for name, kernel in KERNELS.items()
    for dtype, flag_set in itertools.product(kernel.operation.names or DTYPES, FLAG_SETS)
    if dtype == DTYPE or flag_set == FLAGS
]


@pytest.mark.parametrize(("name", "dtype", "flag_set"), CASES)
def test_same_bytes_as_nvcc_by_itself(name: str, dtype: str, flag_set: str) -> None:
    """Through PyCUDA and directly, nvcc makes the same cubin and the same report."""
    kernel = catalog.get(name)
    options = (*words(flag_set), *kernel.options(dtype), "-e", name, "-Xptxas", "-v")
    arguments = (nvcc.find_nvcc(), "cubin", options, "sm_90", kernel.source_text())
    one, two = nvcc_call.through_pycuda(*arguments), nvcc_call.directly(*arguments)
    assert one.data == two.data
    assert resources.parse(one.messages, name) == resources.parse(two.messages, name)
    assert resources.remarks(one.messages) == resources.remarks(two.messages) == ""


def test_build_goes_through_pycuda(monkeypatch: pytest.MonkeyPatch, empty_cache: object) -> None:
    """Where PyCUDA can be imported, nothing is compiled around it."""
    monkeypatch.setattr(nvcc_call, "directly", None)
    assert KERNELS["offset_copy"].cubin("float32", arch="sm_90").data
    assert KERNELS["offset_copy"].ptx("float32", arch="sm_90")


def test_errors_carry_nvccs_text() -> None:
    """PyCUDA's error becomes this package's, with what nvcc said."""
    with pytest.raises(CompileError, match=r"nvcc failed: .*--cubin.*\n.*this declaration has no storage class"):
        nvcc_call.through_pycuda(nvcc.find_nvcc(), "cubin", (), "sm_90", "nonsense")


def test_driver_without_a_device() -> None:
    """A driver that finds no device is a missing device, not a crash."""
    import pycuda.driver as cuda

    try:
        cuda.init()
    except cuda.Error:
        with pytest.raises(NoDeviceError, match=r"the CUDA driver does not start: .*no CUDA-capable device"):
            loading.context()
    else:
        pytest.skip("there is a device")
